import { describe, expect, it } from 'vitest';
import { hostOf, nearest, parseChunkSize, parseCount, parseDuration } from '../../src/config/values.ts';

describe('durations', () => {
  it.each([
    ['90s', 90_000],
    ['10m', 600_000],
    ['1h30m', 5_400_000],
    ['1h', 3_600_000],
    ['500ms', 500],
    ['1m500ms', 60_500],
    ['0s', 0],
    ['596h', 2_145_600_000],
  ])('%s is %i ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each(['', '90', 's', '10 m', '30m1h', '-1s', '1.5h', '10M', '1h30', '597h', '999999999999s'])(
    'refuses %j',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});

describe('counts', () => {
  it('are whole numbers within their bounds', () => {
    expect(parseCount('4', 1, 64)).toBe(4);
    expect(parseCount('64', 1, 64)).toBe(64);
    for (const text of ['0', '65', '', '-1', '4.0', '1e1', '0x4', ' 4', '٤']) {
      expect(parseCount(text, 1, 64), text).toBeUndefined();
    }
  });
});

describe('chunk sizes', () => {
  it.each([
    ['64KiB', 65_536],
    ['8MiB', 8_388_608],
    ['8 MiB', 8_388_608],
    ['1GiB', 1_073_741_824],
    ['1048576', 1_048_576],
    [65_536, 65_536],
  ])('%j is %i bytes', (value, bytes) => {
    expect(parseChunkSize(value)).toBe(bytes);
  });

  it.each([
    '63KiB',
    '2GiB',
    '1025MiB',
    '8MB',
    '8m',
    '8',
    '',
    '-8MiB',
    '1.5MiB',
    '8MiB ',
    '1e9',
    65_535,
    65_536.5,
    NaN,
    Infinity,
  ])('refuses %j', (value) => {
    expect(parseChunkSize(value)).toBeUndefined();
  });
});

describe('hosts', () => {
  it.each([
    ['ghcr.io', 'ghcr.io'],
    ['GHCR.io', 'ghcr.io'],
    ['localhost', 'localhost'],
    ['127.0.0.1:5000', '127.0.0.1:5000'],
    ['docker.io', 'docker.io'],
    ['index.docker.io', 'docker.io'],
    ['registry-1.docker.io', 'docker.io'],
  ])('%s is %s', (text, host) => {
    expect(hostOf(text)).toBe(host);
  });

  it.each(['registry', 'ghcr.io/acme', 'https://ghcr.io', '', 'a b.c', 'ghcr.io:', 'user@ghcr.io'])(
    'refuses %j',
    (text) => {
      expect(hostOf(text)).toBeUndefined();
    },
  );
});

describe('the nearest name', () => {
  it('is found over a swapped, missing, wrong or additional letter', () => {
    const names = ['jobs', 'retries', 'timeout', 'progress'];
    expect(nearest('jbos', names)).toBe('jobs');
    expect(nearest('retires', names)).toBe('retries');
    expect(nearest('timout', names)).toBe('timeout');
    expect(nearest('progresss', names)).toBe('progress');
  });

  it('is not invented', () => {
    expect(nearest('password', ['jobs', 'retries', 'timeout'])).toBeUndefined();
    expect(nearest('', ['jobs'])).toBeUndefined();
  });
});
