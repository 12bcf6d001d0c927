import fc from 'fast-check';
import type { FaultAction, FaultRule, MountMode, Operation, ProfileChanges } from '../../src/registry-server/index.ts';

/** A fault as plain data: a failing schedule is printed, and becomes a test by being pasted. */
export type PlannedFault = Pick<FaultRule, 'operation' | 'nth' | 'times' | 'action'> & {
  /** At the registry of the target, or at the second one. */
  readonly at: 'target' | 'source';
  /** Only of what reads or moves the target's tags. */
  readonly onTags?: true;
};

/** What a target tag holds before the run. */
export type OldTag = 'none' | 'image' | 'other' | 'overlapping' | 'broken' | 'same';

/** Everything that one run with faults depends on, but for the order in which the kernel delivers. */
export type Schedule = {
  /** Numbers of images, in the order of the list. */
  readonly images: readonly number[];
  /** How many of them, from the end, lie on a second registry. */
  readonly elsewhere: number;
  readonly docker: boolean;
  readonly tags: number;
  readonly old: OldTag;
  readonly guarded: boolean;
  readonly verify: boolean;
  readonly auth: 'none' | 'basic' | 'bearer';
  readonly profile: ProfileChanges;
  readonly requests: number;
  readonly jobs: number;
  readonly retries: number;
  readonly upload: 'auto' | 'whole' | 'chunks';
  readonly seed: number;
  /** The run is ended when so many requests have been answered, as by SIGTERM. */
  readonly endAt?: number;
  readonly faults: readonly PlannedFault[];
};

/** How many images there are to choose from. */
export const IMAGES = 9;

const OPERATIONS: readonly Operation[] = [
  ...(['blobHead', 'blobGet', 'mount', 'uploadPost', 'uploadPatch', 'uploadPut', 'uploadGet'] as const),
  ...(['uploadDelete', 'manifestHead', 'manifestGet', 'manifestPut', 'token'] as const),
];

const STATUSES = [401, 403, 404, 408, 416, 429, 500, 503] as const;

const BODIES = [
  '',
  '<html><body>Sorry</body></html>',
  '{"errors":[]}',
  ...['UNAUTHORIZED', 'DENIED', 'BLOB_UNKNOWN', 'MANIFEST_BLOB_UNKNOWN', 'MANIFEST_UNKNOWN', 'MANIFEST_INVALID'].map(
    (code) => `{"errors":[{"code":"${code}","message":"scripted"}]}`,
  ),
] as const;

const CHALLENGES = ['Basic realm="scripted"', 'Bearer', 'Negotiate', 'Bearer realm="/token",service="x"'] as const;
const PATIENCE = ['0', '1', '30', '119', '200', '-1', 'soon', 'Mon, 30 Nov 2026 00:00:07 GMT'] as const;

const answer: fc.Arbitrary<FaultAction> = fc.record({
  kind: fc.constant('answer' as const),
  status: fc.constantFrom(...STATUSES),
  body: fc.constantFrom(...BODIES),
  headers: fc.oneof(
    fc.constant({}),
    fc.constantFrom(...PATIENCE).map((wait) => ({ 'Retry-After': wait })),
    fc.constantFrom(...CHALLENGES).map((challenge) => ({ 'WWW-Authenticate': challenge })),
    fc.constant({ 'Content-Type': 'application/json' }),
  ),
});

const WRONG = `sha256:${'0'.repeat(64)}`;

const headers: fc.Arbitrary<FaultAction> = fc
  .constantFrom<Readonly<Record<string, string | readonly string[] | undefined>>>(
    { Location: undefined },
    { Location: '' },
    { Location: 'http://[' },
    { Location: '/nowhere' },
    { Location: ['/v2/a', '/v2/b'] },
    { 'Docker-Content-Digest': undefined },
    { 'Docker-Content-Digest': WRONG },
    { 'Docker-Content-Digest': 'nonsense' },
    { 'Content-Type': undefined },
    { 'Content-Type': 'text/html' },
    { 'Content-Type': 'application/vnd.oci.image.manifest.v1+json' },
    { 'Content-Encoding': 'gzip' },
    { Range: undefined },
    { Range: '0-7' },
    { Range: 'bytes=x-y' },
    { 'Content-Range': 'bytes 0-1/2' },
    { 'OCI-Chunk-Min-Length': '64' },
    { 'OCI-Chunk-Max-Length': '100' },
    { Warning: '299 - "scripted"' },
    { Connection: 'close' },
  )
  .map((set) => ({ kind: 'headers', set }));

const bytes = fc.integer({ min: 0, max: 700 });

