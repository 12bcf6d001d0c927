import { once, setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { createStall } from '../../src/publish/shared-stall.ts';
import type { BlobIdentity } from '../../src/registry/client.ts';
import { drain, manualClock, openSeat, places, seated, settled, type World, world } from './shared-world.ts';

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
    const bodies = await Promise.all(seats.map((seat) => openSeat(seat)));
    expect(seats[2]?.readerFound.aborted).toBe(true);
    for (const bytes of await Promise.all(bodies.map(drain))) expect(bytes.equals(at.bytes)).toBe(true);
    expect(at.opened).toEqual(['a.test 0']);
  });

  it('keeps little more than a MiB for the slowest', async () => {
    const at = world(8 * MIB);
    const seats = await seated(at, ['quick', 'stuck']);
    const [quick, stuck] = await Promise.all(seats.map((seat) => openSeat(seat)));
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
    const [quick, stuck] = await Promise.all(seats.map((seat) => openSeat(seat)));
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

  it('does not wait for room where nothing is left to be read', async () => {
    const at = world(MIB, true);
    const [quick, stuck] = await Promise.all((await seated(at, ['quick', 'stuck'])).map((seat) => openSeat(seat)));
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
    const [first, second] = await Promise.all((await seated(at, ['quick', 'stuck'])).map((seat) => openSeat(seat)));
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

  it('waits a second for one that is slow to begin, which then reads all of it alone', async () => {
    const at = world(3 * MIB);
    const seats = await seated(at, ['one', 'two', 'slow', 'late']);
    const [one, two, slow] = await Promise.all(seats.slice(0, 3).map((seat) => openSeat(seat)));
    const got = [read(one), read(two)];
    await at.clock.pass(999);
    expect(got.map(({ bytes }) => bytes())).toEqual([0, 0]);
    expect(seats[3]?.isLate()).toBe(false);
    await at.clock.pass(1);
    expect(got.map(({ bytes }) => bytes())).toEqual([3 * MIB, 3 * MIB]);
    expect(seats[3]?.isLate()).toBe(true);
    expect(at.opened).toEqual(['a.test 0']);
    if (slow === undefined) throw new Error('there are four');
    expect((await drain(slow)).equals(at.bytes)).toBe(true);
    expect((await drain(await openSeat(seats[3]))).equals(at.bytes)).toBe(true);
  });

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
    const [two, three] = await Promise.all(others.map((seat) => openSeat(seat)));
    const reader = await reading;
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
    const body = await openSeat(first);
    expect(at.open.size).toBe(1);
    body.destroy();
    second?.leave();
    await settled();
    expect(at.open.size).toBe(0);

    const again = world(8 * MIB);
    const stopping = new AbortController();
    const [third, fourth] = await seated(again, ['one', 'two']);
    const opening = openSeat(third, { signal: stopping.signal });
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
    const [, , third] = opened;
    if (third?.status !== 'fulfilled') throw new Error('it has a source');
    expect((await drain(third.value)).equals(at.bytes)).toBe(true);
    expect(at.opened).toEqual(['a.test 0', 'b.test 0']);
  });

  it('that breaks fails for who reads the same source; who has another goes on there', async () => {
    const at = world(2 * MIB);
    at.breaks.set('a.test', MIB);
    const seats = await seated(at, ['one', 'two', 'three']);
    const hosts = ['a.test', 'a.test', 'b.test'];
    const bodies = await Promise.all(seats.map((seat, index) => openSeat(seat, { host: hosts[index] ?? '' })));
    const done = await Promise.allSettled(bodies.map(drain));
    expect(done.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    const [, , third] = done;
    expect(third?.status === 'fulfilled' && third.value.equals(at.bytes)).toBe(true);
    expect(at.opened).toEqual(['a.test 0', `b.test ${MIB}`]);
  });

  it('gives every member that stays exactly the bytes of the blob, whatever the others do', async () => {
    const member = fc.record({
      /** How much is taken at a time, and how long after the last time, in ms. */
      piece: fc.integer({ min: 1, max: 2 * MIB }),
      wait: fc.constantFrom(0, 0, 0, 1, 100, 2000, 7000),
      comes: fc.constantFrom(0, 0, 500, 1500),
      goes: fc.option(fc.integer({ min: 0, max: 4 * MIB })),
      host: fc.constantFrom('a.test', 'b.test'),
    });
    const stays = fc.array(member, { minLength: 2, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(stays, fc.integer({ min: 0, max: 4 * MIB }), async (members, size) => {
        const at = world(size);
        const seats = await seated(
          at,
          members.map((_, index) => `${index}`),
        );
        const done = members.map(async ({ comes, goes, host, piece, wait }, index) => {
          if (comes > 0) await at.clock.sleep(comes, signal);
          const body = await openSeat(seats[index], { host });
          const got = await takeSlowly(body, { piece, wait, goes: goes ?? undefined }, at);
          if (goes === null) expect(got.equals(at.bytes)).toBe(true);
          else expect(got.equals(at.bytes.subarray(0, got.byteLength))).toBe(true);
        });
        let over = false;
        const all = Promise.all(done).finally(() => {
          over = true;
        });
        for (let passed = 0; !over && passed < 400; passed += 1) await Promise.race([at.clock.pass(1000), all]);
        await all;
        await settled();
        expect(at.open.size).toBe(0);
        expect(at.clock.sleeping()).toBe(0);
      }),
      { numRuns: 15 },
    );
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

async function takeSlowly(
  body: Readable,
  { piece, wait, goes }: { readonly piece: number; readonly wait: number; readonly goes: number | undefined },
  { clock }: World,
): Promise<Buffer> {
  const got: Buffer[] = [];
  let length = 0;
  let since = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    got.push(part);
    length += part.byteLength;
    since += part.byteLength;
    if (goes !== undefined && length >= goes) break;
    if (wait > 0 && since >= piece) {
      since = 0;
      await clock.sleep(wait, signal);
    }
  }
  return Buffer.concat(got);
}
