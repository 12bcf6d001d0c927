import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LoadedConfig } from './config.ts';
import { checkFound } from './read.ts';
import { SEARCH_PLACES } from './values.ts';

/** Which file to read: named on the command line (trusted), named by the environment, or found from a folder up. */
export type ConfigRequest = {
  readonly named: string | undefined;
  readonly namedByEnvironment: string | undefined;
  readonly folder: string;
};

/**
 * Reads the configuration file. Only one that was named on the command line may weaken a check; relative file names
 * in it are meant from its own folder.
 *
 * @throws PublishError `CONFIG_INVALID` with file, line and column
 */
export async function loadConfig(request: ConfigRequest): Promise<LoadedConfig> {
  const named = request.named ?? request.namedByEnvironment;
  if (named === undefined && !(await mayHaveConfig(request.folder))) return { config: {}, file: undefined };
  // YAML, validator and cosmiconfig cost 20 ms of CPU: loaded only when there is something to read.
  const { readNamedConfig, searchConfig } = await import('./explorer.ts');
  if (named === undefined) return searchConfig(request.folder);
  return readNamedConfig(named, request.named !== undefined);
}

/** Looks from the folder up for a name that the search would try; may say yes in vain, never no. */
async function mayHaveConfig(folder: string): Promise<boolean> {
  const names = new Set(await entriesOf(folder));
  const inner = names.has('.config') ? await entriesOf(join(folder, '.config')) : [];
  for (const name of inner) names.add(`.config/${name}`);
  const places = SEARCH_PLACES.filter((place) => names.has(place));
  for (const place of places) await checkFound(join(folder, place));
  if (places.some((place) => place !== 'package.json')) return true;
  // The search ends at a folder with a package file, as cosmiconfig's strategy "project" says.
  if (names.has('package.json'))
    return (await readFile(join(folder, 'package.json'), 'utf8')).includes('"manifest-publish"');
  const parent = dirname(folder);
  return parent === folder || names.has('package.yaml') ? false : mayHaveConfig(parent);
}

/** A folder that cannot be listed may still hold a file that can be read, but none that was found by searching. */
async function entriesOf(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch(() => []);
}
