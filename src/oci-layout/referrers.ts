import { PublishError } from '../errors.ts';
import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { type ImageIndex, type Manifest, parseManifest } from '../model/manifest.ts';
import { describeReferrer, fallbackTag } from '../model/referrers.ts';
import type { ReferrersAnswer, VerbOptions } from '../registry/client.ts';
import { digestsOf, findEntry, type LayoutIndex } from './entries.ts';
import type { Root } from './files.ts';
import { indexOf } from './folder.ts';
import type { Layout } from './layout.ts';
import { manifestBytes, nameOf } from './read.ts';

/**
 * Referrers of a manifest: those that the fallback tag lists, as regctl writes them, and manifests of index.json that
 * name it as their subject, as oras writes them. A layout has nothing else that could be asked.
 *
 * @see RegistryClient.listReferrers
 */
export async function listReferrers(layout: Layout, subject: Digest, options: VerbOptions): Promise<ReferrersAnswer> {
  const tag = fallbackTag(subject);
  return layout.onPlace(options, async () => {
    const found = await layout.find();
    const index = found.kind === 'layout' ? await indexOf(found.root) : undefined;
    if (found.kind !== 'layout' || index === undefined) return { kind: 'listed', via: 'tag', tag, referrers: [] };
    const list = await fallbackList(layout, found.root, index, tag);
    const referrers = new Map<Digest, Descriptor>();
    for (const entry of list?.manifests ?? []) referrers.set(entry.digest, entry);
    for (const digest of digestsOf(index)) {
      if (referrers.has(digest)) continue;
      const manifest = await readIfGood(layout, found.root, digest, undefined);
      if (manifest?.subject?.digest === subject) referrers.set(digest, describeReferrer(manifest));
    }
    return {
      kind: 'listed',
      via: 'tag',
      tag,
      referrers: [...referrers.values()],
      ...(list?.annotations === undefined ? {} : { annotations: list.annotations }),
    };
  });
}

async function fallbackList(
  layout: Layout,
  root: Root,
  index: LayoutIndex,
  tag: string,
): Promise<ImageIndex | undefined> {
  const entry = findEntry(index, tag, nameOf(layout, tag));
  const list = entry === undefined ? undefined : await readIfGood(layout, root, entry.digest, entry.mediaType);
  return list?.kind === 'index' ? list : undefined;
}

/** What is no manifest, or lacks its file, refers to nothing. */
async function readIfGood(
  layout: Layout,
  root: Root,
  digest: Digest,
  mediaType: string | undefined,
): Promise<Manifest | undefined> {
  const name = nameOf(layout, digest);
  try {
    const bytes = await manifestBytes(layout, root, digest, name);
    return bytes === undefined ? undefined : parseManifest(bytes, digest, mediaType, name);
  } catch (error) {
    if (error instanceof PublishError && error.code !== 'FILE_FAILED') return undefined;
    throw error;
  }
}
