import { createServer } from 'node:net';
import { startByteProxy } from '../helpers/byte-proxy.ts';
import { selfSigned } from '../http/certificate.ts';
import { listen } from '../http/fixture.ts';
import { ALWAYS, all, brokenThen, COPIED, each, type Row, unless } from './matrix-case.ts';
import { HOST, type Outcome, type Stage } from './matrix-stage.ts';

/** Short, so that a registry that is silent costs little; long enough for a busy machine. In ms. */
const SHORT = { timeouts: { headers: 700, body: 700, connect: 700 }, retries: 1 } as const;

export const impatient = (stage: Stage) => void Object.assign(stage.network, SHORT);

/** A name that fails to be resolved so often. */
const unresolved = (code: string, times: number) => (stage: Stage) => {
  let left = times;
  stage.network.lookup = (name, _options, callback) => {
    left -= 1;
    if (left >= 0) callback(Object.assign(new Error(`getaddrinfo ${code} ${name}`), { code }), []);
    else callback(null, [{ address: '93.184.215.14', family: 4 }]);
  };
};

const to =
  (...places: readonly string[]) =>
  ({ wanted }: Outcome) =>
    wanted.filter((place) => !places.includes(place)).map((place) => `${place} was connected to`);

const PLAIN = to(`${HOST}:80`);
const SECURE = to(`${HOST}:443`);

/** The registry is spoken to by https, at whatever `port` leads to. */
const securely = (stage: Stage, host = stage.registry.host) => {
  stage.network.hosts = {};
  stage.reach[`${HOST}:443`] = host;
};

const RIGHT = selfSigned([HOST]);
const OLD = selfSigned([HOST], { from: -30, to: -1 });
const OTHER = selfSigned(['other.example.test']);

/** A port that takes connections and does nothing, or ends them as soon as something is said. */
const dumb = (how: 'silent' | 'rude') => async (stage: Stage) => {
  const server = createServer((socket) => {
    if (how === 'rude') socket.once('data', () => socket.resetAndDestroy());
  });
  const { host, close } = await listen(server, { requests: [], connections: () => 0, open: () => 0 });
  stage.closers.push(close);
  securely(stage, host);
};

/** So many connections are refused, then they are let through. */
const refused = (times: number) => (stage: Stage) => {
  let left = times;
  const [host = '', port = ''] = stage.registry.host.split(':');
  stage.network.connectTo = () => {
    left -= 1;
    return left >= 0 ? { host: '127.0.0.1', port: '1' } : { host, port };
  };
};

/** The clock runs so fast that a minute of a trickle passes soon. */
const hurried = (stage: Stage) => {
  const timer = setInterval(() => stage.clock.advance(5_000), 50);
  stage.closers.push(async () => clearInterval(timer));
};

const throughWire = (which: 'HEAD' | 'GET', request: RegExp, times: number) => async (stage: Stage) => {
  const wire = await startByteProxy(stage.registry.host);
  stage.closers.push(() => wire.stop());
  wire.add({ request, in: 'answer', after: which === 'HEAD' ? 20 : 600, how: 'trickle', times });
  stage.reach[`${HOST}:80`] = wire.host;
};

const READS = { source: 5, config: 5, layer: 5 } as const;

/** Reads that went on where they had broken off. */
const resumed = ({ journal }: Outcome): readonly string[] =>
  unless(
    journal.some(({ operation, headers }) => operation === 'blobGet' && headers['range'] !== undefined),
    'nothing was asked for from the middle',
  );

const committedOnce = ({ journal }: Outcome): readonly string[] => {
  const done = journal.filter(({ operation, status }) => operation === 'uploadPut' && status === 201);
  return unless(new Set(done.map(({ query }) => query)).size === done.length, 'a blob was committed twice');
};

