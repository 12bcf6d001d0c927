import { describe, expect, it } from 'vitest';
import { parseReference } from '../../src/model/reference.ts';
import { verify } from '../../src/publish/verify.ts';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, putBuilt, seedAttested, seedImage } from '../helpers/images.ts';
import { counts, publishTo, sourcesOf, withPorts } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';

const TARGET = 'debian/debian:bullseye';
const amd64 = { os: 'linux', architecture: 'amd64' };
const arm64 = { os: 'linux', architecture: 'arm64' };

describe('a tag whose PUT was not answered', () => {
  it('is read, and a run whose tag is there has succeeded', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'manifestPut', path: /manifests\/1$/, times: 99, action: { kind: 'loseAnswer' } });
      const report = await publishTo(registry, 't/all:1', ['t/a:1'], { network: { retries: 0 } });
      expect(registry.tagOf('t/all', '1')).toBe(report.lists[0]?.index?.digest);
    }));

  it('is not said to have stayed when nobody can tell', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'manifestPut', path: /manifests\/1$/, times: 99, action: { kind: 'loseAnswer' } });
      registry.addFault({
        operation: 'manifestGet',
        repository: 't/all',
        nth: 2,
        times: 99,
        action: { kind: 'answer', status: 500 },
      });
      const run = publishTo(registry, 't/all:1', ['t/a:1'], { patient: true, network: { retries: 0 } });
      await expect(run).rejects.toMatchObject({ code: 'NETWORK_FAILED', moved: [expect.stringMatching(/perhaps/)] });
    }));

  it('names the tags that had moved before another was refused', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'manifestPut', path: /manifests\/b$/, action: { kind: 'answer', status: 403 } });
      const run = publishTo(registry, 't/all:a', ['t/a:1'], { tags: ['b'] });
      await expect(run).rejects.toMatchObject({ exitCode: 3, moved: [expect.stringMatching(/t\/all:a$/)] });
    }));
});

describe('looks at mounted blobs', () => {
  const answers = [
    { kind: 'answer', status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } },
    { kind: 'answer', status: 403 },
    { kind: 'answer', status: 429, headers: { 'retry-after': '3600' } },
    { kind: 'answer', status: 500 },
    { kind: 'reset', when: 'before' },
  ] as const;
  it.each(answers)('that bring no 404 are no news: $kind $status', (action) =>
    withRegistry({}, async (registry) => {
      const sources = sourcesOf(seedDebian(registry)).slice(0, 2);
      registry.addFault({ operation: 'blobHead', times: Number.POSITIVE_INFINITY, action });
      const report = await publishTo(registry, TARGET, sources, { patient: true });
      expect(report.totals.blobs.mounted).toBe(10);
    }),
  );

  it('that bring a 404 copy the blob and put the child again', () =>
    withRegistry({ mount: { mode: 'lie201' }, manifest: { children: 'none' } }, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64, layers: 1 });
      await publishTo(registry, 't/all:1', ['t/a:1']);
      const puts = requests(registry, 'manifestPut').filter((put) => put.reference.startsWith('sha256:'));
      expect(puts).toHaveLength(2);
      const copied = Math.max(...requests(registry, 'uploadPut').map((put) => put.end ?? 0));
      expect(puts[1]?.start).toBeGreaterThan(copied);
    }));
});

describe('order and repair', () => {
  it('puts an attestation only after its image was stored', () =>
    withRegistry({}, async (registry) => {
      seedAttested(registry, 't/a', '1', amd64);
      const report = await publishTo(registry, 't/all:1', ['t/a:1', 'linux/arm64=t/a:1'].slice(0, 1));
      const [image, attestation] = report.lists[0]?.images ?? [];
      const put = (digest: string | undefined) =>
        requests(registry, 'manifestPut').find(({ reference }) => reference === digest);
      expect(put(attestation?.digest)?.start).toBeGreaterThan(put(image?.digest)?.end ?? Number.POSITIVE_INFINITY);
    }));

  it('puts back a trusted child that the registry misses when the index comes, and says so', () =>
    withRegistry({}, async (registry) => {
      const images = seedDebian(registry);
      await publishTo(registry, TARGET, sourcesOf(images).slice(0, 2));
      registry.deleteManifest('debian/debian', String(images[0]?.image));
      const sources = sourcesOf(images).slice(0, 3);
      const report = await publishTo(registry, TARGET, sources, { verify: false, patient: true });
      expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
      const placed = report.lists[0]?.images.map((image) => image.placed[0]?.manifest);
      expect(placed).toEqual(['pushed', 'present', 'pushed']);
    }));

  it('takes an immutable tag that somebody has just moved to the same digest for done', () =>
    withRegistry({ manifest: { immutable: '400evenSame' } }, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      const first = await publishTo(registry, 't/all:1', ['t/a:1']);
      // The first look finds nothing, as if the other had published a moment later.
      registry.addFault({ operation: 'manifestGet', repository: 't/all', action: { kind: 'answer', status: 404 } });
      const second = await publishTo(registry, 't/all:1', ['t/a:1']);
      expect(second.lists[0]?.targets[0]).toMatchObject({ action: 'unchanged', digest: first.lists[0]?.index?.digest });
    }));

  it('warns of a tag that cannot be read, and goes on', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'manifestGet', repository: 't/all', action: { kind: 'answer', status: 403 } });
      const report = await publishTo(registry, 't/all:1', ['t/a:1']);
      expect(report.warnings).toEqual([expect.stringMatching(/taken as not there/)]);
    }));
});

