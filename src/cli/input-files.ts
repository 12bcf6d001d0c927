import { createReadStream, type Stats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PublishError } from '../errors.ts';
import type { World } from './runtime.ts';

/** A text that the user named, and what to call it in messages. */
export type InputText = { readonly name: string; readonly text: string };

/** What reading needs of this process. */
export type InputWorld = Pick<World, 'env' | 'stdin'>;

/** More than any document that is taken; the reader of the document says how much it takes. */
const MOST = 16 * 1024 * 1024;

/** As much of a digest file as tells what it is, in bytes. */
const GLANCE = 64 * 1024;

const STDIN = '-';
const ENV = /^env:([A-Za-z_][A-Za-z0-9_]*)$/;

/**
 * Reads a file, standard input for `-`, or for `env:NAME` the variable NAME.
 *
 * @param flag for messages
 * @throws PublishError `FILE_FAILED`, `USAGE_INVALID` for a name that is empty or a variable that is not set
 */
export async function readInput(path: string, flag: string, world: InputWorld): Promise<InputText> {
  if (path === '') throw failed('USAGE_INVALID', `${flag} needs the name of a file`, `Write for example ${flag} FILE.`);
  if (path === STDIN) {
    return { name: STDIN, text: decoded(await readUpTo(world.stdin(), MOST).catch(cannotRead(flag, 'stdin'))) };
  }
  const [, variable] = ENV.exec(path) ?? [];
  if (variable !== undefined) return fromEnvironment(variable, flag, world.env);
  const stats = await stat(path).catch(cannotRead(flag, path));
  if (stats.isDirectory()) throw isFolder(flag, path);
  return { name: path, text: decoded(await readUpTo(createReadStream(path), MOST).catch(cannotRead(flag, path))) };
}

function fromEnvironment(variable: string, flag: string, env: World['env']): InputText {
  const text = env[variable] ?? '';
  if (text !== '') return { name: `env:${variable}`, text };
  throw failed(
    'USAGE_INVALID',
    `the variable of ${flag} is empty or not set: ${variable}`,
    `Set ${variable} in the environment of this step, or name a file.`,
  );
}

/** A file of a folder; `content` where it has some. */
export type FolderFile = { readonly name: string; readonly content?: string };

/** A folder of {@link readFolder}. */
export type InputFolder = { readonly folder: string; readonly files: readonly FolderFile[] };

/**
 * The files of a folder, by name. Its folders follow, one level down: that is how artifacts that were uploaded one by
 * one are unpacked. Folders without files are left out, but for the only one.
 *
 * @throws PublishError `FILE_FAILED`
 */
export async function readFolder(folder: string, flag: string): Promise<readonly InputFolder[]> {
  if (folder === '') {
    throw failed('USAGE_INVALID', `${flag} needs the name of a folder`, `Write for example ${flag} DIR.`);
  }
  const top = await listing(folder, flag);
  const all = [top.read];
  for (const name of top.folders) {
    const { read, folders } = await listing(join(folder, name), flag);
    const [deeper] = folders;
    if (deeper !== undefined) throw unread(flag, join(folder, name, deeper), 'is a folder two levels down');
    all.push(read);
  }
  const filled = all.filter(({ files }) => files.length > 0);
  return filled.length > 0 ? filled : [top.read];
}

async function listing(folder: string, flag: string) {
  const names = await readdir(folder).catch(cannotRead(flag, folder));
  // .gitkeep and .DS_Store are nobody's input.
  const visible = names.filter((name) => !name.startsWith('.'));
  const files: FolderFile[] = [];
  const folders: string[] = [];
  // By code unit: the order must not depend on a locale. One after the other: there may be more than can be open at once.
  for (const name of visible.sort()) {
    const path = join(folder, name);
    const stats = await stat(path).catch(cannotRead(flag, path));
    if (stats.isDirectory()) folders.push(name);
    else if (stats.isFile()) files.push(await glance(folder, name, stats, flag));
    else throw unread(flag, path, 'is neither a file nor a folder');
  }
  return { read: { folder, files }, folders };
}

/** What is passed over without a word may be an image that is then lacking in the index. */
function unread(flag: string, path: string, what: string): PublishError {
  const hint = `Name with ${flag} the folder that holds the files themselves, or folders of them.`;
  return failed('USAGE_INVALID', `cannot take in what ${flag} names: ${path} ${what}`, hint);
}

async function glance(folder: string, name: string, { size }: Stats, flag: string): Promise<FolderFile> {
  if (size === 0) return { name };
  const path = join(folder, name);
  return { name, content: decoded(await readUpTo(createReadStream(path), GLANCE).catch(cannotRead(flag, path))) };
}

async function readUpTo(stream: AsyncIterable<unknown>, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    if (!(bytes instanceof Uint8Array)) throw new TypeError('a stream of neither bytes nor text');
    chunks.push(bytes);
    size += bytes.byteLength;
    // Leaving the loop closes the stream: /dev/zero has no end.
    if (size > limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit + 1);
}

/** UTF-8, or what a byte order mark says: Windows PowerShell redirects into UTF-16. */
function decoded(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  return new TextDecoder().decode(bytes);
}

function cannotRead(flag: string, path: string): (error: unknown) => never {
  return (error) => {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    if (reason === 'EISDIR') throw isFolder(flag, path);
    const hint = `Check the name and the rights of what ${flag} names.`;
    throw failed('FILE_FAILED', `cannot read what ${flag} names: ${path} (${reason})`, hint, error);
  };
}

function isFolder(flag: string, path: string): PublishError {
  const hint = `Name a file of it: ${flag} ${join(path, 'FILE')}.`;
  return failed('FILE_FAILED', `cannot read what ${flag} names: ${path} is a folder`, hint);
}

function failed(code: 'FILE_FAILED' | 'USAGE_INVALID', message: string, hint: string, cause?: unknown): PublishError {
  return new PublishError(code, message, hint, cause === undefined ? {} : { cause });
}
