import { describe, expect, it } from 'vitest';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { digestOf } from '../../src/model/digest.ts';
import { seedDebian } from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, putBuilt, seedAttested, seedImage } from '../helpers/images.ts';
import { checkInvariants, counts, publishTo, sourcesOf } from '../helpers/publishing.ts';
import { blobBytesReceived, requests, withRegistries, withRegistry, writes } from '../helpers/registry.ts';

const TARGET = 'debian/debian:bullseye';
const ARCHITECTURES = ['amd64', 'arm/v5', 'arm/v7', 'arm64/v8', '386', 'mips64le', 'ppc64le', 's390x'];

describe('the three situations this program exists for', () => {
  it('ECR Public: every mount is answered 202, each blob is streamed once into the session of its own refusal', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const images = seedDebian(registry);
      const report = await publishTo(registry, TARGET, sourcesOf(images));
      expect(report.totals.blobs).toEqual({ present: 0, mounted: 0, copied: 40, skipped: 0 });
      const listed = report.lists[0]?.index?.manifests ?? [];
      expect(
        listed.map(({ platform }) => [platform?.architecture, platform?.variant].filter(Boolean).join('/')),
      ).toEqual(ARCHITECTURES);
      expect(registry.tagOf('debian/debian', 'bullseye')).toBe(report.lists[0]?.index?.digest);
      // 8 sources and the tag; 8 configs and 32 layers read; a HEAD before each copy; the index and 8 children.
      expect(counts(registry)).toEqual({
        manifestGet: 9,
        blobGet: 40,
        mount: 40,
        blobHead: 40,
        uploadPut: 40,
        manifestPut: 9,
      });
      const repositories = new Set(writes(registry).map((entry) => entry.repository));
      expect([...repositories]).toEqual(['debian/debian']);
    }));

  it('ECR: blobs that a manifest references are mounted, the one that none references is streamed alone', () =>
    withRegistry({ mount: { mode: 'referenced' } }, async (registry) => {
      const images = seedDebian(registry);
      // A tag that was pushed by digest only and whose manifest is gone from ECR's view: one layer is unreferenced.
      const [first] = images;
      const lonely = first?.layers[0];
      if (first === undefined || lonely === undefined) throw new Error('nothing was seeded');
      registry.configure({ mount: { byDigest: { [lonely]: 'ignore' } } });
      const before = images.map((image) => registry.tags(image.repository).join());
      const report = await publishTo(registry, TARGET, sourcesOf(images));
      expect(report.totals.blobs).toEqual({ present: 0, mounted: 39, copied: 1, skipped: 0 });
      expect(requests(registry, 'uploadPut')).toHaveLength(1);
      expect(images.map((image) => registry.tags(image.repository).join())).toEqual(before);
      expect(new Set(writes(registry).map((entry) => entry.repository))).toEqual(new Set(['debian/debian']));
    }));

  it('serverless-registry: 202 with a relative Location that carries _stateHash', () =>
    withRegistry(
      { mount: { mode: 'ignore' }, upload: { location: 'relative', state: '_stateHash' } },
      async (registry) => {
        const report = await publishTo(registry, TARGET, sourcesOf(seedDebian(registry)));
        expect(report.totals.blobs.copied).toBe(40);
        for (const put of requests(registry, 'uploadPut')) expect(put.query).toMatch(/^_stateHash=[^&]+&digest=sha256/);
      },
    ));
});

describe('request counts of the design', () => {
  it('mounts work, cold: 106 requests, 66 without verifying', () =>
    withRegistry({}, async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      await publishTo(registry, TARGET, sources);
      expect(counts(registry)).toEqual({ manifestGet: 9, blobGet: 8, mount: 40, blobHead: 40, manifestPut: 9 });
      registry.clearJournal();
      await publishTo(registry, 'debian/other:1', sources, { verify: false });
      expect(registry.journal).toHaveLength(66);
    }));

  it('again, nothing to do: 25 requests and no write; 17 without verifying', () =>
    withRegistry({}, async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      const first = await publishTo(registry, TARGET, sources);
      registry.clearJournal();
      const second = await publishTo(registry, TARGET, sources);
      expect(second.lists[0]?.targets[0]).toMatchObject({ action: 'unchanged', digest: first.lists[0]?.index?.digest });
      expect(counts(registry)).toEqual({ manifestGet: 9, blobGet: 8, manifestHead: 8 });
      registry.clearJournal();
      await publishTo(registry, TARGET, sources, { verify: false });
      expect(registry.journal).toHaveLength(17);
      expect(writes(registry)).toEqual([]);
    }));

  it('same repository: neither mount nor HEAD nor child PUT, one index under every tag', () =>
    withRegistry({}, async (registry) => {
      for (const architecture of ['amd64', 'arm64', 's390x']) {
        seedImage(registry, 'acme/app', architecture, { platform: { os: 'linux', architecture } });
      }
      const sources = ['amd64', 'arm64', 's390x'].map((tag) => `acme/app:${tag}`);
      const report = await publishTo(registry, 'acme/app:1.2.3', sources, { tags: ['1.2', '1', 'latest'] });
      expect(counts(registry)).toEqual({ manifestGet: 7, blobGet: 3, manifestPut: 4 });
      const digest = report.lists[0]?.index?.digest;
      for (const tag of ['1.2.3', '1.2', '1', 'latest']) expect(registry.tagOf('acme/app', tag)).toBe(digest);
    }));
});

