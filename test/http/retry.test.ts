import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoff, isPassingStatus, LONGEST_WAIT, retryAfter } from '../../src/http/retry.ts';

const NOW = Date.parse('2030-01-01T00:00:00Z');

describe('backing off', () => {
  it('doubles from 250 ms up to 30 s, at its longest', () => {
    const longest = Array.from({ length: 10 }, (_, attempt) => backoff(attempt, () => 1));
    expect(longest).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('may be anything between nothing and that', () => {
    fc.assert(
      fc.property(fc.nat(2000), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, random) => {
        const wait = backoff(attempt, () => random);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(30_000);
      }),
    );
  });
});

describe('Retry-After', () => {
  it.each([
    ['2', 2000],
    [' 120 ', LONGEST_WAIT],
    ['86400', 86_400_000],
    ['Tue, 01 Jan 2030 00:00:05 GMT', 5000],
    ['Tuesday, 01-Jan-30 00:00:05 GMT', 5000],
    ['Tue Jan  1 00:00:05 2030', 5000],
  ])('%j is a wait of %i ms', (text, wait) => {
    expect(retryAfter({ 'retry-after': text }, NOW)).toBe(wait);
  });

  it.each([
    '',
    '0',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    'soon',
    'Mon',
    'Mon, 31 Dec 2029 23:59:00 GMT',
    '2030-01-01',
    '9'.repeat(65),
  ])('%j is none', (text) => {
    expect(retryAfter({ 'retry-after': text }, NOW)).toBeUndefined();
  });

  it('comes before X-Retry-After, which is as good', () => {
    expect(retryAfter({ 'x-retry-after': '3' }, NOW)).toBe(3000);
    expect(retryAfter({ 'retry-after': '2', 'x-retry-after': '3' }, NOW)).toBe(2000);
    expect(retryAfter({}, NOW)).toBeUndefined();
  });

  it('is measured by the clock of the answer, where it has one', () => {
    const headers = { 'retry-after': 'Tue, 01 Jan 2030 00:00:05 GMT', date: 'Tue, 01 Jan 2030 00:00:00 GMT' };
    expect(retryAfter(headers, NOW - 86_400_000)).toBe(5000);
    expect(retryAfter({ ...headers, date: 'nonsense' }, NOW)).toBe(5000);
  });

  it('is never less than nothing, and quick to read, whatever it says', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const wait = retryAfter({ 'retry-after': text }, NOW);
        expect(wait === undefined || wait > 0).toBe(true);
      }),
    );
  });
});

it('has nothing to do with 501, which says that asking again is no use', () => {
  expect(isPassingStatus(501)).toBe(false);
  expect(isPassingStatus(503)).toBe(true);
});
