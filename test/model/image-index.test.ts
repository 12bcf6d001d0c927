import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Descriptor, MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { digestOf, parseDigest } from '../../src/model/digest.ts';
import { buildIndex, indexTypeFor } from '../../src/model/image-index.ts';
import { parseManifest } from '../../src/model/manifest.ts';
import { failure } from './failure.ts';

const A = parseDigest(`sha256:${'a'.repeat(64)}`);
const B = parseDigest(`sha256:${'b'.repeat(64)}`);
const { ociManifest, ociIndex, dockerManifest, dockerList } = MEDIA_TYPES;
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

describe('the bytes of an index', () => {
  it('two plain images', () => {
    const built = buildIndex({
      mediaType: dockerList,
      manifests: [
        { mediaType: dockerManifest, digest: A, size: 528, platform: { architecture: 'amd64', os: 'linux' } },
        {
          mediaType: dockerManifest,
          digest: B,
          size: 529,
          platform: { os: 'linux', variant: 'v7', architecture: 'arm' },
        },
      ],
    });
    expect(text(built.bytes)).toBe(`{
  "schemaVersion": 2,
  "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
  "manifests": [
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 528,
      "digest": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "platform": {
        "architecture": "amd64",
        "os": "linux"
      }
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 529,
      "digest": "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
      "platform": {
        "architecture": "arm",
        "os": "linux",
        "variant": "v7"
      }
    }
  ]
}`);
    expect(built.digest).toBe('sha256:47c3327c649c5a051041141f7f732bcb3628b2477aa97a0c6c9cf911b5f00c9b');
    expect(built.mediaType).toBe(dockerList);
    expect(built.manifests).toHaveLength(2);
  });

  it('every field, in its place', () => {
    const built = buildIndex({
      mediaType: ociIndex,
      manifests: [
        {
          extra: { 'zz.vendor': { b: [], a: {}, '2': null, n: [1, 'x<&>\u2028é'] }, data: 'e30=' },
          urls: ['https://x.example.test/?a=1&b=2'],
          artifactType: 'application/x',
          platform: {
            variant: 'v8',
            'os.features': ['win32k'],
            'os.version': '10.0.17763.2300',
            os: 'windows',
            architecture: 'arm64',
          },
          annotations: { b: '2', 'a.b': '<html>&"\\', '10': 'ten', '9': 'nine', __proto__x: 'p' },
          size: 0,
          digest: A,
          mediaType: ociManifest,
        },
        { mediaType: ociManifest, digest: B, size: 1, annotations: {}, urls: [], extra: {} },
      ],
      annotations: { 'org.x': 'é', 'a.y': '' },
    });
    expect(text(built.bytes)).toBe(`{
  "schemaVersion": 2,
  "mediaType": "application/vnd.oci.image.index.v1+json",
  "manifests": [
    {
      "mediaType": "application/vnd.oci.image.manifest.v1+json",
      "size": 0,
      "digest": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "annotations": {
        "10": "ten",
        "9": "nine",
        "__proto__x": "p",
        "a.b": "<html>&\\"\\\\",
        "b": "2"
      },
      "platform": {
        "architecture": "arm64",
        "os": "windows",
        "os.version": "10.0.17763.2300",
        "os.features": [
          "win32k"
        ],
        "variant": "v8"
      },
      "artifactType": "application/x",
      "data": "e30=",
      "urls": [
        "https://x.example.test/?a=1&b=2"
      ],
      "zz.vendor": {
        "2": null,
        "b": [],
        "a": {},
        "n": [
          1,
          "x<&>\u2028é"
        ]
      }
    },
    {
      "mediaType": "application/vnd.oci.image.manifest.v1+json",
      "size": 1,
      "digest": "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    }
  ],
  "annotations": {
    "a.y": "",
    "org.x": "é"
  }
}`);
    expect(built.digest).toBe(digestOf(built.bytes));
  });

  it('no children, no annotations', () => {
    expect(text(buildIndex({ mediaType: ociIndex, manifests: [], annotations: {} }).bytes)).toBe(`{
  "schemaVersion": 2,
  "mediaType": "application/vnd.oci.image.index.v1+json",
  "manifests": []
}`);
  });

  it('an index over 4 MiB or 1,000 entries is refused before anybody is asked', () => {
    const entry: Descriptor = { mediaType: ociManifest, digest: A, size: 1 };
    const big = { ...entry, annotations: { a: 'é'.repeat(1024 * 1024) } };
    expect(buildIndex({ mediaType: ociIndex, manifests: [big] }).bytes.length).toBeLessThan(4 * 1024 * 1024);
    const tooBig = failure(() => buildIndex({ mediaType: ociIndex, manifests: [big, big] }));
    expect(tooBig).toMatchObject({ code: 'INDEX_TOO_LARGE', exitCode: 2 });
    const tooMany = failure(() => buildIndex({ mediaType: ociIndex, manifests: Array(1001).fill(entry) }));
    expect(tooMany).toMatchObject({ code: 'INDEX_TOO_LARGE', exitCode: 2 });
  });
});

