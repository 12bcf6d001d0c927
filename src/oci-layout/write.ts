import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { PublishError } from '../errors.ts';
import { algorithmOf, type Digest, digestOf, hashFor } from '../model/digest.ts';
import type {
  BlobIdentity,
  PutAnswer,
  UploadAnswer,
  UploadBody,
  UploadOptions,
  VerbOptions,
} from '../registry/client.ts';
import { type LayoutIndex, withEntry } from './entries.ts';
import { failed, onDisk, type Root, readSmall, sizeOf, writeFile } from './files.ts';
import { blobFolder, blobName, changeIndex, settleBlobs } from './folder.ts';
import type { Layout } from './layout.ts';

/** What {@link fill} throws for bytes that are not the blob's, and for a source that broke off. */
class Fault extends Error {
  readonly answer: UploadAnswer;

  constructor(answer: UploadAnswer & { readonly error: PublishError }) {
    super(answer.error.message, { cause: answer.error });
    this.answer = answer;
  }
}

/**
 * Writes a blob while it is hashed; it gets its name when digest and size are right and the disk has it.
 *
 * @see RegistryClient.upload
 */
export async function writeBlob(
  layout: Layout,
  blob: BlobIdentity,
  body: UploadBody,
  options: UploadOptions,
): Promise<UploadAnswer> {
  const { signal } = options;
  const name = `writing ${layout.host}@${blob.digest}`;
  const stop = (): void => {
    if (!(body instanceof Uint8Array)) body.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    await layout.onPlace(options, async () => {
      const root = await layout.make(signal);
      const { path, temporary } = await blobFolder(root, blob.digest, layout.ports);
      await writeFile(temporary, join(root.path, blobName(blob.digest)), (handle) =>
        fill(handle, blob, body, name, options),
      ).catch((error: unknown) => {
        throw failed(error, `cannot write to ${path}`);
      });
    });
    return { kind: 'stored', bytesSent: blob.size };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Fault) return error.answer;
    if (error instanceof PublishError && error.code === 'FILE_FAILED') {
      return { kind: 'refused', error: error.with({ side: 'target', registry: layout.host }) };
    }
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
    if (!(body instanceof Uint8Array)) body.destroy();
  }
}

async function fill(
  handle: FileHandle,
  blob: BlobIdentity,
  body: UploadBody,
  name: string,
  { progress, signal }: UploadOptions,
): Promise<void> {
  const hash = hashFor(blob.digest);
  let size = 0;
  for await (const piece of pieces(body, name)) {
    signal.throwIfAborted();
    size += piece.byteLength;
    if (size > blob.size) throw new Fault({ kind: 'corrupt', error: wrongSize(blob, name, `at least ${size}`) });
    hash.update(piece);
    for (let at = 0; at < piece.byteLength; ) at += (await handle.write(piece, at)).bytesWritten;
    progress?.(size);
  }
  if (size !== blob.size) throw new Fault({ kind: 'corrupt', error: wrongSize(blob, name, `${size}`) });
  const actual = `${algorithmOf(blob.digest)}:${hash.digest('hex')}`;
  if (actual !== blob.digest) throw new Fault({ kind: 'corrupt', error: wrongDigest(blob, name, actual) });
}

/** What the source sends; its failures are told apart from those of the disk. */
async function* pieces(body: UploadBody, name: string): AsyncGenerator<Uint8Array> {
  if (body instanceof Uint8Array) {
    yield body;
    return;
  }
  try {
    yield* body;
  } catch (error) {
    throw new Fault({ kind: 'broken', error: sourceFailed(name, error) });
  }
}

type ManifestToPut = { readonly bytes: Uint8Array; readonly digest: Digest; readonly mediaType: string };

/**
 * Writes a manifest, and by a tag its entry in index.json as well, after everything that it leads to is on the disk.
 *
 * @see RegistryClient.putManifest
 */
export async function putManifest(
  layout: Layout,
  tag: string | undefined,
  manifest: ManifestToPut,
  options: VerbOptions,
): Promise<PutAnswer> {
  const { digest, bytes, mediaType } = manifest;
  try {
    await layout.onPlace(options, async () => {
      const root = await layout.make(options.signal);
      const { path, temporary } = await blobFolder(root, digest, layout.ports);
      await onDisk(`cannot write to ${path}`, async () => {
        if (!(await isThere(root, manifest))) {
          await writeFile(temporary, join(root.path, blobName(digest)), (handle) => handle.writeFile(bytes));
        }
      });
      if (tag === undefined) return;
      await settleBlobs(root, layout.ports);
      const entry = { mediaType, digest, size: bytes.length };
      const change = (index: LayoutIndex | undefined): string => {
        if (index === undefined) throw new PublishError('FILE_FAILED', `${root.path}/index.json went away`, AGAIN);
        return withEntry(index, tag, entry);
      };
      await layout.alone(() => changeIndex(root, layout.ports, options.signal, change));
    });
    return { kind: 'stored' };
  } catch (error) {
    throw error instanceof PublishError ? error.with({ side: 'target', registry: layout.host }) : error;
  }
}

const AGAIN = 'Run the same command again.';

async function isThere(root: Root, { digest, bytes }: ManifestToPut): Promise<boolean> {
  if ((await sizeOf(root, blobName(digest))) !== bytes.length) return false;
  const grown = () => new PublishError('FILE_FAILED', `${root.path}: a blob is being written`, AGAIN);
  const there = await readSmall(root, blobName(digest), bytes.length, grown);
  return there !== undefined && digestOf(there, algorithmOf(digest)) === digest;
}

function sourceFailed(name: string, cause: unknown): PublishError {
  if (cause instanceof PublishError) return cause.with({ message: `${name}: ${cause.message}`, side: 'source' });
  const why = cause instanceof Error ? cause.message : String(cause);
  return new PublishError(
    'NETWORK_FAILED',
    `${name}: reading from the source broke off: ${why.split('\n', 1)[0]}`,
    AGAIN,
    {
      side: 'source',
      cause,
    },
  );
}

/** `actual`: what the source sent, in words. */
function wrongSize({ size }: BlobIdentity, name: string, actual: string): PublishError {
  return new PublishError(
    'SIZE_MISMATCH',
    `${name}: the source sent ${actual} bytes where its manifest says ${size}; nothing was kept`,
    DAMAGED_SOURCE,
    { side: 'source' },
  );
}

function wrongDigest({ digest }: BlobIdentity, name: string, actual: string): PublishError {
  return new PublishError(
    'DIGEST_MISMATCH',
    `${name}: the source sent bytes that hash to ${actual}, not to ${digest}; nothing was kept`,
    DAMAGED_SOURCE,
    { side: 'source' },
  );
}

const DAMAGED_SOURCE = 'Run the same command again; if it repeats, the source is damaged: push the image again.';
