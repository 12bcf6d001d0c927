import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import { type Descriptor, MANIFEST_SIZE_MAX } from '../model/descriptor.ts';
import { algorithmOf, type Digest, digestOf, isDigest } from '../model/digest.ts';
import { isForeignLayer, parseManifest } from '../model/manifest.ts';
import { invalidDocument } from '../model/strict-json.ts';
import type { BlobIdentity, BlobOptions, ManifestAnswer, Presence, VerbOptions } from '../registry/client.ts';
import { FileBody } from './body.ts';
import { contents, findEntry } from './entries.ts';
import { openFile, type Root, readSmall, sizeOf } from './files.ts';
import { blobName, indexOf } from './folder.ts';
import type { Layout } from './layout.ts';

/** @see RegistryClient.getManifest */
export async function getManifest(layout: Layout, reference: string, options: VerbOptions): Promise<ManifestAnswer> {
  const name = nameOf(layout, reference);
  return layout.onPlace(options, async () => {
    const found = await layout.find();
    if (found.kind !== 'layout') return absent(layout, name, found.why);
    const { root } = found;
    if (isDigest(reference)) {
      const bytes = await manifestBytes(layout, root, reference, name);
      return bytes === undefined
        ? absent(layout, name, `${blobPath(root, reference)} is not there`)
        : { kind: 'found', manifest: { bytes, digest: reference, contentType: undefined } };
    }
    const index = await indexOf(root);
    if (index === undefined) return absent(layout, name, `${join(root.path, 'index.json')} is not there`);
    const entry = findEntry(index, reference, name);
    if (entry === undefined) return absent(layout, name, contents(index));
    const bytes = await manifestBytes(layout, root, entry.digest, name);
    if (bytes === undefined) {
      return absent(layout, name, `index.json lists it, but ${blobPath(root, entry.digest)} is not there`);
    }
    if (bytes.length !== entry.size) throw wrongSize(layout, entry, name, bytes.length, 'index.json');
    return { kind: 'found', manifest: { bytes, digest: entry.digest, contentType: entry.mediaType } };
  });
}

/** The bytes of a manifest, checked against its digest; undefined when it is not there. */
export async function manifestBytes(
  layout: Layout,
  root: Root,
  digest: Digest,
  name: string,
): Promise<Uint8Array | undefined> {
  const tooLarge = (size: number) =>
    invalidDocument(name, `a manifest of ${size} bytes, the limit is ${MANIFEST_SIZE_MAX}`);
  const bytes = await readSmall(root, blobName(digest), MANIFEST_SIZE_MAX, tooLarge);
  if (bytes === undefined || isRest(bytes.length, digest)) return undefined;
  const actual = digestOf(bytes, algorithmOf(digest));
  if (actual !== digest) throw wrongDigest(layout, root, digest, actual, name);
  return bytes;
}

/**
 * Whether the manifest is there, with everything that it names: who removes blobs of a layout, or copied a part of it,
 * need not have removed the manifests, while a registry keeps both together.
 *
 * @see RegistryClient.hasManifest
 */
export async function hasManifest(layout: Layout, digest: Digest, options: VerbOptions): Promise<Presence> {
  const name = nameOf(layout, digest);
  return layout.onPlace(options, async () => {
    const found = await layout.find();
    if (found.kind !== 'layout') return { kind: 'absent' };
    const bytes = await readOrUndefined(layout, found.root, digest, name);
    if (bytes === undefined) return { kind: 'absent' };
    const manifest = parseManifest(bytes, digest, undefined, name);
    const named =
      manifest.kind === 'index'
        ? manifest.manifests
        : [manifest.config, ...manifest.layers.filter((layer) => !isForeignLayer(layer))];
    for (const one of named) if (!(await isWhole(found.root, one))) return { kind: 'absent' };
    return { kind: 'present', size: bytes.length };
  });
}

/** A manifest that is damaged is as good as absent to whoever is about to write it. */
async function readOrUndefined(
  layout: Layout,
  root: Root,
  digest: Digest,
  name: string,
): Promise<Uint8Array | undefined> {
  try {
    return await manifestBytes(layout, root, digest, name);
  } catch (error) {
    if (error instanceof PublishError && error.code === 'DIGEST_MISMATCH') return undefined;
    throw error;
  }
}

async function isWhole(root: Root, { digest, size }: Descriptor): Promise<boolean> {
  return (await sizeOf(root, blobName(digest))) === size;
}

/** @see RegistryClient.hasBlob */
export async function hasBlob(layout: Layout, digest: Digest, options: VerbOptions): Promise<Presence> {
  return layout.onPlace(options, async () => {
    const found = await layout.find();
    const size = found.kind === 'layout' ? await sizeOf(found.root, blobName(digest)) : undefined;
    return size === undefined || isRest(size, digest) ? { kind: 'absent' } : { kind: 'present', size };
  });
}

