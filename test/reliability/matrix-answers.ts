import {
  ALWAYS,
  all,
  answer,
  brokenThen,
  type Case,
  COPIED,
  each,
  fault,
  type Row,
  unless,
  VERBS,
  type Verb,
} from './matrix-case.ts';
import { blobs } from './matrix-mounts.ts';
import { HOST, type Outcome, type Stage, TAG, TARGET } from './matrix-stage.ts';

const PASSING = [408, 425, 499, 500, 502, 503, 504, 520, 521, 522, 523, 524] as const;

const ALL = Object.keys(VERBS) as readonly Verb[];

/** The same answer once to each verb: of one run all are met. */
const everywhere = (status: number): Case[] =>
  [COPIED, {}].map((profile, at) => ({
    name: `${status} once to every verb${at === 0 ? ', copying' : ', mounting'}`,
    exit: 0,
    profile,
    arrange: all(...ALL.map((verb) => fault(verb, answer(status), 1))),
  }));

const limited = (value: string): ReturnType<typeof answer> =>
  answer(429, 'TOOMANYREQUESTS', 'slow down', { 'Retry-After': value });

const waited =
  (least: number, most: number) =>
  ({ slept }: Outcome): readonly string[] => {
    const longest = Math.max(0, ...slept);
    return unless(longest >= least && longest <= most, `the longest wait was ${longest} ms`);
  };

const redirect = (location: string | undefined, status = 307) =>
  ({ kind: 'answer', status, headers: location === undefined ? {} : { Location: location } }) as const;

/** What a registry must not send its clients to, and how each of them may be spelled. */
const FORBIDDEN = [
  'http://169.254.169.254/latest',
  'http://[fd00:ec2::254]/latest',
  'http://[::ffff:a9fe:a9fe]/latest',
  'http://0x7f.1/x',
  'http://2130706433/x',
  'http://127.0.0.1:5000/x',
  'http://[::1]/x',
  'http://localhost/x',
  'http://10.0.0.1/x',
  'http://192.168.1.1/x',
  'http://0.0.0.0/x',
  'http://100.100.100.200/x',
  'http://[64:ff9b::a9fe:a9fe]/x',
  'http://metadata.google.internal/x',
  'http://private.example.test/x',
  'http://mixed.example.test/x',
  'file:///etc/passwd',
  'ftp://registry.example.test/x',
  'http://robot:secret@registry.example.test/x',
  'http://169.254.169.254./x',
] as const;

const named = (stage: Stage) => {
  stage.addresses['private.example.test'] = ['10.1.2.3'];
  // One bad address spoils the name.
  stage.addresses['mixed.example.test'] = ['93.184.215.16', '169.254.169.254'];
};

const nowhereElse = ({ wanted }: Outcome): readonly string[] =>
  wanted.filter((place) => place !== `${HOST}:80`).map((place) => `${place} was connected to`);

/** Blobs of a few hundred bytes are large. */
const small = (stage: Stage) =>
  void Object.assign(stage.uploadSizes, { chunk: 256, tooLarge: 200, least: 64, scout: 64, uncut: 64 });

const bearer = { auth: { scheme: 'bearer', anonymousPull: false } } as const;

