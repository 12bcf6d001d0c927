import type { Readable } from 'node:stream';
import type { BlobIdentity, BlobReads, CopyPlaces, Place } from '../registry/client.ts';
import type { PublishPorts } from './ports.ts';
import type { Location } from './resolved.ts';
import { SharedBody } from './shared-body.ts';
import type { Habits } from './shared-habits.ts';
import { readAlone } from './shared-rest.ts';
import { createStall, type Pace } from './shared-stall.ts';
import { later, orAborted } from './stop.ts';

/** How long members wait for one another, at each of the two times when they do, in ms. */
export const PATIENCE = 1000;

/** How a member reads. `place`: only the reader brings one. */
export type SeatOptions = { readonly signal: AbortSignal; readonly reads: BlobReads; readonly place?: Place };

/** A member's seat in a shared read. */
export interface Seat {
  /** Aborted as soon as one of the members has the places to read with: the others need none at the source. */
  readonly readerFound: AbortSignal;
  /**
   * Aborted when the member has missed the read: the others have begun without it, or nobody is left who would begin
   * it. All who have missed it are expected anew; they give back what they hold and join again.
   */
  readonly missed: AbortSignal;
  /** Makes this member the reader unless there is one; who becomes it must {@link Seat.open} at once. */
  claim(): boolean;
  /**
   * The blob from its start; undefined for who has missed it. It may be read after {@link Seat.begin}, and then always
   * to its end: from the shared read as long as that goes well, then from `source`.
   *
   * @throws as `RegistryClient.openBlob`
   */
  open(source: Location, options: SeatOptions): Promise<Readable | undefined>;
  /** The member sends what it has opened, now. False when it has missed the read. */
  begin(): boolean;
  /** Gives back the member's places; what the shared read still needs of them, when that is over. */
  giveBack(places: CopyPlaces): void;
  /** Nothing more is wanted. */
  leave(): void;
}

type Member = Pace & {
  readonly name: string;
  readonly missed: AbortController;
  source?: Location;
  reads?: BlobReads;
  /** What its source failed with. */
  failure?: Error;
  body?: SharedBody;
  begun: boolean;
};

/**
 * One read of a blob for several members. The first to get places at both ends reads; the pieces go by reference to all,
 * and the next one is read when all have room. So the slowest sets the pace, until it has held up the others for too long.
 *
 * What may be waited for while places or a job are held, so that no circle can come about:
 * - by a member, nothing but answers of registries, the clock, and room in bodies that members read who have begun. Who
 *   has to wait for places gives back all it has first, and who waits for them is not waited for, but for
 *   {@link PATIENCE}. The one exception is the rest of the blob in the middle of a request, which has a place of its
 *   own: @see readAlone
 * - by the read itself, which holds the reader's places at the source, only for members who have begun or for the
 *   reader, who is about to. Without either it is given up at once, whoever else may be on the way. Once begun it
 *   belongs to nobody: it goes on until it ends, breaks, or has no member left.
 *
 * `again` is told of members who have missed the read, of all of them before any can go on.
 */
