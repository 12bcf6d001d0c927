import { MEDIA_TYPES, type Platform } from '../../src/model/descriptor.ts';
import type { Digest } from '../../src/model/digest.ts';
import {
  type BuiltManifest,
  type ImageOptions,
  makeAttestation,
  makeAttestedIndex,
  makeImage,
  makeIndex,
  putBuilt,
  type RunningRegistry,
} from '../../src/registry-server/index.ts';

export {
  type BuiltManifest,
  type ImageOptions,
  MEDIA_TYPES,
  makeAttestation,
  makeAttestedIndex,
  makeImage,
  makeIndex,
  putBuilt,
};

/** Makes an image and puts it in one step; the seed is the repository and tag unless given. */
export function seedImage(
  registry: RunningRegistry,
  repository: string,
  tag: string,
  options: ImageOptions & { readonly seed?: string } = {},
): BuiltManifest {
  const image = makeImage(options.seed ?? `${repository}:${tag}`, options);
  putBuilt(registry, repository, image, tag);
  return image;
}

/** The tag that buildx leaves behind for one platform: an index of the image and its attestation. */
export function seedAttested(
  registry: RunningRegistry,
  repository: string,
  tag: string,
  platform: Platform,
): BuiltManifest {
  const index = makeAttestedIndex(makeImage(`${repository}:${tag}`, { platform }), platform);
  putBuilt(registry, repository, index, tag);
  return index;
}

/** Digests of every blob that the manifest reaches, each once, foreign layers aside. */
export function blobDigests(manifest: BuiltManifest): readonly Digest[] {
  const all = [...manifest.blobs.map((blob) => blob.descriptor.digest), ...manifest.children.flatMap(blobDigests)];
  return [...new Set(all)];
}
