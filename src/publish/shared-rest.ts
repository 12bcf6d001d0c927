import type { Readable } from 'node:stream';
import type { BlobIdentity, BlobReads } from '../registry/client.ts';
import type { PublishPorts } from './ports.ts';
import type { Location } from './resolved.ts';

/**
 * The rest of the blob for a member that goes on alone. It is in the middle of a request to its target and cannot give
 * back that place, so it takes the one at the source as whoever holds a place does: such places never run out for good.
 *
 * @see Limiter.take
 */
export async function readAlone(
  blob: BlobIdentity,
  { host, repository }: Location,
  from: number,
  { signal, reads }: { readonly signal: AbortSignal; readonly reads: BlobReads },
  ports: PublishPorts,
): Promise<Readable> {
  const place = await ports.limiter.take(host, signal, { holding: true });
  try {
    const options = { signal, reads, place, ...(from > 0 ? { from } : {}) };
    const body = await ports.registry(host).openBlob(repository, blob, options);
    body.once('close', () => place.release());
    return body;
  } catch (error) {
    place.release();
    throw error;
  }
}
