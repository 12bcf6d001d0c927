import { parseChallenges } from '../../../src/auth/challenge.ts';
import { createNotices } from '../../../src/http/notices.ts';
import { retryAfter } from '../../../src/http/retry.ts';
import { digestOf, isDigest } from '../../../src/model/digest.ts';
import {
  chunkLimits,
  contentLength,
  contentType,
  continues,
  digestHeader,
  isHtml,
  locationDigest,
  rangeEnd,
  resolveLocation,
  withDigestQuery,
} from '../../../src/registry/protocol.ts';
import type { Random } from '../../peers/random.ts';
import { must, mustBeShowable, same, type Target } from '../target.ts';

const DIGEST = digestOf(Buffer.from(''));

const SCHEMES = ['Bearer', 'Basic', 'bearer', 'Negotiate', 'Digest', 'NTLM', 'X'];
const PARAMETERS = ['realm', 'service', 'scope', 'error', 'Realm', 'charset', 'x'];
const VALUES = [
  '"https://auth.docker.io/token"',
  '"registry.docker.io"',
  '"repository:a/b:pull,push repository:c:pull"',
  '"a \\"quoted\\" \\\\ word"',
  '""',
  'bare',
  'https://auth.test/token',
  '"never ends',
  '"a, Basic realm=b"',
  '',
];

/** Challenges by the grammar of RFC 9110, section 11.6.1, with a fault now and then. */
export function makeChallenges(random: Random): string {
  const parts: string[] = [];
  for (let count = 1 + random.below(3); count > 0; count -= 1) {
    const parameters: string[] = [];
    for (let left = random.below(4); left > 0; left -= 1) {
      const equals = random.below(8) === 0 ? ' = ' : '=';
      parameters.push(`${random.pick(PARAMETERS)}${equals}${random.pick(VALUES)}`);
    }
    const only = random.below(6) === 0 ? ' YIIabc==' : '';
    parts.push(
      `${random.pick(SCHEMES)}${parameters.length === 0 ? only : ' '}${parameters.join(random.pick([',', ', ', ' , ']))}`,
    );
  }
  return parts.join(random.pick([', ', ',', ' ']));
}

export const CHALLENGE_CORPUS: readonly string[] = [
  'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push"',
  'Basic realm="Registry"',
  'Basic realm="a", Bearer realm="b",service="s"',
  'Negotiate, NTLM, Basic realm="a"',
  'Bearer realm="r",error="insufficient_scope"',
  'Bearer ,realm="r"',
  'BEARER REALM = "r"',
];

export const CHALLENGE_WORDS: readonly string[] = [...SCHEMES, ...PARAMETERS, ...VALUES, 'realm="', '",', '\\"'].filter(
  (word) => word !== '',
);

const challenge: Target = {
  name: 'challenge',
  corpus: CHALLENGE_CORPUS,
  words: CHALLENGE_WORDS,
  make: makeChallenges,
  check(text) {
    const found = parseChallenges(text);
    for (const { scheme, parameters } of found) {
      must(/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(scheme), 'not a scheme in lower case', scheme);
      for (const name of parameters.keys()) must(/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name), 'not a name', name);
    }
    const printed = found
      .map(({ scheme, parameters }) => {
        const list = [...parameters].map(([name, value]) => `${name}="${value.replace(/[\\"]/g, '\\$&')}"`);
        return list.length === 0 ? scheme : `${scheme} ${list.join(', ')}`;
      })
      .join(', ');
    // What is longer than 16 KiB is cut.
    if (printed.length <= 16 * 1024)
      must(same(plain(parseChallenges(printed)), plain(found)), 'reads back otherwise', printed);
    return found.length > 0;
  },
};

function plain(challenges: ReturnType<typeof parseChallenges>): unknown {
  return challenges.map(({ scheme, parameters }) => [scheme, ...parameters]);
}

const BASES = ['https://registry.test/', 'http://127.0.0.1:5000/', 'https://[::1]:8443/'].map((text) => new URL(text));

const location: Target = {
  name: 'location',
  corpus: [
    '/v2/a/blobs/uploads/0f3a?_state=AbC%2B',
    'https://registry.test/v2/a/blobs/uploads/1',
    'http://registry.test:443/v2/a/blobs/uploads/1?x#y',
    'uploads/1',
    '?digest=sha256:00',
    '//other.test/x',
    `/v2/a/blobs/${DIGEST}`,
    `/v2/a/blobs/${DIGEST.replace(':', '%3A')}`,
    'http://user:password@registry.test/x',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:,x',
    '//169\u00e3\u0080\u0082254/x',
    '',
  ],
  words: ['/v2/', '?digest=', '&', '#', '/../', '@', 'https://registry.test', ':443', DIGEST],
  check(text) {
    const said = locationDigest(text);
    must(said === undefined || isDigest(said), 'not a digest', said);
    let taken = false;
    for (const base of BASES) {
      const session = resolveLocation(text, new URL('v2/a/blobs/uploads/', base), base);
      if (session === undefined) continue;
      taken = true;
      must(resolveLocation(session, base, base) === session, 'not the same when it is resolved again', session);
      must(
        base.protocol !== 'https:' || !session.startsWith(`http://${base.host}/`),
        'http for the registry itself',
        session,
      );
      const closing = withDigestQuery(session, DIGEST);
      must(closing.startsWith(session.split('#', 1)[0] ?? ''), 'another session', session, closing);
      if (URL.canParse(session) && /^https?:/.test(session)) {
        must(new URL(closing).searchParams.getAll('digest').at(-1) === DIGEST, 'a closing PUT without digest', closing);
      }
    }
    return taken;
  },
};

