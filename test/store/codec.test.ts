import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { digestOf } from '../../src/model/digest.ts';
import { ExactNumber } from '../../src/model/strict-json.ts';
import { decodeDraft, encodeDraft } from '../../src/store/codec.ts';
import type { DraftChild } from '../../src/store/draft.ts';
import { imageEntry, indexEntry, linux, type MadeEntry, storedDraft } from './drafts.ts';

const FILE = '/drafts/x.json';
const text = fc.string({ minLength: 1, maxLength: 6, unit: 'binary' });
const printable = fc.stringMatching(/^[!-~]{1,8}$/);
const annotations = fc.dictionary(text, fc.string({ unit: 'binary', maxLength: 6 }), { minKeys: 1, maxKeys: 3 });
const features = fc.array(printable, { minLength: 1, maxLength: 3 });
const platform = fc.record(
  { architecture: printable, os: printable, 'os.version': printable, 'os.features': features, variant: printable },
  { requiredKeys: ['architecture', 'os'] },
);
const changes: fc.Arbitrary<NonNullable<DraftChild['changes']>> = fc.record(
  {
    platform: fc.record({ architecture: printable, os: printable, variant: printable }, { requiredKeys: [] }),
    annotations,
  },
  { requiredKeys: [] },
);
const reference = fc
  .tuple(fc.constantFrom('docker.io/library', 'localhost:5000/x'), fc.stringMatching(/^[a-z]{1,5}$/))
  .map(([front, name]) => `${front}/${name}:1`);

const entry: fc.Arbitrary<MadeEntry> = fc.oneof(
  fc
    .record({ reference, platform: fc.option(platform, { nil: undefined }), changes, docker: fc.boolean() })
    .map((made) => imageEntry(made.reference, made.platform, { changes: made.changes, docker: made.docker })),
  fc
    .record({
      reference,
      annotations,
      extra: fc.dictionary(fc.stringMatching(/^x[a-z]{0,4}$/), fc.jsonValue({ maxDepth: 3 }), { minKeys: 1 }),
    })
    .map((made) => {
      const image = imageEntry(made.reference, linux('amd64'));
      const children = image.entry.children.map((child) => ({
        descriptor: { ...child.descriptor, annotations: made.annotations, extra: made.extra },
      }));
      return { ...image, entry: { ...image.entry, children } };
    }),
  reference.map((name) => indexEntry(name, [linux('amd64'), linux('arm', 'v7')])),
);

describe('a draft that is written', () => {
  it('is read as it was, whatever it holds', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(entry, { selector: (made) => made.entry.reference, maxLength: 4 }),
        fc.option(fc.uint8Array(), { nil: undefined }),
        (entries, docker) => {
          const made = storedDraft('docker.io/acme/app:1', ...entries);
          const draft = { ...made.draft, ...(docker === undefined ? {} : { docker: digestOf(docker) }) };
          const read = decodeDraft(encodeDraft({ ...made, draft }), FILE);
          // As JSON: fast-check makes objects without a prototype, and ones with the key __proto__.
          expect(JSON.stringify(read.draft.entries.map(sortedKeys))).toBe(
            JSON.stringify(draft.entries.map(sortedKeys)),
          );
          expect({ ...read.draft, entries: [] }).toEqual({ ...draft, entries: [] });
          expect(new Map([...read.manifests].map(([digest, bytes]) => [digest, Buffer.from(bytes)]))).toEqual(
            new Map([...made.manifests].map(([digest, bytes]) => [digest, Buffer.from(bytes)])),
          );
        },
      ),
      { numRuns: 40 },
    );
  });

  it('keeps the unknown fields of an entry and of its platform, with their numbers as they were written', () => {
    const { entry, bytes } = imageEntry('docker.io/acme/a:1', linux('amd64'));
    const extra = { data: new ExactNumber('1.0'), n: [new ExactNumber('1e400')] };
    const children = entry.children.map(({ descriptor }) => ({
      descriptor: { ...descriptor, extra, platformExtra: { features: ['sse4'], level: new ExactNumber('2.0') } },
    }));
    const made = storedDraft('docker.io/acme/app:1', { entry: { ...entry, children }, bytes });
    const read = decodeDraft(encodeDraft(made), FILE);
    expect(read.draft.entries[0]?.children).toEqual(children);
  });

  it('holds the bytes of the manifests that it names, and no others', () => {
    const made = storedDraft('docker.io/acme/app:1', imageEntry('docker.io/acme/a:1', linux('amd64')));
    const other = imageEntry('docker.io/acme/b:1', linux('arm'));
    const read = decodeDraft(encodeDraft({ ...made, manifests: new Map([...made.manifests, ...other.bytes]) }), FILE);
    expect([...read.manifests.keys()]).toEqual([...made.manifests.keys()]);
    expect(() => encodeDraft({ ...made, manifests: new Map() })).toThrow('did not come with the draft');
  });
});

/** With its keys in order: descriptors may keep unknown fields before or after the known ones. */
function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, field]) => [key, sortedKeys(field)]);
}

const made = storedDraft(
  'docker.io/acme/app:1',
  imageEntry('docker.io/acme/a:1', linux('amd64')),
  indexEntry('docker.io/acme/b:1', [linux('arm64')]),
);
const [image, index] = made.draft.entries;
const digest = image?.root.digest ?? '';
const base64 = Buffer.from(made.manifests.get(image?.root.digest ?? digestOf(Buffer.of())) ?? []).toString('base64');

