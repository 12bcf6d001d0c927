import { isIndexType } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { type Manifest, parseManifest } from '../model/manifest.ts';
import { formatReference } from '../model/reference.ts';
import { isAttestation, resolvedChild } from './flatten.ts';
import type { KnownSource, SourceRequest } from './request.ts';
import type { ManifestBytes, ResolvedSource } from './resolved.ts';

/**
 * A source as a draft remembers it, without a request.
 *
 * @throws PublishError `MANIFEST_INVALID` when the remembered bytes are no manifest
 */
export function knownSource(
  source: SourceRequest,
  known: KnownSource,
  bytes: ManifestBytes,
  dropsAttestations = false,
): ResolvedSource {
  const name = formatReference(source.reference);
  const read = (digest: Digest, mediaType: string): Manifest => {
    const own = bytes.get(digest);
    if (own === undefined) throw new Error(`the bytes of ${digest} did not come with the request`);
    return parseManifest(own, digest, mediaType, name);
  };
  const root = read(known.root.digest, known.root.mediaType);
  const entries = known.children.filter((entry) => !dropsAttestations || !isAttestation(entry));
  const children = entries.map((entry) => {
    const manifest = read(entry.digest, entry.mediaType);
    if (manifest.kind === 'index') throw new Error(`${entry.digest} is an index, a draft keeps images`);
    return resolvedChild(source, manifest, entry, entry.digest === root.digest);
  });
  const flat = root.kind === 'index' && root.manifests.every((entry) => !isIndexType(entry.mediaType));
  return { request: source, root, flat, children };
}

/**
 * A source that was read now, for it is in the target repository and reading is the proof that it is there, with the
 * entries as a draft has them.
 */
export function relabelled(source: ResolvedSource, known: KnownSource): ResolvedSource {
  const entries = new Map(known.children.map((entry) => [entry.digest, entry]));
  return {
    ...source,
    children: source.children.flatMap((child) => {
      const descriptor = entries.get(child.manifest.digest);
      return descriptor === undefined ? [] : [{ ...child, descriptor }];
    }),
  };
}
