import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { type Descriptor, MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { digestOf, parseDigest } from '../../src/model/digest.ts';
import {
  isDockerType,
  isForeignLayer,
  isImageConfigType,
  type Manifest,
  parseImageConfig,
  parseManifest,
} from '../../src/model/manifest.ts';
import { CONTROLS, failure } from './failure.ts';

const NAME = 'reg.example.test/x:1';
const A = parseDigest(`sha256:${'a'.repeat(64)}`);
const B = parseDigest(`sha256:${'b'.repeat(64)}`);
const { ociManifest, ociIndex, dockerManifest, dockerList, ociConfig, dockerConfig } = MEDIA_TYPES;
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function parse(document: unknown, contentType?: string): Manifest {
  const data = bytes(typeof document === 'string' ? document : JSON.stringify(document));
  return parseManifest(data, digestOf(data), contentType, NAME);
}

const config = { mediaType: ociConfig, digest: A, size: 2 };
const layer = { mediaType: LAYER, digest: B, size: 3 };
const image = { schemaVersion: 2, mediaType: ociManifest, config, layers: [layer] };
const entry = { mediaType: ociManifest, digest: A, size: 7 };
const index = { schemaVersion: 2, mediaType: ociIndex, manifests: [entry] };

describe('an image manifest', () => {
  it('gives config and layers, with its own digest and size', () => {
    const data = bytes(JSON.stringify(image));
    expect(parseManifest(data, digestOf(data), ociManifest, NAME)).toEqual({
      kind: 'image',
      mediaType: ociManifest,
      digest: digestOf(data),
      size: data.length,
      config,
      layers: [layer],
    });
  });

  it('gives subject, artifactType and annotations', () => {
    const document = { ...image, subject: entry, artifactType: 'a/b', annotations: { k: 'v' } };
    expect(parse(document)).toMatchObject({ subject: entry, artifactType: 'a/b', annotations: { k: 'v' } });
  });

  it.each(['DIG-01', 'MED-01', 'MED-03'])('%s: documents of any layout are read', (id) => {
    const folder = new URL(`../cases/${id}/manifests/`, import.meta.url);
    const files = readdirSync(folder);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const data = readFileSync(new URL(file, folder));
      const digest = parseDigest(file.replace('_', ':').replace('.json', ''));
      expect(digestOf(data)).toBe(digest);
      const manifest = parseManifest(data, digest, undefined, file);
      expect(manifest).toMatchObject({ kind: 'image', digest, size: data.length });
    }
  });

  it('may have no layers, also written as null', () => {
    expect(parse({ ...image, layers: [] })).toMatchObject({ layers: [] });
    expect(parse({ ...image, layers: null })).toMatchObject({ layers: [] });
  });

  it('keeps fields of descriptors it does not know, and reads none of them', () => {
    const strange = {
      ...layer,
      data: 'e30=',
      size2: 1e300,
      nested: { b: [1, { a: null }] },
      ['__proto__']: { size: 1 },
    };
    const [read] = (parse({ ...image, layers: [strange] }) as { readonly layers: readonly Descriptor[] }).layers;
    expect(read?.size).toBe(3);
    expect(Object.entries(read?.extra ?? {})).toEqual([
      ['data', 'e30='],
      ['size2', 1e300],
      ['nested', { b: [1, { a: null }] }],
      ['__proto__', { size: 1 }],
    ]);
  });

  it('null and empty count as absent where a field may be absent', () => {
    const empty = { urls: [], annotations: {}, platform: null, artifactType: '' };
    expect(parse({ ...image, config: { ...config, ...empty }, subject: null, annotations: null })).toEqual(
      expect.objectContaining({ config }),
    );
  });
});

