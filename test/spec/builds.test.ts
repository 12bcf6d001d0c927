import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import { buildxMetadata, digestsFolder, metadataAction } from '../../src/spec/index.ts';
import { shown } from './reading.ts';

const TARGET = parseReference('ghcr.io/acme/app:1.2.3');
const ONE = digestOf(Buffer.from('one'));
const TWO = digestOf(Buffer.from('two'));
const hex = (digest: string) => digest.slice('sha256:'.length);
const LONG = digestOf(Buffer.from('long'), 'sha512');

describe('a folder of digests', () => {
  const options = { folder: 'digests', target: TARGET };

  it("reads empty files named by hex digits, as docker's workflow leaves them, in the order of their names", () => {
    const names = [hex(ONE), hex(TWO)].sort();
    const sources = digestsFolder([{ name: names[1] ?? '' }, { name: names[0] ?? '', content: '\n' }], options);
    expect(sources).toEqual(
      names.map((name) => ({
        reference: { host: 'ghcr.io', repository: 'acme/app', digest: `sha256:${name}` },
        origin: `digests/${name}`,
      })),
    );
  });

  it('understands the algorithm in front, sha512, and hidden files', () => {
    const entries = [`sha256-${hex(ONE)}`, TWO, LONG.replace(':', '-'), '.DS_Store', '.gitkeep'].map((name) => ({
      name,
    }));
    expect(digestsFolder(entries, options).map(shown).sort()).toEqual(
      [ONE, TWO, LONG].map((digest) => `ghcr.io/acme/app@${digest}`).sort(),
    );
  });

  it('reads digests, references and descriptors out of files of any name', () => {
    const descriptor = {
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      digest: ONE,
      size: 7,
      platform: { architecture: 'arm', os: 'linux', variant: 'v7', features: ['x'] },
      annotations: { a: 'b' },
      extra: null,
    };
    const entries = [
      { name: 'a.json', content: JSON.stringify(descriptor, null, 1) },
      { name: 'b', content: ` ${TWO}\n` },
      { name: 'c', content: `docker.io/acme/other:x@${TWO}` },
      { name: hex(LONG), content: `acme/x@${LONG}` },
    ];
    const sources = digestsFolder(entries, options);
    expect(sources.map(shown).sort()).toEqual(
      [
        `linux/arm/v7=ghcr.io/acme/app@${ONE}`,
        `ghcr.io/acme/app@${TWO}`,
        `docker.io/acme/other:x@${TWO}`,
        `docker.io/acme/x@${LONG}`,
      ].sort(),
    );
    expect(sources.find(({ annotations }) => annotations !== undefined)).toMatchObject({
      annotations: { a: 'b' },
      origin: 'digests/a.json',
    });
  });

  it('takes a digest once, and another repository when that is named', () => {
    const entries = [{ name: hex(ONE) }, { name: ONE }, { name: 'x', content: ONE }];
    const repository = parseReference('docker.io/acme/staging');
    expect(digestsFolder(entries, { ...options, repository }).map(shown)).toEqual([`docker.io/acme/staging@${ONE}`]);
  });
});

