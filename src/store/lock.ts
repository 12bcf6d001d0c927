import { basename, dirname, join } from 'node:path';
import { PublishError } from '../errors.ts';
import type { Clock } from '../publish/ports.ts';
import { codeOf, type Files, failed, makeFile, makePrivateFolder, overwrite, syncFolder } from './files.ts';
import { heldBy, isStale, ownerFile, ownerText, readOwner, type Writer } from './owner.ts';

/** What locks need of the world. */
export type LockPorts = {
  readonly files: Files;
  readonly clock: Clock;
  readonly writer: Writer;
  /** A text that no other call gives, on any machine, and that can be part of a file name: a UUID. */
  readonly token: () => string;
  readonly signal: AbortSignal;
  /** How long to wait for others, in ms. */
  readonly wait: number;
  /** Tokens of the locks that this process holds or waits for. */
  readonly own: Set<string>;
};

/** A lock that is held. */
export type Lock = {
  /**
   * Puts the bytes in the place of the draft in one step, and only if the lock was held all the time. False: somebody
   * took it over, and nothing was written.
   */
  commit(bytes: Uint8Array): Promise<boolean>;
  /** Gives it back, with what was not committed; harmless when somebody took it over. */
  release(): Promise<void>;
};

/** Pauses between two looks, in ms: the first, and the longest. */
const FIRST_PAUSE = 5;
const LONGEST_PAUSE = 100;

/**
 * What a rename says when it did not put the lock in place: a lock is there, something that is no folder is (whoever
 * looks at its owner names it), or what was prepared was swept away.
 */
const NOT_TAKEN: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'ENOENT']);

/** Windows says these for any folder that is there, or that somebody looks into; elsewhere they mean what they say. */
const PERHAPS_TAKEN: ReadonlySet<string> = new Set(['EPERM', 'EACCES', 'EBUSY']);

/** Names of work under way beside the drafts; no draft is named so. */
export const WORK_NAME = /\.json\.(?:lock|(?:new|dead)\..+)$/;

/**
 * Takes the lock of the draft at `path`: a folder beside it that one rename puts in place together with the file that
 * says who holds it, so that a process killed at any moment leaves no lock without an owner.
 *
 * The draft is written to a file that came with the folder, and renamed out of it. Whoever takes over a lock renames
 * the folder away, and it never comes back: the earlier holder, who may only have been thought dead, then finds its
 * file no more. So two processes that take over at once do not write over each other either; the one that lost begins
 * anew.
 *
 * @throws PublishError `FILE_FAILED`, after `wait` ms naming the holder
 */
export async function takeLock(path: string, ports: LockPorts): Promise<Lock> {
  const { files, clock, own } = ports;
  const place = `${path}.lock`;
  const token = ports.token();
  const prepared = `${path}.new.${token}`;
  const deadline = clock.now() + ports.wait;
  own.add(token);
  let taken = false;
  try {
    await prepare(prepared, token, ports);
    for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      taken = await putInPlace(prepared, place, files);
      if (taken) break;
      const owner = await readOwner(files, place);
      if (owner !== undefined && isStale(owner, clock.epoch(), ports.writer, own)) {
        await clearAway(place, `${path}.dead.${ports.token()}`, files);
      } else if (clock.now() >= deadline) {
        throw heldBy(owner, place, path);
      } else {
        await clock.sleep(pause, ports.signal);
      }
      if (!(await isThere(files, prepared))) await prepare(prepared, token, ports);
    }
    await sweep(path, ports);
    return heldLock(path, place, token, ports);
  } catch (error) {
    throw failed(error, `cannot write ${path}`);
  } finally {
    if (!taken) {
      await unlessRefused(files.rm(prepared, { recursive: true, force: true }));
      own.delete(token);
    }
  }
}

/** The folder that will be the lock, complete before anybody sees it. */
async function prepare(prepared: string, token: string, { files, clock, writer }: LockPorts): Promise<void> {
  await makePrivateFolder(files, prepared);
  await makeFile(files, ownerFile(prepared, token), ownerText({ ...writer, epoch: clock.epoch() }));
  await makeFile(files, draftFile(prepared, token), '');
}

/** False: another lock is there. */
async function putInPlace(prepared: string, place: string, files: Files): Promise<boolean> {
  try {
    await files.rename(prepared, place);
    return true;
  } catch (error) {
    const code = codeOf(error) ?? '';
    if (NOT_TAKEN.has(code) || (PERHAPS_TAKEN.has(code) && (await isThere(files, place)))) return false;
    throw error;
  }
}

/** @see Lock */
function heldLock(path: string, place: string, token: string, { files, own }: LockPorts): Lock {
  const draft = draftFile(place, token);
  return {
    async commit(bytes) {
      try {
        await overwrite(files, draft, bytes);
        await files.rename(draft, path);
        await syncFolder(files, dirname(path));
        return true;
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return false;
        throw failed(error, `cannot write ${path}`);
      }
    },
    async release() {
      // The owner goes last: a lock without one is an empty folder, in whose place any other can be put.
      await unlessRefused(files.rm(draft, { force: true }));
      await unlessRefused(files.rm(ownerFile(place, token), { force: true }));
      await unlessRefused(files.rmdir(place));
      own.delete(token);
    },
  };
}

/** Takes a stale lock out of the way, as a whole. Who is second finds it gone. */
async function clearAway(place: string, dead: string, files: Files): Promise<void> {
  try {
    await files.rename(place, dead);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  await unlessRefused(files.rm(dead, { recursive: true, force: true }));
}

/** Removes what killed processes left beside this draft, as far as that is possible. */
async function sweep(path: string, ports: LockPorts): Promise<void> {
  const [folder, base] = [dirname(path), basename(path)];
  const left = (name: string): boolean =>
    WORK_NAME.test(name) && name.startsWith(`${base}.`) && name !== `${base}.lock`;
  const remove = async (name: string): Promise<void> => {
    if (name.startsWith(`${base}.new.`) && (await isUsed(join(folder, name), ports))) return;
    await ports.files.rm(join(folder, name), { recursive: true, force: true });
  };
  await unlessRefused(
    ports.files.readdir(folder).then(async (names) => {
      for (const name of names.filter(left)) await remove(name);
    }),
  );
}

async function isUsed(prepared: string, { files, clock, writer, own }: LockPorts): Promise<boolean> {
  const owner = await readOwner(files, prepared);
  return owner !== undefined && !isStale(owner, clock.epoch(), writer, own);
}

function draftFile(lock: string, token: string): string {
  return join(lock, `draft-${token}`);
}

async function isThere(files: Files, path: string): Promise<boolean> {
  try {
    await files.lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** What cannot be cleaned up now is cleaned up by whoever takes the lock next; it is no reason to fail. */
async function unlessRefused(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (codeOf(error) === undefined && !(error instanceof PublishError)) throw error;
  }
}
