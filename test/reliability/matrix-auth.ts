import { all, answer, COPIED, each, fault, type Row, unless } from './matrix-case.ts';
import { HOST, type Outcome, type Stage } from './matrix-stage.ts';
import { impatient } from './matrix-transport.ts';

/** Everything wants a login. */
const bearer = { auth: { scheme: 'bearer', anonymousPull: false } } as const;
const basic = { auth: { scheme: 'basic', anonymousPull: false } } as const;

const challenge = (header: string | undefined, status = 401) =>
  answer(status, 'UNAUTHORIZED', 'scripted', header === undefined ? {} : { 'WWW-Authenticate': header });

const token =
  (action: Parameters<Stage['registry']['addFault']>[0]['action'], times = Number.POSITIVE_INFINITY) =>
  ({ registry }: Stage) =>
    registry.addFault({ operation: 'token', times, action });

const json = (body: object, status = 200) =>
  ({ kind: 'answer', status, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }) as const;

const noLogin = ({ journal }: Outcome): readonly string[] =>
  unless(
    journal.every(({ authorization }) => authorization === 'none'),
    'a login was sent',
  );

/** A publish of two images needs five sets of scopes; each may be asked for twice. */
const fewTokens = ({ journal }: Outcome): readonly string[] => {
  const count = journal.filter(({ operation }) => operation === 'token').length;
  return unless(count <= 12, `${count} tokens were asked for`);
};

const EVERY = { source: 3, tag: 3, config: 3, mount: 3, open: 3, layer: 3, put: 3, child: 3, move: 3 } as const;

const DAY = 86_400_000;

/** Rows 13 to 18 and 53: logins, tokens, rights, clocks. */
export const AUTH: readonly Row[] = [
  {
    number: 13,
    fault: '401, whatever is shown',
    promise: 'one new login for a request, then the end; tokens are not asked for without end',
    cases: [
      ...each(
        { ...EVERY, mount: 0 },
        'a new challenge each time',
        challenge(`Bearer realm="http://${HOST}/token",service="${HOST}",error="invalid_token"`),
        { holds: fewTokens },
      ).map((one) => ({ ...one, profile: { ...one.profile, ...bearer } })),
      ...each({ source: 3, tag: 3 }, 'Basic each time', challenge('Basic realm="x"'), {
        profile: basic,
        holds: fewTokens,
      }),
    ],
  },
  {
    number: 14,
    fault: '401 with no challenge, or none that is understood',
    promise: 'the end, with the schemes that were offered; no password is sent unasked',
    cases: [
      ...(
        [
          ['none', undefined],
          ['empty', ''],
          ['Negotiate', 'Negotiate'],
          ['NTLM', 'NTLM'],
          ['Bearer without realm', 'Bearer service="x"'],
          ['Digest', 'Digest realm="x", nonce="y"'],
        ] as const
      ).flatMap(([name, header]) => each({ source: 3 }, name, challenge(header), { holds: noLogin, says: [HOST] })),
      ...each({ source: 6 }, 'Bearer with half a realm', challenge('Bearer realm="http://"'), {
        holds: noLogin,
        says: [HOST],
      }),
      ...each({ tag: 0 }, 'several, one of them Basic', challenge('Negotiate, Basic realm="x"'), { times: 1 }),
    ],
  },
  {
    number: 15,
    fault: 'a token expires during a copy',
    promise: 'a new one is fetched, and the work goes on',
    cases: each(
      { source: 0, config: 0, mount: 0, layer: 0, put: 0, child: 0, move: 0 },
      'once',
      challenge(`Bearer realm="http://${HOST}/token",service="${HOST}",error="invalid_token"`),
      { times: 1 },
    ).map((one) => ({ ...one, profile: { ...one.profile, ...bearer } })),
  },
  {
    number: 16,
    fault: '`insufficient_scope`; a mount may not read its source',
    promise: 'asked for once more; a mount that is refused becomes a copy',
    cases: [
      ...each(
        { mount: 0 },
        'insufficient_scope',
        challenge(
          `Bearer realm="http://${HOST}/token",service="${HOST}",scope="repository:debian/all:push",error="insufficient_scope"`,
        ),
        { profile: bearer },
      ),
      ...each({ mount: 0 }, 'Basic 401', challenge('Basic realm="x"'), { profile: basic }),
    ],
  },
  {
    number: 17,
    fault: 'the token service fails, or answers something else than a token',
    promise: '5xx and 429 are tried again; the rest ends the run, without a word of its body',
    cases: [
      { name: 'no answer', exit: 5, profile: bearer, arrange: all(token({ kind: 'stall' }), impatient) },
      { name: '503 for ever', exit: 5, profile: bearer, arrange: token(answer(503)) },
      { name: '503 twice', exit: 0, profile: bearer, arrange: token(answer(503), 2) },
      { name: '429 once', exit: 0, profile: bearer, arrange: token(answer(429), 1) },
      { name: '401', exit: 3, profile: bearer, arrange: token(answer(401, 'UNAUTHORIZED', 'wrong')) },
      { name: '403', exit: 3, profile: bearer, arrange: token(answer(403, 'DENIED', 'no')) },
      { name: 'a page', exit: 6, profile: bearer, arrange: token({ kind: 'answer', status: 200, body: '<html>' }) },
      {
        name: '10 MB',
        exit: 6,
        profile: bearer,
        arrange: token({ kind: 'answer', status: 200, body: Buffer.alloc(10_000_000, 32) }),
      },
      { name: 'no token', exit: 6, profile: bearer, arrange: token(json({ expires_in: 5 })) },
      { name: 'a token that is a number', exit: 6, profile: bearer, arrange: token(json({ token: 5 })) },
    ],
  },
  {
    number: 18,
    fault: '403',
    promise: 'of a mount: copied; of the tag: taken as not there, with a warning; of the rest: the end',
    cases: each(
      { source: 3, tag: 0, config: 3, head: 0, mount: 0, open: 3, layer: 3, put: 3, child: 3, move: 3 },
      'for ever',
      answer(403, 'DENIED', 'no'),
    ),
  },
  {
    number: 53,
    fault: 'a clock is a day off',
    promise: 'lifetimes are counted by our own clock, from receipt',
    cases: [
      ...(
        [
          ['ahead', DAY],
          ['behind', -DAY],
        ] as const
      ).map(([name, ahead]) => ({
        name: `the registry's is ${name}`,
        exit: 0,
        profile: { ...bearer, ...COPIED },
        options: { now: () => Date.now() + ahead },
        holds: fewTokens,
      })),
    ],
  },
];
void [all, fault];