describe('an index', () => {
  it('gives its entries', () => {
    const full = {
      ...entry,
      urls: ['https://x.example.test/'],
      annotations: { b: '2', a: '1' },
      platform: {
        os: 'windows',
        architecture: 'arm',
        'os.version': '10',
        'os.features': ['f'],
        variant: 'v7',
        features: ['x'],
      },
      artifactType: 'a/b',
    };
    const read = parse({ ...index, manifests: [entry, full], annotations: { k: 'v' } });
    expect(read).toMatchObject({ kind: 'index', mediaType: ociIndex, annotations: { k: 'v' } });
    expect(read.kind === 'index' && read.manifests).toEqual([
      entry,
      {
        ...full,
        platform: { os: 'windows', architecture: 'arm', 'os.version': '10', 'os.features': ['f'], variant: 'v7' },
        platformExtra: { features: ['x'] },
      },
    ]);
  });

  it('may be empty, also written as null', () => {
    expect(parse({ ...index, manifests: [] })).toMatchObject({ manifests: [] });
    expect(parse({ ...index, manifests: null })).toMatchObject({ manifests: [] });
  });

  it('a platform without os or architecture is none', () => {
    for (const platform of [{}, { os: 'linux' }, { architecture: 'arm' }, { os: '', architecture: '' }]) {
      const read = parse({ ...index, manifests: [{ ...entry, platform }] });
      expect(read.kind === 'index' && read.manifests).toEqual([entry]);
    }
  });

  it('has a thousand entries at most', () => {
    expect(parse({ ...index, manifests: Array(1000).fill(entry) })).toMatchObject({ kind: 'index' });
    const error = failure(() => parse({ ...index, manifests: Array(1001).fill(entry) }));
    expect(error.message).toContain('1001 manifests');
  });
});

describe('the type of a document', () => {
  const bareImage = { schemaVersion: 2, config, layers: [layer] };
  const bareIndex = { schemaVersion: 2, manifests: [entry] };

  it.each([
    ['is that of the body', image, undefined, ociManifest],
    ['is that of the body beside a generic Content-Type', image, 'application/json', ociManifest],
    [
      'is that of the body beside octet-stream',
      { ...index, mediaType: dockerList },
      'application/octet-stream',
      dockerList,
    ],
    ['is the same in both', { ...image, mediaType: dockerManifest }, dockerManifest, dockerManifest],
    [
      'may have parameters and capitals in the header',
      image,
      `${ociManifest.toUpperCase()}; charset=utf-8`,
      ociManifest,
    ],
    ['is that of the header when the body has none', bareIndex, dockerList, dockerList],
    [
      'is that of the header when the body has an empty one',
      { ...bareImage, mediaType: '' },
      dockerManifest,
      dockerManifest,
    ],
    ['follows from manifests', bareIndex, undefined, ociIndex],
    ['follows from config and layers', bareImage, 'text/plain', ociManifest],
  ])('%s', (_title, document, contentType, expected) => {
    const read = parse(document, contentType);
    expect(read.mediaType).toBe(expected);
    expect(read.kind).toBe(expected === ociIndex || expected === dockerList ? 'index' : 'image');
  });

  it.each<[string, unknown, string | undefined]>([
    ['another manifest type in the header', image, ociIndex],
    ['another manifest type in the header, in capitals', image, `${ociIndex.toUpperCase()} ; q=1`],
    ['Docker in the header, OCI in the body', image, dockerManifest],
    ['an index type for an image', bareImage, ociIndex],
    ['an image type for an index', bareIndex, ociManifest],
    ['an index that calls itself an image', { ...bareIndex, mediaType: ociManifest }, undefined],
    ['an image that calls itself an index', { ...bareImage, mediaType: ociIndex }, undefined],
    ['schema 1 in the header, OCI in the body', image, 'application/vnd.docker.distribution.manifest.v1+json'],
    ['an artifact manifest in the header', image, 'application/vnd.oci.artifact.manifest.v1+json'],
    ['neither manifests nor config and layers', { schemaVersion: 2, layers: [] }, undefined],
    ['index and image at once', { ...image, manifests: [entry] }, undefined],
    ['index and image at once, empty', { ...index, layers: [] }, undefined],
    ['index and image at once, null', { ...image, manifests: null }, undefined],
    ['index with a config', { ...index, config }, undefined],
    ['index and schema 1 at once', { ...index, fsLayers: [] }, undefined],
    ['schema 1 and image at once', { ...image, fsLayers: [] }, undefined],
    ['schema 1 and image at once, by its number', { ...image, schemaVersion: 1, fsLayers: [] }, undefined],
    ['a manifest type that is no text', { ...image, mediaType: 1 }, undefined],
    ['no schemaVersion', { mediaType: ociIndex, manifests: [] }, undefined],
    ['another schemaVersion', { ...index, schemaVersion: 3 }, undefined],
    ['a schemaVersion that is no number', { ...index, schemaVersion: '2' }, undefined],
    ['a schemaVersion with a toString', { ...index, schemaVersion: { toString: 1 } }, undefined],
  ])('%s is refused', (_title, document, contentType) => {
    const error = failure(() => parse(document, contentType));
    expect(error.code).toBe('MANIFEST_INVALID');
    expect(error.exitCode).toBe(6);
    expect(error.message).toMatch(/^reg\.example\.test\/x:1: [^\n]+$/);
    expect(error.hint).toMatch(/^[A-Z]/);
  });
});

