import { open, stat } from 'node:fs/promises';
import { PublishError } from '../errors.ts';

/** Longest configuration that is read, in bytes; a device or somebody's joke has no end. */
const LONGEST = 1024 * 1024;

/**
 * Looks at a file that the search is going to read. What stands under a name of ours and cannot be read is told:
 * passing it over would publish with settings that nobody meant.
 *
 * @throws PublishError `CONFIG_INVALID`
 */
export async function checkFound(path: string): Promise<void> {
  try {
    const stats = await stat(path);
    // As one named `.config` is.
    if (stats.isDirectory()) return;
    if (!stats.isFile()) throw unfit(path, 'is not a file');
    if (stats.size > LONGEST) throw tooLong(path);
    // access(2) would ask for the real user, not for the one whose rights count.
    await (await open(path)).close();
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Reads a file that was named; it may be a pipe, such as a shell's `<(...)`.
 *
 * @throws PublishError `CONFIG_INVALID`
 */
export async function readNamed(path: string): Promise<string> {
  try {
    const handle = await open(path);
    try {
      const pieces: Buffer[] = [];
      let length = 0;
      for await (const piece of handle.createReadStream({ autoClose: false })) {
        pieces.push(piece);
        length += piece.length;
        if (length > LONGEST) throw tooLong(path);
      }
      return Buffer.concat(pieces).toString('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): unknown {
  if (error instanceof PublishError || !(error instanceof Error) || !('code' in error)) return error;
  return unfit(path, `cannot be read (${String(error.code)})`, error);
}

function tooLong(path: string): PublishError {
  return unfit(path, `is longer than ${LONGEST / 1024} KiB, which no configuration is`);
}

function unfit(path: string, what: string, cause?: unknown): PublishError {
  const hint = 'Check the name and the rights of the file, or name another: --config FILE.';
  return new PublishError('CONFIG_INVALID', `${path}: ${what}`, hint, cause === undefined ? {} : { cause });
}