/** Rows 1 to 9: names, connections, time-outs, bodies. */
export const TRANSPORT: readonly Row[] = [
  {
    number: 1,
    fault: 'a name does not resolve',
    promise: '`ENOTFOUND` is asked once more, `EAI_AGAIN` as often as `--retries` says; no other host is tried',
    cases: [
      ...(
        [
          ['ENOTFOUND', 5],
          ['EAI_AGAIN', 5],
        ] as const
      ).map(([code, exit]) => ({
        name: `${code} for ever`,
        exit,
        arrange: unresolved(code, ALWAYS),
        again: false as const,
        says: [HOST, code],
        holds: PLAIN,
      })),
      { name: 'ENOTFOUND once', exit: 0, arrange: unresolved('ENOTFOUND', 1), holds: PLAIN },
      { name: 'EAI_AGAIN four times', exit: 0, arrange: unresolved('EAI_AGAIN', 4), holds: PLAIN },
    ],
  },
  {
    number: 2,
    fault: 'a connection is refused',
    promise: 'tried again; http is not tried instead, but for loopback and a host of `--insecure`',
    cases: [
      { name: 'for ever, http', exit: 5, arrange: refused(ALWAYS), again: false, says: [HOST, 'ECONNREFUSED'] },
      {
        name: 'for ever, https',
        exit: 5,
        arrange: (stage) => securely(stage, '127.0.0.1:1'),
        again: false,
        says: [HOST],
        holds: SECURE,
      },
      { name: 'three times', exit: 0, arrange: refused(3) },
    ],
  },
  {
    number: 3,
    fault: 'the certificate is not trusted, has expired, is for another name; the server speaks no TLS',
    promise: 'said at once, without another try, with the way out; never asked in clear instead',
    cases: [
      ...(
        [
          ['not trusted', RIGHT, undefined],
          ['expired', OLD, OLD],
          ['another name', OTHER, OTHER],
        ] as const
      ).map(([name, certificate, trusted]) => ({
        name,
        exit: 5,
        options: { tls: certificate },
        arrange: (stage: Stage) => {
          securely(stage);
          if (trusted !== undefined) stage.network.ca = [trusted.cert];
        },
        again: false as const,
        says: [HOST, /ca-file|certificate/],
        holds: (outcome: Outcome) => [...SECURE(outcome), ...unless(outcome.slept.length === 0, 'it was tried again')],
      })),
      {
        name: 'no TLS',
        exit: 5,
        arrange: (stage) => securely(stage),
        again: false,
        says: [HOST, 'plain-http'],
        holds: SECURE,
      },
      {
        name: 'trusted by --ca-file',
        exit: 0,
        options: { tls: RIGHT },
        arrange: (stage) => {
          securely(stage);
          stage.network.ca = [RIGHT.cert];
        },
        holds: SECURE,
      },
    ],
  },
  {
    number: 4,
    fault: 'the connection breaks in the TLS handshake, or the handshake never ends',
    promise: 'tried again, each time within the time for a connection',
    cases: [
      { name: 'broken', exit: 5, arrange: dumb('rude'), again: false, says: [HOST], holds: SECURE },
      { name: 'endless', exit: 5, arrange: all(dumb('silent'), impatient), again: false, says: [HOST], holds: SECURE },
    ],
  },
  {
    number: 5,
    fault: 'a download breaks',
    promise: 'gone on with by `Range` where it broke, checked against `Content-Range`; else from the start',
    cases: [
      ...each(READS, 'broken for ever', { kind: 'truncate', bytes: 0 }),
      ...each({ layer: 0 }, 'broken again and again, a little further each time', { kind: 'truncate', bytes: 1000 }),
      ...each({ layer: 0 }, 'broken once', { kind: 'truncate', bytes: 1000 }, { times: 1, holds: resumed }),
      ...each({ source: 0, config: 0, tag: 0 }, 'broken once', { kind: 'truncate', bytes: 50 }, { times: 1 }),
      {
        name: 'GET of a layer: the rest begins at another byte',
        exit: 0,
        profile: COPIED,
        arrange: brokenThen({ kind: 'headers', set: { 'Content-Range': 'bytes 999-4095/4096' } }),
      },
    ],
  },
  {
    number: 6,
    fault: 'an upload breaks',
    promise:
      'the registry is asked what it has; gone on with there, else a new session; nothing is committed unchecked',
    cases: [
      ...each({ put: 0 }, 'broken again and again, a little further each time', {
        kind: 'reset',
        when: { bodyBytes: 1000 },
      }),
      ...each(
        { put: 0 },
        'broken once',
        { kind: 'reset', when: { bodyBytes: 1000 } },
        { times: 1, holds: committedOnce },
      ),
      ...each(
        { put: 0, child: 0, move: 0, mount: 0, open: 0 },
        'carried out, answer lost',
        { kind: 'loseAnswer' },
        { times: 1, leaves: 1, holds: committedOnce },
      ),
      ...each(
        { put: 0, child: 0, move: 0, mount: 0, open: 0 },
        'reset before',
        { kind: 'reset', when: 'before' },
        { times: 1 },
      ),
      ...each({ put: 5, child: 5, move: 5, open: 5 }, 'reset for ever', { kind: 'reset', when: 'before' }),
    ],
  },
  {
    number: 7,
    fault: 'silence: no answer, or none of the rest of a body',
    promise: 'the time-out for silence ends it; then as rows 5 and 6',
    cases: [
      ...each({ source: 5, config: 5, layer: 5, open: 5, put: 5, child: 5, tag: 5, move: 5 }, 'no answer', {
        kind: 'stall',
      }),
      // There is a way around these: the blob is copied.
      ...each({ head: 0, mount: 0 }, 'no answer', { kind: 'stall' }),
      ...each({ source: 5, config: 5, layer: 5 }, 'silent in the body', { kind: 'stall', bytes: 0 }),
      ...each(
        { source: 0, tag: 0, layer: 0, mount: 0, put: 0, child: 0, move: 0 },
        'silent once',
        { kind: 'stall' },
        { times: 1 },
      ),
    ].map((one) => ({ ...one, arrange: all(one.arrange ?? (() => undefined), impatient) })),
  },
  {
    number: 8,
    fault: 'a body trickles: a byte now and then, never silent',
    promise: 'less than 1 KiB/s for a minute counts as silence',
    cases: [
      {
        name: 'GET of a layer: for ever',
        exit: 5,
        profile: COPIED,
        layerBytes: 65_536,
        arrange: all(
          throughWire('GET', /blobs\/sha256/, ALWAYS),
          hurried,
          (stage) => void Object.assign(stage.network, { retries: 1 }),
        ),
        again: false,
      },
      {
        name: 'GET of a layer: once',
        exit: 0,
        profile: COPIED,
        layerBytes: 65_536,
        arrange: all(throughWire('GET', /^GET \S+\/blobs\/sha256/, 1), hurried),
      },
    ],
  },
  {
    number: 9,
    fault: 'a body is shorter than it says, or says nothing of its length',
    promise: 'size and digest decide; bytes that are missing are asked for again, and never passed on',
    cases: [
      ...each({ source: 5, config: 5, layer: 5 }, 'closed early', { kind: 'truncate', bytes: 0 }),
      ...each({ source: 6, config: 6, layer: 6 }, 'Content-Length too small', {
        kind: 'headers',
        set: { 'Content-Length': '30', Connection: 'close' },
      }),
      ...each({ source: 0, config: 0, layer: 0 }, 'no Content-Length', {
        kind: 'headers',
        set: { 'Content-Length': undefined, Connection: 'close' },
      }),
      ...each(
        { put: 0, child: 0, move: 0, mount: 0 },
        'the answer says it is longer than it is',
        { kind: 'headers', set: { 'Content-Length': '10', Connection: 'close' } },
        { times: 1 },
      ),
    ],
  },
];
