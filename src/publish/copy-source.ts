import type { Readable } from 'node:stream';
import type { BlobReads, CopyPlaces } from '../registry/client.ts';
import type { PlannedBlob } from './plan.ts';
import type { Location } from './resolved.ts';
import type { Seat } from './shared-read.ts';
import type { TransferRun } from './transfer.ts';

/**
 * Where the bytes of one try come from. `seat`: together with others; only the reader of these needs a place at the
 * source.
 */
export type CopySource = { readonly from: Location; readonly seat: Seat | undefined };

/** A seat among those who need the same blob now; undefined when it is read for this target alone, or not at all. */
export function joinReaders(
  blob: PlannedBlob,
  source: Location | undefined,
  { reads, member, inMemory, signal }: TransferRun,
): Promise<Seat | undefined> | undefined {
  if (reads === undefined || member === undefined) return undefined;
  if (source !== undefined && !inMemory.has(blob.digest)) return reads.join(blob, member, signal);
  reads.leave(blob.digest, member);
  return undefined;
}

/**
 * The places of a try. Who shares a read asks for both ends as everyone does; once one of the others has got them, the
 * place at the target is enough. `missed`: it has missed the read and has to join anew.
 */
export async function takePlaces(
  blob: PlannedBlob,
  source: CopySource | undefined,
  { ports, target, signal }: TransferRun,
): Promise<CopyPlaces | 'missed'> {
  const { limiter } = ports;
  const copy = { target: target.host, size: blob.size };
  if (source === undefined) return limiter.takeCopy({ ...copy, signal });
  const { from, seat } = source;
  const both = { ...copy, source: from.host };
  if (seat === undefined) return limiter.takeCopy({ ...both, signal });
  if (!seat.readerFound.aborted) {
    try {
      const places = await limiter.takeCopy({ ...both, signal: AbortSignal.any([signal, seat.readerFound]) });
      if (seat.claim()) return places;
      places.release();
    } catch (error) {
      if (signal.aborted || !seat.readerFound.aborted) throw error;
    }
  }
  try {
    const places = await limiter.takeCopy({ ...copy, beside: true, signal: AbortSignal.any([signal, seat.missed]) });
    if (!seat.missed.aborted) return places;
    places.release();
  } catch (error) {
    if (signal.aborted || !seat.missed.aborted) throw error;
  }
  return 'missed';
}

/** What opening a source came to. */
export type Reading =
  | { readonly kind: 'open'; readonly body: Readable }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'missed' };

/** Never rejects: the target may turn out to hold the blob, and then it does not matter what the source says. */
export async function openSource(
  blob: PlannedBlob,
  { from: source, seat }: CopySource,
  from: number,
  places: CopyPlaces,
  reads: BlobReads,
  signal: AbortSignal,
  { ports }: TransferRun,
): Promise<Reading> {
  const options = { signal, reads, ...(places.source === undefined ? {} : { place: places.source }) };
  try {
    if (seat !== undefined) {
      const body = await seat.open(source, options);
      return body === undefined ? { kind: 'missed' } : { kind: 'open', body };
    }
    const registry = ports.registry(source.host);
    const body = await registry.openBlob(source.repository, blob, from > 0 ? { ...options, from } : options);
    // A small blob has been read long before its PUT is answered: others need not wait for that.
    body.once('close', () => places.source?.release());
    return { kind: 'open', body };
  } catch (error) {
    return { kind: 'failed', error };
  }
}
