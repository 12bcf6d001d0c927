import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Digest, isDigest } from '../model/digest.ts';
import { blobPath, writeBlob } from './content.ts';
import { createRepository, keepContent, type Store, storeManifest } from './store.ts';

/** What is linked where; the bytes lie beside it, named by digest. */
type Listing = {
  readonly version: 1;
  readonly repositories: Readonly<
    Record<
      string,
      {
        readonly blobs: readonly string[];
        /** Of the blobs, those that are links, and the repository with the bytes; absent in older listings. */
        readonly links?: Readonly<Record<string, string>>;
        readonly manifests: Readonly<Record<string, string>>;
        readonly tags: Readonly<Record<string, string>>;
      }
    >
  >;
};

/** Reads what an earlier run left in the directory. @throws Error when the listing names a file that is not there */
export async function loadDisk(directory: string, store: Store): Promise<void> {
  await makeFolder(directory);
  const path = join(directory, 'registry.json');
  if (!existsSync(path)) return;
  const listing = JSON.parse(await readFile(path, 'utf8')) as Listing;
  if (listing.version !== 1) throw new Error(`${path} was not written by this version`);
  for (const [name, content] of Object.entries(listing.repositories)) {
    const repository = createRepository(store, name);
    for (const digest of content.blobs.filter(isDigest)) {
      const file = blobPath(directory, digest);
      const kept = keepContent(store, digest, { kind: 'file', size: (await stat(file)).size, path: file });
      const root = content.links?.[digest];
      repository.blobs.set(digest, { content: kept, at: 0, visibleAt: 0, ...(root === undefined ? {} : { root }) });
    }
    for (const [digest, mediaType] of Object.entries(content.manifests)) {
      if (!isDigest(digest)) continue;
      storeManifest(repository, {
        digest,
        bytes: await readFile(blobPath(directory, digest)),
        mediaType,
        visibleAt: 0,
      });
    }
    for (const [tag, digest] of Object.entries(content.tags)) if (isDigest(digest)) repository.tags.set(tag, digest);
  }
}

/** As `mkdir -p`. Node's own never ends below a folder that answers ENOENT, such as /proc (seen with 20.20). */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path);
  }
}

/** Writes what memory has and the directory lacks; calls that come together share one write. */
export function createDiskWriter(directory: string, store: Store): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | undefined;
  const save = async (): Promise<void> => {
    waiting = undefined;
    await saveDisk(directory, store);
  };
  return () => {
    if (waiting === undefined) {
      waiting = running.then(save, save);
      running = waiting;
    }
    return waiting;
  };
}

async function saveDisk(directory: string, store: Store): Promise<void> {
  const repositories = Object.fromEntries(
    [...store.repositories].map(([name, repository]) => [
      name,
      {
        blobs: [...repository.blobs].filter(([, link]) => link.content.kind !== 'generated').map(([digest]) => digest),
        links: Object.fromEntries(
          [...repository.blobs].flatMap(([digest, { root }]) => (root ? [[digest, root]] : [])),
        ),
        // By their own digests: a wrong name under which one was put lasts no longer than the process.
        manifests: Object.fromEntries([...repository.manifests.values()].map((one) => [one.digest, one.mediaType])),
        tags: Object.fromEntries(repository.tags),
      },
    ]),
  );
  const inMemory = new Map<Digest, Uint8Array>();
  for (const repository of store.repositories.values()) {
    for (const manifest of repository.manifests.values()) inMemory.set(manifest.digest, manifest.bytes);
    for (const [digest, { content }] of repository.blobs)
      if (content.kind === 'bytes') inMemory.set(digest, content.bytes);
  }
  for (const [digest, bytes] of inMemory) {
    if (!existsSync(blobPath(directory, digest))) await writeBlob(directory, digest, bytes);
  }
  const path = join(directory, 'registry.json');
  const listing: Listing = { version: 1, repositories };
  await writeFile(`${path}.part`, JSON.stringify(listing));
  await rename(`${path}.part`, path);
}
