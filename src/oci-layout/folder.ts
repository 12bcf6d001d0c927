import { mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { PublishError } from '../errors.ts';
import { MANIFEST_SIZE_MAX } from '../model/descriptor.ts';
import { shown } from '../model/descriptor-json.ts';
import { algorithmOf, type Digest } from '../model/digest.ts';
import { invalidDocument, readJsonObject } from '../model/strict-json.ts';
import { EMPTY_INDEX, type LayoutIndex, readIndex } from './entries.ts';
import {
  codeOf,
  onDisk,
  type Root,
  readSmall,
  staysInside,
  sweep,
  syncFolder,
  unlessGone,
  writeFile,
} from './files.ts';

/** A file that one process at a time replaces. */
export type FileLock = {
  /** Puts the bytes in its place in one step, if the lock was held all the time; false: it was not, nothing is written. */
  commit(bytes: Uint8Array): Promise<boolean>;
  release(): Promise<void>;
};

/** What a layout needs of the world. */
export type LayoutPorts = {
  /** Takes the lock of the file at `path`, which need not be there; what is needed for it stands beside it. */
  readonly lock: (path: string, signal: AbortSignal) => Promise<FileLock>;
  /** A text that no other call gives and that can be part of a file name: a UUID. */
  readonly token: () => string;
  /** Milliseconds since 1970. */
  readonly epoch: () => number;
};

/** What is in the place of the folder. `empty`: there is nothing but what a killed process may have left. */
export type Found =
  | { readonly kind: 'layout'; readonly root: Root }
  | { readonly kind: 'absent' | 'empty'; readonly why: string };

const MARKER = 'oci-layout';
const INDEX = 'index.json';
const BLOBS = 'blobs';

/** Names of work under way. */
const TEMPORARY = '.tmp-';

/** A temporary file that nobody has written to for so many ms is not being written. */
const ABANDONED = 60 * 60 * 1000;

/** How often a change begins anew because its lock was taken over; each time is a rare accident. */
const TRIES = 10;

/** Nothing of this is anybody's: `lost+found` stands in every new volume. */
const OURS = /^(?:blobs|index\.json(?:\.(?:lock|(?:new|dead)\..*))?|\.tmp-.*|lost\+found)$/;

/**
 * Looks whether the folder is a layout.
 *
 * @param again it has just been looked at, and was being made
 * @throws PublishError `MANIFEST_UNSUPPORTED` for what is something else, `FILE_FAILED`
 * @see image-spec v1.1.1 image-layout.md, section "oci-layout file"
 */
export async function findLayout(folder: string, again = false): Promise<Found> {
  const root = await locate(folder);
  if (root === undefined) return { kind: 'absent', why: `there is no folder ${folder}` };
  const name = join(folder, MARKER);
  const tooLarge = (size: number) => invalidDocument(name, `${size} bytes, which is no oci-layout file`);
  const marker = await readSmall(root, MARKER, MANIFEST_SIZE_MAX, tooLarge);
  if (marker !== undefined) {
    const version = readJsonObject(marker, name)['imageLayoutVersion'];
    if (typeof version === 'string' && /^1\./.test(version)) return { kind: 'layout', root };
    throw notALayout(`${name}: imageLayoutVersion is ${shown(version)}, not 1.0.0`, REMAKE);
  }
  const names = await onDisk(`cannot read ${folder}`, () => readdir(folder));
  // Another process has made the layout since.
  if (names.includes(MARKER) && !again) return findLayout(folder, true);
  if (names.every((one) => OURS.test(one))) return { kind: 'empty', why: `the folder ${folder} has no ${MARKER} file` };
  throw names.includes('manifest.json')
    ? notALayout(`${folder} has no ${MARKER} file; it looks like an unpacked docker save`, CONVERT)
    : notALayout(
        `${folder} has no ${MARKER} file`,
        'Name the folder of a layout, or for a new one a folder that is empty.',
      );
}

const REMAKE = 'Make the layout anew with a current tool, for example: skopeo copy docker://IMAGE oci:FOLDER:TAG';
const CONVERT = 'Make a layout of the archive: skopeo copy docker-archive:FILE.tar oci:FOLDER:TAG';
const UNPACK =
  'Unpack an OCI archive first: mkdir FOLDER && tar -xf FILE -C FOLDER; of an older docker save make a layout: skopeo copy docker-archive:FILE oci:FOLDER:TAG';

async function locate(folder: string): Promise<Root | undefined> {
  return onDisk(`cannot read ${folder}`, async () => {
    const real = await realpath(folder).catch(unlessGone);
    if (real === undefined) return undefined;
    if (!(await stat(real)).isDirectory()) throw notALayout(`${folder} is a file, not the folder of a layout`, UNPACK);
    return { path: folder, real };
  });
}

/** Makes a layout of a folder that is absent or empty; the file that says what it is comes last. */
export async function makeLayout(folder: string, ports: LayoutPorts, signal: AbortSignal): Promise<Root> {
  await onDisk(`cannot make the layout ${folder}`, async () => {
    await makeFolder(folder);
    await makeFolder(join(folder, BLOBS));
  });
  const root = await locate(folder);
  if (root === undefined) throw new Error('the folder has just been made');
  await staysInside(root, BLOBS);
  await makeIndex(root, ports, signal);
  await onDisk(`cannot write ${join(folder, MARKER)}`, () =>
    writeFile(join(folder, `${TEMPORARY}${ports.token()}`), join(folder, MARKER), async (handle) => {
      await handle.writeFile('{"imageLayoutVersion":"1.0.0"}');
    }),
  );
  return root;
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path).catch((error: unknown) => {
    const code = codeOf(error);
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT') throw error;
    const parent = dirname(resolve(path));
    throw new PublishError(
      'FILE_FAILED',
      `cannot make ${path}: there is no folder ${parent}`,
      `Make it: mkdir -p ${parent}`,
      {
        cause: error,
      },
    );
  });
}