describe('what cannot be taken in', () => {
  const old = { schemaVersion: 1, name: 'x', fsLayers: [{ blobSum: A }], history: [], signatures: [] };

  it.each<[string, unknown, string | undefined]>([
    ['by its number', old, undefined],
    ['by its number and Content-Type', old, 'application/vnd.docker.distribution.manifest.v1+prettyjws'],
    ['by its Content-Type', { fsLayers: [] }, 'application/vnd.docker.distribution.manifest.v1+json; charset=utf-8'],
    ['by its mediaType', { mediaType: 'application/vnd.docker.distribution.manifest.v1+json' }, undefined],
  ])('schema 1 is named, %s', (_title, document, contentType) => {
    const error = failure(() => parse(document, contentType));
    expect(error.code).toBe('MANIFEST_UNSUPPORTED');
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain(NAME);
    expect(error.message).toContain('schema 1');
  });

  it('MED-05: the schema 1 document of the report', () => {
    const file = new URL(
      '../cases/MED-05/manifests/sha256_9302307b3b08b75789f8222d55e3d0eb8770cf0fc36e672b0361560a2a0af88b.json',
      import.meta.url,
    );
    const error = failure(() => parse(readFileSync(file, 'utf8')));
    expect(error).toMatchObject({ code: 'MANIFEST_UNSUPPORTED', exitCode: 2 });
  });

  it('a manifest of a type unknown to us', () => {
    const error = failure(() => parse({ mediaType: 'application/vnd.oci.artifact.manifest.v1+json', blobs: [] }));
    expect(error).toMatchObject({ code: 'MANIFEST_UNSUPPORTED' });
    expect(error.message).toContain('application/vnd.oci.artifact.manifest.v1+json');
  });

  it('4 MiB are taken, one byte more is not', () => {
    const limit = 4 * 1024 * 1024;
    const text = JSON.stringify(index);
    expect(parse(text + ' '.repeat(limit - text.length))).toMatchObject({ size: limit });
    expect(failure(() => parse(text + ' '.repeat(limit - text.length + 1))).message).toContain('4194305 bytes');
  });
});

describe('a document that clients may read differently', () => {
  const text = JSON.stringify(image);
  it.each<[string, string | object]>([
    ['a doubled key', text.replace('"schemaVersion":2', '"schemaVersion":2,"schemaVersion":2')],
    ['a doubled key behind escapes', text.replace('"schemaVersion":2', '"schemaVersion":2,"\\u0073chemaVersion":2')],
    ['a doubled key in a descriptor', text.replace('"size":2', '"size":2,"size":2')],
    ['a doubled annotation', text.replace('"size":2', '"size":2,"annotations":{"a":"1","a":"2"}')],
    ['MEDIATYPE beside mediaType', { ...image, MEDIATYPE: ociIndex }],
    ['Manifests in an image', { ...image, Manifests: [] }],
    ['Layers alone', { schemaVersion: 2, config, Layers: [] }],
    ['Digest in a descriptor', { ...image, config: { ...config, Digest: B } }],
    ['URLs in a layer', { ...image, layers: [{ ...layer, URLs: ['https://x.example.test'] }] }],
    [
      'OS in a platform',
      { ...index, manifests: [{ ...entry, platform: { os: 'linux', OS: 'windows', architecture: 'arm' } }] },
    ],
    ['a subject with SIZE', { ...image, subject: { ...entry, SIZE: 1 } }],
    ['a byte order mark', `\ufeff${text}`],
    ['nesting deeper than 64', text.replace('"size":2', `"size":2,"x":${'['.repeat(63)}${']'.repeat(63)}`)],
  ])('%s is refused', (_title, document) => {
    expect(failure(() => parse(document)).code).toBe('MANIFEST_INVALID');
  });

  it('annotations and unknown fields may differ in case only', () => {
    const free = { a: '1', A: '2', Size: '3', size: '4' };
    const read = parse({ ...image, annotations: free, config: { ...config, annotations: free, Data: 1, data: 2 } });
    expect(read.annotations).toEqual(free);
  });
});

