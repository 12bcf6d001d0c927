import { describe, expect, it } from 'vitest';
import { makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import { counts, publishAll, requestOf } from '../helpers/publishing.ts';
import { withRegistry } from '../helpers/registry.ts';

const CHILDREN = 1000;

describe('one index of 1,000 children', () => {
  it('costs a read, its mounts, their looks and a PUT a child, over at most 64 connections; again a read and a look', () =>
    withRegistry({}, async (registry) => {
      const entries = Array.from({ length: CHILDREN }, (_, at) => {
        const platform = { os: 'windows', architecture: 'amd64', 'os.version': `10.0.${at}` };
        return { manifest: makeImage(`wide ${at}`, { platform, layers: 1, layerBytes: 256 }), platform };
      });
      const digest = putBuilt(registry, 't/wide', makeIndex(entries), 'all');
      const list = requestOf(`${registry.host}/x/wide:all`, [`${registry.host}/t/wide:all`]);
      const report = await publishAll([registry], [list]);
      expect(report.lists[0]?.index?.digest).toBe(digest);
      expect(report.totals.blobs.mounted).toBe(2 * CHILDREN);
      expect(counts(registry)).toEqual({
        manifestGet: CHILDREN + 2,
        mount: 2 * CHILDREN,
        blobHead: 2 * CHILDREN,
        manifestPut: CHILDREN + 1,
      });
      expect(new Set(registry.journal.map(({ connection }) => connection)).size).toBeLessThanOrEqual(64);
      registry.clearJournal();
      await publishAll([registry], [list]);
      expect(counts(registry)).toEqual({ manifestGet: CHILDREN + 2, manifestHead: CHILDREN });
    }));
});
