import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/http/clock.ts';
import { createUploadLessons, type UploadMode } from '../../src/registry/upload-lessons.ts';

const MIB = 1024 * 1024;
const SIGNAL = new AbortController().signal;
const PLAIN = { repository: 'app', url: 'http://reg.test/u/1' };

/** Sleeps until told to wake. */
function handClock(): Clock & { wake(): void } {
  const sleepers = new Set<() => void>();
  return {
    now: () => 0,
    epoch: () => 0,
    sleep: (_, signal) =>
      new Promise((resolve, reject) => {
        sleepers.add(resolve);
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    wake: () => {
      for (const sleeper of sleepers) sleeper();
    },
  };
}

const lessonsOf = (mode: UploadMode = { mode: 'auto' }, host = 'reg.test', clock: Clock = handClock()) =>
  createUploadLessons(host, clock, mode);

/** Whether the promise has settled by the time nothing else is left to do. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  promise.then(() => {
    done = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

describe('the form of an upload', () => {
  test('is one PUT until something speaks against it, and always for nothing', () => {
    const lessons = lessonsOf();
    expect(lessons.formOf(900 * MIB, PLAIN, false)).toEqual({ kind: 'whole' });
    expect(lessonsOf({ mode: 'chunks' }).formOf(0, PLAIN, false)).toEqual({ kind: 'whole' });
  });

  test('is chunks above the session’s maximum, of at least its minimum', () => {
    const lessons = lessonsOf();
    const session = { ...PLAIN, chunk: { min: 6 * MIB, max: 100_000_000 } };
    expect(lessons.formOf(100_000_000, session, false)).toEqual({ kind: 'whole' });
    expect(lessons.formOf(100_000_001, session, false)).toMatchObject({ kind: 'chunks', size: 6 * MIB });
    expect(lessons.formOf(20 * MIB, { ...PLAIN, chunk: { max: MIB } }, false)).toMatchObject({ size: MIB });
  });

  test.each([undefined, 6 * MIB])('has the session’s minimum also without a maximum, of %s bytes', (min) => {
    const session = { ...PLAIN, chunk: min === undefined ? {} : { min } };
    expect(lessonsOf({ mode: 'chunks' }).formOf(64 * MIB, session, false)).toMatchObject({ size: min ?? 5 * MIB });
  });

  test('pays no heed to a maximum that is absurdly small, but for chunks of the least size once one is refused', () => {
    const lessons = lessonsOf();
    const session = { ...PLAIN, chunk: { max: 1 } };
    expect(lessons.formOf(20 * MIB, session, false)).toEqual({ kind: 'whole' });
    expect(lessons.tooLarge(20 * MIB, session)).toBe(true);
    expect(lessons.formOf(20 * MIB, session, false)).toMatchObject({ kind: 'chunks', size: 512 * 1024 });
    const least = { ...PLAIN, chunk: { max: 512 * 1024 } };
    expect(lessonsOf().formOf(20 * MIB, least, false)).toMatchObject({ kind: 'chunks', size: 512 * 1024 });
    const crossed = { ...PLAIN, chunk: { min: 8 * MIB, max: MIB } };
    expect(lessonsOf().formOf(20 * MIB, crossed, false)).toMatchObject({ kind: 'chunks', size: MIB });
    const crossing = lessonsOf();
    expect(crossing.tooLarge(MIB, crossed)).toBe(true);
    expect(crossing.formOf(20 * MIB, crossed, false)).toMatchObject({ kind: 'chunks', size: 512 * 1024 });
  });

  test('is never more than ten thousand chunks', () => {
    const session = { ...PLAIN, chunk: { max: MIB } };
    expect(lessonsOf().formOf(50_000 * MIB, session, false)).toMatchObject({ kind: 'chunks', size: 5 * MIB });
  });

  test('is whole for one byte, which serverless-registry takes as no chunk', () => {
    expect(lessonsOf({ mode: 'chunks' }).formOf(1, PLAIN, true)).toEqual({ kind: 'whole' });
    expect(lessonsOf({ mode: 'chunks' }).formOf(2, PLAIN, true).kind).toBe('chunks');
  });

  test('grows by no byte, nor is tried with one less, once something was too large', () => {
    const lessons = lessonsOf({ mode: 'chunks' });
    expect(lessons.formOf(10 * MIB + 1, PLAIN, false)).toMatchObject({ most: Number.POSITIVE_INFINITY });
    expect(lessons.cut(5 * MIB + 1)).toBe(true);
    expect(lessons.formOf(10 * MIB + 1, PLAIN, false)).toEqual({ kind: 'chunks', size: 2.5 * MIB, most: 2.5 * MIB });
    const least = { ...PLAIN, chunk: { min: 2.5 * MIB } };
    expect(lessons.formOf(10 * MIB + 1, least, false)).toEqual({
      kind: 'chunks',
      size: 2.5 * MIB,
      most: 5 * MIB,
    });
  });

  test('shrinks by halves after 413, to 512 KiB and never below the minimum', () => {
    const lessons = lessonsOf();
    const sizes: number[] = [];
    let body = 64 * MIB;
    while (lessons.tooLarge(body, PLAIN)) {
      const form = lessons.formOf(64 * MIB, PLAIN, false);
      if (form.kind !== 'chunks') throw new Error(form.kind);
      body = form.size;
      sizes.push(body);
    }
    expect(sizes).toEqual([5 * MIB, 2.5 * MIB, 1.25 * MIB, 640 * 1024, 512 * 1024]);
    expect(lessonsOf().tooLarge(5 * MIB, { ...PLAIN, chunk: { min: 5 * MIB } })).toBe(false);
  });

  test('goes to 4 MiB at once when a chunk is too large, and keeps whole blobs whole', () => {
    const lessons = lessonsOf();
    expect(lessons.chunkTooLarge(5 * MIB, PLAIN)).toBe(true);
    expect(lessons.formOf(64 * MIB, PLAIN, true)).toMatchObject({ kind: 'chunks', size: 4 * MIB });
    expect(lessons.formOf(64 * MIB, PLAIN, false)).toEqual({ kind: 'whole' });
  });

  test('is whole again for what is known to pass, and for half of what did not', () => {
    const lessons = lessonsOf();
    lessons.tooLarge(100 * MIB, PLAIN);
    expect(lessons.formOf(50 * MIB, PLAIN, false)).toEqual({ kind: 'whole' });
    expect(lessons.formOf(60 * MIB, PLAIN, false).kind).toBe('chunks');
    lessons.taken(70 * MIB);
    expect(lessons.formOf(60 * MIB, PLAIN, false)).toEqual({ kind: 'whole' });
  });

  test('is whole, else a stream, where no range is taken', () => {
    const lessons = lessonsOf();
    lessons.noChunks();
    expect(lessons.formOf(64 * MIB, PLAIN, true)).toEqual({ kind: 'whole' });
    lessons.tooLarge(64 * MIB, PLAIN);
    expect(lessons.formOf(64 * MIB, PLAIN, true)).toEqual({ kind: 'stream' });
  });

  test.each([
    ['us-docker.pkg.dev', 'auto'],
    ['gcr.io', 'chunks'],
    ['eu.gcr.io', 'auto'],
    ['reg.test', 'whole'],
  ] as const)('%s with mode %s is never anything but whole', (host, mode) => {
    const lessons = lessonsOf({ mode }, host);
    expect(lessons.tooLarge(64 * MIB, PLAIN)).toBe(false);
    expect(lessons.noWhole()).toBe(false);
    expect(lessons.formOf(64 * MIB, { ...PLAIN, chunk: { max: MIB } }, true)).toEqual({ kind: 'whole' });
    expect(lessons.worthChunks(64 * MIB)).toBe(false);
    expect(lessons.resumes()).toBe(false);
  });

  test('a host whose name only looks like Google’s is like any other', () => {
    expect(lessonsOf({ mode: 'auto' }, 'notgcr.io').tooLarge(64 * MIB, PLAIN)).toBe(true);
  });

  test('a cut says nothing of a size that passed before, nor of a small one', () => {
    const lessons = lessonsOf();
    lessons.cut(MIB);
    lessons.taken(50 * MIB);
    lessons.cut(40 * MIB);
    expect(lessons.formOf(40 * MIB, PLAIN, false)).toEqual({ kind: 'whole' });
    lessons.cut(60 * MIB);
    expect(lessons.formOf(60 * MIB, PLAIN, false).kind).toBe('chunks');
  });

  test('a very large blob gets chunks that a thousand parts can hold', () => {
    expect(lessonsOf({ mode: 'chunks' }).formOf(50_000 * MIB, PLAIN, false)).toMatchObject({ size: 50 * MIB });
  });

  test('the size of the configuration is where it starts', () => {
    const lessons = lessonsOf({ mode: 'chunks', chunkSize: 20 * MIB });
    expect(lessons.formOf(64 * MIB, PLAIN, false)).toMatchObject({ kind: 'chunks', size: 20 * MIB });
  });
});

describe('a turn', () => {
  test('is free for small blobs, known sizes, and where nothing can be learnt', async () => {
    const lessons = lessonsOf();
    lessons.taken(50 * MIB);
    const free = [lessons.turn(MIB, SIGNAL), lessons.turn(MIB, SIGNAL), lessons.turn(50 * MIB, SIGNAL)];
    expect(await Promise.all(free.map(settled))).toEqual([true, true, true]);
    const whole = lessonsOf({ mode: 'whole' });
    await whole.turn(64 * MIB, SIGNAL);
    expect(await settled(whole.turn(64 * MIB, SIGNAL))).toBe(true);
  });

  test('goes to one blob of unknown size; the others wait for what it meets', async () => {
    const lessons = lessonsOf();
    const scout = await lessons.turn(40 * MIB, SIGNAL);
    const others = [lessons.turn(30 * MIB, SIGNAL), lessons.turn(40 * MIB, SIGNAL)];
    expect(await settled(Promise.race(others))).toBe(false);
    lessons.taken(40 * MIB);
    scout.release();
    expect(await Promise.all(others.map(settled))).toEqual([true, true]);
  });

  test('goes to the next one when the scout has learnt nothing of its size', async () => {
    const lessons = lessonsOf();
    const scout = await lessons.turn(40 * MIB, SIGNAL);
    const second = lessons.turn(50 * MIB, SIGNAL);
    const third = lessons.turn(60 * MIB, SIGNAL);
    scout.release();
    expect(await settled(second)).toBe(true);
    expect(await settled(third)).toBe(false);
    (await second).release();
    expect(await settled(third)).toBe(true);
  });

  test('is waited for a second and no longer; that size is not waited for again', async () => {
    const clock = handClock();
    const lessons = lessonsOf({ mode: 'auto' }, 'reg.test', clock);
    await lessons.turn(40 * MIB, SIGNAL);
    const other = lessons.turn(30 * MIB, SIGNAL);
    expect(await settled(other)).toBe(false);
    clock.wake();
    expect(await settled(other)).toBe(true);
    expect(await settled(lessons.turn(35 * MIB, SIGNAL))).toBe(true);
  });

  test('is shared by those who send what is read once for all of them', async () => {
    const lessons = lessonsOf();
    const [read, otherRead] = [{}, {}];
    await lessons.turn(40 * MIB, SIGNAL, read);
    expect(await settled(lessons.turn(40 * MIB, SIGNAL, read))).toBe(true);
    const others = [lessons.turn(40 * MIB, SIGNAL, otherRead), lessons.turn(40 * MIB, SIGNAL)];
    expect(await settled(Promise.race(others))).toBe(false);
  });

  test('goes on while the limit is halved', async () => {
    const lessons = lessonsOf();
    const scout = await lessons.turn(40 * MIB, SIGNAL);
    lessons.tooLarge(40 * MIB, PLAIN);
    scout.release();
    const again = await lessons.turn(40 * MIB, SIGNAL);
    const other = lessons.turn(30 * MIB, SIGNAL);
    expect(await settled(other)).toBe(false);
    lessons.taken(5 * MIB);
    again.release();
    expect(await settled(other)).toBe(true);
  });

  test('ends with the run', async () => {
    const run = new AbortController();
    const lessons = lessonsOf();
    await lessons.turn(40 * MIB, SIGNAL);
    const other = lessons.turn(30 * MIB, run.signal);
    run.abort(new Error('over'));
    await expect(other).rejects.toThrow('over');
  });
});