describe('a descriptor', () => {
  it.each<[string, unknown]>([
    ['is an object', 'x'],
    ['is not null', null],
    ['is not a list', [1]],
    ['has a mediaType', { digest: A, size: 1 }],
    ['has a mediaType that is not empty', { ...layer, mediaType: '' }],
    ['has a mediaType that is a text', { ...layer, mediaType: {} }],
    ['has a mediaType that can be shown', { ...layer, mediaType: 'a/b\u001b[2J' }],
    ['has a platform that can be shown', { ...layer, platform: { os: 'linux\n::error::', architecture: 'arm' } }],
    ['has a digest', { mediaType: LAYER, size: 1 }],
    ['has a digest in lower case', { ...layer, digest: A.toUpperCase() }],
    ['has a digest of a known algorithm', { ...layer, digest: `sha384:${'a'.repeat(96)}` }],
    ['has a digest that is no path', { ...layer, digest: `sha256:../../${'a'.repeat(58)}` }],
    ['has a digest that is a text', { ...layer, digest: { toString: 1, valueOf: 2 } }],
    ['has a size', { mediaType: LAYER, digest: A }],
    ['has a size that is a number', { ...layer, size: '3' }],
    ['has a size of at least 0', { ...layer, size: -1 }],
    ['has a size in whole bytes', { ...layer, size: 1.5 }],
    ['has a size that is kept exactly', { ...layer, size: 2 ** 53 }],
    ['has urls that are a list', { ...layer, urls: 'https://x' }],
    ['has urls that are texts', { ...layer, urls: [1] }],
    ['has annotations that are an object', { ...layer, annotations: ['a'] }],
    ['has annotations that are texts', { ...layer, annotations: { a: 1 } }],
    ['has a platform that is an object', { ...layer, platform: 'linux/arm' }],
    ['has a platform of texts', { ...layer, platform: { os: 'linux', architecture: 386 } }],
    ['has os.features that are texts', { ...layer, platform: { os: 'a', architecture: 'b', 'os.features': [1] } }],
    ['has an artifactType that is a text', { ...layer, artifactType: 5 }],
  ])('%s', (_title, descriptor) => {
    const error = failure(() => parse({ ...image, layers: [layer, descriptor] }));
    expect(error.code).toBe('MANIFEST_INVALID');
    expect(error.message).toContain(`${NAME}: layers[1]`);
    const asEntry = failure(() => parse({ ...index, manifests: [descriptor] }));
    expect(asEntry.message).toContain(`${NAME}: manifests[0]`);
    if (descriptor !== null)
      expect(failure(() => parse({ ...image, config: descriptor })).message).toContain(': config');
  });

  it('a size beyond a double is refused, not rounded', () => {
    for (const size of ['9007199254740993', '1e400', '-1', '1e-1', '3.0', '-0', '3e0']) {
      const text = JSON.stringify(image).replace('"size":3', `"size":${size}`);
      expect(failure(() => parse(text)).message).toContain('not a size in bytes');
    }
  });

  it('config and layers must be there', () => {
    expect(failure(() => parse({ ...image, config: undefined })).message).toContain('without config');
    expect(failure(() => parse({ ...image, config: null })).message).toContain('without config');
    expect(failure(() => parse({ ...image, layers: undefined })).message).toContain('without layers');
    expect(failure(() => parse({ ...image, layers: {} })).message).toContain('layers: not a list');
  });
});

