import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import type { RegistryClient } from '../registry/client.ts';

/**
 * Whether the target lacks a blob that it said it had mounted. Only the index waits for this, so that everything else goes
 * first; and only a 404 is news: a look that cannot be had must not end a run whose mounts were confirmed.
 */
export async function isMissing(
  registry: RegistryClient,
  repository: string,
  digest: Digest,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return (await registry.hasBlob(repository, digest, { signal, last: true })).kind === 'absent';
  } catch (error) {
    if (error instanceof PublishError && !signal.aborted) return false;
    throw error;
  }
}
