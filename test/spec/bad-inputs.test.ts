// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of spec files are what is read here
import { describe, expect, it } from 'vitest';
import { parseReference } from '../../src/model/reference.ts';
import { buildxMetadata, digestsFolder, metadataAction } from '../../src/spec/index.ts';
import { failureOf, read } from './reading.ts';

/** What is wrong, the text, where, words of the message, words of the hint; `name` is the file's. */
type Bad = readonly [what: string, text: string, at: string, message: string, hint: string, name?: string];

const TARGET = parseReference('ghcr.io/acme/app:1');
const HEX = 'a1'.repeat(32);
const DIGEST = `sha256:${HEX}`;
const lines = (...parts: readonly string[]) => parts.join('\n');

const MANIFEST_TOOL: readonly Bad[] = [
  ['an unknown key', 'image: a:1\nmanifsets: []\n', '2:1', 'unknown key "manifsets"', 'Did you mean manifests?'],
  [
    'a key of no tool',
    'image: a:1\nmanifests: [{image: b}]\nname: x\n',
    '3:1',
    'unknown key "name"',
    'known keys: image, tags',
  ],
  ['a misspelled image', 'imag: a:1\nmanifests: [{image: b}]\n', '1:1', 'unknown key "imag"', 'Did you mean image?'],
  ['no target', 'manifests: [{image: b}]\n', '1:1', '"image" is missing', 'Add it: image:'],
  ['an image without value', 'image:\nmanifests: [{image: b}]\n', '1:1', '"image" is missing', 'Add it: image:'],
  ['no images', 'image: a:1\n', '1:1', '"manifests" is missing', 'Add it: manifests:'],
  ['an empty list of images', 'image: a:1\nmanifests: []\n', '2:12', '"manifests" names no image', '- image: REF'],
  ['an image as a text', 'image: a:1\nmanifests:\n  - b:1\n', '3:5', '"manifests[0]" must be a map', '- image: REF'],
  [
    'a target without a tag',
    'image: reg.example.test:5000/a\nmanifests: [{image: b}]\n',
    '1:8',
    '"reg.example.test:5000/a" has no tag',
    'Write reg.example.test:5000/a:latest',
  ],
  [
    'a target with a digest',
    `image: a@${DIGEST}\nmanifests: [{image: b}]\n`,
    '1:8',
    'a target cannot have a digest',
    'HOST/REPOSITORY:TAG',
  ],
  [
    'capitals',
    'image: a:1\nmanifests:\n  - image: ghcr.io/Acme/App:1\n',
    '3:12',
    'repository name must be lowercase',
    'Write ghcr.io/acme/app:1',
  ],
  [
    'a reference that is none',
    'image: a:1\nmanifests:\n  - image: "a b"\n',
    '3:12',
    'not a repository name',
    'HOST/REPOSITORY:TAG',
  ],
  [
    'an address',
    'image: a:1\nmanifests: [{image: "https://ghcr.io/a"}]\n',
    '2:21',
    'a reference has no scheme',
    'Leave out "https://"',
  ],
  [
    'a list of tags as a text',
    'image: a:1\ntags: latest\nmanifests: [{image: b}]\n',
    '2:7',
    '"tags" must be a list of tags',
    'Write for example [latest, "3.10"]',
  ],
  [
    'a reference as a tag',
    'image: a:1\ntags: ["b/c:2"]\nmanifests: [{image: b}]\n',
    '2:8',
    'not a tag: "b/c:2"',
    'tags holds tags alone',
  ],
  [
    'a tag that is none',
    'image: a:1\ntags: [1.0, -x]\nmanifests: [{image: b}]\n',
    '2:13',
    'not a tag: "-x"',
    'at most 128 letters',
  ],
  [
    'a platform as a text',
    'image: a:1\nmanifests:\n- image: b\n  platform: linux/arm64\n',
    '4:13',
    '"manifests[0].platform" must be a platform',
    'Write {os: linux',
  ],
  [
    'a platform without os',
    'image: a:1\nmanifests:\n- image: b\n  platform:\n    architecture: arm64\n',
    '5:5',
    'a platform without os',
    'Write both os and architecture',
  ],
  [
    'a platform that exists nowhere',
    'image: a:1\nmanifests:\n- image: b\n  platform: {os: linux, architecture: arm64, variant: v7}\n',
    '4:13',
    'arm64 has no variant "v7"',
    'linux/arm/v7',
  ],
  [
    'features of the CPU',
    'image: a:1\nmanifests:\n- image: b\n  platform:\n    os: linux\n    architecture: amd64\n    features: [sse4]\n',
    '7:5',
    'unknown key "manifests[0].platform.features"',
    'It meant features of the CPU',
  ],
  [
    'an unknown key of a platform',
    'image: a:1\nmanifests:\n- image: b\n  platform: {os: linux, arch: arm64}\n',
    '4:25',
    'unknown key "manifests[0].platform.arch"',
    'known keys: os, architecture',
  ],
  [
    'both spellings of os.version',
    'image: a:1\nmanifests:\n- image: b\n  platform: {os: windows, architecture: amd64, os.version: 10.0.1, osversion: 10.0.2}\n',
    '4:13',
    'both "os.version" and "osversion"',
    'Leave os.version',
  ],
  [
    'features as a text',
    'image: a:1\nmanifests:\n- image: b\n  platform: {os: windows, architecture: amd64, os.features: win32k}\n',
    '4:61',
    'os.features" must be a list of texts',
    '[win32k]',
  ],
  [
    'an annotation that is a map',
    'image: a:1\nannotations:\n  a: {b: c}\nmanifests: [{image: b}]\n',
    '3:6',
    '"annotations.a" must be a text',
    'KEY: ""',
  ],
  [
    'an annotation without value',
    'image: a:1\nannotations:\n  a:\nmanifests: [{image: b}]\n',
    '3:3',
    '"annotations.a" must be a text',
    'KEY: ""',
  ],
  [
    'annotations as a list',
    'image: a:1\nannotations: [a=b]\nmanifests: [{image: b}]\n',
    '2:14',
    '"annotations" must be a map of texts',
    'KEY: VALUE',
  ],
  [
    'both formats',
    'image: a:1\nmanifests: [{image: b}]\nsources: [c]\n',
    '3:1',
    '"image" of manifest-tool\'s format beside "sources" of ours',
    'Write target instead of image',
  ],
];

