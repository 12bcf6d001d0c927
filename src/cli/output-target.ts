import { fstatSync, type Stats } from 'node:fs';
import { lstat, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

/** What a file name of the command line leads to. `identity` is the same for two names of one file. */
export type OutputTarget = { readonly identity: string | undefined } & (
  | /** A descriptor that this process was started with: written as it stands, as the shell's own redirection is. */ {
      readonly kind: 'descriptor';
      readonly fd: number;
    }
  /** A device or a pipe. */
  | { readonly kind: 'stream'; readonly path: string; readonly isPipe: boolean }
  /** A file, there (with its mode) or not: the last name of all links. */
  | { readonly kind: 'file'; readonly path: string; readonly mode: number | undefined }
  | { readonly kind: 'unfit'; readonly why: string }
);

/** As Linux follows them. @see path_resolution(7) */
const LINKS_MAX = 40;

/** `/dev/stdout`, `/dev/fd/3`, `/proc/self/fd/3`; `/dev/fd` is a link to `/proc/PID/fd` where there is a /proc. */
const DESCRIPTOR = /^\/(?:dev\/fd|proc\/(self|thread-self|\d+)(?:\/task\/\d+)?\/fd)\/(\d{1,5})$/;
const STANDARD: Readonly<Record<string, number>> = { '/dev/stdin': 0, '/dev/stdout': 1, '/dev/stderr': 2 };

/**
 * Follows the links of a name by hand: what one of them leads to may be missing, and a name of a descriptor must not
 * be taken for the file that it is open on.
 *
 * @param pid of this process
 * @throws Error of the file system, such as ENOENT for a folder that is missing
 */
export async function outputTarget(path: string, pid: number): Promise<OutputTarget> {
  let current = resolve(path);
  for (let links = 0; links <= LINKS_MAX; links++) {
    const standard = STANDARD[current];
    if (standard !== undefined) return descriptor(standard);
    current = join(await realpath(dirname(current)), basename(current));
    const [, owner, number] = DESCRIPTOR.exec(current) ?? [];
    if (number !== undefined) {
      if (owner !== undefined && /^\d/.test(owner) && Number(owner) !== pid) {
        return unfit('it belongs to another process');
      }
      return descriptor(Number(number));
    }
    const stats = await lstat(current).catch(missing);
    if (stats === undefined) return { kind: 'file', path: current, mode: undefined, identity: current };
    if (!stats.isSymbolicLink()) return existing(current, stats);
    current = resolve(dirname(current), await readlink(current));
  }
  return unfit('ELOOP');
}

function existing(path: string, stats: Stats): OutputTarget {
  if (stats.isDirectory()) return unfit('it is a folder');
  if (!stats.isFile()) return { kind: 'stream', path, isPipe: stats.isFIFO(), identity: identityOf(stats) };
  // A name for what a standard stream is open on: replacing that file would take it from the stream.
  const fd = [1, 2].find((candidate) => identityOf(fstatSync(candidate)) === identityOf(stats));
  if (fd !== undefined) return descriptor(fd);
  return { kind: 'file', path, mode: stats.mode & 0o777, identity: identityOf(stats) };
}

function descriptor(fd: number): OutputTarget {
  if (fd === 0) return unfit('it is for reading');
  const stats = fstatSync(fd);
  const isStream = stats.isFile() || stats.isFIFO() || stats.isCharacterDevice() || stats.isSocket();
  return isStream ? { kind: 'descriptor', fd, identity: identityOf(stats) } : unfit('it cannot be written to');
}

/** A device keeps nothing that a second text could damage. */
function identityOf(stats: Stats): string | undefined {
  return stats.isCharacterDevice() || stats.isBlockDevice() ? undefined : `${stats.dev}:${stats.ino}`;
}

function unfit(why: string): OutputTarget {
  return { kind: 'unfit', why, identity: undefined };
}

function missing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}
