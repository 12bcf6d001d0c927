import type { Digest } from '../model/digest.ts';
import { parseManifest } from '../model/manifest.ts';
import { formatReference } from '../model/reference.ts';
import type { RawManifest } from '../registry/client.ts';
import { expandSource } from './flatten.ts';
import type { PublishPorts } from './ports.ts';
import type { PublishRequest } from './request.ts';
import type { ResolvedSource, TagState } from './resolved.ts';
import { unreadable } from './tag-guard.ts';

/**
 * What TARGET holds, to be amended: the very bytes that its tag was seen with, and their children. Reading these is the
 * proof that they are there. Undefined when the tag is not there, which is said.
 *
 * @throws PublishError why the tag could not be read: what it holds cannot be kept then. `MANIFEST_INVALID`
 */
export async function readPresent(
  tag: TagState,
  held: RawManifest | undefined,
  { attestations }: PublishRequest,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ResolvedSource | undefined> {
  if (tag.kind === 'unknown') throw unreadable(tag.error);
  const name = formatReference(tag.reference);
  if (tag.kind === 'absent' || held === undefined) {
    ports.emit({ kind: 'warning', text: `${name} is not there: there was nothing to amend, a new list is published` });
    return undefined;
  }
  bytes.set(held.digest, held.bytes);
  const root = parseManifest(held.bytes, held.digest, held.contentType, name);
  const taking = { platforms: [], ...(attestations === undefined ? {} : { attestations }) };
  return expandSource({ reference: tag.reference }, root, taking, bytes, ports, signal, true);
}
