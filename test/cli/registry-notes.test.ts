import { describe, expect, it } from 'vitest';
import { registryNotes } from '../../src/cli/registry-notes.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import { seedImage } from '../helpers/images.ts';
import { publishTo } from '../helpers/publishing.ts';
import { withRegistry } from '../helpers/registry.ts';

const HOST = 'registry.example.test';

describe('notes of registries', () => {
  it('say who says it, and each once', () => {
    const notes = registryNotes();
    const warning = { kind: 'warning', host: HOST, text: 'we move on friday' } as const;
    expect(notes.add(warning)).toBe(`${HOST} says: we move on friday`);
    expect(notes.add(warning)).toBeUndefined();
    expect(notes.add({ ...warning, host: 'other.test' })).toBe('other.test says: we move on friday');
    expect(notes.all()).toHaveLength(2);
  });

  it('tell each step of a limit, of which the report keeps the last', () => {
    const notes = registryNotes();
    const rate = { kind: 'rate', host: 'docker.io', remaining: 10, limit: 100, windowSeconds: 21_600 } as const;
    expect(notes.add(rate)).toBe('docker.io allows 10 more requests of 100 in 6 h');
    expect(notes.add({ ...rate, remaining: 5, source: '192.0.2.1' })).toBe(
      'docker.io allows 5 more requests of 100 in 6 h for 192.0.2.1',
    );
    expect(notes.add({ ...rate, remaining: 4 })).toBe('docker.io allows 4 more requests of 100 in 6 h');
    expect(notes.add({ kind: 'rate', host: HOST, remaining: 0, limit: 9 })).toBe(`${HOST} allows 0 more requests of 9`);
    expect(notes.all()).toEqual([
      'docker.io allows 4 more requests of 100 in 6 h',
      'docker.io allows 5 more requests of 100 in 6 h for 192.0.2.1',
      `${HOST} allows 0 more requests of 9`,
    ]);
  });

  it('tell a window that is no whole hour as a duration', () => {
    const rate = { kind: 'rate', host: HOST, remaining: 1, limit: 9, windowSeconds: 90 } as const;
    expect(registryNotes().add(rate)).toBe(`${HOST} allows 1 more requests of 9 in 1 min 30 s`);
  });
});

describe('what a registry repeats of a login', () => {
  it('is hidden in what it says of its limits', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1');
      const password = 'Pw-9x!kLmNo';
      const set = {
        'ratelimit-limit': '100;w=3600',
        'ratelimit-remaining': '1;w=3600',
        'docker-ratelimit-source': password,
      };
      registry.addFault({ operation: 'manifestGet', times: 9, action: { kind: 'headers', set } });
      const texts: string[] = [];
      const onEvent = (event: PublishEvent) => event.kind === 'warning' && texts.push(event.text);
      await publishTo(registry, 't/all:1', ['t/a:1'], { logins: { [registry.host]: password }, onEvent });
      expect(texts).toEqual([`${registry.host} allows 1 more requests of 100 in 1 h for ***`]);
    }));
});
