import type { Descriptor, Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { parseManifest } from '../model/manifest.ts';
import { matchesPlatform } from '../model/platform.ts';
import { formatReference, parseReference } from '../model/reference.ts';
import { attestationSubject, isAttestation, notListed, picksChild } from '../publish/flatten.ts';
import type { ReadSources } from '../publish/read-sources.ts';
import type { SourceRequest } from '../publish/request.ts';
import type { ManifestBytes } from '../publish/resolved.ts';
import { imagesOf } from '../store/children.ts';
import type { DraftChild, DraftEntry } from '../store/draft.ts';

/** One source as it was read. */
export type ReadSource = ReadSources['sources'][number];

/**
 * A source that was read, as an entry of a draft. `PLATFORM=` of an index with several images picks; of anything else
 * it becomes a change, as `annotate` makes it. So does what a config tells that leaves the rest to be annotated.
 *
 * @throws PublishError `PLATFORM_NOT_FOUND` when the index lists no image of that platform
 */
export function draftEntry(
  { request, root, children }: ReadSource,
  { bytes, half }: Pick<ReadSources, 'bytes' | 'half'>,
): DraftEntry {
  const reference = formatReference(request.reference);
  const asChild =
    (explicit: Platform | undefined) =>
    (descriptor: Descriptor): DraftChild => {
      if (isAttestation(descriptor)) return { descriptor };
      const platform = { ...half.get(descriptor.digest), ...explicit };
      return Object.keys(platform).length === 0 ? { descriptor } : { descriptor, changes: { platform } };
    };
  const { platform } = request;
  if (platform === undefined) return { reference, root, children: children.map(asChild(undefined)) };

  const manifest = parseManifest(bytesOf(root.digest, bytes), root.digest, root.mediaType, reference);
  if (!picksChild(request, manifest)) return { reference, root, children: children.map(asChild(platform)) };
  const picked = pick(children, platform);
  if (picked.length === 0) throw notListed(platform, { request, root: manifest, flat: true, children: [] });
  return { reference, root, children: picked.map(asChild(undefined)) };
}

/**
 * One entry for each reference, as a draft keeps them: picks out of one index stand side by side, and of what is said
 * twice of an image the last word counts, which is told.
 */
export function mergedEntries(entries: readonly DraftEntry[]): {
  readonly entries: readonly DraftEntry[];
  readonly warnings: readonly string[];
} {
  const merged = new Map<string, DraftEntry>();
  const warnings: string[] = [];
  for (const entry of entries) {
    const earlier = merged.get(entry.reference);
    // A tag that moved between two looks: the later one is what it names.
    const joins = earlier !== undefined && earlier.root.digest === entry.root.digest;
    const children = new Map<Digest, DraftChild>();
    for (const child of [...(joins ? earlier.children : []), ...entry.children]) {
      const other = children.get(child.descriptor.digest);
      if (other !== undefined && JSON.stringify(other.changes) !== JSON.stringify(child.changes)) {
        warnings.push(`${entry.reference} is given twice, with two platforms: a draft keeps the last one`);
      }
      children.set(child.descriptor.digest, child);
    }
    merged.set(entry.reference, { ...entry, children: [...children.values()] });
  }
  return { entries: [...merged.values()], warnings };
}

/** How to read an entry again: what was picked out of an index then is picked now. */
export function requestsOf(entry: DraftEntry, bytes: ManifestBytes): readonly SourceRequest[] {
  const reference = parseReference(entry.reference);
  const { digest, mediaType } = entry.root;
  const root = parseManifest(bytesOf(digest, bytes), digest, mediaType, entry.reference);
  const platforms = imagesOf(entry).map(({ descriptor }) => descriptor.platform);
  const all = root.kind === 'index' ? root.manifests.filter((one) => !isAttestation(one)).length : 1;
  if (platforms.length >= all || platforms.includes(undefined)) return [{ reference }];
  return platforms.flatMap((platform) => (platform === undefined ? [] : [{ reference, platform }]));
}

function pick(children: readonly Descriptor[], platform: Platform): readonly Descriptor[] {
  const kept = new Set<Digest>();
  for (const child of children) {
    if (isAttestation(child) || child.platform === undefined) continue;
    if (matchesPlatform(platform, child.platform)) kept.add(child.digest);
  }
  return children.filter((child) => {
    const decides = isAttestation(child) ? attestationSubject(child) : child.digest;
    return decides !== undefined && kept.has(decides);
  });
}

function bytesOf(digest: Digest, bytes: ManifestBytes): Uint8Array {
  const own = bytes.get(digest);
  if (own === undefined) throw new Error(`the bytes of ${digest} were not kept`);
  return own;
}