describe('kinds of types', () => {
  it('foreign layers have urls or a type that may not be distributed', () => {
    const foreign = (more: Partial<Descriptor>): boolean => isForeignLayer({ ...layer, ...more });
    expect(foreign({})).toBe(false);
    expect(foreign({ urls: [] })).toBe(false);
    expect(foreign({ urls: ['https://x.example.test'] })).toBe(true);
    for (const mediaType of [
      'application/vnd.oci.image.layer.nondistributable.v1.tar',
      'application/vnd.oci.image.layer.nondistributable.v1.tar+zstd',
      'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
    ]) {
      expect(foreign({ mediaType })).toBe(true);
    }
    expect(foreign({ mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip' })).toBe(false);
  });

  it('Docker and OCI are told apart', () => {
    expect([dockerManifest, dockerList, dockerConfig].every(isDockerType)).toBe(true);
    expect([ociManifest, ociIndex, ociConfig].some(isDockerType)).toBe(false);
  });

  it('only image configs tell a platform', () => {
    expect([ociConfig, dockerConfig].every(isImageConfigType)).toBe(true);
    expect(isImageConfigType('application/vnd.oci.empty.v1+json')).toBe(false);
  });
});

describe('an image config', () => {
  const read = (document: unknown) => parseImageConfig(bytes(JSON.stringify(document)), 'config');

  it('tells its platform, and what is empty it does not tell', () => {
    expect(
      read({
        os: 'windows',
        architecture: 'amd64',
        'os.version': '10',
        'os.features': ['f'],
        variant: 'v1',
        Size: 5,
        config: {},
      }),
    ).toEqual({ os: 'windows', architecture: 'amd64', 'os.version': '10', 'os.features': ['f'], variant: 'v1' });
    expect(read({ os: 'linux', architecture: '', 'os.version': null, 'os.features': [], variant: '' })).toEqual({
      os: 'linux',
    });
    expect(read({})).toEqual({});
  });

  it.each<[unknown]>([[[]], [{ os: 1 }], [{ architecture: {} }], [{ OS: 'linux' }], [{ 'os.features': 'x' }]])(
    '%j is refused',
    (document) => {
      expect(failure(() => read(document)).code).toBe('MANIFEST_INVALID');
    },
  );
});

describe('properties', () => {
  const attempt = (data: Uint8Array, contentType: string | undefined): void => {
    try {
      parseManifest(data, A, contentType, NAME);
    } catch (error) {
      expect(error).toBeInstanceOf(PublishError);
      expect((error as PublishError).message).not.toMatch(CONTROLS);
    }
    try {
      parseImageConfig(data, NAME);
    } catch (error) {
      expect(error).toBeInstanceOf(PublishError);
    }
  };
  const contentType = fc.option(fc.constantFrom(ociManifest, ociIndex, dockerList, 'application/json', ';', ''), {
    nil: undefined,
  });

  it('any bytes are a manifest or a PublishError', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), contentType, attempt), { numRuns: 500 });
  });

  it('any JSON of known keys is a manifest or a PublishError', () => {
    const key = fc.constantFrom(
      ...'schemaVersion mediaType config layers manifests fsLayers subject annotations artifactType digest size urls'.split(
        ' ',
      ),
      ...'platform architecture os os.version os.features variant toString valueOf toJSON __proto__ constructor then'.split(
        ' ',
      ),
    );
    const leaf = fc.constantFrom<unknown>(
      null,
      true,
      0,
      2,
      1,
      -1,
      1e300,
      '',
      'x',
      A,
      ociManifest,
      ociIndex,
      LAYER,
      '\u001b\u009b',
    );
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        leaf,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.array(fc.tuple(key, tie('value')), { maxLength: 8 }).map((pairs) => Object.fromEntries(pairs)),
      ),
    }));
    const base = fc.constantFrom<object>({}, image, index, { ...image, mediaType: undefined });
    const document = fc.tuple(base, fc.dictionary(key, value)).map(([one, more]) => ({ ...one, ...more }));
    fc.assert(
      fc.property(document, contentType, (one, type) => attempt(bytes(JSON.stringify(one)), type)),
      { numRuns: 3000 },
    );
  });

  it('a manifest with one byte changed is a manifest or a PublishError', () => {
    const good = bytes(
      JSON.stringify({ ...index, manifests: [{ ...entry, platform: { os: 'linux', architecture: 'arm' } }] }),
    );
    fc.assert(
      fc.property(fc.nat({ max: good.length - 1 }), fc.integer({ min: 0, max: 255 }), (at, byte) => {
        const data = Uint8Array.from(good);
        data[at] = byte;
        attempt(data, undefined);
      }),
      { numRuns: 2000 },
    );
  });
});
