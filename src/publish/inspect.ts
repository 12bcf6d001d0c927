import { type Descriptor, ENTRIES_MAX, type Platform } from '../model/descriptor.ts';
import {
  type ImageIndex,
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
 * Reads one reference; with `tree` also everything an index lists, and the indexes below it, and the platforms that
 * only configs tell. What an index lists and the registry does not have is told as `missing`.
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
  const walk: Walk = { ports, signal: reading.signal, stop: reading.stop, left: ENTRIES_MAX };
  const children =
    manifest.kind === 'index'
      ? await entriesOf(reference, manifest, walk, 1)
      : [await describe(reference, manifest, undefined, walk)];
  return { ...found, children };
}

/** As deep as `publish` flattens. */
const LEVELS = 3;

/** One reading of a tree; `left`: entries that may still be read. */
type Walk = { readonly ports: PublishPorts; readonly signal: AbortSignal; readonly stop: () => void; left: number };

/** What an index lists, in its order. `level`: its own, the one that was asked for being 1. */
async function entriesOf(
  reference: Reference,
  index: ImageIndex,
  walk: Walk,
  level: number,
): Promise<readonly InspectedChild[]> {
  walk.left -= index.manifests.length;
  return allOrNone(
    index.manifests.map(async (entry): Promise<InspectedChild> => {
      const child = withDigest(reference, entry.digest);
      const answer = await ask(child, walk.ports, walk.signal);
      // The others are shown all the same: a broken index is what people look at a tree for.
      if (answer.kind === 'absent') return missingChild(entry);
      const { manifest } = opened(child, answer);
      if (manifest.kind !== 'index') return describe(child, manifest, entry, walk);
      const { digest, mediaType } = manifest;
      const nested: InspectedChild = { digest, mediaType, kind: 'index', layers: [] };
      if (level >= LEVELS || manifest.manifests.length > walk.left) return nested;
      return { ...nested, children: await entriesOf(reference, manifest, walk, level + 1) };
    }),
    walk.stop,
  );
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
  manifest: ImageManifest,
  entry: Descriptor | undefined,
  { ports, signal }: Walk,
): Promise<InspectedChild> {
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
    ...(manifest.artifactType === undefined ? {} : { artifactType: manifest.artifactType }),
    ...(subject === undefined ? {} : { subject }),
    config: { digest: manifest.config.digest, size: manifest.config.size },
    layers: manifest.layers.map((layer) => ({
      digest: layer.digest,
      size: layer.size,
      foreign: isForeignLayer(layer),
    })),
  };
}
