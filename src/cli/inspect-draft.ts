import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { buildIndex, indexTypeFor } from '../model/image-index.ts';
import { parseManifest } from '../model/manifest.ts';
import { formatReference, parseReference } from '../model/reference.ts';
import type { Inspection } from '../publish/findings.ts';
import { inspectedImage } from '../publish/inspect.ts';
import type { ManifestBytes } from '../publish/resolved.ts';
import { descriptorOf, platformFields } from '../store/children.ts';
import { byDockerName } from '../store/docker-name.ts';
import type { DraftEntry, StoredDraft } from '../store/draft.ts';
import { pushRequest } from '../store/push-request.ts';
import type { DockerImage } from '../ui/docker-text.ts';

/** The images of a draft in the order in which push lists them, which is docker's. */
export function draftImages({ draft, manifests }: StoredDraft): readonly DockerImage[] {
  return [...draft.entries]
    .sort((one, other) => byDockerName(one.reference, other.reference))
    .flatMap((entry) => entryImages(entry, manifests));
}

/** The images of one source, named as docker names the images of a list. */
export function entryImages(entry: DraftEntry, manifests: ManifestBytes): readonly DockerImage[] {
  return entry.children.map((child) => {
    const { descriptor } = child;
    const { digest } = descriptor;
    const reference =
      digest === entry.root.digest ? entry.reference : formatReference({ ...parseReference(entry.reference), digest });
    return { reference, descriptor, platform: platformFields(child), bytes: bytesOf(digest, manifests) };
  });
}

/**
 * A draft as the index that push would put without further flags.
 *
 * @throws as {@link pushRequest}, for what push refuses
 */
export function draftInspection({ draft, manifests }: StoredDraft): Inspection {
  const request = pushRequest(draft, {});
  const entries = request.sources.flatMap(({ known }) => known?.children ?? []);
  const mediaType = indexTypeFor(entries, request.type);
  const { bytes, digest } = buildIndex({ mediaType, manifests: entries, layout: request.layout });
  return inspection(draft.reference, { digest, mediaType, size: bytes.byteLength }, bytes, entries, manifests);
}

/** One source of a draft, as it was read. */
export function entryInspection(entry: DraftEntry, manifests: ManifestBytes): Inspection {
  const { root, reference, children } = entry;
  return inspection(reference, root, bytesOf(root.digest, manifests), children.map(descriptorOf), manifests);
}

function inspection(
  reference: string,
  { digest, mediaType }: Descriptor,
  bytes: Uint8Array,
  entries: readonly Descriptor[],
  manifests: ManifestBytes,
): Inspection {
  const manifest = parseManifest(bytes, digest, mediaType, reference);
  const children = entries.map((entry) => {
    const child = parseManifest(bytesOf(entry.digest, manifests), entry.digest, entry.mediaType, reference);
    if (child.kind === 'index') throw new Error(`${entry.digest} is an index, a draft keeps images`);
    return inspectedImage(child, entry);
  });
  return { reference, digest, mediaType, bytes, manifest, children };
}

function bytesOf(digest: Digest, manifests: ManifestBytes): Uint8Array {
  const bytes = manifests.get(digest);
  if (bytes === undefined) throw new Error(`the bytes of ${digest} were not kept`);
  return bytes;
}