/** @see RegistryClient.readBlob */
export async function readBlob(layout: Layout, blob: BlobIdentity, options: VerbOptions): Promise<Uint8Array> {
  const name = nameOf(layout, blob.digest);
  return layout.onPlace(options, async () => {
    const root = await rootOf(layout, name);
    const tooLarge = (size: number): PublishError =>
      blob.size > MANIFEST_SIZE_MAX
        ? invalidDocument(name, `a config of ${size} bytes, the limit is ${MANIFEST_SIZE_MAX}`)
        : wrongSize(layout, blob, name, size);
    const bytes = await readSmall(root, blobName(blob.digest), MANIFEST_SIZE_MAX, tooLarge);
    if (bytes === undefined) throw blobNotThere(layout, root, blob.digest);
    if (bytes.length !== blob.size) throw wrongSize(layout, blob, name, bytes.length);
    const actual = digestOf(bytes, algorithmOf(blob.digest));
    if (actual !== blob.digest) throw wrongDigest(layout, root, blob.digest, actual, name);
    return bytes;
  });
}

/** @see RegistryClient.openBlob */
export async function openBlob(
  layout: Layout,
  blob: BlobIdentity,
  { from = 0, signal, place }: BlobOptions,
): Promise<Readable> {
  const name = nameOf(layout, blob.digest);
  const own = place === undefined ? await layout.limiter.take(layout.host, signal) : undefined;
  try {
    const root = await rootOf(layout, name);
    const opened = await openFile(root, blobName(blob.digest));
    if (opened === undefined) throw blobNotThere(layout, root, blob.digest);
    const { handle, size } = opened;
    if (size !== blob.size) {
      await handle.close();
      throw wrongSize(layout, blob, name, size);
    }
    const body = new FileBody(handle, blobPath(root, blob.digest), from, signal);
    if (own !== undefined) body.once('close', own.release);
    return body;
  } catch (error) {
    own?.release();
    throw error;
  }
}

/** `oci:FOLDER:TAG` or `oci:FOLDER@DIGEST`; without either `oci:FOLDER`. */
export function nameOf(layout: Pick<Layout, 'host'>, reference: string): string {
  if (reference === '') return layout.host;
  return `${layout.host}${isDigest(reference) ? '@' : ':'}${reference}`;
}

function blobPath(root: Root, digest: Digest): string {
  return join(root.path, blobName(digest));
}

/** Nothing hashes to that but nothing: what a machine that lost its power leaves of a file. */
function isRest(size: number, digest: Digest): boolean {
  return size === 0 && digest !== digestOf(new Uint8Array(), algorithmOf(digest));
}

async function rootOf(layout: Layout, name: string): Promise<Root> {
  const found = await layout.find();
  if (found.kind === 'layout') return found.root;
  throw new PublishError('BLOB_NOT_FOUND', `${name} is not there: ${found.why}`, 'Check the name of the folder.', {
    side: 'source',
    registry: layout.host,
  });
}

function absent(layout: Layout, name: string, why: string): ManifestAnswer {
  const hint = `Check the folder and the tag, or make it first, for example: skopeo copy docker://IMAGE ${layout.host}:TAG`;
  return {
    kind: 'absent',
    error: new PublishError('MANIFEST_NOT_FOUND', `${name} is not there: ${why}`, hint, {
      side: 'source',
      registry: layout.host,
    }),
  };
}

function blobNotThere(layout: Layout, root: Root, digest: Digest): PublishError {
  return new PublishError(
    'BLOB_NOT_FOUND',
    `${layout.host}@${digest} is not there: ${blobPath(root, digest)} is missing`,
    'Make the layout anew with all its blobs: it has a manifest that names one that it lacks.',
    { side: 'source', registry: layout.host },
  );
}

function wrongSize(
  layout: Layout,
  { size }: BlobIdentity,
  name: string,
  actual: number,
  document = 'the manifest',
): PublishError {
  return new PublishError(
    'SIZE_MISMATCH',
    `${name}: the file has ${actual} bytes where ${document} says ${size}`,
    DAMAGED,
    { side: 'source', registry: layout.host },
  );
}

function wrongDigest(layout: Layout, root: Root, digest: Digest, actual: Digest, name: string): PublishError {
  return new PublishError('DIGEST_MISMATCH', `${name}: ${blobPath(root, digest)} hashes to ${actual}`, DAMAGED, {
    side: 'source',
    registry: layout.host,
  });
}

const DAMAGED = 'Make the layout anew: it is damaged.';
