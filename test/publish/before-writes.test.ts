import { describe, expect, it } from 'vitest';
import { parseReference } from '../../src/model/reference.ts';
import { verify } from '../../src/publish/verify.ts';
import type { BuiltManifest, RunningRegistry } from '../../src/registry-server/index.ts';
import { MEDIA_TYPES, makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { counts, publishTo, withPorts } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';

const amd64 = { os: 'linux', architecture: 'amd64' };
const MIB = 1024 * 1024;

/** An image whose config says an os.version of about this many bytes. */
function seedLong(registry: RunningRegistry, repository: string, bytes: number): void {
  seedImage(registry, repository, '1', {
    platform: { ...amd64, 'os.version': `${repository} `.repeat(bytes / 4) },
    layers: 1,
  });
}

describe('an index that would be too large', () => {
  it('is found before any write when the entries alone make it so', () =>
    withRegistry({}, async (registry) => {
      const leaf = makeImage('leaf', { platform: amd64 });
      const long = (name: string) => ({
        manifest: leaf,
        platform: amd64,
        annotations: { name, long: 'x'.repeat(2.2 * MIB) },
      });
      putBuilt(registry, 't/one', makeIndex([long('1')]), '1');
      putBuilt(registry, 't/two', makeIndex([long('2')]), '1');
      const run = publishTo(registry, 't/all:1', ['t/one:1', 't/two:1']);
      await expect(run).rejects.toMatchObject({ code: 'INDEX_TOO_LARGE', exitCode: 2 });
      expect(writes(registry)).toEqual([]);
    }));

  it('is found before any write when only the configs tell', () =>
    withRegistry({}, async (registry) => {
      seedLong(registry, 't/a', 2.5 * MIB);
      seedLong(registry, 't/b', 2.5 * MIB);
      const run = publishTo(registry, 't/all:1', ['t/a:1', 't/b:1']);
      await expect(run).rejects.toMatchObject({ code: 'INDEX_TOO_LARGE', exitCode: 2 });
      expect(writes(registry)).toEqual([]);
    }));

  it('but large configs are no reason to refuse: then the mounts wait for them', () =>
    withRegistry({}, async (registry) => {
      seedLong(registry, 't/a', MIB);
      registry.addFault({ operation: 'blobGet', action: { kind: 'delay', milliseconds: 60 } });
      await publishTo(registry, 't/all:1', ['t/a:1']);
      expect(requests(registry, 'mount')[0]?.start).toBeGreaterThan(requests(registry, 'blobGet')[0]?.end ?? 1e300);
    }));
});

describe('--type docker', () => {
  it('refuses an OCI image also in a Docker list that needs no change', () =>
    withRegistry({}, async (registry) => {
      const list = makeIndex([{ manifest: makeImage('oci', { platform: amd64 }), platform: amd64 }], { docker: true });
      putBuilt(registry, 't/list', list, '1');
      for (const more of [{}, { expectPlatforms: [amd64] }, { dryRun: true }]) {
        const run = publishTo(registry, 't/all:1', ['t/list:1'], { type: 'docker', ...more });
        await expect(run).rejects.toMatchObject({ code: 'INDEX_TYPE_CONFLICT', exitCode: 2 });
      }
      expect(writes(registry)).toEqual([]);
      const report = await publishTo(registry, 't/all:1', ['t/list:1']);
      expect(report.lists[0]?.index?.digest).toBe(list.descriptor.digest);
    }));
});

type Named = { urls?: readonly string[] };

/** The image with `urls` on its config or on its first layer. */
function withUrls(image: BuiltManifest, what: 'config' | 'layer'): BuiltManifest {
  const document = JSON.parse(image.bytes.toString()) as { config: Named; layers: [Named] };
  (what === 'config' ? document.config : document.layers[0]).urls = ['https://example.test/elsewhere'];
  const bytes = Buffer.from(JSON.stringify(document));
  return { ...image, bytes, descriptor: { ...image.descriptor, size: bytes.length } };
}

it('a layer that one image calls foreign and another does not is there, and told so for both', () =>
  withRegistry({}, async (registry) => {
    const base = { base: 'shared', layers: 1 };
    putBuilt(registry, 't/a', withUrls(makeImage('a', { ...base, platform: amd64 }), 'layer'), '1');
    putBuilt(registry, 't/b', makeImage('b', { ...base, platform: { os: 'linux', architecture: 'arm64' } }), '1');
    const report = await publishTo(registry, 't/all:1', ['t/a:1', 't/b:1']);
    const how = report.lists[0]?.images.map(({ placed }) => placed[0]?.blobs.map((blob) => blob.how));
    expect(how).toEqual([
      ['mounted', 'mounted'],
      ['mounted', 'mounted'],
    ]);
    expect(report.totals.blobs).toEqual({ present: 0, mounted: 3, copied: 0, skipped: 0 });
  }));

describe('a config with urls', () => {
  it('is mounted like any other, and one that is missing is found by verify', () =>
    withRegistry({ manifest: { children: 'none' } }, async (registry) => {
      const image = withUrls(makeImage('urls', { platform: amd64, layers: 1 }), 'config');
      putBuilt(registry, 't/a', image, '1');
      const config = String(image.blobs[0]?.descriptor.digest);
      const report = await publishTo(registry, 't/all:1', ['t/a:1']);
      expect(report.totals.blobs).toMatchObject({ mounted: 2, skipped: 0 });
      expect(registry.hasBlob('t/all', config)).toBe(true);

      registry.deleteBlob('t/all', config);
      const found = await withPorts({}, (ports, signal) =>
        verify(parseReference(`${registry.host}/t/all:1`), { deep: false }, ports, signal),
      );
      expect(found).toMatchObject({ skipped: 0, problems: [{ digest: config }] });
    }));
});

describe('what a source index says that nobody here interprets', () => {
  const strange = (digest: string, size: number): string =>
    `{"x.n":1.0,"mediaType":"${MEDIA_TYPES.ociManifest}","digest":"${digest}","size":${size},"big":12345678901234567890,"platform":{"architecture":"amd64","os":"linux","features":["sse4"],"level":1e400}}`;
  const put = (registry: RunningRegistry): Buffer => {
    const image = makeImage('strange', { platform: amd64 });
    putBuilt(registry, 't/a', image);
    const { digest, size } = image.descriptor;
    const bytes = Buffer.from(`{"schemaVersion":2,\n\n "manifests":[${strange(digest, size)}]}`);
    registry.putManifest('t/a', bytes, MEDIA_TYPES.ociIndex, '1');
    return bytes;
  };

  it('is published as it is when the index is the only source, with the same bytes', () =>
    withRegistry({}, async (registry) => {
      const bytes = put(registry);
      await publishTo(registry, 't/all:1', ['t/a:1']);
      expect(registry.manifestOf('t/all', '1')?.bytes.equals(bytes)).toBe(true);
    }));

  it('comes last, by name, with its numbers as they were written, when the index is flattened', () =>
    withRegistry({}, async (registry) => {
      put(registry);
      seedImage(registry, 't/b', '1', { platform: { os: 'linux', architecture: 'arm64' } });
      await publishTo(registry, 't/all:1', ['t/a:1', 't/b:1']);
      const text = registry.manifestOf('t/all', '1')?.bytes.toString() ?? '';
      expect(text.replace(/\s+/g, '')).toContain(
        '"platform":{"architecture":"amd64","os":"linux","features":["sse4"],"level":1e400},"big":12345678901234567890,"x.n":1.0}',
      );
    }));
});

describe('--expect-platforms', () => {
  const windows = (version: string) => ({ os: 'windows', architecture: 'amd64', 'os.version': version });
  const expected = { os: 'windows', architecture: 'amd64' };
  const [old, young] = [windows('10.0.17763.1'), windows('10.0.20348.1')];

  async function run(
    expectPlatforms: readonly (typeof expected)[],
    versions: readonly (typeof old)[],
  ): Promise<string> {
    return withRegistry({}, async (registry) => {
      const sources = versions.map((platform, index) => {
        seedImage(registry, `t/w${index}`, '1', { platform });
        return `t/w${index}:1`;
      });
      try {
        await publishTo(registry, 't/all:1', sources, { expectPlatforms });
        return 'published';
      } catch (error) {
        expect(counts(registry).mount).toBeUndefined();
        return (error as Error).message;
      }
    });
  }

  it('without an os.version stands for every one, however many', async () => {
    expect(await run([expected], [old])).toBe('published');
    expect(await run([expected], [old, young])).toBe('published');
    expect(await run([expected, young], [old, young])).toBe('published');
  });

  it('with an os.version stands for that one, and is an exact set all the same', async () => {
    expect(await run([old], [young])).toMatch(
      /missing windows\/amd64:10.0.17763.1; not expected windows\/amd64:10.0.20348.1/,
    );
    expect(await run([old], [old, young])).toMatch(/: not expected windows\/amd64:10.0.20348.1$/);
    expect(await run([expected, old], [old])).toMatch(/: missing windows\/amd64$/);
    expect(await run([expected, { os: 'linux', architecture: 'amd64' }], [old])).toMatch(/: missing linux\/amd64$/);
  });
});
