import { constants } from 'node:fs';
import { type FileHandle, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { PublishError } from '../errors.ts';

/** Windows has no such flags. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NON_BLOCK = constants.O_NONBLOCK ?? 0;

/** The folder of a layout: as it was written, for messages, and where it really is. */
export type Root = { readonly path: string; readonly real: string };

/** The error code of the operating system, or undefined when the error is none of its. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

const AGAIN = 'then run the same command again.';
const REACH = 'Give the user that runs this the right to it, or name another folder.';

/** What the system means, and what helps. */
const REASONS: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['ENOSPC', ['no space left on the device', `Free some space, ${AGAIN}`]],
  ['EDQUOT', ['the disk quota is used up', `Free some space, ${AGAIN}`]],
  ['EROFS', ['the file system is read-only', 'Name a folder that can be written.']],
  ['EACCES', ['permission denied', REACH]],
  ['EPERM', ['not permitted', REACH]],
  ['ENOENT', ['it is not there', `Look whether something else removes files from the layout, ${AGAIN}`]],
  [
    'ENOTDIR',
    ['a part of the path is not a folder', 'Check the name, and move away the file that stands in its place.'],
  ],
  ['EISDIR', ['a folder stands in its place', 'Move it away: the layout is damaged.']],
  ['ELOOP', ['its symbolic links lead in a circle', 'Check the name.']],
  ['ENAMETOOLONG', ['the name is too long', 'Name a folder with a shorter path.']],
  ['EMFILE', ['too many open files', `Raise the limit with ulimit -n, ${AGAIN}`]],
  ['ENFILE', ['too many open files on this machine', `Wait, ${AGAIN}`]],
]);

/**
 * The failure that the user sees for one of the operating system's; others are handed back as they are.
 *
 * @param what for example `cannot write FILE`
 */
export function failed(error: unknown, what: string): unknown {
  const code = codeOf(error);
  if (code === undefined || error instanceof PublishError) return error;
  const [reason, hint] = REASONS.get(code) ?? [code, `Look at the disk and at the folder, ${AGAIN}`];
  return new PublishError('FILE_FAILED', `${what} (${reason})`, hint, { cause: error });
}

/** Runs file operations whose failures are the user's to see. */
export async function onDisk<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failed(error, what);
  }
}

/** Where a name of the layout really leads; undefined when nothing is there. @throws PublishError when it leaves the layout */
async function realPath(root: Root, name: string): Promise<string | undefined> {
  const path = join(root.path, name);
  let real: string;
  try {
    real = await realpath(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw failed(error, `cannot read ${path}`);
  }
  const inside = root.real.endsWith(sep) ? root.real : root.real + sep;
  if (real !== root.real && !real.startsWith(inside)) throw odd(path, `leads out of the layout, to ${real}`);
  return real;
}

/** A regular file of the layout, for reading, and its size; undefined when it is not there. Nothing is waited for. */
export async function openFile(
  root: Root,
  name: string,
): Promise<{ readonly handle: FileHandle; readonly size: number } | undefined> {
  const path = join(root.path, name);
  const real = await realPath(root, name);
  if (real === undefined) return undefined;
  return onDisk(`cannot read ${path}`, async () => {
    const handle = await open(real, constants.O_RDONLY | NO_FOLLOW | NON_BLOCK).catch((error: unknown) => {
      // It went away in between.
      if (codeOf(error) === 'ENOENT') return undefined;
      throw codeOf(error) === 'ENXIO' ? odd(path, 'is not a regular file') : error;
    });
    if (handle === undefined) return undefined;
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw odd(path, 'is not a regular file');
      return { handle, size: found.size };
    } catch (error) {
      await handle.close();
      throw error;
    }
  });
}

/** The size of a regular file of the layout in bytes; undefined when it is not there. */
export async function sizeOf(root: Root, name: string): Promise<number | undefined> {
  const path = join(root.path, name);
  const real = await realPath(root, name);
  if (real === undefined) return undefined;
  const found = await onDisk(`cannot read ${path}`, () => stat(real).catch(unlessGone));
  if (found !== undefined && !found.isFile()) throw odd(path, 'is not a regular file');
  return found?.size;
}

/**
 * A small file of the layout, whole; undefined when it is not there.
 *
 * @param tooLarge made when it has more than `limit` bytes
 */
export async function readSmall(
  root: Root,
  name: string,
  limit: number,
  tooLarge: (size: number) => PublishError,
): Promise<Uint8Array | undefined> {
  const opened = await openFile(root, name);
  if (opened === undefined) return undefined;
  const { handle, size } = opened;
  return onDisk(`cannot read ${join(root.path, name)}`, async () => {
    try {
      if (size > limit) throw tooLarge(size);
      const bytes = await handle.readFile();
      if (bytes.length > limit) throw tooLarge(bytes.length);
      return bytes;
    } finally {
      await handle.close();
    }
  });
}

/** Refuses a folder of the layout that is a way out of it. */
export async function staysInside(root: Root, name: string): Promise<void> {
  if ((await realPath(root, name)) === undefined) throw odd(join(root.path, name), 'went away');
}

/**
 * Fills a new file and puts it in its place in one step when the disk has all of it: under its final name it is never
 * half written. Whatever fails, nothing is left behind.
 *
 * @throws as the file system and `fill` throw
 */
export async function writeFile(
  temporary: string,
  path: string,
  fill: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW);
  try {
    try {
      await fill(handle);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Of folders that cannot be opened or synced: Windows, and file systems that say so. */
const NO_FOLDER_SYNC: ReadonlySet<string> = new Set(['EISDIR', 'EPERM', 'EACCES', 'EINVAL', 'ENOTSUP', 'ENOSYS']);

/** Waits until the disk has what was renamed in the folder, where the system can do that. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, constants.O_RDONLY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!NO_FOLDER_SYNC.has(codeOf(error) ?? '')) throw error;
  }
}

/** Removes files that nobody has written to since `before`, in ms since 1970: what killed processes left. */
export async function sweep(folder: string, isLeft: (name: string) => boolean, before: number): Promise<void> {
  for (const name of (await readdir(folder)).filter(isLeft)) {
    const path = join(folder, name);
    const found = await stat(path).catch(unlessGone);
    if (found !== undefined && found.mtimeMs < before) await rm(path, { force: true });
  }
}

/** For work on something that another process may have removed. */
export function unlessGone(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}

function odd(path: string, what: string): PublishError {
  return new PublishError(
    'FILE_FAILED',
    `${path} ${what}`,
    'Make the layout anew with the files themselves in it: links that leave it, pipes and devices are not read.',
  );
}
