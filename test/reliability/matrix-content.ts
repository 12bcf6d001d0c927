import { MEDIA_TYPES } from '../helpers/images.ts';
import { type Case, each, fault, type Row, timesAsked, unless } from './matrix-case.ts';
import type { Outcome, Stage } from './matrix-stage.ts';

const WRONG = `sha256:${'0'.repeat(64)}`;

const digestHeader = (value: string | undefined) =>
  ({ kind: 'headers', set: { 'Docker-Content-Digest': value } }) as const;

/** Nothing but reads reached the registry, and perhaps mounts, which change no tag and no bytes. */
const nothingPut = (outcome: Outcome): readonly string[] => [
  ...unless(timesAsked(outcome, 'child') === 0, 'a child was put'),
  ...unless(timesAsked(outcome, 'move') === 0, 'the tag was put'),
];

const neverCommitted = ({ journal }: Outcome, { registry, images }: Stage): readonly string[] => {
  const damaged = journal.filter(({ operation, status }) => operation === 'uploadPut' && status === 201);
  const known = new Set(images.flatMap(({ blobs }) => blobs.map(({ descriptor }) => descriptor.digest as string)));
  return damaged
    .map(({ query }) => new URLSearchParams(query).get('digest') ?? '')
    .filter((digest) => !known.has(digest) || !registry.hasBlob('debian/all', digest))
    .map((digest) => `${digest} was committed`);
};

/** The source answers with this document. */
function document(
  name: string,
  body: string | Uint8Array,
  exit: number,
  contentType: string | undefined = MEDIA_TYPES.ociManifest,
): Case {
  const headers: Record<string, string> = contentType === undefined ? {} : { 'Content-Type': contentType };
  const action = { kind: 'answer', status: 200, body, headers } as const;
  return { name, exit, arrange: fault('source', action), holds: nothingPut, says: ['debian/amd64'] };
}

const DIGEST = `sha256:${'a'.repeat(64)}`;
const entry = (size: string, more = '') =>
  `{"mediaType":"${MEDIA_TYPES.ociConfig}","digest":"${DIGEST}","size":${size}${more}}`;
const manifest = (config: string, more = '') =>
  `{"schemaVersion":2,"mediaType":"${MEDIA_TYPES.ociManifest}","config":${config},"layers":[]${more}}`;

const own =
  (of: 'source', contentType: string | undefined, body: (text: string) => string = (text) => text) =>
  (stage: Stage) => {
    const [image] = stage.images;
    const headers: Record<string, string> = contentType === undefined ? {} : { 'Content-Type': contentType };
    const text = body(image?.bytes.toString() ?? '');
    fault(of, { kind: 'answer', status: 200, headers, body: text })(stage);
  };

