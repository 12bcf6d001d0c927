import { describe, expect, it } from 'vitest';
import { manifestPuts, published, withCase } from './report.ts';

describe('tags', () => {
  it('TAG-01: on a registry with immutable tags children go up by digest, and the tag is written once, last', () =>
    withCase('TAG-01', async ({ registry, run, expect: wanted }) => {
      const { entries } = published(registry, await run());
      const { children, tags } = manifestPuts(registry);
      const written: Record<string, number> = {};
      for (const { repository, reference } of tags) {
        const name = `${repository}:${reference}`;
        written[name] = (written[name] ?? 0) + 1;
      }
      expect(written).toEqual(wanted['tagWrites']);
      expect(children.map(({ reference }) => reference).sort()).toEqual(entries.map(({ digest }) => digest).sort());
    }));

  it('TAG-01: also where the registry would take an index of nothing, the tag moves to a complete one', () =>
    withCase('TAG-01', async ({ registry, run }) => {
      registry.configure({ manifest: { children: 'none' }, mount: { mode: 'ignore' } });
      const { repository, tag, digest } = published(registry, await run());
      expect(registry.tagMoves).toEqual([{ repository, tag, from: undefined, to: digest, missing: [] }]);
    }));

  it('TAG-01: an immutable tag that holds something else is left alone, which is exit code 7 and said', () =>
    withCase('TAG-01', async ({ registry, run, host, expect: wanted }) => {
      const [name = ''] = Object.keys(wanted['tagWrites'] as object);
      const [repository = '', tag = ''] = name.split(':');
      const old = registry.tagOf('t/a', '1');
      const { bytes, mediaType } = registry.manifestOf('t/a', '1') ?? { bytes: Buffer.of(), mediaType: '' };
      registry.putManifest(repository, bytes, mediaType, tag);
      const finished = await run();
      expect(finished.stderr).toContain(`${host('reg.example.test')}/${name}`);
      expect({ stdout: finished.stdout, exitCode: finished.exitCode }).toEqual({ stdout: '', exitCode: 7 });
      expect(registry.tagOf(repository, tag)).toBe(old);
      expect(registry.tagMoves).toEqual([]);
    }));
});
