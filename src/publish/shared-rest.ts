import type { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import type { BlobIdentity, BlobReads } from '../registry/client.ts';
import type { PublishPorts } from './ports.ts';
import type { Location } from './resolved.ts';
import { later } from './stop.ts';

/** How long a member that goes on alone waits for a place at the source while it holds one at its target, in ms. */
const PLACE_PATIENCE = 30_000;

/** The rest of the blob for a member that goes on alone. */
export async function readAlone(
  blob: BlobIdentity,
  { host, repository }: Location,
  from: number,
  { signal, reads }: { readonly signal: AbortSignal; readonly reads: BlobReads },
  ports: PublishPorts,
): Promise<Readable> {
  // It holds a place at its target: were it to wait for ever, two that do so the other way round would never end.
  const patience = new AbortController();
  const stop = later(ports.clock, PLACE_PATIENCE, () => patience.abort(noPlace(host)));
  const place = await ports.limiter.take(host, AbortSignal.any([signal, patience.signal])).finally(stop);
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

function noPlace(host: string): PublishError {
  return new PublishError(
    'NETWORK_FAILED',
    `no request to ${host} was to be had for ${PLACE_PATIENCE / 1000} s`,
    'Run the same command again; what has been copied stays.',
    { side: 'source', registry: host },
  );
}
