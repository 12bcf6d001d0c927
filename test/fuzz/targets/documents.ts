import { type Descriptor, ENTRIES_MAX, MEDIA_TYPES } from '../../../src/model/descriptor.ts';
import { readDescriptor } from '../../../src/model/descriptor-json.ts';
import { digestOf, isDigest } from '../../../src/model/digest.ts';
import { buildIndex } from '../../../src/model/image-index.ts';
import { parseImageConfig, parseManifest } from '../../../src/model/manifest.ts';
import { exactJson, readJsonObject } from '../../../src/model/strict-json.ts';
import { makeAttestedIndex, makeImage } from '../../../src/registry-server/index.ts';
import type { Random } from '../../peers/random.ts';
import { attempt, bytesOf, must, same, type Target, violated } from '../target.ts';

const DIGEST = digestOf(Buffer.from(''));
const PLATFORM = { os: 'linux', architecture: 'arm', variant: 'v7' };
const IMAGE = makeImage('image', { platform: PLATFORM, foreignUrl: 'https://x.test/y' });
const DOCKER = makeImage('docker', { docker: true, indent: 3 });
const INDEX = makeAttestedIndex(IMAGE, PLATFORM);

export const MANIFESTS: readonly string[] = [IMAGE, DOCKER, INDEX].map(({ bytes }) => bytes.toString());

const DESCRIPTOR = `{"mediaType":"${MEDIA_TYPES.ociManifest}","digest":"${DIGEST}","size":2}`;

export const JSON_WORDS: readonly string[] = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"a":',
  '"mediaType":',
  '"MediaType":',
  '"mediatype":',
  '"schemaVersion":2',
  '"schemaVersion":1',
  '"manifests":[],',
  '"layers":[],',
  '"config":',
  '"fsLayers":[],',
  '"subject":',
  '"size":1.0',
  '"size":9007199254740993',
  '"size":-1',
  '"size":1e400',
  '"digest":"',
  '"urls":["http://x"]',
  '"annotations":{"a":"b"},',
  '"platform":{"os":"linux","architecture":"arm64"},',
  '"__proto__":{},',
  '"\\u0073ize":1,',
  '"\u017fize":1,',
  'true',
  'null',
  '-0',
  '1E+2',
  '\\u0000',
  ...Object.values(MEDIA_TYPES),
  DIGEST,
  DESCRIPTOR,
];

const KEYS = ['mediaType', 'digest', 'size', 'a', '1', '__proto__', 'toString', 'é', '\\u0061', 'urls', 'platform'];
const LEAVES = [
  '1',
  '-0',
  '0.5',
  '1e400',
  '12345678901234567890',
  '1.0',
  'true',
  'null',
  '"x"',
  '"\\ud800"',
  '""',
  '[]',
  '{}',
];

/** JSON of any shape, with numbers and keys over which parsers differ. */
function makeJson(random: Random, depth = 0): string {
  const kind = depth > 5 ? 2 : random.below(3);
  const space = random.below(6) === 0 ? ' \n' : '';
  if (kind === 2 && depth > 0) return random.pick(LEAVES);
  const items: string[] = [];
  for (let left = random.below(4); left > 0; left -= 1) {
    const value = makeJson(random, depth + 1);
    items.push(kind === 0 || depth === 0 ? `"${random.pick(KEYS)}"${space}:${space}${value}` : value);
  }
  const text = items.join(`,${space}`);
  return kind === 0 || depth === 0 ? `{${text}${space}}` : `[${text}${space}]`;
}

const deepShapes = (length: number) => [
  `{"a":${'['.repeat(length)}`,
  `{"a":"${'\\'.repeat(length)}`,
  `{${'"a":1,'.repeat(length / 6)}"b":2}`,
  `{${Array.from({ length: length / 12 }, (_, index) => `"k${index}":1`).join(',')}}`,
  `{"a":[${'{"b":1},'.repeat(length / 8)}0]}`,
  `{"a":[${'1.0,'.repeat(length / 4)}0]}`,
  `{"a":${'1'.repeat(length)}}`,
  `{"a":${'-'.repeat(length)}}`,
  `{"a"${' '.repeat(length)}:1}`,
  `{"layers":[${`${DESCRIPTOR},`.repeat(length / (DESCRIPTOR.length + 1))}1]}`,
];

const strictJson: Target = {
  name: 'strict JSON',
  corpus: ['{}', '{"a":{"b":[1,2.50,"x",null,true]}}', '{"a":1,"a":2}', '\ufeff{}', '{"size":1e400}', ...MANIFESTS],
  words: JSON_WORDS,
  make: makeJson,
  shapes: deepShapes,
  check(text) {
    const bytes = bytesOf(text);
    const value = attempt(['MANIFEST_INVALID'], () => readJsonObject(bytes, 'x'));
    if (value === undefined) return false;
    const plain: unknown = JSON.parse(bytes.toString());
    must(same(value, plain), 'not what JSON.parse reads', value);
    const written = exactJson(value);
    must(exactJson(readJsonObject(Buffer.from(written), 'x')) === written, 'reads back otherwise', written);
    must(same(JSON.parse(written), plain), 'writes another document', written);
    const spaced = text.length % 2 === 0 ? respaced(bytes.toString()) : undefined;
    if (spaced !== undefined) {
      must(exactJson(readJsonObject(Buffer.from(spaced), 'x')) === written, 'white space changes the document', spaced);
    }
    return true;
  },
};

