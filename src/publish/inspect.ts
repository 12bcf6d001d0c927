import type { Descriptor, Platform } from '../model/descriptor.ts';
import {
  type ImageManifest,
  isForeignLayer,
  type Manifest,
  parseImageConfig,
  parseManifest,
} from '../model/manifest.ts';
import { completePlatform } from '../model/platform.ts';
import { formatReference, type Reference, requestTarget, withDigest } from '../model/reference.ts';
import type { InspectedChild, Inspection } from './findings.ts';
import { attestationSubject, kindOf } from './flatten.ts';
import { allOrNone } from './once.ts';
import type { PublishPorts } from './ports.ts';
import { stoppable } from './stop.ts';

/**
 * Reads one reference; with `tree` also everything an index lists, one level down, and the platforms that only
 * configs tell.
 *
 * @throws PublishError `MANIFEST_NOT_FOUND`, `MANIFEST_INVALID` and what the registry throws
 */
export async function inspect(
  reference: Reference,
  options: { readonly tree: boolean },
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Inspection> {
  const { manifest, bytes } = await read(reference, ports, signal);
  const found: Inspection = {
    reference: formatReference(reference),
    digest: manifest.digest,
    mediaType: manifest.mediaType,
    bytes,
    manifest,
  };
  if (!options.tree) return found;
  const reading = stoppable(signal);
  const entries: readonly (Descriptor | undefined)[] = manifest.kind === 'index' ? manifest.manifests : [undefined];
  const children = await allOrNone(
    entries.map(async (entry) => {
      if (entry === undefined) return describe(reference, manifest, undefined, ports, reading.signal);
      const child = withDigest(reference, entry.digest);
      return describe(child, (await read(child, ports, reading.signal)).manifest, entry, ports, reading.signal);
    }),
    reading.stop,
  );
  return { ...found, children };
}

async function read(
  reference: Reference,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<{ readonly manifest: Manifest; readonly bytes: Uint8Array }> {
  const registry = ports.registry(reference.host);
  const answer = await registry.getManifest(reference.repository, requestTarget(reference), { signal });
  if (answer.kind !== 'found') throw answer.error.with({ side: 'source' });
  const { bytes, digest, contentType } = answer.manifest;
  return { manifest: parseManifest(bytes, digest, contentType, formatReference(reference)), bytes };
}

async function describe(
  reference: Reference,
  manifest: Manifest,
  entry: Descriptor | undefined,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<InspectedChild> {
  if (manifest.kind === 'index') {
    return { digest: manifest.digest, mediaType: manifest.mediaType, kind: 'index', layers: [] };
  }
  if (entry?.platform !== undefined || kindOf(manifest, entry) !== 'image') return inspectedImage(manifest, entry);
  const registry = ports.registry(reference.host);
  const config = await registry.readBlob(reference.repository, manifest.config, { signal });
  const platform = completePlatform(parseImageConfig(config, formatReference(reference)), undefined);
  return inspectedImage(manifest, entry, platform);
}

/** What a manifest and its entry in an index tell of an image. Pure. */
export function inspectedImage(
  manifest: ImageManifest,
  entry: Descriptor | undefined,
  platform: Platform | undefined = entry?.platform,
): InspectedChild {
  const subject = entry === undefined ? undefined : attestationSubject(entry);
  return {
    digest: manifest.digest,
    mediaType: manifest.mediaType,
    kind: kindOf(manifest, entry),
    ...(platform === undefined ? {} : { platform }),
    ...(subject === undefined ? {} : { subject }),
    config: { digest: manifest.config.digest, size: manifest.config.size },
    layers: manifest.layers.map((layer) => ({
      digest: layer.digest,
      size: layer.size,
      foreign: isForeignLayer(layer),
    })),
  };
}