describe('order', () => {
  it('moves the tag once, last, after every child was stored', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      await publishTo(registry, TARGET, sourcesOf(seedDebian(registry)));
      const puts = requests(registry, 'manifestPut');
      const tag = puts.at(-1);
      expect(tag?.reference).toBe('bullseye');
      expect(puts.slice(0, -1).every((put) => put.reference.startsWith('sha256:'))).toBe(true);
      const others = registry.journal.filter((entry) => entry !== tag && entry.operation !== 'uploadDelete');
      expect(Math.max(...others.map((entry) => entry.end ?? Number.POSITIVE_INFINITY))).toBeLessThan(tag?.start ?? 0);
    }));

  it('asks for mounts while it reads the configs, unless the request says something about platforms', async () => {
    const overlap = async (source: string): Promise<boolean> =>
      withRegistry({}, async (registry) => {
        seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
        registry.addFault({ operation: 'blobGet', action: { kind: 'delay', milliseconds: 60 } });
        await publishTo(registry, 't/all:1', [source]);
        const config = requests(registry, 'blobGet')[0];
        const mount = requests(registry, 'mount')[0];
        return (mount?.start ?? 0) < (config?.end ?? 0);
      });
    expect(await overlap('t/a:1')).toBe(true);
    expect(await overlap('linux/amd64=t/a:1')).toBe(false);
  });

  it('puts an image before its attestation', () =>
    withRegistry({ manifest: { subjectMustExist: true } }, async (registry) => {
      seedAttested(registry, 't/a', '1', { os: 'linux', architecture: 'amd64' });
      await publishTo(registry, 't/all:1', ['t/a:1', 't/a:1'].slice(0, 1));
      const puts = requests(registry, 'manifestPut').map((put) => put.reference);
      expect(puts).toHaveLength(3);
    }));
});

describe('nothing is written', () => {
  const refused = async (sources: readonly string[], options = {}): Promise<{ code: string; writes: number }> =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
      seedImage(registry, 't/b', '1', { platform: { os: 'linux', architecture: 'arm64' } });
      seedImage(registry, 't/a', 'again', { platform: { os: 'linux', architecture: 'amd64' } });
      registry.setTag('t/all', '1', registry.putManifest('t/all', Buffer.from('{"old":true}'), MEDIA_TYPES.ociIndex));
      const old = registry.tagOf('t/all', '1');
      let code = 'published';
      try {
        await publishTo(registry, 't/all:1', sources, options);
      } catch (error) {
        code = String((error as { code?: string }).code ?? error);
      }
      if (code !== 'published') expect(registry.tagOf('t/all', '1')).toBe(old);
      return { code, writes: writes(registry).length };
    });

  it('when a source is missing, and all missing ones are named', async () => {
    expect(await refused(['t/a:1', 't/gone:1', 't/lost:2'])).toEqual({ code: 'SOURCE_NOT_FOUND', writes: 0 });
  });
  it('when a platform contradicts', async () => {
    expect(await refused(['linux/s390x=t/a:1'])).toEqual({ code: 'PLATFORM_CONFLICT', writes: 0 });
  });
  it('when the platforms are not the expected ones', async () => {
    const expectPlatforms = [{ os: 'linux', architecture: 'riscv64' }];
    expect(await refused(['t/a:1', 't/b:1'], { expectPlatforms })).toEqual({ code: 'PLATFORM_NOT_FOUND', writes: 0 });
  });
  it('when a Docker list is wanted for OCI children', async () => {
    expect(await refused(['t/a:1'], { type: 'docker' })).toEqual({ code: 'INDEX_TYPE_CONFLICT', writes: 0 });
  });
  it('in a dry run, which tells the digest all the same', async () => {
    expect(await refused(['t/a:1', 't/b:1'], { dryRun: true })).toEqual({ code: 'published', writes: 0 });
  });
  it('but mounts, when duplicates show only in the configs: no manifest, no open session', async () => {
    const { code, writes: count } = await refused(['t/a:1', 't/a:again']);
    expect(code).toBe('PLATFORM_DUPLICATE');
    expect(count).toBeGreaterThan(0);
  });
});

