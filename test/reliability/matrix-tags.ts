import { PublishError } from '../../src/errors.ts';
import { digestOf } from '../../src/model/digest.ts';
import { parsePlatform } from '../../src/model/platform.ts';
import { MEDIA_TYPES, makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import { COPIED, each, type Row, timesAsked, unless } from './matrix-case.ts';
import { type Outcome, SOURCES, type Stage, TAG, TARGET } from './matrix-stage.ts';

const amd64 = { architecture: 'amd64', os: 'linux' } as const;

/** Puts a document as the first source. */
const asSource =
  (document: object) =>
  ({ registry }: Stage) => {
    const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: MEDIA_TYPES.ociIndex, ...document }));
    registry.putManifest(SOURCES[0], bytes, MEDIA_TYPES.ociIndex, TAG);
  };

const nested =
  (depth: number) =>
  ({ registry, images }: Stage) => {
    let [inner] = images;
    for (let level = 0; level < depth && inner !== undefined; level += 1)
      inner = makeIndex([{ manifest: inner, platform: amd64 }]);
    if (inner !== undefined) putBuilt(registry, SOURCES[0], inner, TAG);
  };

const untouched = (outcome: Outcome): readonly string[] =>
  unless(
    outcome.journal.every(
      ({ method, operation }) => operation === 'mount' || method === 'GET' || method === 'HEAD' || method === 'DELETE',
    ),
    'something was written',
  );

const when = (kind: string, act: (stage: Stage) => void) => (stage: Stage) => {
  let done = false;
  stage.onEvent = (event) => {
    if (done || (event as { kind: string }).kind !== kind) return;
    done = true;
    act(stage);
  };
};

const THEIRS = makeIndex([{ manifest: makeImage('theirs'), platform: amd64 }]);
const theirs = ({ registry }: Stage) => void putBuilt(registry, TARGET, THEIRS, TAG);

const immutable = (['400evenSame', '409', '412', '400redeploy'] as const).map((mode) => ({
  manifest: { immutable: mode },
}));

const terminate = ({ controller }: Stage) =>
  controller.abort(new PublishError('TERMINATED', 'terminated (SIGTERM)', 'Run the same command again.'));

/** Ends the run when so many requests have been answered. */
const endAt = (count: number) => (stage: Stage) => {
  let answered = 0;
  stage.onEvent = (event) => {
    if ((event as { kind: string }).kind === 'request') answered += 1;
    if (answered === count) terminate(stage);
  };
};

