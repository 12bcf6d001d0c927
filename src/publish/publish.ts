import type { PublishPorts } from './ports.ts';
import { publishLists } from './publish-lists.ts';
import type { PublishReport } from './report.ts';
import type { PublishRequest } from './request.ts';
import type { ManifestBytes } from './resolved.ts';

/**
 * Publishes one list: reads sources and tags, plans, places blobs and children, then the index, then the tags. A tag
 * moves only to an index whose every child is in the target, and never to anything but the complete new index.
 *
 * A run with nothing to do writes nothing and reports `unchanged`. `known` holds the bytes of sources that the request
 * says are known.
 *
 * @throws PublishError for everything the user can act on, of several targets the first that failed; nothing is left
 *   half open behind it
 */
export function publish(
  request: PublishRequest,
  ports: PublishPorts,
  signal: AbortSignal,
  known: ManifestBytes = new Map(),
): Promise<PublishReport> {
  return publishLists([request], ports, signal, { known });
}
