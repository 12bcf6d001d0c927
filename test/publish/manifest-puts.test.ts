import { describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { makeImage, putBuilt, seedImage } from '../helpers/images.ts';
import { publishTo } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';

const amd64 = { os: 'linux', architecture: 'amd64' };
const arm64 = { os: 'linux', architecture: 'arm64' };
const s390x = { os: 'linux', architecture: 's390x' };
const TARGET = 't/all:1';

/** How registries say that a manifest names what they lack; the last is zot's for the child of an index. */
const WAYS = [
  '400 MANIFEST_BLOB_UNKNOWN',
  '404 MANIFEST_BLOB_UNKNOWN',
  '400 BLOB_UNKNOWN',
  '404 BLOB_UNKNOWN',
  '400 MANIFEST_INVALID',
] as const;

function seed(registry: RunningRegistry): void {
  seedImage(registry, 't/a', '1', { platform: amd64, layers: 1 });
  seedImage(registry, 't/b', '1', { platform: arm64, layers: 1 });
}

describe('what a registry says is missing is put there', () => {
  it.each(WAYS)('%s for a child: blobs that were said to be mounted are copied', (childError) =>
    withRegistry({ mount: { mode: 'lie201' }, manifest: { childError } }, async (registry) => {
      seed(registry);
      const report = await publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { patient: true, verify: false });
      expect(report.totals.blobs).toMatchObject({ copied: 4, mounted: 0 });
      expect(registry.missingFrom('t/all', '1')).toEqual([]);
    }),
  );

  for (const headMissing of ['404', '403', '500'] as const) {
    it.each(WAYS)(
      `%s for the index: children that were only listed are put, HEAD answers ${headMissing}`,
      (childError) =>
        withRegistry({ manifest: { childError, headMissing } }, async (registry) => {
          seed(registry);
          seedImage(registry, 't/c', '1', { platform: s390x, layers: 1 });
          const first = await publishTo(registry, TARGET, ['t/a:1', 't/b:1']);
          registry.deleteManifest('t/all', String(first.lists[0]?.images[0]?.digest));
          const sources = ['t/a:1', 't/b:1', 't/c:1'];
          const network = { retries: 0 };
          await publishTo(registry, TARGET, sources, { verify: false, patient: true, network });
          expect(registry.missingFrom('t/all', '1')).toEqual([]);
        }),
    );
  }

  it('404 MANIFEST_UNKNOWN with nothing missing is asked once more, as what was written may show late', () =>
    withRegistry({}, async (registry) => {
      seed(registry);
      const body = '{"errors":[{"code":"MANIFEST_UNKNOWN"}]}';
      const path = /manifests\/1$/;
      registry.addFault({ operation: 'manifestPut', path, action: { kind: 'answer', status: 404, body } });
      await publishTo(registry, TARGET, ['t/a:1'], { patient: true });
      expect(requests(registry, 'manifestPut').filter((put) => path.test(put.path))).toHaveLength(2);
    }));

  it.each([
    [1500, [1000, 2000]],
    [6500, [1000, 2000, 4000]],
  ])('what was written and shows after %i ms is waited for, and put once', async (visibleAfterMs, waits) => {
    for (const childError of WAYS) {
      let time = 1_800_000_000_000;
      const options = { profile: { manifest: { childError, visibleAfterMs } }, now: () => time };
      await withRegistry({ options }, async (registry) => {
        const image = makeImage('late', { platform: amd64, layers: 1 });
        putBuilt(registry, 't/a', image, '1');
        // Its blobs are there, so that the child is stored at once, and the index must wait for the child.
        for (const { content } of image.blobs) if ('bytes' in content) registry.putBlob('t/all', content.bytes);
        const slept: number[] = [];
        const onSleep = (milliseconds: number): void => {
          slept.push(milliseconds);
          time += milliseconds;
        };
        await publishTo(registry, TARGET, ['t/a:1'], { patient: true, onSleep });
        expect(slept).toEqual(waits);
        const stored = requests(registry, 'manifestPut').filter((put) => put.status === 201);
        expect(stored).toHaveLength(2);
      });
    }
  });
});

