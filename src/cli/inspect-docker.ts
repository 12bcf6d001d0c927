import type { Descriptor } from '../model/descriptor.ts';
import { type ImageManifest, isImageConfigType, parseImageConfig } from '../model/manifest.ts';
import type { PartialPlatform } from '../model/platform.ts';
import { formatReference, type Reference } from '../model/reference.ts';
import type { Inspection } from '../publish/findings.ts';
import { inspect } from '../publish/inspect.ts';
import { allOrNone } from '../publish/once.ts';
import type { PublishPorts } from '../publish/ports.ts';
import { stoppable } from '../publish/stop.ts';
import { type DockerImage, platformsIn } from '../ui/docker-text.ts';

/**
 * Reads what `docker manifest inspect --verbose` shows of a reference: an image with the platform of its config, or the
 * images of a list with the platforms that the list has.
 *
 * @throws as {@link inspect}
 */
export async function readDockerImages(
  reference: Reference,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<DockerImage | readonly DockerImage[]> {
  const found = await inspect(reference, { tree: false }, ports, signal);
  const { manifest } = found;
  if (manifest.kind === 'image') return image(found, await configPlatform(reference, manifest, ports, signal));
  const platforms = platformsIn(found.bytes);
  const reading = stoppable(signal);
  try {
    const entries = manifest.manifests.map(({ digest }) =>
      inspect({ ...reference, digest }, { tree: false }, ports, reading.signal),
    );
    const children = await allOrNone(entries, reading.stop);
    return children.map((child, at) => image(child, platforms[at] ?? {}));
  } finally {
    reading.stop();
  }
}

function image({ reference, mediaType, digest, bytes }: Inspection, platform: PartialPlatform): DockerImage {
  const descriptor: Descriptor = { mediaType, digest, size: bytes.byteLength };
  return { reference, descriptor, platform, bytes };
}

/** A config of another type tells no platform; docker shows two empty names then. */
async function configPlatform(
  { host, repository, ...names }: Reference,
  { config }: ImageManifest,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<PartialPlatform> {
  if (!isImageConfigType(config.mediaType)) return {};
  const bytes = await ports.registry(host).readBlob(repository, config, { signal });
  return parseImageConfig(bytes, formatReference({ host, repository, ...names }));
}