const YAML: readonly Bad[] = [
  ['nothing', '', '1:1', 'the file is empty', 'Write what to publish'],
  ['comments alone', '# later\n---\n# later still\n', '1:1', 'the file is empty', 'Write what to publish'],
  ['a list', '- target: a:1\n  sources: [b]\n', '1:1', 'must be a map', 'Put "lists:" in front of it'],
  ['a text', 'ghcr.io/acme/app:1\n', '1:1', 'must be a map', 'Write target:'],
  ['a tab', 'target: a:1\nsources:\n\t- b\n', '3:1', 'Tabs are not allowed as indentation', 'Indent with blanks'],
  [
    'a key that stands twice',
    'target: a:1\nsources: [b]\ntarget: c:1\n',
    '3:1',
    '"target" stands twice, first at 1:1',
    'Leave one of them',
  ],
  [
    'keys that are not under each other',
    'target: a:1\n sources: [b]\n',
    '1:9',
    'Nested mappings are not allowed',
    'Indent all keys of a map alike',
  ],
  [
    'a bracket that is never closed',
    'target: a:1\nsources: [b\ntags: [c]\n',
    '3:1',
    'must be sufficiently indented and end with a ]',
    'Close the bracket',
  ],
  [
    'a quote that is never closed',
    'target: "a:1\nsources: [b]\n',
    '3:1',
    'Missing closing "quote',
    'Add what is missing',
  ],
  ['a value with a reserved character', 'target: @a\nsources: [b]\n', '1:9', 'reserved character @', 'in quotes'],
  [
    'a template of another tool',
    'target: {{ image }}\nsources: [b]\n',
    '1:10',
    'a key that is not a text',
    'put a value that begins with { or [ in quotes',
  ],
  [
    'an unknown alias',
    'target: a:1\nsources: *images\n',
    '2:10',
    'no anchor "&images" before this alias',
    'further up',
  ],
  [
    'an alias within itself',
    'target: a:1\nsources: &x [*x]\n',
    '2:14',
    'no anchor "&x" before this alias',
    'further up',
  ],
  [
    'a merge of something else',
    'target: a:1\nsources: [b]\n<<: [c]\n',
    '3:1',
    '"<<" takes in something that is not a map',
    '<<: *NAME',
  ],
  [
    'a tag of YAML',
    'target: !!binary YTox\nsources: [b]\n',
    '1:18',
    'the YAML tag "tag:yaml.org,2002:binary" is not supported',
    'Remove it',
  ],
  [
    'a key that objects cannot hold',
    'target: a:1\nsources: [b]\nannotations:\n  __proto__: c\n',
    '4:3',
    '"__proto__" cannot be a key',
    'another name',
  ],
  [
    'another encoding',
    'target: a:1\nsources: [b]\nannotations: {a: "caf\ufffd"}\n',
    '3:22',
    'not a text in UTF-8',
    'Save the file as UTF-8',
  ],
  [
    'a fault in the second document',
    'target: a:1\nsources: [b]\n---\ntarget: c:1\nsource: [b]\n',
    '5:1',
    'unknown key "source"',
    'Did you mean sources?',
  ],
  ['too deep', `target: ${'['.repeat(200)}`, '1:136', 'nested too deeply', 'at most 64'],
  [
    'a comma before a bracket in JSON',
    '{"target": "a:1", "sources": ["b",]}',
    '1:35',
    'not JSON: a value should be here',
    'no comma stands before a closing bracket',
    'app.json',
  ],
  [
    'JSON that ends',
    '{"target": "a:1",\n "sources": ["b"',
    '2:17',
    'the text ends where "]" should be',
    'Correct the JSON',
    'app.json',
  ],
  [
    'two documents of JSON',
    '{"target": "a:1", "sources": ["b"]}\n{}',
    '2:1',
    'something follows its end',
    'Leave one document',
    'app.json',
  ],
  ['a bad escape in JSON', '{"target": "a:\\x"}', '1:12', 'not a text of JSON', 'for a backslash', 'app.json'],
  [
    'a key of JSON that stands twice',
    '{"target": "a:1",\n "target": "b:1"}',
    '2:2',
    '"target" stands twice',
    'Leave one of them',
    'app.json',
  ],
];