describe("buildx's metadata", () => {
  const build = (digest: string, more: object = {}) => ({
    'buildx.build.provenance': { constructor: { __proto__: [] } },
    'buildx.build.ref': 'builder/builder0/x',
    'containerimage.config.digest': TWO,
    'containerimage.descriptor': {
      mediaType: 'application/vnd.oci.image.index.v1+json',
      digest,
      size: 856,
      annotations: { 'config.digest': TWO, 'org.opencontainers.image.created': '2026-11-30T00:00:00Z' },
      platform: { architecture: 'amd64', os: 'linux' },
    },
    'containerimage.digest': digest,
    ...more,
  });
  const read = (value: object, options = {}) =>
    buildxMetadata({ name: 'meta.json', text: JSON.stringify(value, null, 2) }, { target: TARGET, ...options });

  it('brings the digest, and nothing that was never meant for an index', () => {
    const [source, ...more] = read(build(ONE));
    expect(more).toEqual([]);
    expect(source).toEqual({
      reference: { host: 'ghcr.io', repository: 'acme/app', digest: ONE },
      origin: 'meta.json:20:28',
    });
  });

  it.each([
    ['the target among several names', 'docker.io/acme/app:1,ghcr.io/acme/app:2', `ghcr.io/acme/app@${ONE}`],
    ["one of the target's registry", 'docker.io/acme/app:1, ghcr.io/acme/staging', `ghcr.io/acme/staging@${ONE}`],
    ['the first one else', 'acme/app:1,quay.io/acme/app:1', `docker.io/acme/app@${ONE}`],
    ['the target where there is none', '', `ghcr.io/acme/app@${ONE}`],
  ])('picks the repository: %s', (_what, names, expected) => {
    expect(read(build(ONE, { 'image.name': names })).map(shown)).toEqual([expected]);
  });

  it('lies in another repository when that is named', () => {
    const repository = parseReference('quay.io/acme/app');
    expect(read(build(ONE, { 'image.name': 'acme/app' }), { repository }).map(shown)).toEqual([
      `quay.io/acme/app@${ONE}`,
    ]);
  });

  it("reads imagetools' file, which has a descriptor and names alone", () => {
    const text = {
      'containerimage.descriptor': { mediaType: 'x', digest: ONE, size: 2 },
      'image.name': 'ghcr.io/acme/a',
    };
    expect(read(text).map(shown)).toEqual([`ghcr.io/acme/a@${ONE}`]);
  });

  it("reads bake's file: its only target, or those that are named", () => {
    const warnings = { 'buildx.build.warnings': [{ level: 1 }] };
    expect(read({ ...warnings, app: build(ONE) }).map(shown)).toEqual([`ghcr.io/acme/app@${ONE}`]);
    const both = { ...warnings, 'app-amd64': build(ONE), 'app-arm64': build(TWO), db: build(TWO) };
    expect(read(both, { bakeTargets: ['app-arm64', 'app-amd64'] }).map(shown)).toEqual(
      [TWO, ONE].map((digest) => `ghcr.io/acme/app@${digest}`),
    );
  });

  it('reads a descriptor as imagetools takes it; unknown/unknown is no claim', () => {
    const descriptor = { mediaType: 'x', digest: ONE, size: 2, annotations: { a: 'b' } };
    expect(read({ ...descriptor, platform: { os: 'linux', architecture: 'arm64' } })).toEqual([
      {
        reference: { host: 'ghcr.io', repository: 'acme/app', digest: ONE },
        platform: { os: 'linux', architecture: 'arm64' },
        annotations: { a: 'b' },
        origin: 'meta.json:1:1',
      },
    ]);
    const unknown = { os: 'unknown', architecture: 'unknown' };
    expect(read({ ...descriptor, platform: unknown }).map(shown)).toEqual([`ghcr.io/acme/app@${ONE}`]);
  });
});

describe("docker/metadata-action's JSON", () => {
  const read = (value: object) => metadataAction({ name: 'json', text: JSON.stringify(value) });

  it('gives the tags, in several registries, and the annotations of the index', () => {
    const tags = ['ghcr.io/acme/app:1.2', 'acme/app:1.2', 'ghcr.io/acme/app:latest', 'ghcr.io/acme/app:1.2'];
    const annotations = [
      'index:org.opencontainers.image.title=app',
      'index:org.opencontainers.image.url=https://x.test/?a=b',
    ];
    expect(read({ tags, labels: { 'org.opencontainers.image.title': 'x' }, annotations })).toEqual({
      targets: ['ghcr.io/acme/app:1.2', 'acme/app:1.2', 'ghcr.io/acme/app:latest'].map(parseReference),
      annotations: {
        'org.opencontainers.image.title': 'app',
        'org.opencontainers.image.url': 'https://x.test/?a=b',
      },
      entryAnnotations: [],
      notes: [],
    });
  });

  it('leaves out what is of manifests, and says so', () => {
    const annotations = ['manifest:a=1', 'b=2', 'manifest[linux/amd64]:c=3', 'index-descriptor:d=4', 'index:e=5'];
    const { notes, ...read_ } = read({ tags: ['a:1'], annotations });
    expect(read_).toMatchObject({ annotations: { e: '5' }, entryAnnotations: [] });
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(
      /^4 annotations are for the manifests of images.*DOCKER_METADATA_ANNOTATIONS_LEVELS=index/,
    );
  });

  it('gives annotations of entries, by platform, and of several levels at once', () => {
    const annotations = ['manifest-descriptor[linux/arm/v7]:a=1', 'index,manifest-descriptor:b=2'];
    expect(read({ tags: ['a:1'], annotations })).toMatchObject({
      annotations: { b: '2' },
      entryAnnotations: [
        { platform: { os: 'linux', architecture: 'arm', variant: 'v7' }, annotations: { a: '1' } },
        { annotations: { b: '2' } },
      ],
      notes: [],
    });
  });

  it('does not take a key for a level', () => {
    expect(read({ tags: ['a:1'], annotations: ['index:manifest:x=1'] }).annotations).toEqual({ 'manifest:x': '1' });
  });
});
