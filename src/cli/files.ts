import { randomUUID } from 'node:crypto';
import { type FileHandle, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { PublishError } from '../errors.ts';

/** A file that a run is asked to write, the flag that asked, and what goes into it. */
export type WantedFile<T> = {
  readonly flag: string;
  readonly path: string | undefined;
  readonly text: (result: T) => string;
};

/**
 * Runs the work and writes the files. Whether they can be written is found out before the work begins; each is put
 * in place in one step.
 *
 * @throws PublishError `FILE_FAILED`
 */
export async function withOutputFiles<T>(wanted: readonly WantedFile<T>[], work: () => Promise<T>): Promise<T> {
  const files: { readonly file: OutputFile; readonly text: WantedFile<T>['text'] }[] = [];
  try {
    for (const { flag, path, text } of wanted) {
      if (path !== undefined) files.push({ file: await reserveFile(path, flag), text });
    }
    const result = await work();
    for (const { file, text } of files) await file.commit(text(result));
    return result;
  } finally {
    for (const { file } of files) await file.discard();
  }
}

type OutputFile = {
  /** Puts the text in place in one step: a reader sees the old content or the whole new one. */
  commit(text: string): Promise<void>;
  /** Leaves no trace; harmless after a commit. */
  discard(): Promise<void>;
};

/**
 * Reserves a file by opening its temporary neighbour, so that a folder that is missing or read-only ends the run
 * before anything is published. Devices and pipes, such as `/dev/stderr`, are written to directly.
 */
async function reserveFile(path: string, flag: string): Promise<OutputFile> {
  try {
    const target = await realpath(path).catch(missing(resolve(path)));
    const kind = await stat(target).catch(missing(undefined));
    if (kind?.isDirectory()) throw fileError(path, flag, 'it is a folder', undefined);
    if (kind !== undefined && !kind.isFile()) {
      return { commit: (text) => writeFile(target, text), discard: async () => undefined };
    }
    // The rights of the file that is replaced are kept: rename would otherwise widen them.
    const temporary = join(dirname(target), `.${basename(target)}.${randomUUID()}.tmp`);
    const handle = await open(temporary, 'wx', kind === undefined ? 0o666 : kind.mode & 0o777);
    return temporaryFile(path, flag, handle, temporary, target);
  } catch (error) {
    throw error instanceof PublishError ? error : fileError(path, flag, reasonOf(error), error);
  }
}

function temporaryFile(path: string, flag: string, handle: FileHandle, temporary: string, target: string): OutputFile {
  let open = true;
  const close = async () => {
    if (open) await handle.close();
    open = false;
  };
  return {
    async commit(text) {
      try {
        await handle.writeFile(text);
        await handle.sync();
        await close();
        await rename(temporary, target);
      } catch (error) {
        throw fileError(path, flag, reasonOf(error), error);
      }
    },
    async discard() {
      await close();
      await rm(temporary, { force: true });
    },
  };
}

function missing<T>(fallback: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return fallback;
    throw error;
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

function fileError(path: string, flag: string, reason: string, cause: unknown): PublishError {
  return new PublishError(
    'FILE_FAILED',
    `cannot write the file of ${flag}: ${path} (${reason})`,
    `Name a file in a folder that exists and may be written to: ${flag} FILE.`,
    { cause },
  );
}