describe('sources', () => {
  it('that end the run are not taken for the tag that was being read meanwhile', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/all', '1', { platform: amd64 });
      registry.addFault({ operation: 'manifestGet', repository: 't/all', action: { kind: 'stall', bytes: 10 } });
      const run = publishTo(registry, 't/all:1', ['localhost:1/x/y:1'], { network: { retries: 0 } });
      await expect(run).rejects.toMatchObject({
        side: 'source',
        registry: 'localhost:1',
        repository: 'x/y',
        message: expect.stringMatching(/^reading localhost:1\/x\/y:1: (?!.*reading)/),
      });
    }));

  it('does not wait for a source when the target has the blob', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const image = seedImage(registry, 't/a', '1', { platform: amd64, layers: 1 });
      const layer = image.blobs[1]?.descriptor.digest;
      registry.putBlob('t/all', registry.blobOf('t/a', String(layer)) ?? Buffer.alloc(0));
      registry.addFault({
        operation: 'blobGet',
        path: new RegExp(String(layer)),
        action: { kind: 'delay', milliseconds: 20_000 },
      });
      const report = await publishTo(registry, 't/all:1', ['t/a:1']);
      expect(report.totals.blobs.present).toBe(1);
    }));

  it('asks a source that does not open as often as anything, not that often squared', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const image = seedImage(registry, 't/a', '1', { platform: amd64, layers: 1 });
      const path = new RegExp(String(image.blobs[1]?.descriptor.digest));
      registry.addFault({
        operation: 'blobGet',
        path,
        times: Number.POSITIVE_INFINITY,
        action: { kind: 'answer', status: 503 },
      });
      const run = publishTo(registry, 't/all:1', ['t/a:1'], { patient: true });
      await expect(run).rejects.toMatchObject({ exitCode: 5, side: 'source' });
      expect(requests(registry, 'blobGet').filter((get) => path.test(get.path))).toHaveLength(6);
    }));

  it('ends at once for a failure that waiting does not mend', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'manifestGet', repository: 't/a', action: { kind: 'answer', status: 403 } });
      const run = publishTo(registry, 't/all:1', ['t/late:1', 't/a:1'], { waitForSource: 60_000 });
      await expect(run).rejects.toMatchObject({ exitCode: 3 });
    }));

  it('counts the entries of an index before it reads them, and reads each digest once', () =>
    withRegistry({}, async (registry) => {
      const leaf = { manifest: makeImage('leaf', { platform: amd64 }), platform: amd64 };
      const inner = makeIndex(Array.from({ length: 60 }, () => leaf));
      putBuilt(registry, 't/bomb', makeIndex(Array.from({ length: 60 }, () => ({ manifest: inner }))), '1');
      await expect(publishTo(registry, 't/all:1', ['t/bomb:1'])).rejects.toMatchObject({ code: 'MANIFEST_INVALID' });
      expect(counts(registry).manifestGet).toBeLessThan(10);
    }));

  it('refuses indexes nested deeper than three', () =>
    withRegistry({}, async (registry) => {
      let nested = makeIndex([{ manifest: makeImage('leaf', { platform: amd64 }), platform: amd64 }]);
      for (let depth = 0; depth < 3; depth += 1) nested = makeIndex([{ manifest: nested }]);
      putBuilt(registry, 't/deep', nested, '1');
      await expect(publishTo(registry, 't/all:1', ['t/deep:1'])).rejects.toThrow(/nested more than 3 deep/);
    }));
});

