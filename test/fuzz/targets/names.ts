import { algorithmOf, digestOf, isDigest, parseDigest } from '../../../src/model/digest.ts';
import {
  contradiction,
  formatPlatform,
  matchesPlatform,
  parsePlatform,
  platformKey,
} from '../../../src/model/platform.ts';
import { formatReference, isTag, parseReference, requestTarget } from '../../../src/model/reference.ts';
import { blobPath, manifestPath } from '../../../src/registry/protocol.ts';
import type { Random } from '../../peers/random.ts';
import { attempt, must, same, type Target } from '../target.ts';

const SHA256 = digestOf(Buffer.from(''));
const SHA512 = digestOf(Buffer.from(''), 'sha512');

const HOSTS = [
  'docker.io',
  'ghcr.io',
  'localhost',
  'localhost:5000',
  '127.0.0.1:5000',
  '[::1]:5000',
  'Registry',
  'a.b',
];
const NAMES = ['debian', 'library/debian', 'acme/app', 'a__b/c-d/e.f', 'x/y/z', 'a--b', 'blobs', 'v2'];
const TAGS = ['', ':latest', ':v1.2', ':_', `:${'a'.repeat(128)}`, `:${'a'.repeat(129)}`, ':', ':.x'];
const DIGESTS = ['', '', '', `@${SHA256}`, `@${SHA512}`, '@sha256:abc', `@${SHA256.toUpperCase()}`, '@sha384:00'];

/** A reference by the grammar, more often right than wrong. */
export function makeReference(random: Random): string {
  const host = random.below(3) === 0 ? '' : `${random.pick(HOSTS)}/`;
  const name = random.below(4) === 0 ? `${random.pick(NAMES)}/${random.pick(NAMES)}` : random.pick(NAMES);
  return host + name + random.pick(TAGS) + random.pick(DIGESTS);
}

export const REFERENCE_CORPUS: readonly string[] = [
  'debian',
  'docker.io/library/debian:bullseye',
  'public.ecr.aws/debian/armel:bullseye',
  'localhost:5000/acme/app',
  `ghcr.io/acme/app:1@${SHA256}`,
  `acme/app@${SHA512}`,
  '[2001:db8::1]:5000/app',
  'Registry/app',
  'acme/App',
  'https://ghcr.io/acme/app',
  '192.168.1/app',
  'a..b/app',
  '0x7f.1/app',
  '-/app',
  'x'.repeat(255),
  `a/${'b/'.repeat(126)}c`,
];

export const REFERENCE_WORDS: readonly string[] = [...HOSTS, ...NAMES, ...TAGS, ...DIGESTS, '/', 'library/'].filter(
  (word) => word !== '',
);

const reference: Target = {
  name: 'reference',
  corpus: REFERENCE_CORPUS,
  words: REFERENCE_WORDS,
  make: makeReference,
  check(text) {
    const parsed = attempt(['REFERENCE_INVALID'], () => parseReference(text));
    if (parsed === undefined) return false;
    const full = formatReference(parsed);
    must(same(parseReference(full), parsed), 'reads back otherwise', full);
    must(new URL(`https://${parsed.host}/`).host !== '', 'a host that no URL can hold', parsed.host);
    must(parsed.tag === undefined || isTag(parsed.tag), 'not a tag', parsed.tag);
    // The guard in front of URLs is another implementation of the same grammar.
    const path = manifestPath(parsed.repository, requestTarget(parsed));
    must(new URL(path, 'https://x/').pathname === path, 'a path that a URL changes', path);
    return true;
  },
};

const digest: Target = {
  name: 'digest',
  corpus: [SHA256, SHA512, 'sha256:', 'sha384:00', SHA256.toUpperCase(), `${SHA256}\n`, ` ${SHA256}`, `${SHA256}0`],
  words: ['sha512:', 'sha384:', SHA256.slice(7), SHA512.slice(7)],
  check(text) {
    const parsed = attempt(['DIGEST_INVALID'], () => parseDigest(text));
    must(isDigest(text) === (parsed !== undefined), 'two answers to one question');
    must(isDigest(text) === isDigestByHand(text), 'not what a loop over the characters finds');
    if (parsed === undefined) return false;
    must(text.startsWith(`${algorithmOf(parsed)}:`), 'another algorithm');
    must(new URL(blobPath('a', parsed), 'https://x/').pathname.endsWith(`/${text}`), 'a path that a URL changes');
    return true;
  },
};

function isDigestByHand(text: string): boolean {
  const length = text.startsWith('sha256:') ? 64 : text.startsWith('sha512:') ? 128 : Number.NaN;
  if (text.length !== 7 + length) return false;
  for (let at = 7; at < text.length; at += 1) if (!'0123456789abcdef'.includes(text.charAt(at))) return false;
  return true;
}

const SYSTEMS = ['linux', 'windows', 'darwin', 'macos', 'Linux', 'x'];
const ARCHITECTURES = [
  'amd64',
  'arm64',
  'arm',
  'armhf',
  'armel',
  'aarch64',
  'armv7l',
  'i386',
  'x86_64',
  's390x',
  'ABC',
];
const VARIANTS = ['', '', '/v7', '/v8', '/8', '/armv6', '/v2', '/v9.1', '/'];

const platform: Target = {
  name: 'platform',
  corpus: [
    'linux/amd64',
    'linux/arm/v7',
    'windows/amd64:10.0.17763.2300',
    'windows(10.0.1)/amd64',
    'armhf',
    'arm64/v7',
  ],
  words: [...SYSTEMS, ...ARCHITECTURES, ...VARIANTS, '(', ')', ':10.0.17763.2300'].filter((word) => word !== ''),
  make: (random) => {
    const version = random.below(5) === 0 ? random.pick([':10.0.1', ':', ': x', ':a b']) : '';
    const system = random.below(4) === 0 ? '' : `${random.pick(SYSTEMS)}/`;
    return system + random.pick(ARCHITECTURES) + random.pick(VARIANTS) + version;
  },
  check(text) {
    const parsed = attempt(['PLATFORM_INVALID'], () => parsePlatform(text));
    if (parsed === undefined) return false;
    const full = formatPlatform(parsed);
    const again = parsePlatform(full);
    must(same(again, parsed), 'reads back otherwise', full);
    must(platformKey(again) === platformKey(parsed), 'two keys for one platform', full);
    must(matchesPlatform(parsed, parsed) && contradiction(parsed, parsed) === undefined, 'is not itself', full);
    return true;
  },
};

export const NAMES_TARGETS: readonly Target[] = [reference, digest, platform];
