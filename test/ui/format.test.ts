import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatBytes, formatClock, formatDuration, plural, shortDigest } from '../../src/ui/format.ts';

describe('sizes', () => {
  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [31_400_000, '31.4 MB'],
    [999_949, '999.9 kB'],
    [999_950, '1.0 MB'],
    [2_147_483_648, '2.1 GB'],
  ])('%i bytes are %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  test('never show four digits before the point below a thousand petabytes', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        expect(formatBytes(bytes)).toMatch(/^\d{1,3}( B|\.\d [kMGTP]B)$/);
      }),
    );
  });
});

describe('times', () => {
  test.each([
    [0, '0.0 s'],
    [420, '0.4 s'],
    [59_940, '59.9 s'],
    [59_950, '1 min 00 s'],
    [65_000, '1 min 05 s'],
    [7_380_000, '2 h 03 min'],
  ])('%i ms are %s', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });

  test.each([
    [0.2, '0:01'],
    [61, '1:01'],
    [3723, '1:02:03'],
  ])('%f s to go are %s', (seconds, text) => {
    expect(formatClock(seconds)).toBe(text);
  });
});

test('a digest is shortened as docker shortens ids', () => {
  expect(shortDigest(`sha512:${'0123456789abcdef'.repeat(8)}`)).toBe('sha512:0123456789ab');
});

test('one is singular', () => {
  expect([plural(0, 'blob'), plural(1, 'blob'), plural(2, 'blob')]).toEqual(['0 blobs', '1 blob', '2 blobs']);
});
