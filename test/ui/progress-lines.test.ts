import { describe, expect, it } from 'vitest';
import type { PublishEvent } from '../../src/publish/events.ts';
import { paceOf } from '../../src/ui/pace.ts';
import { runningLines } from '../../src/ui/progress-lines.ts';
import { count, countTraffic, newTally, type Tally } from '../../src/ui/tally.ts';
import { digest, PLAIN, PLAN } from './samples.ts';
import { REQUEST, RETRY } from './story.ts';

const SIZE = 10_000_000;

/** A run whose blobs were all refused; each has sent as much as is said here. */
function copying(...sent: readonly number[]): Tally {
  const tally = newTally();
  const tell = (event: PublishEvent) => count(tally, event, 0);
  tell(PLAN);
  sent.forEach((bytes, at) => {
    const blob = { digest: digest(`blob ${at}`), size: SIZE };
    tell({ kind: 'blob.start', ...blob });
    tell({ kind: 'blob.refused', ...blob, why: 'mount answered 202' });
    if (bytes > 0) tell({ kind: 'blob.progress', ...blob, sent: bytes });
  });
  return tally;
}

describe('what is on its way', () => {
  it('has a row for each blob that moves, and counts those that wait at either end', () => {
    const lines = runningLines(copying(4_000_000, SIZE, SIZE, 0, 0, 0), 1000, PLAIN);
    expect(lines).toEqual([
      expect.stringMatching(
        /^sha256:\w{12} {2}\[####------] {2}4\.0 MB of 10\.0 MB {2}4\.0 MB\/s {2}0:02 {2}mount answered 202$/,
      ),
      '2 sent, no answer yet · 3 to come',
      'sent 24.0 MB, 36.0 MB to go   0 requests',
    ]);
  });

  it('tells rate and time to go of all together, requests and retries', () => {
    const tally = copying(0, 0);
    runningLines(tally, 0, PLAIN);
    count(tally, { kind: 'blob.progress', digest: digest('blob 0'), size: SIZE, sent: 5_000_000 }, 1000);
    countTraffic(tally, REQUEST, 1000);
    countTraffic(tally, RETRY, 1000);
    expect(runningLines(tally, 2000, PLAIN)).toContain(
      'sent 5.0 MB, 15.0 MB to go   2.5 MB/s   0:06   1 request · 1 retry',
    );
    expect(runningLines(tally, 2000, PLAIN)).toContain('waiting 11.0 s for docker.io (429)');
  });

  it('has nothing to go when all is sent', () => {
    expect(runningLines(copying(SIZE), 1000, PLAIN)).toEqual(['1 sent, no answer yet', 'sent 10.0 MB   0 requests']);
  });

  it('says nothing of copies when there are none', () => {
    const tally = newTally();
    count(tally, PLAN, 0);
    expect(runningLines(tally, 1000, PLAIN)).toEqual([]);
  });
});

describe('the pace', () => {
  it('is that of the last five seconds', () => {
    const samples: Parameters<typeof paceOf>[0] = [];
    let sent = 0;
    const at = (seconds: number, bytes: number) => {
      sent += bytes;
      return paceOf(samples, seconds * 1000, sent);
    };
    expect(at(0, 0)).toBeUndefined();
    for (let second = 1; second <= 10; second++) at(second, 1000);
    expect(at(11, 1000)).toBe(1000);
    for (let second = 12; second <= 15; second++) at(second, 0);
    expect(at(15.5, 0)).toBeLessThan(300);
    expect(at(17, 0)).toBeUndefined();
  });

  it('begins anew where bytes have to be sent again', () => {
    const samples: Parameters<typeof paceOf>[0] = [];
    paceOf(samples, 0, 0);
    expect(paceOf(samples, 1000, 1000)).toBe(1000);
    expect(paceOf(samples, 2000, 500)).toBeUndefined();
    expect(paceOf(samples, 3000, 900)).toBe(400);
  });
});
