import { basename, dirname, extname, relative, resolve } from 'node:path';
import { Explorer } from 'cosmiconfig/dist/Explorer.js';
import * as v from 'valibot';
import { PublishError } from '../errors.ts';
import type { Config, LoadedConfig, RegistryConfig } from './config.ts';
import { PACKAGE_KEY, parseConfigText, positionOf } from './position.ts';
import { readNamed } from './read.ts';
import { CONFIG, REGISTRY_ENTRIES } from './schema.ts';
import { hostOf, nearest, SEARCH_PLACES } from './values.ts';

/** What a file found by search may not set: who is spoken to, how it is proven, and with which trust. */
const TRUSTED_KEYS = ['insecure', 'plainHttp', 'caFile', 'certFile', 'keyFile'] as const;

/** File names; relative ones are meant from the folder of the configuration. */
const FILE_KEYS = ['caFile', 'certFile', 'keyFile'] as const;

/** Finds the configuration from a folder up, as far as the project reaches. */
export async function searchConfig(folder: string): Promise<LoadedConfig> {
  const texts = new Map<string, string>();
  const found = await explorer(texts).search(folder);
  if (found === null || found.isEmpty === true) return { config: {}, file: undefined };
  const text = texts.get(found.filepath) ?? '';
  return { config: checked(found.filepath, text, found.config, false), file: found.filepath };
}

/** Reads one file by name. */
export async function readNamedConfig(path: string, trusted: boolean): Promise<LoadedConfig> {
  const file = resolve(path);
  if (!['', '.yaml', '.yml', '.json'].includes(extname(file))) {
    throw invalid(`${path}: not a data file`, 'Name a .yaml, .yml or .json file; code is not read as configuration.');
  }
  const text = await readNamed(path);
  const value = text.trim() === '' ? undefined : parsed(file, text);
  const own = basename(file) === 'package.json' && isMap(value) ? value[PACKAGE_KEY] : value;
  return { config: own === undefined || own === null ? {} : checked(file, text, own, trusted), file };
}

/**
 * The class under cosmiconfig's factory. The factory itself is not used: it first runs `.config/config.js` of the
 * working folder and lets `package.json` add places with JavaScript loaders (cosmiconfig 9, "meta config"), which
 * would hand a pull request the credentials of the run.
 */
function explorer(texts: Map<string, string>): Explorer {
  const load = (path: string, text: string): unknown => {
    texts.set(path, text);
    return parsed(path, text);
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

function parsed(path: string, text: string): unknown {
  const value = parseConfigText(path, text);
  // cosmiconfig would read the files that `$import` names; one file is one configuration.
  if (isMap(value) && Object.hasOwn(value, '$import')) {
    const at = positionOf(path, text, ['$import'], 'key');
    throw invalid(`${path}:${at}: "$import" is not supported`, 'Put all settings into one file.');
  }
  return value;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object';
}

function checked(file: string, text: string, value: unknown, trusted: boolean): Config {
  const shown = shortest(file);
  // An array is an object to valibot, whose keys would then be unknown.
  if (Array.isArray(value))
    throw invalid(`${shown}:${positionOf(file, text, [], 'value')}: ${NO_MAP}`, 'Write KEY: VALUE.');
  const result = v.safeParse(CONFIG, value);
  if (!result.success) throw issueError(shown, text, result.issues[0]);
  if (!trusted) refuseWeakening(shown, text, result.output, value);
  refuseHalves(shown, text, value);
  refuseDoubles(shown, text, value);
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
  return Object.keys(REGISTRY_ENTRIES);
}

/** Of two names of one registry only one would count, and nobody would know which. */
function refuseDoubles(file: string, text: string, value: unknown): void {
  const names = new Map<string, readonly [name: string, settings: string]>();
  for (const [name, registry] of registriesIn(value)) {
    const host = hostOf(name) ?? name;
    const settings = JSON.stringify(registry);
    const [other, before] = names.get(host) ?? [name, settings];
    if (before !== settings) {
      throw invalid(
        `${file}:${positionOf(file, text, ['registries', name], 'key')}: "${other}" and "${name}" are one registry, and are set differently`,
        `Write all its settings under ${JSON.stringify(host)}.`,
      );
    }
    names.set(host, [other, before]);
  }
}

function refuseWeakening(file: string, text: string, config: Config, value: unknown): void {
  const refuse = (keys: readonly string[]) =>
    invalid(
      `${file}:${positionOf(file, text, keys, 'key')}: a configuration found by search may not set "${keys.at(-1)}"`,
      `If you trust the file, name it: --config ${file}. Otherwise remove the key.`,
    );
  if (config.caFile !== undefined) throw refuse(['caFile']);
  for (const [host, registry] of registriesIn(value)) {
    const key = TRUSTED_KEYS.find((candidate) => registry[candidate] !== undefined);
    if (key !== undefined) throw refuse(['registries', host, key]);
  }
}

/** A setting that means nothing without another one, or beside it, is a mistake that would go unseen. */
function refuseHalves(file: string, text: string, value: unknown): void {
  const refuse = (host: string, key: string, message: string, hint: string) => {
    const keys = ['registries', host, key];
    return invalid(`${file}:${positionOf(file, text, keys, 'key')}: "${keys.join('.')}" ${message}`, hint);
  };
  for (const [host, { certFile, keyFile, upload, chunkSize }] of registriesIn(value)) {
    if ((certFile === undefined) !== (keyFile === undefined)) {
      const [key, other] = certFile === undefined ? ['keyFile', 'certFile'] : ['certFile', 'keyFile'];
      throw refuse(host, key, `needs "${other}"`, `Add ${other}; a file that holds both may be named twice.`);
    }
    if (upload === 'whole' && chunkSize !== undefined) {
      throw refuse(host, 'chunkSize', 'means nothing with "upload: whole"', 'Remove it, or write upload: chunks.');
    }
  }
}

/** By the hosts as written, not as normalised: they lead to the line. */
function registriesIn(value: unknown): readonly (readonly [string, RegistryConfig])[] {
  return Object.entries((value as { readonly registries?: Record<string, RegistryConfig> }).registries ?? {});
}

function withAbsoluteFiles(config: Config, folder: string): Config {
  const registries = Object.entries(config.registries ?? {}).map(([host, registry]) => {
    const files = FILE_KEYS.flatMap((key) => {
      const name = registry[key];
      return name === undefined ? [] : [[key, resolve(folder, name)]];
    });
    return [host, { ...registry, ...Object.fromEntries(files) }];
  });
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

function invalid(message: string, hint: string): PublishError {
  return new PublishError('CONFIG_INVALID', message, hint);
}