describe('HEADs that tell nothing', () => {
  it.each(['403', '500'] as const)('%s for a child that is not there: it is put', (headMissing) =>
    withRegistry({ manifest: { headMissing } }, async (registry) => {
      seed(registry);
      const first = await publishTo(registry, TARGET, ['t/a:1', 't/b:1']);
      const gone = String(first.lists[0]?.images[1]?.digest);
      registry.deleteManifest('t/all', gone);
      registry.clearJournal();
      const second = await publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { patient: true, network: { retries: 0 } });
      expect(second.lists[0]?.targets[0]?.action).toBe('unchanged');
      expect(requests(registry, 'manifestPut').map((put) => put.reference)).toEqual([gone]);
      expect(registry.missingFrom('t/all', '1')).toEqual([]);
    }),
  );
});

describe('tags that may not be moved', () => {
  const forms = ['400evenSame', '409', '412', '400redeploy'] as const;

  it.each(forms)('%s: the same digest is a success without a PUT, another ends in 7 and moves nothing', (immutable) =>
    withRegistry({ manifest: { immutable } }, async (registry) => {
      seed(registry);
      const first = await publishTo(registry, TARGET, ['t/a:1']);
      registry.clearJournal();
      const again = await publishTo(registry, TARGET, ['t/a:1']);
      expect(again.lists[0]?.targets[0]?.action).toBe('unchanged');
      expect(requests(registry, 'manifestPut')).toEqual([]);
      const run = publishTo(registry, TARGET, ['t/a:1', 't/b:1']);
      await expect(run).rejects.toMatchObject({ code: 'TAG_IMMUTABLE', exitCode: 7, side: 'target', moved: [] });
      expect(registry.tagOf('t/all', '1')).toBe(first.lists[0]?.index?.digest);
    }),
  );

  it.each(forms)('%s: the same digest put by somebody else a moment ago is a success', (immutable) =>
    withRegistry({ manifest: { immutable } }, async (registry) => {
      seed(registry);
      await publishTo(registry, TARGET, ['t/a:1']);
      registry.addFault({ operation: 'manifestGet', repository: 't/all', action: { kind: 'answer', status: 404 } });
      const second = await publishTo(registry, TARGET, ['t/a:1']);
      expect(second.lists[0]?.targets[0]?.action).toMatch(/unchanged|created/);
      expect(registry.tagMoves.filter(({ from, to }) => from !== to)).toHaveLength(1);
    }),
  );

  it('400redeploy: a child that is there already may not be written again, and counts as stored', () =>
    withRegistry({ manifest: { immutable: '400redeploy' } }, async (registry) => {
      const image = makeImage('there', { platform: amd64 });
      putBuilt(registry, 't/all', image);
      putBuilt(registry, 't/a', image, '1');
      const report = await publishTo(registry, TARGET, ['t/a:1']);
      expect(report.lists[0]?.targets[0]?.action).toBe('created');
    }));
});

describe('a type that the registry does not take', () => {
  it('is named with its image, and what to convert', () =>
    withRegistry({ manifest: { types: 'ociOnly415' } }, async (registry) => {
      const image = seedImage(registry, 't/a', '1', { platform: amd64, docker: true });
      const error = (await publishTo(registry, TARGET, ['t/a:1'], { type: 'oci' }).catch(
        (thrown: unknown) => thrown,
      )) as {
        readonly message: string;
        readonly hint: string;
        readonly exitCode: number;
      };
      expect(error.exitCode).toBe(5);
      expect(error.message).toContain('as application/vnd.docker.distribution.manifest.v2+json');
      expect(error.message).toContain(`t/a:1@${image.descriptor.digest}`);
      expect(error.hint).toContain('skopeo copy --all --format oci');
    }));
});
