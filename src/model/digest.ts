import { createHash, type Hash } from 'node:crypto';
import { PublishError } from '../errors.ts';
import { quoted } from './quoted.ts';

declare const checked: unique symbol;

/** A content address whose grammar has been checked; only {@link parseDigest} and {@link digestOf} make one. */
export type Digest = string & { readonly [checked]: 'Digest' };

/** Algorithms that image-spec v1.1.1 registers and registries accept. */
export type DigestAlgorithm = 'sha256' | 'sha512';

const GRAMMAR = /^(?:sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128})$/;

/** Whether the text is a digest we can compute and therefore check. */
export function isDigest(text: string): text is Digest {
  return GRAMMAR.test(text);
}

/**
 * Accepts `sha256:` with 64 or `sha512:` with 128 lower-case hex digits, nothing else: a digest becomes part of
 * URLs and of file names, so nothing looser may carry the type.
 *
 * @throws PublishError `DIGEST_INVALID`
 * @see image-spec v1.1.1 descriptor.md, section "Digests"
 */
export function parseDigest(text: string): Digest {
  if (!isDigest(text)) {
    throw new PublishError(
      'DIGEST_INVALID',
      `not a sha256 or sha512 digest: ${quoted(text)}`,
      'Write sha256: followed by 64 lower-case hex digits.',
    );
  }
  return text;
}

/** The algorithm a digest names. */
export function algorithmOf(digest: Digest): DigestAlgorithm {
  return digest.startsWith('sha512:') ? 'sha512' : 'sha256';
}

/** The digest of these bytes. */
export function digestOf(bytes: Uint8Array, algorithm: DigestAlgorithm = 'sha256'): Digest {
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}` as Digest;
}

/** A running hash in the algorithm of `expected`; {@link hashMatches} ends it. */
export function hashFor(expected: Digest): Hash {
  return createHash(algorithmOf(expected));
}

/** Ends the hash and tells whether it equals the digest it was made for. */
export function hashMatches(hash: Hash, expected: Digest): boolean {
  return `${algorithmOf(expected)}:${hash.digest('hex')}` === expected;
}