/** Rows 10 to 12 and 37 to 39: wrong bytes, wrong words about them. */
export const CONTENT: readonly Row[] = [
  {
    number: 10,
    fault: 'a bit of a blob is wrong',
    promise: 'hashed in flight: the session is cancelled before anything is committed, one fresh try, then the end',
    cases: [
      ...each(
        { layer: 6 },
        'every time',
        { kind: 'corrupt' },
        { holds: (outcome, stage) => [...nothingPut(outcome), ...neverCommitted(outcome, stage)] },
      ),
      ...each({ config: 6 }, 'every time', { kind: 'corrupt' }, { holds: nothingPut }),
      ...each({ layer: 0, config: 0 }, 'once', { kind: 'corrupt' }, { times: 1, holds: neverCommitted }),
    ],
  },
  {
    number: 11,
    fault: 'a bit of a manifest is wrong',
    promise: 'read once more, then the end; it is never pushed',
    cases: [
      ...each({ source: 6 }, 'every time', { kind: 'corrupt' }, { holds: nothingPut }),
      ...each({ source: 0, tag: 0 }, 'once', { kind: 'corrupt' }, { times: 1 }),
    ],
  },
  {
    number: 12,
    fault: '`Docker-Content-Digest` is wrong, absent or nonsense',
    promise: 'bytes are believed, never the header: wrong is an error, absent is none; of a PUT it is looked into',
    cases: [
      ...each({ source: 6, child: 6 }, 'wrong', digestHeader(WRONG)),
      ...each({ move: 0 }, 'wrong, though the tag holds the right one', digestHeader(WRONG), {
        says: ['holds the right one'],
      }),
      ...each({ source: 0, tag: 0, mount: 0, put: 0, child: 0, move: 0 }, 'absent', digestHeader(undefined)),
      ...each({ source: 0, child: 0, move: 0 }, 'nonsense', digestHeader('latest')),
    ],
  },
  {
    number: 37,
    fault: 'a manifest of more than 4 MiB, or packed',
    promise: 'no more than 4 MiB are read; nothing is unpacked',
    cases: [
      document('4 MiB and a byte', Buffer.alloc(4 * 1024 * 1024 + 1, 32), 6),
      ...each({ source: 6, config: 6, layer: 6 }, 'gzip', { kind: 'headers', set: { 'Content-Encoding': 'gzip' } }),
      ...each({ source: 6 }, 'br, gzip', { kind: 'headers', set: { 'Content-Encoding': 'br, gzip' } }),
    ],
  },
  {
    number: 38,
    fault: 'JSON that two readers may read differently, or that hurts its reader',
    promise: 'refused before any write, with what is wrong',
    cases: [
      document('no JSON', '{', 6),
      document('nothing', '', 6),
      document('a byte order mark', `\ufeff${manifest(entry('2'))}`, 6),
      document('invalid UTF-8', Buffer.from(`${manifest(entry('2'), ',"annotations":{"a":"\xff"}')}`, 'latin1'), 6),
      document('NaN', manifest(entry('NaN')), 6),
      document('a million brackets', '['.repeat(1_000_000), 6),
      document('a key twice', manifest(entry('2', `,"digest":"${DIGEST}"`)), 6),
      document('a key in two cases', manifest(entry('2', `,"Digest":"${DIGEST}"`)), 6),
      {
        name: '__proto__ is a key like another',
        exit: 0,
        arrange: own('source', MEDIA_TYPES.ociManifest, (text) => text.replace('{', '{"__proto__":{"size":1},')),
        holds: () => unless(!('size' in {}), 'the prototype of all objects was changed'),
        again: false,
      },
      document('size 1e400', manifest(entry('1e400')), 6),
      document('size -1', manifest(entry('-1')), 6),
      document('size 2^53+1', manifest(entry('9007199254740993')), 6),
      document('size "2"', manifest(entry('"2"')), 6),
      document('an array', '[]', 6),
      document('a digest with a path in it', manifest(entry('2').replace(DIGEST, 'sha256:../../x')), 6),
      document('a digest in capitals', manifest(entry('2').replace(DIGEST, `sha256:${'A'.repeat(64)}`)), 6),
    ],
  },
  {
    number: 39,
    fault: 'a document of another type than it, or its header, says',
    promise: 'never guessed: another manifest type is refused, a generic one yields to the body, schema 1 is named',
    cases: [
      { name: 'no Content-Type', exit: 0, arrange: own('source', undefined) },
      { name: 'application/json', exit: 0, arrange: own('source', 'application/json') },
      {
        name: 'with a parameter, in capitals',
        exit: 0,
        arrange: own('source', `${MEDIA_TYPES.ociManifest.toUpperCase()}; charset=utf-8`),
      },
      { name: 'another manifest type', exit: 6, arrange: own('source', MEDIA_TYPES.ociIndex), holds: nothingPut },
      {
        name: 'image and index at once',
        exit: 6,
        arrange: own('source', MEDIA_TYPES.ociManifest, (text) => text.replace('{', '{"manifests":[],')),
        holds: nothingPut,
      },
      document('a login page', '<!DOCTYPE html><title>Sign in</title>', 6, 'text/html'),
      document(
        'schema 1',
        '{"schemaVersion":1,"name":"x","tag":"1","fsLayers":[],"history":[]}',
        2,
        'application/vnd.docker.distribution.manifest.v1+prettyjws',
      ),
    ],
  },
];