describe('the type of an index', () => {
  const docker: Descriptor = { mediaType: dockerManifest, digest: A, size: 1 };
  const oci: Descriptor = { mediaType: ociManifest, digest: B, size: 1 };

  it.each<[string, readonly Descriptor[], 'auto' | 'oci' | 'docker', string]>([
    ['all Docker', [docker, docker], 'auto', dockerList],
    ['all OCI', [oci], 'auto', ociIndex],
    ['one OCI among Docker', [docker, oci], 'auto', ociIndex],
    ['nothing', [], 'auto', ociIndex],
    ['OCI wanted for Docker', [docker], 'oci', ociIndex],
    ['Docker wanted for Docker', [docker], 'docker', dockerList],
  ])('%s', (_title, children, wanted, expected) => {
    expect(indexTypeFor(children, wanted)).toBe(expected);
  });

  it('Docker wanted for OCI names what is OCI', () => {
    const error = failure(() => indexTypeFor([docker, oci], 'docker'));
    expect(error).toMatchObject({ code: 'INDEX_TYPE_CONFLICT', exitCode: 2 });
    expect(error.message).toContain(`${B} (${ociManifest})`);
    expect(error.message).not.toContain(A);
    const many = failure(() => indexTypeFor(Array(20).fill(oci), 'docker'));
    expect(many.message).toContain('and 12 more');
  });
});

describe('a flattened entry', () => {
  it('keeps what we do not interpret last, by name, its numbers as they were written', () => {
    const source = `{"schemaVersion":2,"mediaType":"${ociIndex}","manifests":[{"z":1.0,"mediaType":"${ociManifest}","a":{"n":[1e400,12345678901234567890]},"size":1,"digest":"${A}","platform":{"features":["sse4"],"os":"linux","x.level":2.0,"architecture":"amd64"}}]}`;
    const bytes = new TextEncoder().encode(source);
    const read = parseManifest(bytes, digestOf(bytes), undefined, 'x');
    if (read.kind !== 'index') throw new Error(read.kind);
    for (const layout of ['plain', 'docker'] as const) {
      const built = buildIndex({ mediaType: ociIndex, manifests: read.manifests, layout });
      expect(text(built.bytes).replace(/\s+/g, '')).toBe(
        `{"schemaVersion":2,"mediaType":"${ociIndex}","manifests":[{"mediaType":"${ociManifest}","size":1,"digest":"${A}","platform":{"architecture":"amd64","os":"linux","features":["sse4"],"x.level":2.0},"a":{"n":[1e400,12345678901234567890]},"z":1.0}]}`,
      );
    }
  });
});

describe('properties', () => {
  const word = fc.string({ minLength: 1, maxLength: 12 });
  const texts = fc.dictionary(word, fc.string(), { minKeys: 1, maxKeys: 5 });
  const known = new Set('mediatype digest size urls annotations platform artifacttype'.split(' '));
  const extra = fc.dictionary(
    word.filter((key) => !known.has(key.toLowerCase())),
    fc.jsonValue({ maxDepth: 3 }),
    {
      minKeys: 1,
      maxKeys: 4,
    },
  );
  const platform = fc.record(
    {
      architecture: word,
      os: word,
      'os.version': word,
      'os.features': fc.array(fc.string(), { minLength: 1, maxLength: 3 }),
      variant: word,
    },
    { requiredKeys: ['architecture', 'os'] },
  );
  const anyDescriptor = fc.record(
    {
      mediaType: fc.constantFrom(ociManifest, dockerManifest, ociIndex, 'x/y'),
      digest: fc.constantFrom(A, B),
      size: fc.maxSafeNat(),
      urls: fc.array(fc.string(), { minLength: 1, maxLength: 3 }),
      annotations: texts,
      platform,
      artifactType: word,
      extra,
      platformExtra: fc.dictionary(fc.stringMatching(/^x[a-z]{0,4}$/), fc.jsonValue({ maxDepth: 2 }), { minKeys: 1 }),
    },
    { requiredKeys: ['mediaType', 'digest', 'size'] },
  );
  /** A platform that is none takes its unknown fields with it. */
  const descriptor = anyDescriptor.filter((one) => one.platform !== undefined || one.platformExtra === undefined);
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  it('what is built is read back: the same descriptors, flattened ones with all their fields', () => {
    fc.assert(
      fc.property(
        fc.array(descriptor, { maxLength: 4 }),
        fc.option(texts, { nil: undefined }),
        (manifests, annotations) => {
          const built = buildIndex({
            mediaType: ociIndex,
            manifests,
            ...(annotations === undefined ? {} : { annotations }),
          });
          const read = parseManifest(built.bytes, built.digest, ociIndex, 'built');
          expect(read).toMatchObject({ kind: 'index', digest: built.digest, size: built.bytes.length });
          expect(read.kind === 'index' && plain(read.manifests)).toEqual(plain(manifests));
          expect(plain(read.annotations ?? {})).toEqual(plain(annotations ?? {}));
          const again = buildIndex({
            mediaType: read.mediaType,
            manifests: read.kind === 'index' ? read.manifests : [],
            ...(read.annotations === undefined ? {} : { annotations: read.annotations }),
          });
          expect(again.digest).toBe(built.digest);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('the same entries give the same bytes, in whatever order their fields and annotations were written', () => {
    const reversed = (value: object): object => Object.fromEntries(Object.entries(value).reverse());
    fc.assert(
      fc.property(descriptor, (one) => {
        const other = reversed({
          ...one,
          ...(one.annotations === undefined ? {} : { annotations: reversed(one.annotations) }),
          ...(one.platform === undefined ? {} : { platform: reversed(one.platform) }),
        }) as Descriptor;
        expect(buildIndex({ mediaType: ociIndex, manifests: [other] }).digest).toBe(
          buildIndex({ mediaType: ociIndex, manifests: [one as Descriptor] }).digest,
        );
      }),
    );
  });
});