/** Rows 40 to 47, 54 and 56: lists, tags, signals, connections that end. */
export const TAGS: readonly Row[] = [
  {
    number: 40,
    fault: 'a source that is an index: too deep, too long, empty, incomplete',
    promise: 'three levels and 1,000 entries at most; a child that is missing is named; found before any write',
    cases: [
      { name: 'three levels', exit: 0, arrange: nested(3) },
      { name: 'ten levels', exit: 6, arrange: nested(10), holds: untouched, again: false },
      {
        name: '1,001 entries',
        exit: 6,
        again: false,
        holds: untouched,
        arrange: asSource({
          manifests: Array.from({ length: 1001 }, (_, at) => ({
            mediaType: MEDIA_TYPES.ociManifest,
            digest: digestOf(Buffer.from(String(at))),
            size: 9,
            platform: amd64,
          })),
        }),
      },
      {
        name: 'no entries',
        exit: 6,
        says: ['lists nothing'],
        arrange: asSource({ manifests: [] }),
        holds: untouched,
        again: false,
      },
      {
        name: 'a child that is not there',
        exit: 4,
        again: false,
        holds: untouched,
        arrange: asSource({
          manifests: [
            { mediaType: MEDIA_TYPES.ociManifest, digest: digestOf(Buffer.from('x')), size: 9, platform: amd64 },
          ],
        }),
      },
    ],
  },
  {
    number: 41,
    fault: 'platforms: twice, unknown, contradicting the image',
    promise: 'refused with both names, before the tag moves',
    cases: [
      {
        name: 'twice, found after mounts',
        exit: 2,
        again: false,
        holds: untouched,
        says: [SOURCES[0], 'linux/amd64'],
        arrange: (stage) => {
          putBuilt(stage.registry, 'debian/other', makeImage('other', { platform: amd64 }), TAG);
          stage.sources = [...SOURCES, 'debian/other'];
        },
      },
      {
        name: 'another than the config says',
        exit: 2,
        again: false,
        holds: untouched,
        says: ['amd64'],
        arrange: (stage) => {
          stage.sources = [`s390x=registry.example.test/${SOURCES[0]}:${TAG}`, SOURCES[1]];
        },
      },
      {
        name: 'one that is expected and not there',
        exit: 4,
        again: false,
        holds: untouched,
        says: ['s390x'],
        arrange: (stage) => {
          stage.request = { expectPlatforms: [parsePlatform('linux/amd64'), parsePlatform('linux/s390x')] };
        },
      },
    ],
  },
  {
    number: 42,
    fault: 'the tag of a source moves during the run',
    promise: 'what was read first is published; all later reads are by digest',
    cases: [
      {
        name: 'once it was read',
        exit: 0,
        profile: COPIED,
        again: false,
        arrange: when(
          'resolve.source',
          ({ registry }) => void putBuilt(registry, SOURCES[0], makeImage('newer', { platform: amd64 }), TAG),
        ),
        holds: ({ report }, { images }) =>
          unless(
            report?.lists[0]?.index?.manifests[0]?.digest === images[0]?.descriptor.digest,
            'another image was published',
          ),
      },
    ],
  },
  {
    number: 43,
    fault: 'somebody else moves the target tag during the run',
    promise: 'with `--no-clobber` or `--expect-digest` it is seen and left alone; without, who writes last wins',
    cases: [
      { name: 'no guard', exit: 0, arrange: when('manifest.done', theirs) },
      {
        name: '--expect-digest',
        exit: 7,
        foreign: true,
        again: false,
        arrange: (stage) => {
          stage.request = { expectDigest: stage.old.descriptor.digest };
          when('manifest.done', theirs)(stage);
        },
        holds: (_outcome, { registry }) =>
          unless(registry.tagOf(TARGET, TAG) === THEIRS.descriptor.digest, 'their list was overwritten'),
      },
      {
        name: '--no-clobber',
        exit: 7,
        foreign: true,
        again: false,
        holds: untouched,
        arrange: (stage) => {
          stage.request = { noClobber: true };
        },
      },
    ],
  },
  {
    number: 45,
    fault: 'the tag may not be moved (ECR, Harbor, Quay, Nexus)',
    promise: 'good when it holds this very list, else the end, without another try',
    cases: immutable.flatMap((profile) => [
      {
        name: `${profile.manifest.immutable}, another list`,
        exit: 7,
        profile,
        again: false as const,
        says: [TARGET],
        holds: (outcome: Outcome) => unless(timesAsked(outcome, 'move') === 1, 'the tag was put again'),
      },
      {
        name: `${profile.manifest.immutable}, the same list`,
        exit: 0,
        arrange: when('manifest.done', () => undefined),
        mend: ({ registry }: Stage) => registry.configure(profile),
      },
    ]),
  },
  {
    number: 47,
    fault: 'SIGINT or SIGTERM at any moment',
    promise: 'nothing new is begun, sessions are cancelled, 130 or 143',
    cases: [1, 4, 8, 12, 16, 20, 24, 28].map((count) => ({
      name: `after ${count} requests`,
      exit: 143,
      profile: COPIED,
      arrange: endAt(count),
      again: false as const,
    })),
  },
  {
    number: 54,
    fault: 'an idle connection is closed just as it is used again',
    promise: 'sent once more at once, on another connection; it counts as no try',
    cases: each(
      { config: 0, child: 0, move: 0 },
      'reset before',
      { kind: 'reset', when: 'before' },
      { times: 1, holds: ({ slept }) => unless(slept.length === 0, 'it was waited for') },
    ),
  },
  {
    number: 56,
    fault: 'headers that are repeated, folded or too long; 1xx without end; trailers',
    promise:
      'of two that differ none is believed; what breaks HTTP, 32 answers of 1xx or 16 KiB of headers end the exchange at once; trailers are read over',
    also: 'test/http/bytes.test.ts',
    cases: [
      ...each({ source: 6 }, 'two Content-Types', {
        kind: 'headers',
        set: { 'Content-Type': [MEDIA_TYPES.ociManifest, MEDIA_TYPES.ociIndex] },
      }),
      ...each({ source: 6 }, 'two digests', {
        kind: 'headers',
        set: { 'Docker-Content-Digest': [`sha256:${'0'.repeat(64)}`, `sha256:${'1'.repeat(64)}`] },
      }),
      ...each({ source: 6, child: 6 }, 'a header of 20 kB', {
        kind: 'headers',
        set: { 'X-Large': 'x'.repeat(20_000) },
      }),
    ],
  },
];
