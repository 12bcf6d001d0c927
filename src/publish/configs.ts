import type { Digest } from '../model/digest.ts';
import { parseImageConfig } from '../model/manifest.ts';
import type { PartialPlatform } from '../model/platform.ts';
import { needsConfig } from './compose.ts';
import { allOrNone } from './once.ts';
import type { PublishPorts } from './ports.ts';
import type { ResolvedChild } from './resolved.ts';
import { stoppable } from './stop.ts';

/**
 * Reads the configs that alone can tell a platform, each once, side by side. The bytes are put into `kept`: a config
 * whose mount is refused is sent from there.
 *
 * @throws PublishError `BLOB_NOT_FOUND`, `MANIFEST_INVALID`, `DIGEST_MISMATCH` and what the registry throws
 */
export async function readConfigs(
  children: readonly ResolvedChild[],
  kept: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ReadonlyMap<Digest, PartialPlatform>> {
  const wanted = new Map(children.filter(needsConfig).map((child) => [child.manifest.config.digest, child]));
  const reading = stoppable(signal);
  const read = async ([digest, child]: [Digest, ResolvedChild]): Promise<[Digest, PartialPlatform]> => {
    const { host, repository } = child.from;
    const bytes = await ports.registry(host).readBlob(repository, child.manifest.config, { signal: reading.signal });
    kept.set(digest, bytes);
    return [digest, parseImageConfig(bytes, child.name)];
  };
  return new Map(await allOrNone([...wanted].map(read), reading.stop));
}
