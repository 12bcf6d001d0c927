import { once, setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/http/limiter.ts';
import { digestOf } from '../../src/model/digest.ts';
import { createStall } from '../../src/publish/shared-stall.ts';
import type { BlobIdentity } from '../../src/registry/client.ts';
import { beginSeat, drain, manualClock, openSeat, places, seated, settled, world } from './shared-world.ts';

const MIB = 1024 * 1024;

const { signal } = new AbortController();
setMaxListeners(0, signal);

function another(name: string): BlobIdentity {
  return { digest: digestOf(Buffer.from(name)), size: 10 };
}

/** What has come of it so far. */
async function soon<T>(promise: Promise<T> | undefined): Promise<T | 'nothing yet' | undefined> {
  await settled();
  return Promise.race([promise, Promise.resolve('nothing yet' as const)]);
}

describe('who needs a blob', () => {
  it('reads alone and at once when nobody else may need it', async () => {
    const { reads, blob, clock } = world(10);
    reads.expect(blob.digest, 'one');
    expect(await soon(reads.join(blob, 'one', signal))).toBeUndefined();
    expect(clock.sleeping()).toBe(0);
  });

  it('reads alone when it was not expected, or has had its seat', async () => {
    const at = world(10);
    await seated(at, ['one', 'two']);
    at.reads.expect(at.blob.digest, 'three');
    expect(await soon(at.reads.join(at.blob, 'one', signal))).toBeUndefined();
    expect(await soon(at.reads.join(at.blob, 'stranger', signal))).toBeUndefined();
  });

  it('waits for those who may need it too, until they have come or need it no more', async () => {
    const { reads, blob, clock } = world(10);
    for (const name of ['one', 'two', 'three']) reads.expect(blob.digest, name);
    const one = reads.join(blob, 'one', signal);
    const two = reads.join(blob, 'two', signal);
    expect(await soon(one)).toBe('nothing yet');
    reads.leave(blob.digest, 'three');
    const [first, second] = await Promise.all([one, two]);
    expect([first?.claim(), second?.claim()]).toEqual([true, false]);
    expect(clock.sleeping()).toBe(0);
  });

  it('reads alone when all others need it no more', async () => {
    const { reads, blob } = world(10);
    for (const name of ['one', 'two']) reads.expect(blob.digest, name);
    const one = reads.join(blob, 'one', signal);
    reads.leave(blob.digest, 'two');
    reads.leave(blob.digest, 'two');
    expect(await soon(one)).toBeUndefined();
  });

  it('waits for a second, and goes with those who are there', async () => {
    const { reads, blob, clock } = world(10);
    for (const name of ['one', 'two', 'three', 'four']) reads.expect(blob.digest, name);
    const one = reads.join(blob, 'one', signal);
    await clock.pass(600);
    const two = reads.join(blob, 'two', signal);
    await clock.pass(399);
    expect(await soon(one)).toBe('nothing yet');
    await clock.pass(1);
    expect((await one)?.claim()).toBe(true);
    expect((await two)?.claim()).toBe(false);
    expect(await soon(reads.join(blob, 'three', signal))).toBeUndefined();
    expect(await soon(reads.join(blob, 'four', signal))).toBeUndefined();
  });

  it('waits in vain for the same one only once, until that has nearly been in time', async () => {
    const at = world(10);
    const { reads, clock } = at;
    const [first, second, third] = [another('first'), another('second'), another('third')];
    for (const { digest } of [first, second, third]) for (const name of ['quick', 'slow']) reads.expect(digest, name);
    const vain = reads.join(first, 'quick', signal);
    await clock.pass(1000);
    expect(await soon(vain)).toBeUndefined();

    expect(await soon(reads.join(second, 'quick', signal))).toBeUndefined();
    await clock.pass(500);
    expect(await soon(reads.join(second, 'slow', signal))).toBeUndefined();

    const together = reads.join(third, 'quick', signal);
    expect(await soon(together)).toBe('nothing yet');
    void reads.join(third, 'slow', signal);
    expect(await together).toBeDefined();
  });

  it('stops waiting when it is stopped, and holds nobody up then', async () => {
    const { reads, blob } = world(10);
    const stopping = new AbortController();
    for (const name of ['one', 'two']) reads.expect(blob.digest, name);
    const one = reads.join(blob, 'one', stopping.signal);
    stopping.abort(new Error('stopped'));
    await expect(one).rejects.toThrow('stopped');
    expect(await soon(reads.join(blob, 'two', signal))).toBeUndefined();
  });
});

describe('a shared read', () => {
  it('is opened once by the first who has places, and gives all of them the same bytes', async () => {
    const at = world(5 * MIB + 3);
    const seats = await seated(at, ['one', 'two', 'three']);
    expect(seats[0]?.readerFound.aborted).toBe(false);
    const bodies = await Promise.all(seats.map((seat) => beginSeat(seat)));
    expect(seats[2]?.readerFound.aborted).toBe(true);
    for (const bytes of await Promise.all(bodies.map(drain))) expect(bytes.equals(at.bytes)).toBe(true);
    expect(at.opened).toEqual(['a.test 0']);
  });

  it('keeps little more than a MiB for the slowest', async () => {
    const at = world(8 * MIB);
    const seats = await seated(at, ['quick', 'stuck']);
    const [quick, stuck] = await Promise.all(seats.map((seat) => beginSeat(seat)));
    const got = read(quick);
    stuck?.read(1);
    await settled();
    expect(stuck?.readableLength).toBeGreaterThan(0.9 * MIB);
    expect(stuck?.readableLength).toBeLessThan(1.2 * MIB);
    expect(got.bytes()).toBeLessThan(1.2 * MIB);
  });

  it('leaves one behind that has no room for five seconds while others wait; it goes on where it was', async () => {
    const at = world(8 * MIB);
    const seats = await seated(at, ['quick', 'stuck']);
    const [quick, stuck] = await Promise.all(seats.map((seat) => beginSeat(seat)));
    if (stuck === undefined) throw new Error('there are two');
    const got = read(quick);
    await once(stuck, 'readable');
    const head: Buffer = stuck.read(1);
    await at.clock.pass(4999);
    expect(got.bytes()).toBeLessThan(2 * MIB);
    await at.clock.pass(1);
    await settled();
    expect(got.bytes()).toBe(8 * MIB);
    // It may never have room again, and then nothing is opened for it.
    expect(at.opened).toHaveLength(1);
    expect(Buffer.concat([head, await drain(stuck)]).equals(at.bytes)).toBe(true);
    expect(at.opened).toHaveLength(2);
    expect(Number(at.opened[1]?.split(' ')[1])).toBeGreaterThanOrEqual(MIB);
  });

  it('reads on for those left behind though they hold every place of the source themselves', async () => {
    const limiter = createLimiter({ clock: manualClock(), requests: 2 });
    const at = world(4 * MIB, false, limiter);
    const names = ['quick', 'stuck', 'too'];
    const [quick, ...stuck] = await Promise.all((await seated(at, names)).map((seat) => beginSeat(seat)));
    const own = [await limiter.take('a.test', signal), await limiter.take('a.test', signal)];
    read(quick);
    for (const body of stuck) body.read(1);
    await at.clock.pass(10_000);
    const rest = stuck.map(async (body, index) => {
      const { byteLength } = await drain(body);
      own[index]?.release();
      return byteLength;
    });
    expect(await soon(Promise.all(rest))).toEqual([4 * MIB, 4 * MIB]);
    expect(at.opened).toHaveLength(3);
  });

  it('does not wait for room where nothing is left to be read', async () => {
    const at = world(MIB, true);
    const [quick, stuck] = await Promise.all((await seated(at, ['quick', 'stuck'])).map((seat) => beginSeat(seat)));
    if (quick === undefined) throw new Error('there are two');
    const ended = once(quick, 'end');
    read(quick);
    stuck?.read(1);
    await settled();
    expect(await soon(ended)).toEqual([]);
    expect(at.open.size).toBe(0);
  });

  it.each([
    [0.4, 60, false],
    [0.8, 7, false],
    [0.8, 9, true],
  ])('who holds up the others for %d of the time is left behind within %i seconds: %s', async (part, seconds, left) => {
    const clock = manualClock();
    const slow = { debt: 0, body: { full: false, asking: false } };
    const quick = { debt: 0, body: { full: false, asking: true } };
    const dropped: unknown[] = [];
    const stall = createStall(new Set([slow, quick]), clock, (one) => dropped.push(one));
    for (let passed = 0; passed < seconds * 1000; passed += 100) {
      slow.body.full = true;
      stall.update(true);
      await clock.pass(part * 100);
      slow.body.full = false;
      stall.update(false);
      await clock.pass((1 - part) * 100);
    }
    expect(dropped.includes(slow)).toBe(left);
    expect(dropped.includes(quick)).toBe(false);
  });

  it('reads alone who is behind in another read', async () => {
    const at = world(8 * MIB);
    const [first, second] = await Promise.all((await seated(at, ['quick', 'stuck'])).map((seat) => beginSeat(seat)));
    read(first);
    second?.read(1);
    await at.clock.pass(5000);
    const next = another('next');
    for (const name of ['quick', 'stuck']) at.reads.expect(next.digest, name);
    expect(await soon(at.reads.join(next, 'quick', signal))).toBeUndefined();
    expect(await soon(at.reads.join(next, 'stuck', signal))).toBeUndefined();
    for (const name of ['quick', 'stuck']) at.reads.expect(next.digest, name);
    expect(await soon(at.reads.join(next, 'stuck', signal))).toBeUndefined();
    second?.destroy();
    await settled();
    for (const name of ['quick', 'stuck']) at.reads.expect(next.digest, name);
    expect(await soon(at.reads.join(next, 'quick', signal))).toBe('nothing yet');
  });

  it('waits a second for those that are slow to begin, who miss it and gather anew', async () => {
    const at = world(3 * MIB);
    const seats = await seated(at, ['one', 'two', 'slow', 'late']);
    const [one, two] = await Promise.all(seats.slice(0, 2).map((seat) => beginSeat(seat)));
    expect(await openSeat(seats[2])).toBeDefined();
    const got = [read(one), read(two)];
    await at.clock.pass(999);
    expect(got.map(({ bytes }) => bytes())).toEqual([0, 0]);
    expect(seats.map(({ missed }) => missed.aborted)).toEqual([false, false, false, false]);
    await at.clock.pass(1);
    expect(got.map(({ bytes }) => bytes())).toEqual([3 * MIB, 3 * MIB]);
    expect(seats.map(({ missed }) => missed.aborted)).toEqual([false, false, true, true]);
    expect(seats[2]?.begin()).toBe(false);
    expect(await openSeat(seats[3])).toBeUndefined();
    const slow = at.reads.join(at.blob, 'slow', signal);
    expect(await soon(slow)).toBe('nothing yet');
    const late = at.reads.join(at.blob, 'late', signal);
    // Nobody waits for the one that was not nearly in time: it had better begin first.
    const bodies = await Promise.all([await late, await slow].map((seat) => beginSeat(seat)));
    for (const bytes of await Promise.all(bodies.map(drain))) expect(bytes.equals(at.bytes)).toBe(true);
    expect(at.opened).toEqual(['a.test 0', 'a.test 0']);
  });

  it.each([
    ['open', true],
    ['about to be opened', false],
  ])(
    'that is %s is given up when the reader leaves before anybody has begun, and all gather anew',
    async (_, opened) => {
      const at = world(3 * MIB);
      const told: string[] = [];
      const held = places(told);
      const seats = await seated(at, ['reader', 'two', 'three']);
      const [first, second, third] = seats;
      const reading = openSeat(first);
      const two = openSeat(second);
      if (opened) await Promise.all([reading, two]);
      if (opened) expect(at.open.size).toBe(1);
      first?.leave();
      first?.giveBack(held);
      expect(third?.missed.aborted).toBe(true);
      await settled();
      expect(at.open.size).toBe(0);
      expect(told).toEqual(['target', 'all']);
      expect(seats.map(({ missed }) => missed.aborted)).toEqual([false, true, true]);
      expect(second?.begin()).toBe(false);
      if (!opened) expect(await two).toBeUndefined();
      const again = [at.reads.join(at.blob, 'two', signal), at.reads.join(at.blob, 'three', signal)];
      const bodies = await Promise.all((await Promise.all(again)).map((seat) => beginSeat(seat)));
      for (const bytes of await Promise.all(bodies.map(drain))) expect(bytes.equals(at.bytes)).toBe(true);
    },
  );

  it('goes on without a member that has gone, the reader too, and ends with the last', async () => {
    const at = world(8 * MIB);
    const seats = await seated(at, ['reader', 'two', 'three']);
    const told: string[] = [];
    const held = places(told);
    const [first, ...others] = seats;
    if (first === undefined) throw new Error('there are three');
    first.claim();
    const reading = first.open(
      { host: 'a.test', repository: 's/one' },
      { signal, reads: { fruitless: 0 }, ...(held.source === undefined ? {} : { place: held.source }) },
    );
    const [two, three] = await Promise.all(others.map((seat) => beginSeat(seat)));
    const reader = await reading;
    if (reader === undefined) throw new Error('it reads');
    first.begin();
    const got = read(two);
    read(reader);
    three?.read(1);
    await settled();
    reader.destroy();
    first.giveBack(held);
    expect(told).toEqual(['target']);
    three?.destroy();
    await settled();
    expect(got.bytes()).toBe(8 * MIB);
    expect(told).toEqual(['target', 'source', 'all']);
    expect(at.open.size).toBe(0);
  });

  it('ends at once when nobody wants it any more, open or about to be opened', async () => {
    const at = world(8 * MIB);
    const [first, second] = await seated(at, ['one', 'two']);
    const body = await beginSeat(first);
    expect(at.open.size).toBe(1);
    body.destroy();
    second?.leave();
    await settled();
    expect(at.open.size).toBe(0);

    const again = world(8 * MIB);
    const stopping = new AbortController();
    const [third, fourth] = await seated(again, ['one', 'two']);
    const opening = beginSeat(third, { signal: stopping.signal });
    stopping.abort(new Error('stopped'));
    fourth?.leave();
    await expect(opening).rejects.toThrow('stopped');
    await settled();
    expect(again.open.size).toBe(0);
  });

  it('that does not open fails for who reads the same source, not for who has another', async () => {
    const at = world(2 * MIB);
    at.breaks.set('a.test', 0);
    const seats = await seated(at, ['one', 'two', 'three']);
    const hosts = ['a.test', 'a.test', 'b.test'];
    const opened = await Promise.allSettled(seats.map((seat, index) => openSeat(seat, { host: hosts[index] ?? '' })));
    expect(opened.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(seats.map(({ missed }) => missed.aborted)).toEqual([false, false, true]);
    expect(at.opened).toEqual(['a.test 0']);
    // It was the only one that missed it.
    expect(await soon(at.reads.join(at.blob, 'three', signal))).toBeUndefined();
  });

  it('that breaks fails for who reads the same source; who has another goes on there', async () => {
    const at = world(2 * MIB);
    at.breaks.set('a.test', MIB);
    const seats = await seated(at, ['one', 'two', 'three']);
    const hosts = ['a.test', 'a.test', 'b.test'];
    const bodies = await Promise.all(seats.map((seat, index) => beginSeat(seat, { host: hosts[index] ?? '' })));
    const done = await Promise.allSettled(bodies.map(drain));
    expect(done.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    const [, , third] = done;
    expect(third?.status === 'fulfilled' && third.value.equals(at.bytes)).toBe(true);
    expect(at.opened).toEqual(['a.test 0', `b.test ${MIB}`]);
  });
});

/** Reads as fast as it can. */
function read(body: Readable | undefined): { bytes(): number } {
  let bytes = 0;
  body?.on('data', (piece: Buffer) => {
    bytes += piece.byteLength;
  });
  return { bytes: () => bytes };
}