const OWN: readonly Bad[] = [
  [
    'an unknown key',
    'target: a:1\nsources: [b]\nexpectPlatfroms: [linux/amd64]\n',
    '3:1',
    'unknown key "expectPlatfroms"',
    'Did you mean expectPlatforms?',
  ],
  [
    'an unknown key of a list',
    'lists:\n  - target: a:1\n    source: [b]\n',
    '3:5',
    'unknown key "lists[0].source"',
    'Did you mean sources?',
  ],
  [
    'a key of a list beside lists',
    'lists: [{target: a:1, sources: [b]}]\ntype: oci\n',
    '2:1',
    'unknown key "type"',
    'known keys: defaults, lists',
  ],
  ['no target', 'sources: [b]\n', '1:1', 'a list without a target', 'Add it: target:'],
  ['no source', 'target: a:1\n', '1:1', 'a list without a source', 'Add it: sources'],
  ['an empty list of sources', 'target: a:1\nsources: []\n', '2:10', 'a list without a source', 'Add it: sources'],
  ['lists without any', 'lists: []\n', '1:8', '"lists" has no list', '- target: REF'],
  ['defaults alone', 'defaults: {type: oci}\n', '1:1', '"lists" is missing', 'Add it: lists:'],
  [
    'target and targets',
    'target: a:1\ntargets: [b:1]\nsources: [c]\n',
    '2:1',
    'both "target" and "targets"',
    'into targets',
  ],
  [
    'targets as a text',
    'targets: a:1\nsources: [c]\n',
    '1:10',
    '"targets" must be a list of references',
    '[ghcr.io/acme/app:1]',
  ],
  [
    'a target without a tag',
    'target: ghcr.io/acme/app\ntags: [2]\nsources: [c]\n',
    '1:9',
    'has no tag',
    'Write ghcr.io/acme/app:latest',
  ],
  [
    'one target in two lists',
    'lists:\n  - {target: a:1, sources: [b]}\n  - {target: a:2, tags: [1], sources: [b]}\n',
    '3:26',
    'docker.io/library/a:1 is the target of two lists, the other at app.yaml:2:14',
    'another tag',
  ],
  [
    'one target in two documents',
    'target: a:1\nsources: [b]\n---\ntarget: docker.io/library/a:1\nsources: [c]\n',
    '4:9',
    'the other at app.yaml:1:9',
    'Join the lists',
  ],
  [
    'another type',
    'target: a:1\nsources: [b]\ntype: OCI\n',
    '3:7',
    '"type" must be one of auto, oci, docker',
    'auto, oci, docker',
  ],
  [
    'a word that is neither true nor false',
    'target: a:1\nsources: [b]\namend: yes\n',
    '3:8',
    '"amend" must be true or false',
    'Write true or false',
  ],
  [
    'a filter of no platform',
    'target: a:1\nsources: [b]\nplatforms: []\n',
    '3:12',
    '"platforms" names no platform',
    'remove the key',
  ],
  [
    'a filter without value',
    'target: a:1\nsources: [b]\nplatforms:\n',
    '3:1',
    '"platforms" must be a list of platforms',
    '[linux/amd64, linux/arm/v7]',
  ],
  [
    'a filter as a text',
    'target: a:1\nsources: [b]\nplatforms: linux/amd64,linux/arm64\n',
    '3:12',
    '"platforms" must be a list of platforms',
    '[linux/amd64, linux/arm/v7]',
  ],
  [
    'a platform that is none',
    'target: a:1\nsources: [b]\nexpectPlatforms: [linux/amd64, x]\n',
    '3:32',
    '"x" is not a platform',
    'OS/ARCHITECTURE',
  ],
  [
    'a platform of a source that is none',
    'target: a:1\nsources:\n  - linux=b:1\n',
    '3:5',
    '"linux" is not a platform',
    'OS/ARCHITECTURE',
  ],
  [
    'a source without reference',
    'target: a:1\nsources:\n  - linux/amd64=\n',
    '3:5',
    'the reference is empty',
    'HOST/REPOSITORY:TAG',
  ],
  [
    'a source without image',
    'target: a:1\nsources:\n  - platform: linux/amd64\n',
    '3:5',
    '"sources[0].image" is missing',
    'Add it: image:',
  ],
  [
    'a source that is a number of items',
    'target: a:1\nsources:\n  - [b]\n',
    '3:5',
    '"sources[0]" must be a source',
    '[PLATFORM=]REF',
  ],
  ['an empty item', 'target: a:1\nsources:\n  - b\n  -\n', '4:4', '"sources[1]" must be a source', '[PLATFORM=]REF'],
  [
    'a platform in the reference of a map',
    'target: a:1\nsources:\n  - image: linux/amd64=b:1\n',
    '3:12',
    'not a repository name',
    'HOST/REPOSITORY:TAG',
  ],
  [
    'annotations of no platform',
    'target: a:1\nsources: [b]\nentryAnnotations:\n  every: {a: b}\n',
    '4:3',
    '"every" is not a platform',
    'OS/ARCHITECTURE',
  ],
  [
    'annotations of entries without platform',
    'target: a:1\nsources: [b]\nentryAnnotations: {a: b}\n',
    '3:23',
    '"entryAnnotations.a" must be a map of texts',
    'KEY: VALUE',
  ],
  [
    'a template without placeholder',
    'target: a:1\ntemplate: {image: b-ARCHIVE, platforms: [linux/amd64]}\n',
    '2:19',
    'none of OS, ARCH and VARIANT',
    'app-ARCHVARIANT',
  ],
  [
    'a template without platforms',
    'target: a:1\ntemplate: {image: b-ARCH}\n',
    '2:11',
    '"template.platforms" is missing',
    'Add it: platforms:',
  ],
  [
    'a template whose variant is empty',
    'target: a:1\ntemplate: {image: b-ARCH-VARIANT, platforms: [linux/arm/v7, linux/s390x]}\n',
    '2:19',
    'VARIANT is empty for linux/s390x',
    'ARCHVARIANT',
  ],
  [
    'a variable without value',
    lines('target: a:1', 'sources:', '  - b:${TAG}'),
    '3:5',
    'the variable TAG has no value',
    '--var TAG=VALUE',
  ],
  [
    'a variable with a default',
    lines('target: a:1', 'sources:', '  - b:${TAG:-1}'),
    '3:5',
    '"${TAG:-1}" is not a variable',
    'letters, digits and _',
  ],
  [
    'a variable that is never closed',
    lines('target: a:1', 'sources: [c]', 'annotations: {a: "${TAG"}'),
    '3:18',
    '"${TAG" is not a variable',
    '$${',
  ],
  ['a variable of the shell', 'target: a:$VERSION\nsources: [b]\n', '1:9', 'not a tag: "$VERSION"', 'letters, digits'],
];

