import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

/** A program on this machine. */
export type Tool = { readonly path: string; readonly version: string | undefined };

/** Looks for the first of some programs and asks it for its version. */
export type Finder = (binaries: readonly string[], version: readonly string[]) => Promise<Tool | undefined>;

/** Where docker looks for its plugins, besides the user's HOME, which is empty in a measurement. */
const PLUGIN_FOLDERS = [
  '/usr/local/lib/docker/cli-plugins',
  '/usr/lib/docker/cli-plugins',
  '/usr/libexec/docker/cli-plugins',
];

/** @param path the PATH to search */
export function createFinder(path: string): Finder {
  const folders = [...path.split(delimiter).filter((folder) => folder !== ''), ...PLUGIN_FOLDERS];
  return async (binaries, version) => {
    for (const file of binaries.flatMap((binary) => folders.map((folder) => join(folder, binary)))) {
      if (!(await isExecutable(file))) continue;
      return { path: file, version: (await versionOf(file, version)) ?? (await moduleVersion(file, 'go')) };
    }
    return undefined;
  };
}

async function isExecutable(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** The first thing that looks like a version; undefined when it was built from source without one. */
async function versionOf(file: string, args: readonly string[]): Promise<string | undefined> {
  const output = await promisify(execFile)(file, [...args], { timeout: 10_000 }).then(
    ({ stdout, stderr }) => stdout + stderr,
    () => '',
  );
  const version = /v?(\d+\.\d+[\w.+-]*)/.exec(output)?.[1];
  return version?.startsWith('0.0.0') ? undefined : version;
}

/** What `go install` wrote into a program that does not know its own version; undefined without Go. */
async function moduleVersion(file: string, go: string): Promise<string | undefined> {
  const output = await promisify(execFile)(go, ['version', '-m', file], { timeout: 10_000 }).then(
    ({ stdout }) => stdout,
    () => '',
  );
  return /^\s+mod\s+\S+\s+v(\S+)/m.exec(output)?.[1];
}