const range: Target = {
  name: 'range and lengths',
  corpus: [
    '0-0',
    '0-1023',
    'bytes=0-99',
    'bytes 0-99',
    '0--1',
    'bytes 5-9/10',
    '1-2',
    '4096',
    '999999999999999',
    '1.5',
    '0x10',
  ],
  words: ['bytes ', 'bytes=', '0-', '/10', '-', '5-9'],
  make: (random) =>
    `${random.pick(['', 'bytes ', 'bytes='])}${random.below(3)}-${random.below(1 << 30)}${random.pick(['', '/10', '/*'])}`,
  check(text) {
    const headers = {
      range: text,
      'content-range': text,
      'content-length': text,
      'oci-chunk-min-length': text,
      'oci-chunk-max-length': text,
    };
    const end = rangeEnd(headers);
    must(end === undefined || (Number.isSafeInteger(end) && end >= 0), 'no number of bytes', end);
    if (end !== undefined && end > 0)
      must(text.trim().endsWith(`0-${end - 1}`) || /-0*\d+$/.test(text.trim()), 'another end', end);
    const length = contentLength(headers);
    must(length === undefined || (Number.isSafeInteger(length) && length >= 0), 'no length', length);
    const limits = chunkLimits(headers);
    must(limits === undefined || (limits.min ?? 0) > 0, 'no limit', limits);
    must(!continues(headers, 5, 10) || text.trim().toLowerCase() === 'bytes 5-9/10', 'a part that was not asked for');
    return end !== undefined || length !== undefined;
  },
};

const types: Target = {
  name: 'types and digests in headers',
  corpus: ['application/vnd.oci.image.index.v1+json', 'Text/HTML; charset=utf-8', 'application/json;', ' ; ', DIGEST],
  words: ['text/html', ';', 'charset="', DIGEST],
  check(text) {
    const headers = { 'content-type': text, 'docker-content-digest': text };
    const type = contentType(headers);
    must(type === undefined || (type === type.trim() && !type.includes(';') && type !== ''), 'not a bare type', type);
    must(!isHtml(headers) || type?.includes('html') === true, 'a page that is none');
    const said = digestHeader(headers);
    must(said === undefined || said === text, 'another digest');
    return type !== undefined;
  },
};

const EPOCH = Date.UTC(2026, 10, 30);

const wait: Target = {
  name: 'retry-after',
  corpus: [
    '2',
    '120',
    '86400',
    'Mon, 30 Nov 2026 00:00:10 GMT',
    'Monday, 30-Nov-26 00:00:10 GMT',
    'Mon Nov 30 00:00:10 2026',
    '-1',
    '1e3',
    '0',
  ],
  words: ['Mon, ', ' GMT', 'Nov', '2026', '00:00:10', '30'],
  make: (random) =>
    random.below(3) === 0
      ? String(random.below(1 << 30))
      : new Date(EPOCH + random.below(1 << 30) - (1 << 29)).toUTCString(),
  check(text) {
    const found = retryAfter({ 'retry-after': text }, EPOCH);
    must(found === undefined || (Number.isFinite(found) && found > 0), 'no time to wait', found);
    if (/^\d+$/.test(text.trim()) && found !== undefined) must(found === Number(text) * 1000, 'other seconds', found);
    const dated = retryAfter({ 'x-retry-after': text, date: 'Mon, 30 Nov 2026 00:00:00 GMT' }, 0);
    must(dated === found, 'the answer’s own date counts otherwise', found, dated);
    const date = retryAfter({ 'retry-after': 'Mon, 30 Nov 2026 00:00:10 GMT', date: text }, EPOCH);
    must(date === undefined || date > 0, 'no time to wait', date);
    return found !== undefined;
  },
};

const notices: Target = {
  name: 'warnings and rate limits',
  corpus: [
    '299 - "the tag will be removed"',
    '299 - "one", 299 - "two \\"quoted\\""',
    '110 cache "stale", 299 - "x"',
    '100;w=21600',
    '0;w=60',
    '3',
    '299 - "\x1b[31m::error::x"',
  ],
  words: ['299 - "', '",', '\\"', ';w=', '100', '0'],
  shapes: (length) => ['299 - "'.repeat(length / 7), `299 - "${'\\'.repeat(length)}`, `${' '.repeat(length)}299`],
  check(text) {
    let told = 0;
    const listener = createNotices((event) => {
      told += 1;
      if (event.kind === 'warning') mustBeShowable(event.text, 'a warning');
      if (event.kind !== 'rate') return;
      for (const count of [event.remaining, event.limit, event.windowSeconds ?? 0]) {
        must(Number.isSafeInteger(count) && count >= 0, 'no count', count);
      }
      mustBeShowable(event.source, 'a source');
    });
    listener.read('x', { warning: text });
    listener.read('x', {
      'ratelimit-limit': '100;w=21600',
      'ratelimit-remaining': text,
      'docker-ratelimit-source': text,
    });
    listener.read('y', { 'ratelimit-limit': text, 'ratelimit-remaining': '0' });
    must(told <= 22, 'too much is told', told);
    const before = told;
    listener.read('x', { warning: text });
    must(told === before, 'told twice');
    return told > 0;
  },
};

export const HEADER_TARGETS: readonly Target[] = [challenge, location, range, types, wait, notices];
