import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { completePlatform, type PartialPlatform } from '../model/platform.ts';
import { readConfigs } from './configs.ts';
import type { PublishPorts } from './ports.ts';
import type { KnownSource, SourceRequest } from './request.ts';
import { readEvery } from './resolve.ts';
import { createRunMemory } from './run-memory.ts';
import { stoppable } from './stop.ts';

/** Sources as a draft keeps them, in the order of the request, and the bytes of every manifest among them. */
export type ReadSources = {
  readonly sources: readonly (KnownSource & { readonly request: SourceRequest })[];
  readonly bytes: ReadonlyMap<Digest, Uint8Array>;
  /** What configs tell of images whose os or architecture they leave out, by the image's digest. */
  readonly half: ReadonlyMap<Digest, PartialPlatform>;
};

/**
 * Reads sources without a target: images, or indexes with all their images. Platforms come from the entries or the
 * configs; an image whose config tells none is taken as it is, since `annotate` can still say it.
 *
 * @throws as {@link resolve}: nothing is returned unless every source was read
 */
export async function readSources(
  requests: readonly SourceRequest[],
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ReadSources> {
  const reading = stoppable(signal);
  const bytes = new Map<Digest, Uint8Array>();
  try {
    for (const host of new Set(requests.map(({ reference }) => reference.host))) {
      const repositories = requests.filter(({ reference }) => reference.host === host);
      const names = new Set(repositories.map(({ reference }) => reference.repository));
      ports.registry(host).announce([...names].map((repository) => ({ repository, access: 'pull' })));
    }
    const options = { platforms: [], waitForSource: 0 };
    const read = await readEvery(requests, options, bytes, ports, reading.signal);
    const children = read.flatMap((source) => source.children);
    const platforms = await readConfigs(children, createRunMemory(), ports, reading.signal);
    const sources = read.map(({ request, root, children: own }) => ({
      request,
      root: { mediaType: root.mediaType, digest: root.digest, size: root.size },
      children: own.map(({ descriptor, manifest }): Descriptor => {
        const platform =
          descriptor.platform ?? completePlatform(platforms.get(manifest.config.digest) ?? {}, undefined);
        return platform === undefined ? descriptor : { ...descriptor, platform };
      }),
    }));
    const half = children.flatMap(({ descriptor, manifest }): readonly [Digest, PartialPlatform][] => {
      const told = descriptor.platform === undefined ? platforms.get(manifest.config.digest) : undefined;
      const some = told !== undefined && Object.keys(told).length > 0;
      return some && completePlatform(told, undefined) === undefined ? [[manifest.digest, told]] : [];
    });
    return { sources, bytes, half: new Map(half) };
  } finally {
    reading.stop();
  }
}