describe('PLATFORM= on an index', () => {
  const leaf = (platform: typeof amd64) => ({ manifest: makeImage(platform.architecture, { platform }), platform });
  const listed = async (registry: RunningRegistry, sources: readonly string[]) =>
    (await publishTo(registry, 't/all:1', sources)).lists[0]?.index?.manifests.map(
      (entry) => entry.platform?.architecture,
    );

  it('looks into an index that only nests another', () =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/n', makeIndex([{ manifest: makeIndex([leaf(amd64), leaf(arm64)]) }]), '1');
      expect(await listed(registry, ['linux/arm64=t/n:1'])).toEqual(['arm64']);
    }));

  it('is not there in an index of nothing', () =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/empty', makeIndex([]), '1');
      seedImage(registry, 't/a', '1', { platform: amd64 });
      await expect(publishTo(registry, 't/all:1', ['linux/s390x=t/empty:1', 't/a:1'])).rejects.toMatchObject({
        code: 'PLATFORM_NOT_FOUND',
      });
      expect(writes(registry)).toEqual([]);
    }));

  it('and without it: one manifest listed for two platforms stays two entries', () =>
    withRegistry({}, async (registry) => {
      const one = makeImage('both', { platform: amd64 });
      const two = makeIndex([
        { manifest: one, platform: amd64 },
        { manifest: one, platform: arm64 },
      ]);
      putBuilt(registry, 't/two', two, '1');
      seedImage(registry, 't/x', '1', { platform: { os: 'linux', architecture: 's390x' } });
      expect(await listed(registry, ['t/two:1', 't/x:1'])).toEqual(['amd64', 'arm64', 's390x']);
      expect(await listed(registry, ['linux/arm64=t/two:1'])).toEqual(['arm64']);
    }));
});

describe('verify', () => {
  const look = async (registry: RunningRegistry, deep = false, retries = 1) =>
    withPorts({ patient: true, network: { retries } }, (ports, signal) =>
      verify(parseReference(`${registry.host}/t/a:1`), { deep }, ports, signal),
    );
  it.each([
    [{ kind: 'answer', status: 403 }, 3],
    [{ kind: 'answer', status: 500 }, 5],
    [{ kind: 'reset', when: 'before' }, 5],
  ] as const)('of what cannot be looked at ends in that code, not in 6: %j', (action, exitCode) =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'blobHead', times: Number.POSITIVE_INFINITY, action });
      await expect(look(registry)).rejects.toMatchObject({ exitCode });
    }),
  );

  it('reads a body that broke off again', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'blobGet', action: { kind: 'truncate', bytes: 10 } });
      expect((await look(registry, true)).problems).toEqual([]);
    }));

  it('reads it as often as --retries says, not more', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64, layers: 0 });
      const action = { kind: 'truncate', bytes: 10 } as const;
      registry.addFault({ operation: 'blobGet', times: Number.POSITIVE_INFINITY, action });
      for (const retries of [0, 2]) {
        registry.clearJournal();
        await expect(look(registry, true, retries)).rejects.toMatchObject({ exitCode: 5 });
        expect(requests(registry, 'blobGet')).toHaveLength(1 + retries);
      }
    }));

  it('lists what is missing', () =>
    withRegistry({}, async (registry) => {
      const image = seedImage(registry, 't/a', '1', { platform: amd64 });
      const layer = String(image.blobs[1]?.descriptor.digest);
      registry.deleteBlob('t/a', layer);
      expect((await look(registry)).problems.map((problem) => problem.digest)).toEqual([layer]);
    }));
});

describe('uploads', () => {
  it('answered 429 wait and cost no try', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64, layers: 1 });
      const action = { kind: 'answer', status: 429 } as const;
      registry.addFault({ operation: 'uploadPut', times: 5, action });
      const report = await publishTo(registry, 't/all:1', ['t/a:1'], { patient: true, network: { retries: 1 } });
      expect(report.totals.blobs.copied).toBe(2);
    }));

  it('answered 503 leave no session open when the run ends', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64, layers: 1 });
      const action = { kind: 'answer', status: 503 } as const;
      registry.addFault({ operation: 'uploadPut', times: Number.POSITIVE_INFINITY, action });
      const run = publishTo(registry, 't/all:1', ['t/a:1'], { patient: true, network: { retries: 2 } });
      await expect(run).rejects.toMatchObject({ exitCode: 5 });
    }));
});