/** The good draft with one value replaced; undefined leaves it out. */
function withValue(path: readonly (string | number)[], value: unknown): Uint8Array {
  const document: unknown = JSON.parse(Buffer.from(encodeDraft(made)).toString('utf8'));
  const last = path.at(-1) ?? '';
  const holder = path.slice(0, -1).reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document);
  (holder as Record<string, unknown>)[last] = value;
  return Buffer.from(JSON.stringify(document));
}

function refusal(bytes: Uint8Array): PublishError {
  try {
    decodeDraft(bytes, FILE);
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('it was read');
}

function expectRefusal(bytes: Uint8Array, words: string): void {
  const error = refusal(bytes);
  expect(error).toMatchObject({ code: 'DRAFT_INVALID', exitCode: 8 });
  expect(error.message).toContain(words);
  expect(error.message.startsWith(`${FILE}: `)).toBe(true);
  expect(error.message).not.toMatch(/\p{Cc}/u);
}

describe('a file that is no draft is refused by name', () => {
  it.each<[string, string | Uint8Array, string]>([
    ['nothing', '', 'not JSON'],
    ['half of one', encodeDraft(made).subarray(0, 300), 'not JSON'],
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'not UTF-8'],
    ['a list', '[]', 'not a JSON object'],
    ['a doubled key', '{"schemaVersion":1,"schemaVersion":1}', 'twice'],
    ['deep nesting', `{"entries":${'['.repeat(100)}${']'.repeat(100)}}`, 'nested deeper'],
  ])('%s', (_what, bytes, words) => {
    expectRefusal(Buffer.from(bytes), words);
  });

  const entry = ['entries', 0] as const;
  const child = [...entry, 'children', 0] as const;
  const ociIndex = 'application/vnd.oci.image.index.v1+json';
  it.each<[string, readonly (string | number)[], unknown, string]>([
    ['another version', ['schemaVersion'], 2, 'schemaVersion is not 1'],
    ['an unknown field', ['secret'], 1, 'a field of another program'],
    ['an unknown field of an entry', [...entry, 'secret'], 1, 'a field of another program'],
    ['an unknown field of a child', [...child, 'secret'], 1, 'a field of another program'],
    ['no reference', ['reference'], undefined, 'not a reference in full'],
    ['a short reference', ['reference'], 'acme/app', 'not a reference in full'],
    ['a hostile reference', ['reference'], '../../etc/passwd', 'not a host name'],
    ['a hash that is none', ['docker'], 'x', 'not a digest'],
    ['no entries', ['entries'], undefined, 'not a list'],
    ['an entry that is none', entry, 7, 'not an object'],
    ['a short reference of an entry', [...entry, 'reference'], 'a:1', 'not a reference in full'],
    ['an entry twice', [...entry, 'reference'], index?.reference, 'two entries of one reference'],
    ['too many entries', ['entries'], Array(1001).fill({}), 'more than 1000'],
    ['too many children', [...entry, 'children'], Array(1001).fill({}), 'more than 1000'],
    ['no manifests', ['manifests'], [], 'not an object'],
    ['other bytes', ['manifests', digest], Buffer.from('{}').toString('base64'), 'the bytes have the digest'],
    ['missing bytes', ['manifests', digest], undefined, `the bytes of ${digest} are missing`],
    ['loose Base64', ['manifests', digest], `${base64}\n`, 'not Base64'],
    ['bytes that are no text', ['manifests', digest], 7, 'not a text'],
    ['a key that is no digest', ['manifests', 'x'], '', 'a key that is not a digest'],
    ['a manifest over 4 MiB', ['manifests', digest], 'A'.repeat(5_700_000), 'more than 4194304 bytes'],
    ['another size', [...entry, 'root', 'size'], 1, 'but called 1'],
    ['another type', [...entry, 'root', 'mediaType'], ociIndex, 'calls itself'],
    ['a type of no manifest', [...entry, 'root', 'mediaType'], 'text/plain', 'of another type'],
    ['no child of an image', [...entry, 'children'], [], 'not the only child'],
    ['an index as a child', [...entry, 'children'], [{ descriptor: index?.root }], 'is an index, not an image'],
    ['a child that is none', child, 7, 'not an object'],
    ['changes that are none', [...child, 'changes'], [], 'not an object'],
    ['changes of something else', [...child, 'changes'], { digest: 'x' }, 'a field of another program'],
    ['annotations that are no texts', [...child, 'changes'], { annotations: { a: 1 } }, 'is not a text'],
    ['a platform that is none', [...child, 'changes'], { platform: 'linux' }, 'not a platform'],
    ['a platform with controls', [...child, 'changes'], { platform: { os: '\u001b[2J' } }, 'not a printable text'],
  ])('%s', (_what, path, value, words) => {
    expectRefusal(withValue(path, value), words);
  });

  it('one changed byte gives a draft, or an error that names it', () => {
    const good = Buffer.from(encodeDraft(made));
    fc.assert(
      fc.property(fc.nat({ max: good.length - 1 }), fc.nat({ max: 255 }), (at, byte) => {
        const bytes = Buffer.from(good);
        bytes[at] = byte;
        try {
          decodeDraft(bytes, FILE);
        } catch (error) {
          expect(error).toMatchObject({ code: 'DRAFT_INVALID', exitCode: 8 });
        }
      }),
      { numRuns: 300 },
    );
  });
});