describe('what a tag held before', () => {
  it('is told with an update, so that it can be taken back', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
      seedImage(registry, 't/b', '1', { platform: { os: 'linux', architecture: 'arm64' } });
      const first = await publishTo(registry, 't/all:1', ['t/a:1']);
      const second = await publishTo(registry, 't/all:1', ['t/a:1', 't/b:1']);
      expect(first.lists[0]?.targets[0]).not.toHaveProperty('previous');
      expect(second.lists[0]?.targets[0]).toMatchObject({ action: 'updated', previous: first.lists[0]?.index?.digest });
      expect(second.warnings).toEqual([]);
    }));

  it('is warned about when it was an image of its own and no source', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/app', 'amd64', { platform: { os: 'linux', architecture: 'amd64' } });
      seedImage(registry, 't/app', 'arm64', { platform: { os: 'linux', architecture: 'arm64' } });
      const report = await publishTo(registry, 't/app:amd64', ['t/app:arm64']);
      expect(report.warnings).toEqual([expect.stringMatching(/is an image of its own .* and no source/)]);
      const harmless = await publishTo(registry, 't/app:arm64', ['t/app:arm64']);
      expect(harmless.warnings).toEqual([]);
    }));

  it.each([false, true])('is not replaced where it may have been meant as a source; a dry run: %j', (dryRun) =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/app-amd64', '1', { platform: { os: 'linux', architecture: 'amd64' } });
      seedImage(registry, 't/app-arm64', '1', { platform: { os: 'linux', architecture: 'arm64' } });
      const options = { guardsImage: true, dryRun, also: [`${registry.host}/t/app:1`] } as const;
      const { length } = registry.journal;
      const before = registry.tagOf('t/app-amd64', '1');
      await expect(publishTo(registry, 't/app-amd64:1', ['t/app-arm64:1'], options)).rejects.toMatchObject({
        code: 'TAG_EXISTS',
        exitCode: 7,
        message: expect.stringContaining(`${registry.host}/t/app-amd64:1 is an image of its own (${before})`) as string,
        hint: expect.stringMatching(
          /^TARGET comes first: publish TARGET SOURCE\.\.\.; .* without -t first\.$/,
        ) as string,
      });
      expect(registry.journal.slice(length).filter(({ method }) => !['GET', 'HEAD'].includes(method))).toEqual([]);
      expect(registry.tagOf('t/app-amd64', '1')).toBe(before);
      // An image among the sources is where it belongs, and a further tag may be one.
      const further = { ...options, also: [`${registry.host}/t/app-arm64:1`] };
      const report = await publishTo(registry, 't/app-amd64:1', ['t/app-amd64:1'], further);
      expect(report.warnings).toEqual([expect.stringMatching(/app-arm64:1 is an image of its own/)]);
    }),
  );
});

it('never publishes a list of nothing', () =>
  withRegistry({}, async (registry) => {
    await expect(publishTo(registry, 't/all:1', [])).rejects.toMatchObject({ code: 'PLATFORM_NOT_FOUND' });
    expect(writes(registry)).toEqual([]);
  }));

it('says which side a refused tag read is on', () =>
  withRegistry({}, async (registry) => {
    seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
    registry.addFault({
      operation: 'manifestGet',
      repository: 't/all',
      times: 9,
      action: { kind: 'answer', status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } },
    });
    await expect(publishTo(registry, 't/all:1', ['t/a:1'])).rejects.toMatchObject({ side: 'target', exitCode: 3 });
  }));

