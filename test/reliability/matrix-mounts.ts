import { ALWAYS, all, answer, COPIED, each, fault, type Row, timesAsked, unless } from './matrix-case.ts';
import { type Outcome, SOURCES, type Stage, TARGET } from './matrix-stage.ts';

const ELSEWHERE = `sha256:${'0'.repeat(64)}`;
const location = (value: string | readonly string[] | undefined) =>
  ({ kind: 'headers', set: { Location: value } }) as const;

/** What became of the six blobs of two images. */
export const blobs =
  (how: Partial<Record<'present' | 'mounted' | 'copied', number>>) =>
  ({ report }: Outcome): readonly string[] =>
    Object.entries(how).flatMap(([name, count]) => {
      const found = report?.totals.blobs[name as 'copied'];
      return unless(found === count, `${found} blobs were ${name}, not ${count}`);
    });

const later = (stage: Stage) => {
  const [image] = stage.images;
  const layer = image?.blobs[1]?.descriptor.digest ?? '';
  stage.registry.addFault({ operation: 'blobHead', repository: TARGET, path: new RegExp(layer), action: answer(200) });
};

/** Rows 19 to 27: what is not there, mounts, and registries that say what is not so. */
export const MOUNTS: readonly Row[] = [
  {
    number: 19,
    fault: 'a source, a blob of it or the target repository is not there',
    promise: 'the end, with its name; no architecture is left out in silence',
    cases: [
      ...each({ source: 4 }, '404', answer(404, 'MANIFEST_UNKNOWN'), {
        says: [SOURCES[0]],
        holds: (outcome) => unless(timesAsked(outcome, 'move') === 0, 'the tag was put'),
      }),
      ...each({ config: 4, layer: 4 }, '404', answer(404, 'BLOB_UNKNOWN'), {
        says: [/debian\/a(?:md|rm)64/],
        holds: (outcome) => unless(timesAsked(outcome, 'move') === 0, 'the tag was put'),
      }),
      ...each({ open: 4 }, '404 NAME_UNKNOWN', answer(404, 'NAME_UNKNOWN'), { says: [TARGET] }),
      {
        name: 'every POST: 404 NAME_UNKNOWN',
        exit: 4,
        says: [TARGET],
        arrange: all(fault('mount', answer(404, 'NAME_UNKNOWN')), fault('open', answer(404, 'NAME_UNKNOWN'))),
      },
    ],
  },
  {
    number: 20,
    fault: 'a mount is answered 400, 404, 405, 415 or 501',
    promise: 'the bytes are copied instead',
    cases: [400, 404, 405, 415, 501].flatMap((status) =>
      each({ mount: 0 }, String(status), answer(status, 'UNSUPPORTED'), { holds: blobs({ copied: 6 }) }),
    ),
  },
  {
    number: 21,
    fault: 'a mount is answered 202',
    promise: 'the session that it opened is used; when the run fails it is cancelled',
    cases: [
      {
        name: 'mount: 202',
        exit: 0,
        profile: COPIED,
        holds: (outcome) => [
          ...blobs({ copied: 6 })(outcome),
          ...unless(timesAsked(outcome, 'open') === 0, 'a second session was opened'),
        ],
      },
      ...each({ layer: 4 }, '202, and the blob is gone', answer(404, 'BLOB_UNKNOWN')),
    ],
  },
  {
    number: 22,
    fault: 'a session without an address: no Location, empty, twice, or none that can be read',
    promise: 'a mount is followed by one plain POST, which must do better',
    cases: (
      [
        ['no Location', undefined],
        ['empty', ''],
        ['twice', ['/v2/a', '/v2/b']],
        ['unreadable', 'http://['],
      ] as const
    ).flatMap(([name, value]) => [
      ...each({ mount: 0 }, name, location(value), { profile: COPIED, leaves: 6, holds: blobs({ copied: 6 }) }),
      ...each({ open: 6 }, name, location(value), { leaves: 6 }),
    ]),
  },
  {
    number: 23,
    fault: 'a mount is answered 201 without Location',
    promise: 'mounted, as the HEAD that follows confirms',
    cases: each({ mount: 0 }, 'no Location', location(undefined), { holds: blobs({ mounted: 6 }) }),
  },
  {
    number: 24,
    fault: 'a mount is answered 201, and the blob is not there',
    promise: 'found by HEAD before the tag moves; copied',
    cases: [{ name: 'mount: lies', exit: 0, profile: { mount: { mode: 'lie201' } }, holds: blobs({ copied: 6 }) }],
  },
  {
    number: 25,
    fault: 'a mount is answered 201 with another digest',
    promise: 'what HEAD says of our digest decides',
    cases: [
      ...each({ mount: 0 }, 'another digest', { kind: 'headers', set: { 'Docker-Content-Digest': ELSEWHERE } }, {}),
      {
        name: 'mount: another digest, and a lie',
        exit: 0,
        profile: { mount: { mode: 'lie201' } },
        arrange: fault('mount', { kind: 'headers', set: { 'Docker-Content-Digest': ELSEWHERE } }),
      },
    ],
  },
  {
    number: 26,
    fault: 'what was put is not seen yet; a child or the index is refused for what it names',
    promise: 'everything that it names is looked at and what is missing is copied, after a wait; three rounds',
    cases: [
      ...each({ child: 0, move: 0 }, 'MANIFEST_BLOB_UNKNOWN once', answer(400, 'MANIFEST_BLOB_UNKNOWN'), { times: 1 }),
      ...each(
        { child: 5, move: 5 },
        'MANIFEST_BLOB_UNKNOWN for ever',
        answer(400, 'MANIFEST_BLOB_UNKNOWN', 'scripted words'),
        { says: ['scripted words'] },
      ),
      { name: 'HEAD of a blob says yes, and it is not there', exit: 0, profile: COPIED, arrange: later },
      {
        name: 'everything is seen 100 ms late',
        exit: 0,
        profile: { ...COPIED, manifest: { visibleAfterMs: 100 } },
        again: false,
      },
    ],
  },
  {
    number: 27,
    fault: 'the PUT of a blob is answered 201, and it is not there',
    promise:
      'waited for, 7 s in all, when the child is refused for it; then the end, with its name: the next run uploads it',
    cases: [
      ...each(
        { put: 5 },
        'lost once',
        { kind: 'answer', status: 201, headers: { Location: '/v2/x' } },
        { times: 1, leaves: 6 },
      ),
      ...each(
        { put: 5 },
        'lost for ever',
        { kind: 'answer', status: 201, headers: { Location: '/v2/x' } },
        { times: ALWAYS, leaves: 99 },
      ),
    ],
  },
];