function refused(rows: readonly Bad[]): void {
  const named = rows.map(([what, ...row]) => [what, row] as const);
  it.each(named)('%s', (_what, [text, at, message, hint, name = 'app.yaml']) => {
    const error = failureOf(() => read(text, { name }));
    expect(error.code).toBe('SPEC_INVALID');
    expect(error.exitCode).toBe(2);
    expect(`${error.message} | ${error.hint}`).toMatch(new RegExp(`^${name}:${at}: `));
    expect(error.message).toContain(message);
    expect(error.hint).toContain(hint);
    expect(error.message).not.toMatch(/\p{Cc}/u);
  });
}

describe("manifest-tool's files", () => refused(MANIFEST_TOOL));
describe('YAML and JSON', () => refused(YAML));
describe('our own files', () => refused(OWN));

describe('what builds write', () => {
  const json = (value: unknown) => JSON.stringify(value, null, 1);
  const other = `sha256:${'b2'.repeat(32)}`;

  it.each([
    ['no metadata', '[]', '1:1', 'not metadata of buildx', 'docker buildx build --metadata-file'],
    ['no image', json({ 'buildx.build.ref': 'x' }), '1:1', 'no containerimage.digest in it', 'Name a file of'],
    [
      'an image that was not pushed',
      json({ 'containerimage.config.digest': DIGEST }),
      '1:1',
      'no containerimage.digest',
      'was not pushed',
    ],
    [
      'a digest that is none',
      json({ 'containerimage.digest': 'sha256:12' }),
      '2:27',
      'not a sha256 or sha512 digest: "sha256:12"',
      '64 lower-case hex digits',
    ],
    [
      'two digests',
      json({ 'containerimage.digest': DIGEST, 'containerimage.descriptor': { digest: other } }),
      '4:3',
      'another digest than containerimage.digest',
      'Build again',
    ],
    [
      'several targets of bake',
      json({ app: { 'containerimage.digest': DIGEST }, db: { 'containerimage.digest': DIGEST } }),
      '1:1',
      'several targets of bake: "app", "db"',
      '--bake-target NAME',
    ],
    ['a name that is a number', json({ 'image.name': 5, 'containerimage.digest': DIGEST }), '2:16', 'is no text', ''],
    ['a descriptor that is a list', json({ 'containerimage.descriptor': [] }), '2:31', 'is no descriptor', ''],
    ['a name that is none', json({ 'image.name': 'a//b', 'containerimage.digest': DIGEST }), '2:16', 'not', ''],
    [
      'a manifest',
      json({ schemaVersion: 2, mediaType: 'x', layers: [] }),
      '2:2',
      'a manifest, where a descriptor is wanted',
      '"digest"',
    ],
    ['a descriptor without digest', json({ mediaType: 'x', size: 2 }), '1:1', '"digest" is missing', 'Add it'],
    [
      'a broken text',
      '{"containerimage.digest": sha256}',
      '1:27',
      'not JSON: a value should be here',
      'Correct the JSON',
    ],
  ])('%s', (_what, text, at, message, hint) => {
    const error = failureOf(() => buildxMetadata({ name: 'meta.json', text }, { target: TARGET }));
    expect(error.code).toBe('SPEC_INVALID');
    expect(error.message).toMatch(new RegExp(`^meta\\.json:${at}: `));
    expect(error.message).toContain(message);
    expect(error.hint).toContain(hint);
  });

  it('a target of bake that is not there', () => {
    const text = json({ 'app-amd64': { 'containerimage.digest': DIGEST } });
    const error = failureOf(() =>
      buildxMetadata({ name: 'm.json', text }, { target: TARGET, bakeTargets: ['app-amd46'] }),
    );
    expect(error.message).toBe('m.json:1:1: no target "app-amd46" of bake');
    expect(error.hint).toBe('Did you mean "app-amd64"? There are "app-amd64".');
  });

  it.each([
    ['no object', '"x"', '1:1', 'not the JSON of docker/metadata-action', 'DOCKER_METADATA_OUTPUT_JSON'],
    ['no tags', json({ tags: [] }), '2:2', 'no tags in it', 'makes none for some events'],
    ['a tag that is none', json({ tags: ['ghcr.io/Acme/app:1'] }), '3:3', 'must be lowercase', 'ghcr.io/acme/app:1'],
    [
      'annotations that are none',
      json({ tags: ['a:1'], annotations: ['index:x'] }),
      '6:3',
      'not KEY=VALUE: "index:x"',
      'docker/metadata-action',
    ],
    ['tags as a text', json({ tags: 'a:1' }), '2:10', 'must be a list of texts', 'docker/metadata-action'],
  ])('of metadata-action: %s', (_what, text, at, message, hint) => {
    const error = failureOf(() => metadataAction({ name: 'DOCKER_METADATA_OUTPUT_JSON', text }));
    expect(error.message).toMatch(new RegExp(`^DOCKER_METADATA_OUTPUT_JSON:${at}: `));
    expect(error.message).toContain(message);
    expect(error.hint).toContain(hint);
  });

  it.each([
    ['an empty folder', [], 'digests: no digest in digests', 'Look at the job'],
    ['hidden files alone', [{ name: '.gitkeep' }], 'digests: no digest in digests', 'Look at the job'],
    [
      'a file of another name',
      [{ name: HEX }, { name: 'README.md' }],
      'digests/README.md: neither the name nor the content is a digest',
      'remove other files',
    ],
    ['a short name', [{ name: HEX.slice(1) }], `digests/${HEX.slice(1)}: neither`, 'hex digits'],
    ['a name in capitals', [{ name: HEX.toUpperCase() }], 'neither the name nor the content', 'hex digits'],
    [
      'a digest that the name contradicts',
      [{ name: HEX, content: other }],
      `digests/${HEX}: the file holds another digest than its name`,
      'build again',
    ],
    [
      'a reference without digest',
      [{ name: 'amd64', content: 'ghcr.io/acme/app:1' }],
      '"ghcr.io/acme/app:1" has no digest',
      'REPOSITORY@sha256',
    ],
    [
      'several words',
      [{ name: 'amd64', content: 'a b' }],
      'digests/amd64: the file holds more than one word',
      'hex digits',
    ],
    [
      'a broken descriptor',
      [{ name: 'amd64', content: '{"digest"' }],
      'digests/amd64:1:10: the text ends where ":" should be',
      'Correct the JSON',
    ],
  ])('in a folder of digests: %s', (_what, entries, message, hint) => {
    const error = failureOf(() => digestsFolder(entries, { folder: 'digests/', target: TARGET }));
    expect(error.code).toBe('SPEC_INVALID');
    expect(error.message).toContain(message);
    expect(error.hint).toContain(hint);
  });
});