describe('healing', () => {
  it('puts back a child that was deleted below an unchanged tag', () =>
    withRegistry({}, async (registry) => {
      const images = seedDebian(registry);
      const first = await publishTo(registry, TARGET, sourcesOf(images));
      const gone = images[2]?.image;
      if (gone === undefined) throw new Error('nothing was seeded');
      registry.deleteManifest('debian/debian', gone);
      registry.clearJournal();
      const second = await publishTo(registry, TARGET, sourcesOf(images));
      expect(second.lists[0]?.targets[0]?.action).toBe('unchanged');
      expect(second.lists[0]?.index?.digest).toBe(first.lists[0]?.index?.digest);
      expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
      expect(requests(registry, 'manifestPut').map((put) => put.reference)).toEqual([gone]);
    }));

  it('finishes a run that broke, without sending a blob twice', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const images = seedDebian(registry);
      registry.addFault({ operation: 'manifestPut', times: 99, action: { kind: 'answer', status: 403 } });
      await expect(publishTo(registry, TARGET, sourcesOf(images))).rejects.toMatchObject({ exitCode: 3 });
      registry.clearFaults();
      const sent = new Set(
        requests(registry, 'uploadPut')
          .filter((put) => put.status === 201)
          .map((put) => put.query),
      );
      registry.clearJournal();
      const report = await publishTo(registry, TARGET, sourcesOf(images));
      expect(report.totals.blobs.copied).toBe(40 - sent.size);
      expect(report.totals.blobs.present).toBe(sent.size);
    }));

  it('streams what a 201 claimed to have mounted, before the tag moves', () =>
    withRegistry({ mount: { mode: 'lie201' }, manifest: { children: 'none' } }, async (registry) => {
      const images = seedDebian(registry);
      const report = await publishTo(registry, TARGET, sourcesOf(images).slice(0, 2));
      expect(report.totals.blobs.copied).toBe(10);
      expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
    }));

  it('waits for what it wrote itself and the registry shows late', () =>
    withRegistry({ mount: { mode: 'ignore' }, manifest: { visibleAfterMs: 300 } }, async (registry) => {
      const images = seedDebian(registry);
      const report = await publishTo(registry, TARGET, sourcesOf(images).slice(0, 2));
      expect(report.lists[0]?.targets[0]?.action).toBe('created');
    }));
});

describe('several registries', () => {
  it('streams from one registry to another and reads each blob once', () =>
    withRegistries({}, {}, async (from, to) => {
      const images = seedDebian(from, { sharedBase: true });
      const sources = sourcesOf(images).map((source) => `${from.host}/${source}`);
      const report = await publishTo(to, TARGET, sources);
      checkInvariants(to);
      expect(report.totals.blobs.mounted).toBe(0);
      expect(requests(to, 'mount')).toEqual([]);
      const layers = requests(from, 'blobGet').map((get) => get.reference);
      expect(new Set(layers).size).toBe(layers.length);
      expect(blobBytesReceived(to)).toBe(report.totals.bytesSent);
    }));
});

describe('indexes as sources', () => {
  it('publishes a single index as it is: same bytes, same digest, no config read', () =>
    withRegistry({}, async (registry) => {
      const images = ['amd64', 'arm64'].map((architecture) => {
        const platform = { os: 'linux', architecture };
        return { manifest: makeImage(architecture, { platform }), platform };
      });
      const digest = putBuilt(registry, 't/multi', makeIndex(images), '1');
      const report = await publishTo(registry, 't/copy:1', ['t/multi:1']);
      expect(report.lists[0]?.index?.digest).toBe(digest);
      expect(registry.tagOf('t/copy', '1')).toBe(digest);
      expect(requests(registry, 'blobGet')).toEqual([]);
    }));

  it('flattens nested indexes', () =>
    withRegistry({}, async (registry) => {
      const leaf = (architecture: string) => {
        const platform = { os: 'linux', architecture };
        return { manifest: makeImage(architecture, { platform }), platform };
      };
      const inner = makeIndex([leaf('arm64'), leaf('s390x')]);
      putBuilt(registry, 't/nested', makeIndex([leaf('amd64'), { manifest: inner }]), '1');
      const report = await publishTo(registry, 't/flat:1', ['t/nested:1']);
      const listed = report.lists[0]?.index?.manifests.map((entry) => entry.platform?.architecture);
      expect(listed).toEqual(['amd64', 'arm64', 's390x']);
    }));
});

it('reports the digest of the bytes it sent', () =>
  withRegistry({}, async (registry) => {
    const report = await publishTo(registry, TARGET, sourcesOf(seedDebian(registry)));
    const stored = registry.manifestOf('debian/debian', 'bullseye');
    expect(digestOf(stored?.bytes ?? Buffer.alloc(0))).toBe(report.lists[0]?.index?.digest);
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
  }));