const action: fc.Arbitrary<FaultAction> = fc.oneof(
  { arbitrary: answer, weight: 24 },
  {
    arbitrary: fc.record({ kind: fc.constant('delay' as const), milliseconds: fc.integer({ min: 0, max: 3 }) }),
    weight: 3,
  },
  {
    arbitrary: fc
      .oneof(fc.constantFrom('before' as const, 'after' as const), fc.record({ bodyBytes: bytes }))
      .map((when) => ({ kind: 'reset' as const, when })),
    weight: 12,
  },
  { arbitrary: fc.constant({ kind: 'loseAnswer' as const }), weight: 9 },
  { arbitrary: fc.record({ kind: fc.constant('truncate' as const), bytes }), weight: 6 },
  { arbitrary: fc.record({ kind: fc.constant('corrupt' as const), at: bytes }, { requiredKeys: ['kind'] }), weight: 6 },
  // Each costs real time.
  { arbitrary: fc.record({ kind: fc.constant('stall' as const), bytes }, { requiredKeys: ['kind'] }), weight: 1 },
  { arbitrary: headers, weight: 12 },
);

const often = {
  nth: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 8 })),
  times: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 4 }), fc.constant(8)),
  action,
};

const fault: fc.Arbitrary<PlannedFault> = fc.oneof(
  {
    arbitrary: fc.record({
      at: fc.constantFrom('target' as const, 'target' as const, 'source' as const),
      operation: fc.constantFrom(...OPERATIONS),
      ...often,
    }),
    weight: 5,
  },
  {
    arbitrary: fc.record({
      at: fc.constant('target' as const),
      operation: fc.constantFrom('manifestPut' as const, 'manifestPut' as const, 'manifestGet' as const),
      onTags: fc.constant(true as const),
      ...often,
      nth: fc.constantFrom(1, 1, 2, 3),
    }),
    weight: 1,
  },
);

const MOUNTS: readonly MountMode[] = [
  ...(['exists', 'ignore', 'referenced', 'lie201'] as const),
  ...(['off(400)', 'off(403)', 'off(404)', 'off(405)', 'off(500)'] as const),
];

const profile: fc.Arbitrary<ProfileChanges> = fc.record({
  mount: fc.record({ mode: fc.constantFrom('exists' as const, 'ignore' as const, ...MOUNTS) }),
  upload: fc.record({
    location: fc.constantFrom('absolute', 'relative', 'otherPath'),
    state: fc.constantFrom('none', '_state', '_stateHash'),
    cancel: fc.constantFrom('204', '204', '405'),
    status: fc.constantFrom('right', 'right', 'plusOne', '405'),
    put: fc.constantFrom('201', '201', '204'),
    patch: fc.constantFrom('ranged', 'ranged', 'none(405)'),
    stale: fc.constantFrom('416', '404'),
    commit: fc.constantFrom('ok', 'ok', 'loseAnswer', 'retry404present', 'dup400'),
  }),
  manifest: fc.record({
    headMissing: fc.constantFrom('404', '404', '403'),
    childError: fc.constantFrom('400 MANIFEST_BLOB_UNKNOWN', '404 BLOB_UNKNOWN', '404 MANIFEST_UNKNOWN'),
  }),
});

const NUMBERS = Array.from({ length: IMAGES }, (_, index) => index);
const someOf = (minLength: number, maxLength: number) => fc.shuffledSubarray(NUMBERS, { minLength, maxLength });

/** Mostly few: what goes wrong with nine goes wrong with three, at a third of the price. */
const images = fc.oneof(
  { arbitrary: someOf(1, 3), weight: 16 },
  { arbitrary: someOf(4, 6), weight: 3 },
  { arbitrary: someOf(7, 9), weight: 1 },
);

const OLD: readonly OldTag[] = ['none', 'image', 'other', 'overlapping', 'broken', 'same'];

/** Schedules of one to eight faults over one to nine architectures. */
export const schedules: fc.Arbitrary<Schedule> = fc
  .record(
    {
      images,
      elsewhere: fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 1, max: 4 })),
      docker: fc.boolean(),
      tags: fc.constantFrom(1, 1, 2, 3),
      old: fc.constantFrom('none', 'none', ...OLD),
      guarded: fc.constantFrom(false, false, true),
      verify: fc.constantFrom(true, true, false),
      auth: fc.constantFrom('none', 'none', 'basic', 'bearer'),
      profile,
      requests: fc.constantFrom(2, 3, 4, 8, 8, 64),
      jobs: fc.constantFrom(1, 4),
      retries: fc.constantFrom(0, 1, 2, 5, 5),
      upload: fc.constantFrom('auto', 'auto', 'whole', 'chunks'),
      seed: fc.nat(),
      endAt: fc.integer({ min: 1, max: 120 }),
      faults: fc.array(fault, { minLength: 1, maxLength: 8 }),
    },
    { noNullPrototype: true },
  )
  .map(({ endAt, ...schedule }) => (schedule.seed % 5 === 0 ? { ...schedule, endAt } : schedule));
