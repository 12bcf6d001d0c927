import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { parseImageConfig } from '../model/manifest.ts';
import type { PartialPlatform } from '../model/platform.ts';
import { needsConfig } from './compose.ts';
import { allOrNone } from './once.ts';
import { atOrigin } from './origin.ts';
import type { PublishPorts } from './ports.ts';
import type { ResolvedChild } from './resolved.ts';
import { type RunMemory, repositoryName } from './run-memory.ts';
import { stoppable } from './stop.ts';

/**
 * Reads the configs that alone can tell a platform, each once in a run, side by side. The bytes are kept: a config whose
 * mount is refused is sent from memory.
 *
 * @throws PublishError `BLOB_NOT_FOUND`, `MANIFEST_INVALID`, `DIGEST_MISMATCH` and what the registry throws
 */
export async function readConfigs(
  children: readonly ResolvedChild[],
  memory: RunMemory,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ReadonlyMap<Digest, PartialPlatform>> {
  const wanted = new Map(children.filter(needsConfig).map((child) => [child.manifest.config.digest, child]));
  const reading = stoppable(signal);
  const read = async ([digest, child]: [Digest, ResolvedChild]): Promise<[Digest, PartialPlatform]> => {
    const { host, repository } = child.from;
    const key = `${repositoryName(child.from)} ${digest}`;
    const flight = memory.platforms.join(key, { signal: reading.signal }, async ({ signal: shared }) => {
      const bytes = await ports.registry(host).readBlob(repository, child.manifest.config, { signal: shared });
      memory.keepConfig(digest, bytes);
      return parseImageConfig(bytes, child.name);
    });
    const platform = await flight.catch((error: unknown) => {
      // What stopped the read from outside is told of by whoever was there.
      throw error instanceof PublishError && error !== reading.signal.reason ? atOrigin(error, child.origin) : error;
    });
    return [digest, platform];
  };
  return new Map(await allOrNone([...wanted].map(read), reading.stop));
}
