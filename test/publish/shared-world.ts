import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { digestOf } from '../../src/model/digest.ts';
import type { Clock } from '../../src/publish/ports.ts';
import type { Seat } from '../../src/publish/shared-read.ts';
import { createSharedReads, type SharedReads } from '../../src/publish/shared-reads.ts';
import type { BlobIdentity, CopyPlaces, Limiter } from '../../src/registry/client.ts';
import { fakeClient, fakePorts } from './fakes.ts';

/** A clock that is turned by hand. */
export type ManualClock = Clock & {
  /** Lets so many ms pass, and all that hangs on them happen. */
  pass(milliseconds: number): Promise<void>;
  /** Sleeps that nobody has stopped. */
  sleeping(): number;
};

export function manualClock(): ManualClock {
  let now = 0;
  const sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();
  return {
    now: () => now,
    epoch: () => now,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { at: now + milliseconds, wake: resolve };
        sleepers.add(sleeper);
        setMaxListeners(0, signal);
        const stop = (): void => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        };
        if (signal.aborted) stop();
        else signal.addEventListener('abort', stop);
      }),
    sleeping: () => sleepers.size,
    async pass(milliseconds) {
      await settled();
      const end = now + milliseconds;
      for (;;) {
        const [next] = [...sleepers].filter(({ at }) => at <= end).sort((one, other) => one.at - other.at);
        if (next === undefined) break;
        now = Math.max(now, next.at);
        sleepers.delete(next);
        next.wake();
        await settled();
      }
      now = end;
      await settled();
    },
  };
}

/** Lets everything happen that waits for nothing. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
}

export type World = {
  readonly clock: ManualClock;
  readonly reads: SharedReads;
  readonly bytes: Buffer;
  readonly blob: BlobIdentity;
  /** Reads of the source, as `HOST from`, oldest first. */
  readonly opened: string[];
  /** Those that are open now. */
  readonly open: Set<Readable>;
  /** Reads of this host fail: when they are opened, or behind so many bytes. */
  readonly breaks: Map<string, number>;
};

const PIECE = 64 * 1024;

/** A blob of this size at the hosts `a.test` and `b.test`. `slowly`: each piece comes by itself, as from a socket. */
export function world(size: number, slowly = false, limiter?: Limiter): World {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at + 4 <= size; at += 4) bytes.writeUInt32LE(at, at);
  const digest = digestOf(bytes);
  const clock = manualClock();
  const opened: string[] = [];
  const open = new Set<Readable>();
  const breaks = new Map<string, number>();
  const clients = ['a.test', 'b.test'].map((host) =>
    fakeClient(host, {
      openBlob: async (_repository, _blob, { from = 0, signal }) => {
        opened.push(`${host} ${from}`);
        await new Promise(setImmediate);
        signal.throwIfAborted();
        const limit = breaks.get(host) ?? Number.POSITIVE_INFINITY;
        if (limit === 0) throw new Error(`${host} does not open`);
        const parts = pieces(bytes, from, limit, host);
        const stream = Readable.from(slowly ? oneByOne(parts) : parts, { objectMode: false, highWaterMark: PIECE });
        open.add(stream);
        stream.once('close', () => open.delete(stream));
        return stream;
      },
    }),
  );
  const ports = fakePorts(clients);
  const reads = createSharedReads({ ...ports, clock, limiter: limiter ?? ports.limiter });
  return { clock, reads, bytes, blob: { digest, size }, opened, open, breaks };
}

function* pieces(bytes: Buffer, from: number, limit: number, host: string): Generator<Buffer> {
  for (let at = from; at < bytes.byteLength; at += PIECE) {
    if (at >= limit) throw new Error(`${host} broke`);
    yield bytes.subarray(at, at + PIECE);
  }
}

async function* oneByOne(parts: Iterable<Buffer>): AsyncGenerator<Buffer> {
  for (const part of parts) {
    await new Promise(setImmediate);
    yield part;
  }
  await new Promise(setImmediate);
}

/** Places of a copy that tell what was given back. */
export function places(told: string[]): CopyPlaces {
  const place = (host: string) => ({ host, release: () => void told.push(host) });
  return { source: place('source'), target: place('target'), release: () => void told.push('all') };
}

/** The seats of all these members, when all have come. */
export async function seated({ reads, blob }: World, names: readonly string[]): Promise<readonly Seat[]> {
  for (const name of names) reads.expect(blob.digest, name);
  const { signal } = new AbortController();
  const seats = await Promise.all(names.map((name) => reads.join(blob, name, signal)));
  return seats.map((seat) => {
    if (seat === undefined) throw new Error('it was to read alone');
    return seat;
  });
}

type SeatWishes = { readonly host?: string; readonly signal?: AbortSignal };

/** Opens the seat for a member; undefined when it has missed the read. */
export async function openSeat(
  seat: Seat | undefined,
  { host = 'a.test', signal = new AbortController().signal }: SeatWishes = {},
): Promise<Readable | undefined> {
  if (seat === undefined) throw new Error('there is no such seat');
  seat.claim();
  return seat.open({ host, repository: 's/one' }, { signal, reads: { fruitless: 0 } });
}

/** Opens it and begins. */
export async function beginSeat(seat: Seat | undefined, wishes: SeatWishes = {}): Promise<Readable> {
  const body = await openSeat(seat, wishes);
  if (body === undefined || seat?.begin() !== true) throw new Error('it has missed the read');
  return body;
}

/** Everything that is left, or the error. */
export async function drain(body: Readable): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of body) all.push(piece);
  return Buffer.concat(all);
}
