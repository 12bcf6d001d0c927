import type { Digest } from '../model/digest.ts';
import type { BlobContent } from './content.ts';
import { type Document, readDocument } from './document.ts';

/** A blob as one repository has it. */
export type BlobLink = {
  readonly content: BlobContent;
  /** When it came, and from when on it is to be seen; milliseconds. */
  readonly at: number;
  readonly visibleAt: number;
  /**
   * The repository whose bytes it stands for (mounts of serverless-registry). The link outlives them: it shows what
   * is there now, or nothing.
   */
  readonly root?: string;
};

/** A manifest as it was put: bytes and type are kept as they came. */
export type StoredManifest = {
  readonly digest: Digest;
  readonly bytes: Buffer;
  readonly mediaType: string;
  readonly document: Document | undefined;
  readonly visibleAt: number;
};

export type Repository = {
  readonly name: string;
  readonly blobs: Map<Digest, BlobLink>;
  readonly manifests: Map<Digest, StoredManifest>;
  readonly tags: Map<string, Digest>;
};

/** What one tag PUT or DELETE did, in the order in which it happened. */
export type TagMove = {
  readonly repository: string;
  readonly tag: string;
  readonly from: Digest | undefined;
  readonly to: Digest | undefined;
  /** Manifests and blobs that `to` reaches and that the repository did not have at that moment; foreign layers aside. */
  readonly missing: readonly Digest[];
};

/** Everything the registry holds. */
export type Store = {
  readonly repositories: Map<string, Repository>;
  /** One copy of each blob's bytes, however many repositories link it. */
  readonly contents: Map<Digest, BlobContent>;
  readonly moves: TagMove[];
};

export function createStore(): Store {
  return { repositories: new Map(), contents: new Map(), moves: [] };
}

export function createRepository(store: Store, name: string): Repository {
  const known = store.repositories.get(name);
  if (known !== undefined) return known;
  const made: Repository = { name, blobs: new Map(), manifests: new Map(), tags: new Map() };
  store.repositories.set(name, made);
  return made;
}

/**
 * The one copy of these bytes: what is there already wins, so that an upload that was only hashed becomes readable
 * when its digest is known from elsewhere.
 */
export function keepContent(store: Store, digest: Digest, content: BlobContent): BlobContent {
  const known = store.contents.get(digest);
  if (known !== undefined && known.kind !== 'forgotten') return known;
  store.contents.set(digest, content);
  return content;
}

/** The manifest that a tag or digest names. */
export function findManifest(repository: Repository | undefined, reference: string): StoredManifest | undefined {
  const digest = repository?.tags.get(reference) ?? (reference as Digest);
  return repository?.manifests.get(digest);
}

export function storeManifest(
  repository: Repository,
  manifest: {
    readonly digest: Digest;
    readonly bytes: Uint8Array;
    readonly mediaType: string;
    readonly visibleAt: number;
  },
): StoredManifest {
  const stored = { ...manifest, bytes: Buffer.from(manifest.bytes), document: readDocument(manifest.bytes) };
  repository.manifests.set(manifest.digest, stored);
  return stored;
}

/** Points the tag at the digest and records what was incomplete at that moment. */
export function moveTag(store: Store, repository: Repository, tag: string, to: Digest): void {
  const from = repository.tags.get(tag);
  repository.tags.set(tag, to);
  store.moves.push({ repository: repository.name, tag, from, to, missing: missingBelow(store, repository, to) });
}

export function dropTag(store: Store, repository: Repository, tag: string): boolean {
  const from = repository.tags.get(tag);
  if (from === undefined) return false;
  repository.tags.delete(tag);
  store.moves.push({ repository: repository.name, tag, from, to: undefined, missing: [] });
  return true;
}

/** Removes a manifest and every tag that points at it. */
export function dropManifest(store: Store, repository: Repository, digest: Digest): boolean {
  if (!repository.manifests.delete(digest)) return false;
  for (const [tag, to] of [...repository.tags]) if (to === digest) dropTag(store, repository, tag);
  return true;
}

/** Whether some manifest of the repository names the blob: what ECR asks before it mounts. */
export function isReferenced(repository: Repository, digest: Digest): boolean {
  for (const manifest of repository.manifests.values()) {
    if (manifest.document?.blobs.some((blob) => blob.digest === digest)) return true;
  }
  return false;
}

/** The bytes behind a link of a repository, or nothing where what it points to is gone. */
export function contentOf(store: Store, link: BlobLink | undefined, digest: Digest): BlobContent | undefined {
  if (link?.root === undefined) return link?.content;
  const there = store.repositories.get(link.root)?.blobs.get(digest);
  return there?.root === undefined ? there?.content : undefined;
}

/** Everything reachable from a digest that the repository lacks, by presence alone, whatever is visible yet. */
export function missingBelow(store: Store, repository: Repository, root: Digest): Digest[] {
  const missing: Digest[] = [];
  const seen = new Set<Digest>();
  const visit = (digest: Digest): void => {
    if (seen.has(digest)) return;
    seen.add(digest);
    const manifest = repository.manifests.get(digest);
    if (manifest === undefined) {
      missing.push(digest);
      return;
    }
    for (const blob of manifest.document?.blobs ?? []) {
      const there = contentOf(store, repository.blobs.get(blob.digest), blob.digest) !== undefined;
      if (!blob.foreign && !there && !missing.includes(blob.digest)) missing.push(blob.digest);
    }
    for (const child of manifest.document?.children ?? []) visit(child.digest);
  };
  visit(root);
  return missing;
}
