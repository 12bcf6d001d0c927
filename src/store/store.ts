import { join } from 'node:path';
import { PublishError } from '../errors.ts';
import type { Clock } from '../publish/ports.ts';
import { DRAFT_SIZE_MAX, DROP_IT, decodeDraft, encodeDraft } from './codec.ts';
import type { Draft, DraftStore, StoredDraft } from './draft.ts';
import { DRAFT_END, draftFileName } from './file-name.ts';
import { codeOf, FILES, type Files, failed, hasFolder, makePrivateFolder, readRegular } from './files.ts';
import { type LockPorts, takeLock, WORK_NAME } from './lock.ts';
import type { Writer } from './owner.ts';

/** What a store needs of the world. */
export type DraftStoreOptions = {
  /** @see draftFolder */
  readonly folder: string;
  readonly clock: Clock;
  readonly writer: Writer;
  /** A text that no other call gives, on any machine, and that can be part of a file name: a UUID. */
  readonly token: () => string;
  /** Ends the waiting for other processes. */
  readonly signal?: AbortSignal;
  /** How long to wait for a process that holds a draft's lock, in ms; default 10 s. */
  readonly wait?: number;
  /** Default: the file system of this machine. */
  readonly files?: Files;
};

/** For the few commands that somebody types at a time, each of which holds the lock for milliseconds. */
const WAIT = 10_000;

/** How often a change begins anew because its lock was taken over; each time is a rare accident. */
const TRIES = 10;

/** There is no room for a lock either, but removing makes room. */
const NO_ROOM: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);

/** The drafts in a folder of this machine, one file each. */
export function createDraftStore(options: DraftStoreOptions): DraftStore {
  const { folder, files = FILES } = options;
  const { wait = WAIT, signal = new AbortController().signal } = options;
  const ports: LockPorts = { ...options, files, wait, signal, own: new Set() };
  const fileOf = (reference: string): string => join(folder, draftFileName(reference) + DRAFT_END);
  return {
    async read(reference) {
      return (await hasFolder(files, folder)) ? readDraft(files, fileOf(reference), reference) : undefined;
    },
    async change(reference, work) {
      const path = fileOf(reference);
      await makeFolder(files, folder);
      for (let tries = 0; tries < TRIES; tries++) {
        const lock = await takeLock(path, ports);
        try {
          const next = await work(await readDraft(files, path, reference));
          if (next === undefined || (await lock.commit(checkedBytes(next, reference, path)))) return;
        } finally {
          await lock.release();
        }
      }
      throw new PublishError(
        'FILE_FAILED',
        `cannot write ${path} (other processes took its lock over ${TRIES} times)`,
        'Check that the clocks of all machines that use the folder are right, then run the same command again.',
      );
    },
    async list() {
      return (await hasFolder(files, folder)) ? listDrafts(files, folder) : { drafts: [], damaged: [] };
    },
    async remove(reference) {
      if (!(await hasFolder(files, folder))) return false;
      const path = fileOf(reference);
      return (await isThere(files, path)) && removeDraft(path, ports);
    },
  };
}

async function makeFolder(files: Files, folder: string): Promise<void> {
  try {
    await makePrivateFolder(files, folder);
  } catch (error) {
    throw failed(error, `cannot make the folder ${folder}`);
  }
  await hasFolder(files, folder);
}

/** @throws PublishError `DRAFT_INVALID` also when the file holds the draft of another list */
async function readDraft(files: Files, path: string, reference: string): Promise<StoredDraft | undefined> {
  const bytes = await readRegular(files, path, DRAFT_SIZE_MAX);
  if (bytes === undefined) return undefined;
  const stored = decodeDraft(bytes, path);
  if (stored.draft.reference === reference) return stored;
  throw new PublishError(
    'DRAFT_INVALID',
    `${path}: the draft of ${stored.draft.reference}, not of ${reference}`,
    DROP_IT,
  );
}

/** What is written is read first: a draft that could not be read again would be lost. */
function checkedBytes(stored: StoredDraft, reference: string, path: string): Uint8Array {
  if (stored.draft.reference !== reference)
    throw new Error(`a draft of ${stored.draft.reference}, not of ${reference}`);
  const bytes = encodeDraft(stored);
  try {
    decodeDraft(bytes, path);
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    throw new PublishError(
      'MANIFEST_UNSUPPORTED',
      `${reference} cannot be kept as a draft: ${error.message}`,
      'Publish it in one step, which keeps nothing: manifest-publish publish LIST SOURCE...',
      { cause: error },
    );
  }
  return bytes;
}

async function listDrafts(
  files: Files,
  folder: string,
): Promise<{ readonly drafts: readonly Draft[]; readonly damaged: readonly string[] }> {
  const drafts: Draft[] = [];
  const damaged: string[] = [];
  for (const name of (await namesIn(files, folder)).filter((entry) => !WORK_NAME.test(entry))) {
    const draft = await draftIn(files, folder, name);
    if (draft === 'damaged') damaged.push(join(folder, name));
    else if (draft !== undefined) drafts.push(draft);
  }
  const byReference = (one: Draft, other: Draft): number => (one.reference < other.reference ? -1 : 1);
  return { drafts: drafts.sort(byReference), damaged };
}

/** Undefined: removed in the meantime. */
async function draftIn(files: Files, folder: string, name: string): Promise<Draft | 'damaged' | undefined> {
  try {
    const bytes = await readRegular(files, join(folder, name), DRAFT_SIZE_MAX);
    if (bytes === undefined) return undefined;
    const { draft } = decodeDraft(bytes, name);
    return draftFileName(draft.reference) + DRAFT_END === name ? draft : 'damaged';
  } catch (error) {
    if (error instanceof PublishError && error.code === 'DRAFT_INVALID') return 'damaged';
    throw error;
  }
}

async function namesIn(files: Files, folder: string): Promise<readonly string[]> {
  try {
    return (await files.readdir(folder)).sort();
  } catch (error) {
    throw failed(error, `cannot read ${folder}`);
  }
}

async function removeDraft(path: string, ports: LockPorts): Promise<boolean> {
  const lock = await takeLock(path, ports).catch((error: unknown) => {
    const cause = error instanceof PublishError ? error.cause : undefined;
    if (NO_ROOM.has(codeOf(cause) ?? '')) return undefined;
    throw error;
  });
  try {
    await ports.files.unlink(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw failed(error, `cannot remove ${path}`);
  } finally {
    await lock?.release();
  }
}

async function isThere(files: Files, path: string): Promise<boolean> {
  try {
    await files.lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw failed(error, `cannot read ${path}`);
  }
}
