import { readFile } from 'node:fs/promises';
import { basename, dirname, extname, relative, resolve } from 'node:path';
import { Explorer } from 'cosmiconfig/dist/Explorer.js';
import * as v from 'valibot';
import { PublishError } from '../errors.ts';
import type { Config, LoadedConfig, RegistryConfig } from './config.ts';
import { PACKAGE_KEY, parseConfigText, positionOf } from './position.ts';
import { CONFIG } from './schema.ts';
import { nearest, SEARCH_PLACES } from './values.ts';

/** What a file found by search may not set: who is spoken to, how it is proven, and with which trust. */
const TRUSTED_KEYS = ['insecure', 'plainHttp', 'caFile'] as const;

/** Finds the configuration from a folder up, as far as the project reaches. */
export async function searchConfig(folder: string): Promise<LoadedConfig> {
  const found = await explorer().search(folder);
  if (found === null || found.isEmpty === true) return { config: {}, file: undefined };
  return { config: await checked(found.filepath, found.config, false), file: found.filepath };
}

/** Reads one file by name. */
export async function readNamedConfig(path: string, trusted: boolean): Promise<LoadedConfig> {
  const file = resolve(path);
  if (!['', '.yaml', '.yml', '.json'].includes(extname(file))) {
    throw invalid(`${path}: not a data file`, 'Name a .yaml, .yml or .json file; code is not read as configuration.');
  }
  try {
    const found = await explorer().load(file);
    if (found === null || found.isEmpty === true) return { config: {}, file };
    return { config: await checked(file, found.config, trusted), file };
  } catch (error) {
    if (error instanceof PublishError || !(error instanceof Error) || !('code' in error)) throw error;
    throw invalid(
      `${path}: cannot be read (${String(error.code)})`,
      'Check the name and the rights of the file.',
      error,
    );
  }
}

/**
 * The class under cosmiconfig's factory. The factory itself is not used: it first runs `.config/config.js` of the
 * working folder and lets `package.json` add places with JavaScript loaders (cosmiconfig 9, "meta config"), which
 * would hand a pull request the credentials of the run.
 */
function explorer(): Explorer {
  const load = (path: string, text: string): unknown => {
    const value = parseConfigText(path, text);
    // cosmiconfig would read the files that `$import` names; one file is one configuration.
    if (value !== null && typeof value === 'object' && Object.hasOwn(value, '$import')) {
      const at = positionOf(path, text, ['$import'], 'key');
      throw invalid(`${path}:${at}: "$import" is not supported`, 'Put all settings into one file.');
    }
    return value;
  };
  return new Explorer({
    moduleName: PACKAGE_KEY,
    packageProp: [PACKAGE_KEY],
    searchPlaces: SEARCH_PLACES,
    searchStrategy: 'project',
    loaders: { '.yaml': load, '.yml': load, '.json': load, noExt: load },
    ignoreEmptySearchPlaces: true,
    applyPackagePropertyPathToConfiguration: false,
    cache: false,
    transform: (result) => result,
    metaConfigFilePath: null,
    mergeImportArrays: false,
    mergeSearchPlaces: false,
  });
}

async function checked(file: string, value: unknown, trusted: boolean): Promise<Config> {
  const text = await readFile(file, 'utf8');
  const shown = shortest(file);
  // An array is an object to valibot, whose keys would then be unknown.
  if (Array.isArray(value))
    throw invalid(`${shown}:${positionOf(file, text, [], 'value')}: ${NO_MAP}`, 'Write KEY: VALUE.');
  const result = v.safeParse(CONFIG, value);
  if (!result.success) throw issueError(shown, text, result.issues[0]);
  if (!trusted) refuseWeakening(shown, text, result.output, value);
  // For editors; it sets nothing.
  const { $schema: _, ...config } = result.output;
  return withAbsoluteFiles(config, dirname(file));
}

const NO_MAP = 'the configuration must be a map of settings';

function issueError(file: string, text: string, issue: v.BaseIssue<unknown>): PublishError {
  const keys = (issue.path ?? []).map((item) => item.key as PropertyKey);
  const last = issue.path?.at(-1);
  const name = keys.map(String).join('.');
  const ofKey = last?.type === 'object' && 'origin' in last && last.origin === 'key';
  const at = `${file}:${positionOf(file, text, keys, ofKey ? 'key' : 'value')}`;
  if (ofKey && issue.expected === 'never') {
    const guess = nearest(String(keys.at(-1)), knownKeys(keys));
    const advice = guess === undefined ? 'Remove it' : `Did you mean "${guess}"? Otherwise remove it`;
    return invalid(`${at}: unknown key "${name}"`, `${advice}; known keys: ${knownKeys(keys).join(', ')}.`);
  }
  return invalid(`${at}: ${name === '' ? 'the configuration' : `"${name}"`} ${issue.message}`, 'Correct the value.');
}

function knownKeys(path: readonly PropertyKey[]): readonly string[] {
  if (path[0] !== 'registries' || path.length < 3) {
    return Object.keys(CONFIG.entries).filter((key) => key !== '$schema');
  }
  return ['insecure', 'plainHttp', 'caFile', 'maxRps'] satisfies (keyof RegistryConfig)[];
}

function refuseWeakening(file: string, text: string, config: Config, value: unknown): void {
  const refuse = (keys: readonly string[]) =>
    invalid(
      `${file}:${positionOf(file, text, keys, 'key')}: a configuration found by search may not set "${keys.at(-1)}"`,
      `If you trust the file, name it: --config ${file}. Otherwise remove the key.`,
    );
  if (config.caFile !== undefined) throw refuse(['caFile']);
  // The hosts as written, not as normalised, lead to the line.
  const written = Object.entries((value as { registries?: Record<string, RegistryConfig> }).registries ?? {});
  for (const [host, registry] of written) {
    const key = TRUSTED_KEYS.find((candidate) => registry[candidate] !== undefined);
    if (key !== undefined) throw refuse(['registries', host, key]);
  }
}

function withAbsoluteFiles(config: Config, folder: string): Config {
  const registries = Object.entries(config.registries ?? {}).map(([host, registry]) => [
    host,
    registry.caFile === undefined ? registry : { ...registry, caFile: resolve(folder, registry.caFile) },
  ]);
  return {
    ...config,
    ...(config.caFile === undefined ? {} : { caFile: resolve(folder, config.caFile) }),
    ...(config.registries === undefined ? {} : { registries: Object.fromEntries(registries) }),
  };
}

/** As the user would name it: from the working folder when it is inside. */
function shortest(file: string): string {
  const near = relative('', file);
  return near === '' ? basename(file) : near.startsWith('..') ? file : near;
}

function invalid(message: string, hint: string, cause?: unknown): PublishError {
  return new PublishError('CONFIG_INVALID', message, hint, cause === undefined ? {} : { cause });
}
