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
  /** Makes this member the reader unless there is one; who becomes it must {@link Seat.open} at once. */
  claim(): boolean;
  /** The others have begun without it. */
  isLate(): boolean;
  /**
   * The blob from its start. What comes back can always be read to its end: from the shared read as long as that goes
   * well, then from `source`.
   *
   * @throws as `RegistryClient.openBlob`
   */
  open(source: Location, options: SeatOptions): Promise<Readable>;
  /** Gives back the member's places; what the shared read still needs of them, when that is over. */
  giveBack(places: CopyPlaces): void;
  /** Nothing more is wanted. */
  leave(): void;
}

type Member = Pace & {
  readonly name: string;
  source?: Location;
  reads?: BlobReads;
  body?: SharedBody;
};

/**
 * One read of a blob for several members. The first to get places at both ends reads; the pieces go by reference to all,
 * and the next one is read when all have room. So the slowest sets the pace, until it has held up the others for too long.
 *
 * The read belongs to nobody: it goes on until it ends, breaks, or has no member left.
 */
export function createSharedRead(
  blob: BlobIdentity,
  names: readonly string[],
  ports: PublishPorts,
  habits: Habits,
): readonly Seat[] {
  const { clock } = ports;
  const all = names.map((name): Member => ({ name, debt: 0 }));
  const members = new Set(all);
  const found = new AbortController();
  const stopping = new AbortController();
  const reads: BlobReads = { fruitless: 0 };
  const after: (() => void)[] = [];
  let reader: Member | undefined;
  let opening: Promise<Readable> | undefined;
  let stream: Readable | undefined;
  let startedAt: number | undefined;
  /** How many bytes have been handed to the members. */
  let fed = 0;
  let over = false;
  let starting: (() => void) | undefined;

  function begin(source: Location, place: Place | undefined): Promise<Readable> {
    const options = { signal: stopping.signal, reads, ...(place === undefined ? {} : { place }) };
    const end = (): void => {
      over = true;
      place?.release();
      for (const action of after.splice(0)) action();
    };
    const opened = ports.registry(source.host).openBlob(source.repository, blob, options);
    opened.then((body) => {
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
      if (members.size === 0) body.destroy();
    }, end);
    return opened;
  }

  /** Who reads the same source would only meet the same error; it does better to begin a new try. */
  function broke(error: unknown): void {
    starting?.();
    stall.end();
    for (const member of [...members]) {
      members.delete(member);
      if (hasSourceOfReader(member)) {
        countReads(member);
        member.body?.destroy(error instanceof Error ? error : new Error(String(error)));
      } else member.body?.goAlone();
    }
  }

  function hasSourceOfReader({ source }: Member): boolean {
    return source?.host === reader?.source?.host && source?.repository === reader?.source?.repository;
  }

  function countReads(member: Member): void {
    if (member.reads !== undefined) member.reads.fruitless = Math.max(member.reads.fruitless, reads.fruitless);
  }

  function leave(member: Member): void {
    if (!members.delete(member)) return;
    if (members.size === 0) {
      starting?.();
      stall.end();
      stopping.abort(new Error('no longer wanted'));
      stream?.destroy();
    } else if (startedAt === undefined) startIfReady();
    else pace();
  }

  /** The first member that sends is kept waiting for the others, but no longer than {@link PATIENCE}. */
  function startIfReady(): void {
    const missing = [...members].filter(({ body }) => body?.begun !== true);
    if (startedAt !== undefined || missing.length === members.size) return;
    if (!missing.some(({ name }) => habits.beginning.isAwaited(name))) {
      start(missing);
      return;
    }
    starting ??= later(clock, PATIENCE, () => {
      const stillMissing = [...members].filter(({ body }) => body?.begun !== true);
      for (const { name } of stillMissing) habits.beginning.inVain(name);
      start(stillMissing);
    });
  }

  function start(missing: readonly Member[]): void {
    starting?.();
    startedAt = clock.now();
    for (const member of missing) {
      members.delete(member);
      member.body?.goAlone();
    }
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

  function asks(member: Member): void {
    if (startedAt === undefined) startIfReady();
    else if (members.has(member)) pace();
  }

  /** Late, but not by much: it is worth waiting for next time. */
  function noteArrival({ name }: Member): void {
    if (startedAt !== undefined && clock.now() - startedAt < PATIENCE) habits.beginning.inTime(name);
  }

  function bodyOf(member: Member, source: Location, options: SeatOptions): SharedBody {
    return new SharedBody({
      asks: () => asks(member),
      closed: () => leave(member),
      rest: (from) => {
        noteArrival(member);
        return readAlone(blob, source, from, options, ports);
      },
    });
  }

  function aloneOf(member: Member, source: Location, options: SeatOptions): Readable {
    leave(member);
    const body = bodyOf(member, source, options);
    body.goAlone();
    return body;
  }

  async function open(member: Member, source: Location, options: SeatOptions): Promise<Readable> {
    member.source = source;
    member.reads = options.reads;
    if (member === reader) opening = begin(source, options.place);
    if (opening === undefined || !members.has(member)) return aloneOf(member, source, options);
    try {
      await orAborted(opening, options.signal);
    } catch (error) {
      leave(member);
      if (!options.signal.aborted && !hasSourceOfReader(member)) return aloneOf(member, source, options);
      countReads(member);
      throw error;
    }
    if (!members.has(member)) return aloneOf(member, source, options);
    const body = bodyOf(member, source, options);
    member.body = body;
    return body;
  }

  return all.map((member) => ({
    readerFound: found.signal,
    claim: () => {
      if (reader !== undefined || !members.has(member)) return false;
      reader = member;
      found.abort(new Error('another one reads'));
      return true;
    },
    isLate: () => {
      const late = over || !members.has(member);
      if (late) noteArrival(member);
      return late;
    },
    open: (source, options) => open(member, source, options),
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