/** An index.json without entries, unless there is one. */
export async function makeIndex(root: Root, ports: LayoutPorts, signal: AbortSignal): Promise<void> {
  if ((await indexOf(root)) !== undefined) return;
  await changeIndex(root, ports, signal, (index) => (index === undefined ? EMPTY_INDEX : undefined));
}

/** What index.json says; undefined when it is not there. @throws PublishError `MANIFEST_INVALID` */
export async function indexOf(root: Root): Promise<LayoutIndex | undefined> {
  const name = join(root.path, INDEX);
  const tooLarge = (size: number) => invalidDocument(name, `${size} bytes, the limit is ${MANIFEST_SIZE_MAX}`);
  const bytes = await readSmall(root, INDEX, MANIFEST_SIZE_MAX, tooLarge);
  return bytes === undefined ? undefined : readIndex(bytes, name);
}

/** Replaces index.json, while no other process does, by what `change` makes of it; undefined: it stays. */
export async function changeIndex(
  root: Root,
  ports: LayoutPorts,
  signal: AbortSignal,
  change: (index: LayoutIndex | undefined) => string | undefined,
): Promise<void> {
  const path = join(root.path, INDEX);
  await onDisk(`cannot write ${path}`, async () => {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const lock = await ports.lock(path, signal).catch(lockFailed);
      try {
        const text = change(await indexOf(root));
        if (text === undefined) return;
        const bytes = Buffer.from(text);
        if (bytes.length > MANIFEST_SIZE_MAX) throw fullIndex(path);
        // Whoever finds that the lock was taken from it begins anew.
        if (await lock.commit(bytes).catch(lockFailed)) return;
      } finally {
        await lock.release();
      }
    }
    throw new PublishError('FILE_FAILED', `cannot write ${path}: other processes took its lock over`, 'Run it again.');
  });
}

/** A lock tells of the system's errors in words of its own, which know nothing of layouts. */
function lockFailed(error: unknown): never {
  throw error instanceof PublishError && codeOf(error.cause) !== undefined ? error.cause : error;
}

/** Where a blob is, in the layout: what a digest is made of cannot lead out of it. */
export function blobName(digest: Digest): string {
  return join(BLOBS, ...digest.split(':'));
}

/** The folder of a blob, made where it is not there, and a name in it for a file that is being written. */
export async function blobFolder(
  root: Root,
  digest: Digest,
  ports: LayoutPorts,
): Promise<{ readonly path: string; readonly temporary: string }> {
  const name = join(BLOBS, algorithmOf(digest));
  const path = join(root.path, name);
  await onDisk(`cannot make ${path}`, async () => {
    await makeFolder(join(root.path, BLOBS));
    await makeFolder(path);
  });
  await staysInside(root, name);
  return { path, temporary: join(path, `${TEMPORARY}${ports.token()}`) };
}

/** Waits until the disk knows every blob by its name, and removes what killed processes have left of others. */
export async function settleBlobs(root: Root, ports: LayoutPorts): Promise<void> {
  const folder = join(root.path, BLOBS);
  await onDisk(`cannot write to ${folder}`, async () => {
    for (const algorithm of await readdir(folder)) {
      if (!isAlgorithm(algorithm)) continue;
      await staysInside(root, join(BLOBS, algorithm));
      await syncFolder(join(folder, algorithm));
      await sweep(join(folder, algorithm), (name) => name.startsWith(TEMPORARY), ports.epoch() - ABANDONED);
    }
  });
}

function isAlgorithm(name: string): boolean {
  return name === 'sha256' || name === 'sha512';
}

function notALayout(message: string, hint: string): PublishError {
  return new PublishError('MANIFEST_UNSUPPORTED', `not an OCI image layout: ${message}`, hint);
}

function fullIndex(path: string): PublishError {
  return new PublishError(
    'FILE_FAILED',
    `${path} would have more than ${MANIFEST_SIZE_MAX} bytes`,
    'Publish to another folder.',
  );
}
