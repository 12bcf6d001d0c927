import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { algorithmOf, digestOf, hashFor, hashMatches, isDigest, parseDigest } from '../../src/model/digest.ts';

const ABC = Buffer.from('abc');
/** FIPS 180-4, example of one block. */
const SHA256 = 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
const SHA512 =
  'sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f';

describe('a digest', () => {
  it('is that of the standard', () => {
    expect(digestOf(ABC)).toBe(SHA256);
    expect(digestOf(ABC, 'sha512')).toBe(SHA512);
  });

  it.each([SHA256, SHA512])('is taken as it is, and tells its algorithm: %s', (text) => {
    expect(isDigest(text)).toBe(true);
    expect(algorithmOf(parseDigest(text))).toBe(text.slice(0, 6));
  });

  it.each([
    '',
    'sha256:',
    SHA256.slice(7),
    SHA256.slice(0, -1),
    `${SHA256}0`,
    ` ${SHA256}`,
    `x${SHA256}`,
    `${SHA256}\n`,
    `${SHA256}/..`,
    SHA256.toUpperCase(),
    SHA256.replace('sha256:b', 'sha256:B'),
    SHA256.replace('sha256:b', 'sha256:g'),
    SHA256.replace('sha256', 'sha384'),
    SHA256.replace('sha256', 'sha512'),
    SHA512.slice(0, -1),
    `${SHA512}0`,
    `x${SHA512}`,
    SHA512.replace('sha512', 'sha256'),
  ])('is nothing looser, since it becomes part of URLs and of file names: %j', (text) => {
    expect(isDigest(text)).toBe(false);
    expect(() => parseDigest(text)).toThrow(
      expect.objectContaining({
        code: 'DIGEST_INVALID',
        message: expect.stringMatching(/^not a sha256 or sha512 digest: ".*"$/s),
        hint: expect.stringMatching(/sha256:.*64 lower-case hex/),
      }),
    );
  });

  it.each([SHA256, SHA512])('is checked by a running hash of its own algorithm: %s', (text) => {
    const digest = parseDigest(text);
    expect(hashMatches(hashFor(digest).update('a').update('bc'), digest)).toBe(true);
    expect(hashMatches(hashFor(digest).update('abd'), digest)).toBe(false);
    expect(hashMatches(createHash('sha1').update(ABC), digest)).toBe(false);
  });
});
