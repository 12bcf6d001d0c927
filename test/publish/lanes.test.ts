import { describe, expect, it } from 'vitest';
import type { PublishEvent } from '../../src/publish/events.ts';
import { lanesOf } from '../../src/publish/lanes.ts';
import { seedImage } from '../helpers/images.ts';
import { publishAll, requestOf } from '../helpers/publishing.ts';
import { withRegistries } from '../helpers/registry.ts';

const lists = (count: number, host: string, from = host) =>
  Array.from({ length: count }, (_, tag) => requestOf(`${host}/all:${tag}`, [`${from}/t/a:1`]));

describe('lists side by side', () => {
  it('are sixteen where all are of one registry, in their order', () => {
    const requests = lists(40, 'r.test');
    const [lane, ...others] = lanesOf(requests);
    expect(others).toEqual([]);
    expect(lane?.width).toBe(16);
    expect(lane?.lists).toEqual([...requests.entries()]);
  });

  it('are sixteen for each set of registries, and sixty-four in all', () => {
    const widths = (kinds: number) =>
      lanesOf(Array.from({ length: kinds }, (_, kind) => lists(20, 'r.test', `r${kind}.test`)).flat()).map(
        ({ width }) => width,
      );
    expect(widths(4)).toEqual([16, 16, 16, 16]);
    expect(widths(8)).toEqual(Array.from({ length: 8 }, () => 8));
    expect(widths(64)).toEqual(Array.from({ length: 64 }, () => 1));
  });

  it('are never more than sixty-four, and none is left out, with a hundred registries', () => {
    const requests = Array.from({ length: 100 }, (_, kind) => lists(2, `r${kind}.test`)).flat();
    const lanes = lanesOf(requests);
    expect(lanes).toHaveLength(64);
    expect(lanes.reduce((sum, { width }) => sum + width, 0)).toBe(64);
    expect(lanes.flatMap((lane) => lane.lists.map(([position]) => position)).toSorted((a, b) => a - b)).toEqual([
      ...requests.keys(),
    ]);
  });

  it('of a registry that is slow do not hold up those of another', () =>
    withRegistries({}, {}, async (slow, quick) => {
      for (const registry of [slow, quick]) {
        seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
      }
      slow.addFault({ operation: 'manifestGet', times: 9999, action: { kind: 'delay', milliseconds: 3000 } });
      const ended: string[] = [];
      const onEvent = (event: PublishEvent): void => {
        if (event.kind === 'list.done') ended.push(event.target.slice(0, event.target.indexOf('/')));
      };
      await publishAll([slow, quick], [...lists(16, slow.host), ...lists(2, quick.host)], { onEvent });
      expect(ended.slice(0, 2)).toEqual([quick.host, quick.host]);
    }));
});
