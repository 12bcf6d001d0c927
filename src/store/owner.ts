import { join } from 'node:path';
import { PublishError } from '../errors.ts';
import { quoted } from '../model/quoted.ts';
import { readJsonObject } from '../model/strict-json.ts';
import { codeOf, type Files, readRegular } from './files.ts';

/** Who writes: what others can tell of a process that holds a lock. */
export type Writer = {
  readonly pid: number;
  /** Process numbers mean something on one machine, or in one container, only. */
  readonly host: string;
  /** Whether a process of this host still runs. */
  readonly isAlive: (pid: number) => boolean;
};

/** Who holds a lock, as the lock itself tells. `epoch` in ms: since when. */
export type Owner = { readonly epoch: number } & Partial<{
  readonly pid: number;
  readonly host: string;
  readonly token: string;
}>;

/**
 * A holder that still runs is believed to be stuck after so many ms: its number may be that of another process by now,
 * and one on another machine cannot be asked.
 */
const STALE_AFTER = 10 * 60 * 1000;

/** The name of the file in a lock that tells of its owner begins so. */
const OWNER = 'owner-';
const OWNER_SIZE_MAX = 4096;

/** Largest number that is a date, in ms. */
const EPOCH_MAX = 8_640_000_000_000_000;

/** Where the lock of this token tells of its owner. */
export function ownerFile(lock: string, token: string): string {
  return join(lock, `${OWNER}${token}`);
}

/** What stands in that file. */
export function ownerText({ pid, host, epoch }: Owner): string {
  return JSON.stringify({ pid, host, epoch });
}

/**
 * Reads who holds the lock in this folder. When it does not tell, the age of the folder is all that is known; undefined
 * when it is not there.
 *
 * @throws PublishError `DRAFT_INVALID` when it is no folder, and as the file system throws
 */
export async function readOwner(files: Files, lock: string): Promise<Owner | undefined> {
  try {
    const stat = await files.lstat(lock);
    if (!stat.isDirectory()) throw new PublishError('DRAFT_INVALID', `${lock}: not a folder`, 'Remove it.');
    const { mtimeMs } = stat;
    const name = (await files.readdir(lock)).find((entry) => entry.startsWith(OWNER));
    const bytes = name === undefined ? undefined : await readRegular(files, join(lock, name), OWNER_SIZE_MAX);
    if (name === undefined || bytes === undefined) return { epoch: mtimeMs };
    return { ...parseOwner(bytes, lock, mtimeMs), token: name.slice(OWNER.length) };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** A text that was cut short by a power failure says nothing. */
function parseOwner(bytes: Uint8Array, name: string, otherwise: number): Owner {
  try {
    const { pid, host, epoch } = readJsonObject(bytes, name);
    return {
      ...(typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? { pid } : {}),
      ...(typeof host === 'string' ? { host } : {}),
      epoch: typeof epoch === 'number' && Math.abs(epoch) <= EPOCH_MAX ? epoch : otherwise,
    };
  } catch (error) {
    if (error instanceof PublishError) return { epoch: otherwise };
    throw error;
  }
}

/**
 * Whether nobody will give the lock back: its process has ended, or it is too old.
 *
 * @param now ms since 1970
 * @param own tokens of this process: one that bears its number and is none of these is from an earlier life
 */
export function isStale(owner: Owner, now: number, writer: Writer, own: ReadonlySet<string>): boolean {
  if (Math.abs(now - owner.epoch) > STALE_AFTER) return true;
  if (owner.pid === undefined || owner.host !== writer.host) return false;
  if (owner.pid === writer.pid) return owner.token === undefined || !own.has(owner.token);
  return !writer.isAlive(owner.pid);
}

/** The failure of whoever waited in vain. */
export function heldBy(owner: Owner | undefined, lock: string, path: string): PublishError {
  const who = owner?.pid === undefined ? 'another process' : `process ${owner.pid}`;
  const where = owner?.host === undefined ? '' : ` on ${quoted(owner.host)}`;
  const since = owner === undefined ? '' : ` since ${new Date(owner.epoch).toISOString()}`;
  return new PublishError(
    'FILE_FAILED',
    `${path} is locked by ${who}${where}${since}`,
    `Wait for it to end; when nothing works on that list any more, remove ${lock}`,
  );
}
