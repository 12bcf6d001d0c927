import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PublishError } from '../errors.ts';

/** What the store asks of the file system; tests hand in one that fails. */
export type Files = {
  readonly lstat: typeof lstat;
  readonly mkdir: typeof mkdir;
  readonly open: typeof open;
  readonly readdir: typeof readdir;
  readonly rename: typeof rename;
  readonly rm: typeof rm;
  readonly rmdir: typeof rmdir;
  readonly unlink: typeof unlink;
};

/** The file system of this machine. */
export const FILES: Files = { lstat, mkdir, open, readdir, rename, rm, rmdir, unlink };

/** Windows has no such flags. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NON_BLOCK = constants.O_NONBLOCK ?? 0;

/** Only us may read and write it: references tell what somebody is about to release. */
const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

/** Of folders that cannot be opened or synced: Windows, and file systems that say so. */
const NO_FOLDER_SYNC: ReadonlySet<string> = new Set(['EISDIR', 'EPERM', 'EACCES', 'EINVAL', 'ENOTSUP', 'ENOSYS']);

/** The error code of the operating system, or undefined when the error is none of its. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * The whole content of a regular file, or undefined when there is none. A link is not followed, and nothing is waited
 * for: a pipe in the place of a file would otherwise hold the program for ever.
 *
 * @throws PublishError `DRAFT_INVALID` when it is something else or too large, `FILE_FAILED`
 */
export async function readRegular(files: Files, path: string, limit: number): Promise<Uint8Array | undefined> {
  try {
    const handle = await files.open(path, constants.O_RDONLY | NO_FOLLOW | NON_BLOCK);
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw notADraft(path, 'not a regular file');
      if (stat.size > limit) throw notADraft(path, `${stat.size} bytes, the limit is ${limit}`);
      const bytes = await handle.readFile();
      if (bytes.length > limit) throw notADraft(path, `more than ${limit} bytes`);
      return bytes;
    } finally {
      await handle.close();
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return undefined;
    // FreeBSD says EMLINK, NetBSD EFTYPE; Windows does not know links here.
    if (code === 'ELOOP' || code === 'EMLINK' || code === 'EFTYPE') throw notADraft(path, 'a symbolic link');
    throw failed(error, `cannot read ${path}`);
  }
}

/** Makes a file that only we may read. What is there in its place is not touched. @throws as the file system throws */
export async function makeFile(files: Files, path: string, text: string): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW;
  const handle = await files.open(path, flags, PRIVATE_FILE);
  try {
    await handle.writeFile(text);
  } finally {
    await handle.close();
  }
}

/** Writes into a file that is there, and waits until the disk has it. @throws as the file system throws */
export async function overwrite(files: Files, path: string, bytes: Uint8Array): Promise<void> {
  const handle = await files.open(path, constants.O_WRONLY | constants.O_TRUNC | NO_FOLLOW);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Waits until the disk has what was renamed in the folder, where the system can do that. */
export async function syncFolder(files: Files, folder: string): Promise<void> {
  try {
    const handle = await files.open(folder, constants.O_RDONLY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!NO_FOLDER_SYNC.has(codeOf(error) ?? '')) throw error;
  }
}

/**
 * Makes a folder that only we may enter, with those above it; harmless when it is there. Node's own `recursive` calls a
 * read-only file system a folder that is missing.
 *
 * @throws as the file system throws
 */
export async function makePrivateFolder(files: Files, folder: string): Promise<void> {
  const make = (): Promise<unknown> => files.mkdir(folder, { mode: PRIVATE_FOLDER });
  try {
    await make().catch(async (error: unknown) => {
      if (codeOf(error) !== 'ENOENT' || dirname(folder) === folder) throw error;
      await makePrivateFolder(files, dirname(folder));
      await make();
    });
  } catch (error) {
    // Also where a file is: whoever uses it as a folder finds that out.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * Whether the folder is there. A link in its place could point anywhere, and what is written there would be read by
 * others.
 *
 * @throws PublishError `DRAFT_INVALID`, `FILE_FAILED`
 */
export async function hasFolder(files: Files, folder: string): Promise<boolean> {
  try {
    const stat = await files.lstat(folder);
    if (stat.isSymbolicLink()) throw notADraft(folder, 'a symbolic link where drafts are kept', MOVE_IT);
    if (!stat.isDirectory()) throw notADraft(folder, 'not a folder', MOVE_IT);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw failed(error, `cannot read ${folder}`);
  }
}

const MOVE_IT = 'Remove it, or keep drafts elsewhere: MANIFEST_PUBLISH_DATA_DIR=FOLDER.';
const ELSEWHERE = 'Make it writable, or keep drafts elsewhere: MANIFEST_PUBLISH_DATA_DIR=FOLDER.';

/** What the system means, and what helps. */
const REASONS: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['ENOSPC', ['no space left on the device', 'Free some space, then run the same command again.']],
  ['EDQUOT', ['the disk quota is used up', 'Free some space, then run the same command again.']],
  ['EROFS', ['the file system is read-only', ELSEWHERE]],
  ['EACCES', ['permission denied', ELSEWHERE]],
  ['EPERM', ['not permitted', ELSEWHERE]],
  ['EMFILE', ['too many open files', 'Raise the limit with ulimit -n, then run the same command again.']],
  ['ENFILE', ['too many open files on this machine', 'Wait, then run the same command again.']],
  ['ENOTDIR', ['a part of the path is not a folder', MOVE_IT]],
]);

/**
 * The failure that the user sees for one of the operating system's; others are handed back as they are.
 *
 * @param what for example `cannot write FILE`
 */
export function failed(error: unknown, what: string): unknown {
  const code = codeOf(error);
  if (error instanceof PublishError || code === undefined) return error;
  const [reason, hint] = REASONS.get(code) ?? [
    code,
    'Look at the file and its folder, then run the same command again.',
  ];
  return new PublishError('FILE_FAILED', `${what} (${reason})`, hint, { cause: error });
}

function notADraft(path: string, what: string, hint = DROP_FILE): PublishError {
  return new PublishError('DRAFT_INVALID', `${path}: ${what}`, hint);
}

const DROP_FILE = 'Remove it, then create the list again.';