/** The same document with other white space between its tokens. */
function respaced(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|[^"]+/gsu, (part) =>
    part.startsWith('"') ? part : part.replace(/\s+/g, '').replace(/[{}[\],:]/g, (token) => ` ${token}\r\n\t`),
  );
}

const TYPES = [undefined, 'application/octet-stream', ...Object.values(MEDIA_TYPES)];

const manifest: Target = {
  name: 'manifest',
  corpus: [
    ...MANIFESTS,
    '{"schemaVersion":1,"fsLayers":[]}',
    `{"schemaVersion":2,"manifests":[${DESCRIPTOR}]}`,
    `{"schemaVersion":2,"config":${DESCRIPTOR},"layers":[]}`,
    `{"schemaVersion":2,"config":${DESCRIPTOR},"layers":[],"manifests":[]}`,
  ],
  words: JSON_WORDS,
  make: (random) => {
    const own = random.pick(['', `"mediaType":"${random.pick(Object.values(MEDIA_TYPES))}",`]);
    const list = Array.from({ length: random.below(4) }, () => DESCRIPTOR).join(',');
    const body = random.pick([`"manifests":[${list}]`, `"config":${DESCRIPTOR},"layers":[${list}]`, '"layers":null']);
    return `{"schemaVersion":${random.pick(['2', '2', '2', '1'])},${own}${body}}`;
  },
  shapes: deepShapes,
  share: 4,
  check(text) {
    const bytes = bytesOf(text);
    const kinds = new Set<string>();
    for (const type of TYPES) {
      const parsed = attempt(['MANIFEST_INVALID', 'MANIFEST_UNSUPPORTED'], () =>
        parseManifest(bytes, DIGEST, type, 'x'),
      );
      if (parsed === undefined) continue;
      kinds.add(parsed.kind);
      const children = parsed.kind === 'index' ? parsed.manifests : [parsed.config, ...parsed.layers];
      must(children.length <= ENTRIES_MAX + 1, 'too many entries', children.length);
      for (const child of children) mustBeDescriptor(child);
      if (parsed.kind === 'index') mustBuild(parsed.manifests);
    }
    must(kinds.size <= 1, 'an image to one client and an index to another (CVE-2021-41190)');
    return kinds.size > 0;
  },
};

function mustBeDescriptor({ digest, size, mediaType }: Descriptor): void {
  must(isDigest(digest) && Number.isSafeInteger(size) && size >= 0 && mediaType !== '', 'no descriptor', digest, size);
}

/** What is read from one index is written the same into another. */
function mustBuild(manifests: readonly Descriptor[]): void {
  const built = buildIndex({ mediaType: MEDIA_TYPES.ociIndex, manifests });
  const again = parseManifest(built.bytes, built.digest, undefined, 'x');
  if (again.kind !== 'index') throw violated('an index of ours is none', built.bytes.toString());
  const rebuilt = buildIndex({ mediaType: MEDIA_TYPES.ociIndex, manifests: again.manifests });
  must(rebuilt.digest === built.digest, 'an entry changes when it is read and written again', built.bytes.toString());
}

const descriptor: Target = {
  name: 'descriptor',
  corpus: [DESCRIPTOR, ...(INDEX.bytes.toString().match(/\{[^{}]*\{[^{}]*\}[^{}]*\}/g) ?? [])],
  words: JSON_WORDS,
  make: (random) =>
    DESCRIPTOR.replace(random.pick(['"size":2', '}', '"digest"']), (part) => random.pick(JSON_WORDS) + part),
  check(text) {
    const parsed = attempt(['MANIFEST_INVALID'], () => readDescriptor(readJsonObject(bytesOf(text), 'x'), 'x'));
    if (parsed === undefined) return false;
    mustBeDescriptor(parsed);
    mustBuild([parsed]);
    return true;
  },
};

const config: Target = {
  name: 'image config',
  corpus: [
    '{"architecture":"arm","os":"linux","variant":"v7","rootfs":{"type":"layers","diff_ids":[]}}',
    '{"architecture":"amd64","os":"windows","os.version":"10.0.1","os.features":["win32k"]}',
    '{"Architecture":"arm"}',
    '{"architecture":"","os":null}',
  ],
  words: ['"architecture":', '"os":', '"os.features":[', '"OS":"linux",', '"variant":"v7",', ...JSON_WORDS],
  check(text) {
    const parsed = attempt(['MANIFEST_INVALID'], () => parseImageConfig(bytesOf(text), 'x'));
    if (parsed === undefined) return false;
    for (const value of Object.values(parsed)) must(value.length > 0, 'an empty field', parsed);
    return true;
  },
};

export const DOCUMENT_TARGETS: readonly Target[] = [strictJson, manifest, descriptor, config];
