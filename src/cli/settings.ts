import type { Config, RegistryConfig } from '../config/config.ts';
import {
  DURATION_FORM,
  hostOf,
  INDEX_TYPES,
  nearest,
  PROGRESS_MODES,
  type ProgressMode,
  parseCount,
  parseDuration,
} from '../config/values.ts';
import { PublishError } from '../errors.ts';
import type { IndexType } from '../publish/request.ts';
import type { UploadSizes } from '../registry/upload-sizes.ts';
import type { Environment } from './environment.ts';

/** What {@link COMMON_FLAGS} parse to. */
export type CommonFlags = {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly debug: boolean;
  readonly progress?: string | undefined;
  readonly config?: string | undefined;
  readonly 'no-color': boolean;
};

/** What {@link NETWORK_FLAGS} parse to. */
export type NetworkFlags = {
  readonly insecure: boolean;
  readonly 'plain-http': boolean;
  readonly 'ca-file'?: string | undefined;
  readonly jobs?: string | undefined;
  readonly 'max-rps'?: readonly string[] | undefined;
  readonly timeout?: string | undefined;
  readonly retries?: string | undefined;
};

/** How the network is used in this run; durations in ms. */
export type NetworkSettings = {
  readonly hosts: Readonly<Record<string, RegistryConfig>>;
  readonly caFile?: string;
  readonly jobs: number;
  readonly retries: number;
  readonly timeout?: number;
  /** Sizes on which uploads turn, where they are not the built-in ones; tests make them small. */
  readonly uploadSizes?: Partial<UploadSizes>;
};

/** Without flags, environment and configuration. */
export const DEFAULT_NETWORK = { hosts: {}, jobs: 4, retries: 5 } satisfies NetworkSettings;

/** A text that the user wrote, and the name under which to speak of it. */
type Written = { readonly name: string; readonly text: string };

/** How progress is shown: flag, then environment, then configuration, then `auto`. */
export function progressMode(flags: CommonFlags, env: Environment, config: Config): ProgressMode {
  const written = writtenValue('progress', flags.progress, env);
  return written === undefined ? (config.progress ?? 'auto') : choice(written, PROGRESS_MODES);
}

/**
 * Joins flags, environment, configuration and defaults, in this order of precedence. What weakens a check is taken
 * from the flags for `firstHost` alone, which is the registry the user named first.
 *
 * @throws PublishError `USAGE_INVALID` naming the flag or variable
 */
export function networkSettings(
  flags: NetworkFlags,
  env: Environment,
  config: Config,
  firstHost: string,
): NetworkSettings {
  const hosts = new Map<string, RegistryConfig>(Object.entries(config.registries ?? {}));
  const change = (host: string, settings: RegistryConfig) => hosts.set(host, { ...hosts.get(host), ...settings });
  for (const [host, maxRps] of rates(flags, env)) change(host, { maxRps });
  if (flags.insecure) change(firstHost, { insecure: true });
  if (flags['plain-http']) change(firstHost, { plainHttp: true });

  const jobs = writtenValue('jobs', flags.jobs, env);
  const retries = writtenValue('retries', flags.retries, env);
  const timeoutText = writtenValue('timeout', flags.timeout, env);
  const timeout = timeoutText === undefined ? config.timeout : duration(timeoutText);
  const caFile = writtenValue('ca-file', flags['ca-file'], env)?.text ?? config.caFile;
  return {
    hosts: Object.fromEntries(hosts),
    jobs: jobs === undefined ? (config.jobs ?? DEFAULT_NETWORK.jobs) : count(jobs, 1, 64),
    retries: retries === undefined ? (config.retries ?? DEFAULT_NETWORK.retries) : count(retries, 0, 20),
    ...(caFile === undefined ? {} : { caFile }),
    ...(timeout === undefined || timeout === 0 ? {} : { timeout }),
  };
}

/** Rates are limits of an account or an address, which all workers of a run share. */
export function sharedRates(network: NetworkSettings, workers: number): NetworkSettings {
  if (workers === 1) return network;
  const hosts = Object.entries(network.hosts).map(([host, settings]) => {
    const { maxRps } = settings;
    return [host, maxRps === undefined ? settings : { ...settings, maxRps: maxRps / workers }] as const;
  });
  return { ...network, hosts: Object.fromEntries(hosts) };
}

/** `--type` */
export function indexType(text: string): IndexType {
  return choice({ name: '--type', text }, INDEX_TYPES);
}

/** One of the values, or an error that lists them. */
export function choice<T extends string>(written: Written, values: readonly T[]): T {
  const value = values.find((candidate) => candidate === written.text);
  if (value !== undefined) return value;
  throw usage(`${written.name} must be one of ${values.join(', ')}`, `Write for example ${written.name}=${values[0]}.`);
}

/** Milliseconds. */
export function duration(written: Written): number {
  const milliseconds = parseDuration(written.text);
  if (milliseconds !== undefined) return milliseconds;
  // A bare number is what other tools take for seconds.
  const example = parseDuration(`${written.text}s`) === undefined ? '10m' : `${Number.parseInt(written.text, 10)}s`;
  throw usage(
    `${written.name} must be ${DURATION_FORM}, at most 24 days`,
    `Write for example ${written.name}=${example}.`,
  );
}

/**
 * A whole number between the bounds.
 *
 * @param example for the hint, where the number that was written does not tell on which side it is out of bounds
 */
export function count(written: Written, least: number, most: number, example = least + 3): number {
  const value = parseCount(written.text, least, most);
  if (value !== undefined) return value;
  throw usage(
    `${written.name} must be a whole number from ${least} to ${most}`,
    `Write for example ${written.name}=${nearestCount(written.text, least, most) ?? example}.`,
  );
}

/** The bound that a whole number is beyond. */
function nearestCount(text: string, least: number, most: number): number | undefined {
  if (!/^-?\d{1,15}$/.test(text)) return undefined;
  return Math.min(most, Math.max(least, Number(text)));
}

/** The advice, led by the name that was most likely meant. */
export function nearestHint(word: string, names: readonly string[], advice: string): string {
  const guess = nearest(word, names);
  return guess === undefined ? advice : `Did you mean ${guess}? ${advice}`;
}

/** A wrong command line, environment variable or value. */
export function usage(message: string, hint: string): PublishError {
  return new PublishError('USAGE_INVALID', message, hint);
}

function writtenValue(flag: string, value: string | undefined, env: Environment): Written | undefined {
  if (value !== undefined) return { name: `--${flag}`, text: value };
  const name = `MANIFEST_PUBLISH_${flag.toUpperCase().replaceAll('-', '_')}`;
  const text = env[name];
  return text === undefined || text === '' ? undefined : { name, text };
}

/** The environment holds a list with commas; a flag holds one pair. */
function rates(flags: NetworkFlags, env: Environment): readonly (readonly [string, number])[] {
  const list = writtenValue('max-rps', flags['max-rps']?.join(','), env);
  if (list === undefined) return [];
  return list.text.split(',').map((pair) => {
    const [, name = '', number = ''] = /^(.+)=(\d{1,6}(?:\.\d{1,3})?)$/.exec(pair.trim()) ?? [];
    const host = name === '' ? undefined : hostOf(name);
    if (host !== undefined && Number(number) > 0) return [host, Number(number)];
    throw usage(
      `${list.name} must be HOST=N, with N requests a second above 0`,
      `Write for example ${list.name}=docker.io=5.`,
    );
  });
}