export function createSharedRead(
  blob: BlobIdentity,
  names: readonly string[],
  ports: PublishPorts,
  habits: Habits,
  again: (name: string) => void,
): readonly Seat[] {
  const { clock } = ports;
  const all = names.map((name): Member => ({ name, debt: 0, missed: new AbortController(), begun: false }));
  const members = new Set(all);
  const found = new AbortController();
  const stopping = new AbortController();
  const reads: BlobReads = { fruitless: 0 };
  const after: (() => void)[] = [];
  let reader: Member | undefined;
  let stream: Readable | undefined;
  /** Settles when the source is open, and when there is nothing to be waited for any more. */
  let settle: () => void = () => undefined;
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  let startedAt: number | undefined;
  /** How many bytes have been handed to the members. */
  let fed = 0;
  let over = false;
  let starting: (() => void) | undefined;

  function read(source: Location, place: Place | undefined): void {
    const options = { signal: stopping.signal, reads, ...(place === undefined ? {} : { place }) };
    const end = (): void => {
      over = true;
      place?.release();
      for (const action of after.splice(0)) action();
    };
    ports
      .registry(source.host)
      .openBlob(source.repository, blob, options)
      .then(
        (body) => {
          stream = body;
          body.pause();
          body.on('data', (piece: Buffer) => {
            fed += piece.byteLength;
            for (const { body: one } of members) one?.receive(piece);
            pace();
          });
          body.once('end', () => {
            stall.end();
            for (const { body: one } of members) one?.finish();
          });
          body.once('error', broke);
          body.once('close', end);
          if (stopping.signal.aborted) body.destroy();
          settle();
        },
        (error: unknown) => {
          broke(error);
          end();
        },
      );
  }

  /** Who reads the same source would only meet the same error; it does better to begin a new try. */
  function broke(error: unknown): void {
    starting?.();
    stall.end();
    for (const member of [...members]) {
      if (hasSourceOfReader(member)) {
        members.delete(member);
        if (member.reads !== undefined) member.reads.fruitless = Math.max(member.reads.fruitless, reads.fruitless);
        member.failure = error instanceof Error ? error : new Error(String(error));
        member.body?.destroy(member.failure);
      } else if (member.begun) {
        members.delete(member);
        member.body?.goAlone();
      }
    }
    miss([...members]);
    settle();
  }

  function hasSourceOfReader({ source }: Member): boolean {
    return source?.host === reader?.source?.host && source?.repository === reader?.source?.repository;
  }

  function leave(member: Member): void {
    if (!members.delete(member)) return;
    const live = [...members];
    if (startedAt !== undefined) {
      if (live.length > 0) pace();
      else giveUp();
    } else if (reader === undefined || live.some((one) => one === reader || one.begun)) startIfReady();
    else giveUp();
  }

  function giveUp(): void {
    starting?.();
    stall.end();
    stopping.abort(new Error('no longer wanted'));
    stream?.destroy();
    miss([...members]);
    settle();
  }

  function miss(some: readonly Member[]): void {
    for (const member of some) {
      members.delete(member);
      again(member.name);
    }
    for (const { missed } of some) missed.abort(new Error('the others read without it'));
  }

  /** The first member that sends is kept waiting for the others, but no longer than {@link PATIENCE}. */
  function startIfReady(): void {
    const missing = [...members].filter(({ begun }) => !begun);
    if (startedAt !== undefined || missing.length === members.size) return;
    if (!missing.some(({ name }) => habits.beginning.isAwaited(name))) {
      start(missing);
      return;
    }
    starting ??= later(clock, PATIENCE, () => {
      const stillMissing = [...members].filter(({ begun }) => !begun);
      for (const { name } of stillMissing) habits.beginning.inVain(name);
      start(stillMissing);
    });
  }

  function start(missing: readonly Member[]): void {
    starting?.();
    startedAt = clock.now();
    miss(missing);
    for (const { name } of members) habits.beginning.inTime(name);
    pace();
  }

  const stall = createStall(members, clock, (member) => {
    members.delete(member);
    const caughtUp = habits.straggles(member.name);
    member.body?.once('close', caughtUp);
    member.body?.goAlone();
    pace();
  });

  function pace(): void {
    // Who holds the last of it need not have room for its end.
    const blocked = fed !== blob.size && [...members].some(({ body }) => body?.full === true);
    stall.update(blocked);
    if (blocked) stream?.pause();
    else stream?.resume();
  }

  async function open(member: Member, source: Location, options: SeatOptions): Promise<Readable | undefined> {
    member.source = source;
    member.reads = options.reads;
    if (member === reader) read(source, options.place);
    try {
      await orAborted(settled, options.signal);
    } catch (error) {
      leave(member);
      throw error;
    }
    if (member.failure !== undefined) throw member.failure;
    if (!members.has(member)) return undefined;
    const body = new SharedBody({
      asks: () => {
        if (startedAt !== undefined && members.has(member)) pace();
      },
      closed: () => leave(member),
      rest: (from) => readAlone(blob, source, from, options, ports),
    });
    member.body = body;
    return body;
  }

  /** It has missed the read; if not by much, it is worth waiting for next time. */
  function noteArrival({ name }: Member): void {
    if (startedAt !== undefined && clock.now() - startedAt < PATIENCE) habits.beginning.inTime(name);
  }

  return all.map((member) => ({
    readerFound: found.signal,
    missed: member.missed.signal,
    claim: () => {
      if (reader !== undefined || !members.has(member)) return false;
      reader = member;
      found.abort(new Error('another one reads'));
      return true;
    },
    open: (source, options) => open(member, source, options),
    begin: () => {
      if (member.missed.signal.aborted) {
        noteArrival(member);
        return false;
      }
      member.begun = true;
      startIfReady();
      return true;
    },
    giveBack: (places) => {
      if (member !== reader || over) {
        places.release();
        return;
      }
      places.target.release();
      after.push(() => places.release());
    },
    leave: () => leave(member),
  }));
}
