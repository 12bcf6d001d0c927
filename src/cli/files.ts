import { randomUUID } from 'node:crypto';
import { constants, write } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PublishError } from '../errors.ts';
import { type OutputTarget, outputTarget } from './output-target.ts';
import { usage } from './settings.ts';

/** A file that a run is asked to write, the flag that asked, and what goes into it. */
export type WantedFile<T> = {
  readonly flag: string;
  readonly path: string | undefined;
  /** Undefined: there is nothing to say, and the file stays as it was. */
  readonly text: (result: T) => string | undefined;
  /** What stands there now would be taken for what this run says, should it be killed: it goes before the work begins. */
  readonly outdated?: boolean;
};

/** What writing needs of this process. */
export type FileWorld = {
  readonly pid: number;
  print(text: string, to: 'stdout' | 'stderr'): Promise<void>;
  /** Takes secrets out of a text; digests stay. */
  conceal(text: string): string;
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
  /** Ends waiting for whoever reads a pipe. */
  readonly signal: AbortSignal;
};

/** How long a pipe may be without a reader before the work begins, and how often it is looked at, in ms. */
const READER_WITHIN = 2000;
const LOOK_EVERY = 50;

/**
 * Runs the work and writes the files. Whether they can be written is found out before the work begins; each is put
 * in place in one step, and a failure of one does not keep the others from being written.
 *
 * @throws PublishError `FILE_FAILED`, `USAGE_INVALID` for one file with two flags
 */
export async function withOutputFiles<T>(
  wanted: readonly WantedFile<T>[],
  world: FileWorld,
  work: () => Promise<T>,
): Promise<T> {
  const files: ({ readonly file: OutputFile } & Pick<WantedFile<T>, 'text' | 'outdated'>)[] = [];
  try {
    for (const { target, path, flag, text, outdated } of await targets(wanted, world)) {
      files.push({ file: await reserve(target, path, flag, world), text, ...(outdated === true ? { outdated } : {}) });
    }
    for (const { file, outdated } of files) if (outdated === true) await file.clear();
    const result = await work();
    const failures: unknown[] = [];
    for (const { file, text } of files) {
      const written = text(result);
      if (written === undefined) continue;
      // A report repeats what registries and configs say, and they can say what they were sent.
      await file.commit(world.conceal(written)).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
    return result;
  } finally {
    for (const { file } of files) await file.discard();
  }
}

type OutputFile = {
  /** Puts the text in place in one step: a reader sees the old content or the whole new one. */
  commit(text: string): Promise<void>;
  /** Takes away what stands there from before. */
  clear(): Promise<void>;
  /** Leaves no trace; harmless after a commit. */
  discard(): Promise<void>;
};

type Target = { readonly target: OutputTarget; readonly path: string; readonly flag: string };

async function targets<T>(wanted: readonly WantedFile<T>[], { pid }: FileWorld) {
  const found: (Target & Pick<WantedFile<T>, 'text' | 'outdated'>)[] = [];
  for (const { flag, path, text, outdated } of wanted) {
    if (path === undefined) continue;
    // As left by a variable that is not set; as a path it would be the folder that we are in.
    if (path === '') throw usage(`${flag} needs the name of a file`, `Write for example ${flag}=FILE.`);
    const target = await outputTarget(path, pid).catch((error: unknown) => {
      throw fileError(path, flag, error);
    });
    if (target.kind === 'unfit') throw fileError(path, flag, target.why);
    const { identity } = target;
    const other = found.find((one) => identity !== undefined && one.target.identity === identity);
    if (other !== undefined) {
      throw usage(`${other.flag} and ${flag} name one file: ${path}`, 'Name another file for one of them.');
    }
    found.push({ target, path, flag, text, ...(outdated === true ? { outdated } : {}) });
  }
  return found;
}

/**
 * A file is reserved by opening its temporary neighbour, so that a folder that is missing or read-only ends the run
 * before anything is published. What is no file is opened and written to as it is.
 */
async function reserve(target: OutputTarget, path: string, flag: string, world: FileWorld): Promise<OutputFile> {
  const failed = (error: unknown): never => {
    throw error === world.signal.reason || error instanceof PublishError ? error : fileError(path, flag, error);
  };
  switch (target.kind) {
    case 'unfit':
      throw fileError(path, flag, target.why);
    case 'descriptor': {
      const { fd } = target;
      const standard = fd === 1 ? 'stdout' : fd === 2 ? 'stderr' : undefined;
      const commit = (text: string) =>
        standard === undefined ? writeAll(fd, text, world) : world.print(text, standard);
      const nothing = async () => undefined;
      return { commit: (text) => commit(text).catch(failed), clear: nothing, discard: nothing };
    }
    case 'stream': {
      const handle = await openStream(target.path, target.isPipe, world).catch(failed);
      return {
        commit: (text) => writeAll(handle.fd, text, world).catch(failed),
        clear: async () => undefined,
        discard: () => handle.close(),
      };
    }
    case 'file': {
      const temporary = join(dirname(target.path), `.${basename(target.path)}.${randomUUID()}.tmp`);
      // The rights of the file that is replaced are kept: rename would otherwise widen them.
      const handle = await open(temporary, 'wx', target.mode ?? 0o666).catch(failed);
      return temporaryFile(handle, temporary, target.path, failed);
    }
  }
}

/** Opens without waiting: a pipe that nobody reads, or a line without a carrier, would keep the process for ever. */
async function openStream(path: string, isPipe: boolean, { sleep, signal }: FileWorld): Promise<FileHandle> {
  const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  for (let waited = 0; ; waited += LOOK_EVERY) {
    try {
      return await open(path, flags);
    } catch (error) {
      // ENXIO: no reader yet; the one of `mkfifo p; cat p & ...` may be starting just now.
      if (!isPipe || codeOf(error) !== 'ENXIO') throw error;
      if (waited >= READER_WITHIN) throw new Error('nobody reads the pipe', { cause: error });
    }
    await sleep(LOOK_EVERY, signal);
  }
}

const writeSome = promisify(write);

async function writeAll(fd: number, text: string, { sleep, signal }: FileWorld): Promise<void> {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      const { bytesWritten } = await writeSome(fd, rest, 0, rest.length, null);
      rest = rest.subarray(bytesWritten);
    } catch (error) {
      // The pipe is full, and its other end takes its time.
      if (codeOf(error) !== 'EAGAIN') throw error;
      await sleep(LOOK_EVERY, signal);
    }
  }
}

function temporaryFile(
  handle: FileHandle,
  temporary: string,
  target: string,
  failed: (error: unknown) => never,
): OutputFile {
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
        failed(error);
      }
    },
    clear: () => rm(target, { force: true }).catch(failed),
    async discard() {
      await close();
      await rm(temporary, { force: true });
    },
  };
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** @param problem what the file system threw, or a reason in words */
function fileError(path: string, flag: string, problem: unknown): PublishError {
  const code = codeOf(problem);
  const reason = code === undefined ? (problem instanceof Error ? problem.message : String(problem)) : String(code);
  return new PublishError(
    'FILE_FAILED',
    `cannot write the file of ${flag}: ${path} (${reason})`,
    `Name a file in a folder that exists and may be written to: ${flag} FILE.`,
    problem instanceof Error ? { cause: problem } : {},
  );
}
