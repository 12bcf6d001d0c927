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
import type { ManifestAnswer } from '../registry/client.ts';
import type { InspectedChild, Inspection } from './findings.ts';
import { attestationSubject, kindOf } from './flatten.ts';
import { allOrNone } from './once.ts';
import type { PublishPorts } from './ports.ts';
import { stoppable } from './stop.ts';

/**
 * Reads one reference; with `tree` also everything an index lists, one level down, and the platforms that only
 * configs tell. What an index lists and the registry does not have is told as `missing`.
 *
 * @throws PublishError `MANIFEST_NOT_FOUND`, `MANIFEST_INVALID` and what the registry throws
 */
export async function inspect(
  reference: Reference,
  options: { readonly tree: boolean },
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Inspection> {
  const { manifest, bytes } = opened(reference, await ask(reference, ports, signal));
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
      const answer = await ask(child, ports, reading.signal);
      // The others are shown all the same: a broken index is what people look at a tree for.
      if (answer.kind === 'absent') return missingChild(entry);
      return describe(child, opened(child, answer).manifest, entry, ports, reading.signal);
    }),
    reading.stop,
  );
  return { ...found, children };
}

function ask(reference: Reference, ports: PublishPorts, signal: AbortSignal): Promise<ManifestAnswer> {
  return ports.registry(reference.host).getManifest(reference.repository, requestTarget(reference), { signal });
}

function opened(
  reference: Reference,
  answer: ManifestAnswer,
): { readonly manifest: Manifest; readonly bytes: Uint8Array } {
  if (answer.kind !== 'found') throw answer.error.with({ side: 'source' });
  const { bytes, digest, contentType } = answer.manifest;
  return { manifest: parseManifest(bytes, digest, contentType, formatReference(reference)), bytes };
}

function missingChild(entry: Descriptor): InspectedChild {
  const { digest, mediaType, platform } = entry;
  const subject = attestationSubject(entry);
  return {
    digest,
    mediaType,
    kind: 'missing',
    ...(platform === undefined ? {} : { platform }),
    ...(subject === undefined ? {} : { subject }),
    layers: [],
  };
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