/** Rows 28 to 36: statuses, limits, redirects, addresses that a registry names. */
export const ANSWERS: readonly Row[] = [
  {
    number: 28,
    fault: '408, 425, 499, 500, 502 to 504, 520 to 524',
    promise:
      'tried again as often as `--retries` says; a mount twice, then copied; of the tag: taken as not there, with a warning',
    cases: [
      ...PASSING.flatMap(everywhere),
      ...each(
        { source: 5, tag: 0, config: 5, head: 0, mount: 0, open: 5, layer: 5, put: 5, child: 5, move: 5 },
        '503 for ever',
        answer(503),
        { leaves: 6 },
      ),
    ],
  },
  {
    number: 29,
    fault: '429 with a `Retry-After` of every kind',
    promise: 'waited for, up to 120 s; more is said and ends the run; garbage is as none',
    cases: [
      ...each({ source: 0, put: 0 }, '2', limited('2'), { times: 1, holds: waited(1900, 2000) }),
      ...each({ source: 0 }, '120', limited('120'), { times: 1, holds: waited(119_000, 120_000) }),
      ...each({ source: 5, put: 5, child: 5, move: 5 }, '86400', limited('86400'), {
        times: ALWAYS,
        says: [/86400|24 h|1 day/],
        holds: waited(0, 1000),
        leaves: 6,
      }),
      ...each({ source: 0 }, 'a date that has passed', limited('Mon, 30 Nov 2020 00:00:00 GMT'), {
        times: 1,
        holds: waited(0, 30_000),
      }),
      ...['-5', 'soon', '1e9', ''].flatMap((value) =>
        each({ source: 0 }, JSON.stringify(value), limited(value), { times: 1, holds: waited(0, 30_000) }),
      ),
      ...each({ source: 5 }, 'for ever', limited('60'), { holds: waited(59_000, 60_000) }),
    ],
  },
  {
    number: 30,
    fault: '413',
    promise: 'of a blob: chunks, and smaller ones; of a manifest: the end',
    cases: [
      ...each({ child: 5, move: 5 }, 'for ever', answer(413)),
      { name: 'PUT of a blob: once', exit: 0, profile: COPIED, arrange: all(small, fault('put', answer(413), 1)) },
      {
        name: 'PUT and PATCH of a blob: for ever',
        exit: 5,
        profile: COPIED,
        leaves: 6,
        arrange: all(small, fault('put', answer(413)), ({ registry }) =>
          registry.addFault({ operation: 'uploadPatch', times: ALWAYS, action: answer(413) }),
        ),
      },
    ],
  },
  {
    number: 31,
    fault: '416 on a chunk, or on the rest of a download',
    promise: 'the session is asked where it stands; a download starts anew',
    cases: [
      {
        name: 'PATCH: 416 once',
        exit: 0,
        profile: COPIED,
        arrange: all(small, fault('put', answer(413), 1), ({ registry }) =>
          registry.addFault({ operation: 'uploadPatch', action: answer(416, 'RANGE_INVALID') }),
        ),
      },
      {
        name: 'GET of a layer: 416 for the rest',
        exit: 0,
        profile: COPIED,
        arrange: brokenThen(answer(416)),
      },
    ],
  },
  {
    number: 32,
    fault: '414 or 431 on the PUT of a further tag',
    promise: 'each tag is a PUT of its own; those that moved are named',
    cases: [414, 431].map((status) => ({
      name: String(status),
      exit: 5,
      arrange: (stage: Stage) => {
        stage.request = { tags: ['2', '3'] };
        stage.registry.addFault({
          operation: 'manifestPut',
          path: /\/manifests\/2$/,
          times: ALWAYS,
          action: answer(status),
        });
      },
      holds: ({ moved = [], journal }: Outcome) => [
        ...unless(moved.length === 2 && moved.every((name) => /:[13]$/.test(name)), `moved: ${moved}`),
        ...unless(
          journal.every(({ query }) => !query.includes('tag=')),
          'tags were put together',
        ),
      ],
    })),
  },
  {
    number: 33,
    fault: 'a redirect in a circle, without Location, or of another kind',
    promise: 'five hops at most, then the end',
    cases: [
      ...each({ source: 7, config: 7, layer: 7 }, 'to itself', redirect('')),
      ...each({ source: 7 }, 'no Location', redirect(undefined)),
      ...[300, 305].flatMap((status) => each({ source: 7 }, String(status), redirect('/v2/', status))),
      ...each({ source: 5 }, '304', redirect('/v2/', 304)),
    ],
  },
  {
    number: 34,
    fault: 'a blob is redirected to another host',
    promise: 'followed without a login',
    cases: (['307otherHost', '307rejectsAuth400'] as const).map((mode) => ({
      name: mode,
      exit: 0,
      profile: { ...COPIED, ...bearer, blob: { redirect: mode } },
      arrange: (stage: Stage) => {
        stage.addresses[HOST] = ['127.0.0.1'];
        stage.direct = true;
      },
      holds: ({ journal }: Outcome) =>
        unless(
          journal.some(({ listener }) => listener === 'storage'),
          'no blob came from another host',
        ),
    })),
  },
  {
    number: 35,
    fault:
      'an address that a registry names: private, loopback, link-local, in every spelling; other schemes; with a user',
    promise:
      'refused before anything is connected to: redirect, realm and Location alike; `urls` of a layer are never followed',
    cases: FORBIDDEN.flatMap((url): Case[] => [
      { name: `redirect to ${url}`, exit: 7, arrange: all(named, fault('source', redirect(url))), holds: nowhereElse },
      {
        name: `realm ${url}`,
        exit: 7,
        profile: bearer,
        arrange: all(
          named,
          fault('tag', answer(401, 'UNAUTHORIZED', '', { 'WWW-Authenticate': `Bearer realm="${url}",service="x"` })),
        ),
        holds: nowhereElse,
      },
      {
        name: `Location ${url}`,
        exit: 7,
        profile: COPIED,
        leaves: 99,
        arrange: all(named, fault('mount', { kind: 'headers', set: { Location: url } })),
        holds: nowhereElse,
      },
    ]),
  },
  {
    number: 36,
    fault: 'a redirect of a PUT or POST',
    promise:
      '307 and 308 are followed with the whole body; 301 to 303 never become a GET: a mount becomes a copy, the rest ends the run',
    cases: [
      ...[307, 308].map((status) => ({
        name: `PUT of the tag: ${status} to itself, once`,
        exit: 0,
        arrange: fault('move', redirect(`/v2/${TARGET}/manifests/${TAG}`, status), 1),
      })),
      ...[301, 302, 303].flatMap((status) =>
        each({ put: 7, child: 7, move: 7 }, String(status), redirect('/v2/x', status), { leaves: 6 }),
      ),
      ...[301, 302, 303].flatMap((status) =>
        each({ mount: 0 }, String(status), redirect('/v2/x', status), { holds: blobs({ copied: 6 }) }),
      ),
    ],
  },
];
