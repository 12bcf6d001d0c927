import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { seedDebian } from '../../src/registry-server/index.ts';
import { makeLayer } from '../../src/registry-server/layers.ts';
import { MEDIA_TYPES, makeAttestedIndex, makeImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';

type Config = {
  readonly architecture: string;
  readonly os: string;
  readonly variant?: string;
  readonly rootfs: { readonly diff_ids: readonly string[] };
};

describe('seedDebian', () => {
  it('fills eight repositories named as Debian names architectures; the configs speak Go', () =>
    withRegistry({}, async (registry) => {
      const images = seedDebian(registry);
      const seen = images.map((image) => {
        const config = JSON.parse(registry.blobOf(image.repository, image.config)?.toString() ?? '') as Config;
        return [image.repository, [config.os, config.architecture, config.variant].filter(Boolean).join('/')];
      });
      expect(Object.fromEntries(seen)).toEqual({
        'debian/amd64': 'linux/amd64',
        'debian/armel': 'linux/arm/v5',
        'debian/armhf': 'linux/arm/v7',
        'debian/arm64': 'linux/arm64/v8',
        'debian/i386': 'linux/386',
        'debian/mips64el': 'linux/mips64le',
        'debian/ppc64el': 'linux/ppc64le',
        'debian/s390x': 'linux/s390x',
      });
      for (const image of images) {
        expect(registry.tagOf(image.repository, 'bullseye')).toBe(image.digest);
        expect(registry.missingFrom(image.repository, 'bullseye')).toEqual([]);
      }
    }));

  it('gives forty blobs of their own, layers of the size asked for, the same bytes every time', () =>
    withRegistry({}, (registry) =>
      withRegistry({}, async (again) => {
        const images = seedDebian(registry, { layerBytes: 10_000 });
        expect(new Set(images.flatMap((image) => [image.config, ...image.layers])).size).toBe(40);
        expect(registry.blobOf('debian/amd64', images[0]?.layers[0] ?? '')).toHaveLength(10_000);
        expect(seedDebian(again, { layerBytes: 10_000 })).toEqual(images);
      }),
    ));

  it('makes the target, empty, where a push does not make it', () =>
    withRegistry('ecr-off', async (registry) => {
      seedDebian(registry);
      expect(registry.repositories()).toContain('debian/debian');
      expect(registry.tags('debian/debian')).toEqual([]);
    }));

  it('sharedBase: the first layer is the same everywhere', () =>
    withRegistry({}, async (registry) => {
      const images = seedDebian(registry, { sharedBase: true });
      expect(new Set(images.map((image) => image.layers[0])).size).toBe(1);
      expect(new Set(images.flatMap((image) => image.layers)).size).toBe(25);
    }));

  it('docker: Docker types', () =>
    withRegistry({}, async (registry) => {
      const [image] = seedDebian(registry, { docker: true, namespace: 'x/y', tag: 't', layers: 1 });
      expect(registry.manifestOf('x/y/amd64', 't')?.mediaType).toBe(MEDIA_TYPES.dockerManifest);
      expect(image?.layers).toHaveLength(1);
    }));

  it('attested: the tag is an index of the image and its attestation', () =>
    withRegistry({}, async (registry) => {
      const [image] = seedDebian(registry, { attested: true });
      const index = registry.manifestOf('debian/amd64', 'bullseye');
      expect(index?.mediaType).toBe(MEDIA_TYPES.ociIndex);
      expect(JSON.parse(index?.bytes.toString() ?? '')).toMatchObject({
        manifests: [
          { digest: image?.image, platform: { os: 'linux', architecture: 'amd64' } },
          {
            platform: { os: 'unknown', architecture: 'unknown' },
            annotations: {
              'vnd.docker.reference.type': 'attestation-manifest',
              'vnd.docker.reference.digest': image?.image,
            },
          },
        ],
      });
      expect(registry.missingFrom('debian/amd64', 'bullseye')).toEqual([]);
    }));

  it('layers from 16 MiB on cost no memory', () =>
    withRegistry({}, async (registry) => {
      const before = process.memoryUsage().rss;
      const images = seedDebian(registry, { layers: 1, layerBytes: 16 * 1024 * 1024 });
      expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
      expect(registry.hasBlob('debian/s390x', images.at(-1)?.layers[0] ?? '')).toBe(true);
    }));
});

describe('makeLayer', () => {
  it.each([2048, 2049, 2560, 3000, 4096, 65_535, 70_000, 200_001])('makes exactly %d bytes of tar.gz', (size) => {
    const { bytes, diffId } = makeLayer('seed', size);
    const tar = gunzipSync(bytes);
    expect(bytes).toHaveLength(size);
    expect(digestOf(tar)).toBe(diffId);
    expect(tar.length % 512).toBe(0);
    expect(tar.subarray(257, 262).toString()).toBe('ustar');
  });

  it('is plain bytes below 2 KiB', () => {
    expect(makeLayer('seed', 100).bytes).toHaveLength(100);
    expect(makeLayer('seed', 0).bytes).toHaveLength(0);
  });
});

describe('makeImage', () => {
  it('depends on the seed and nothing else', () => {
    expect(makeImage('a').bytes).toEqual(makeImage('a').bytes);
    expect(makeImage('a').descriptor.digest).not.toBe(makeImage('b').descriptor.digest);
  });

  it('an attested index points at its image', () => {
    const image = makeImage('a');
    const index = makeAttestedIndex(image, { os: 'linux', architecture: 'amd64' });
    expect(index.children[0]).toBe(image);
    expect(index.bytes.toString()).toContain(image.descriptor.digest);
  });
});
