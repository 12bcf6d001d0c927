import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDigest } from '../../src/model/digest.ts';
import {
  type MountMode,
  type ProfileChanges,
  type RegistryOptions,
  type RunningRegistry,
  startRegistry,
} from '../../src/registry-server/index.ts';

/** One case of `test/cases`, laid out on loopback registries. */
export type LaidCase = {
  readonly id: string;
  readonly directory: string;
  /** By the host's name in the case. */
  readonly registries: Readonly<Record<string, RunningRegistry>>;
  /** `127.0.0.1:PORT` for a host of the case, for example `reg.example.test`. */
  host(name: string): string;
  /** The text with every host of the case replaced by its address; other hosts stay. */
  text(template: string): string;
  /** A file of the case, with its hosts replaced. */
  file(name: string): Promise<string>;
  /** `expect.json` */
  readonly expect: Readonly<Record<string, unknown>>;
  close(): Promise<void>;
};

type CaseState = {
  readonly registries: Readonly<
    Record<
      string,
      {
        readonly behaviour: Readonly<Record<string, unknown>>;
        readonly repos: Readonly<
          Record<
            string,
            {
              readonly blobs: readonly string[];
              readonly manifests: readonly {
                readonly digest: string;
                readonly mediaType: string;
                readonly size: number;
              }[];
              readonly tags: Readonly<Record<string, string>>;
            }
          >
        >;
      }
    >
  >;
};

const CASES = fileURLToPath(new URL('../cases/', import.meta.url));

/**
 * Starts the registries of a case and fills them. `options` are given to each of them besides the case's behaviour;
 * `hosts` are started too, empty, for cases that describe no state.
 */
export async function layCase(
  id: string,
  options: RegistryOptions & { readonly hosts?: readonly string[] } = {},
): Promise<LaidCase> {
  const directory = join(CASES, id);
  const state = await readState(directory);
  const { hosts = [], ...registryOptions } = options;
  const registries: Record<string, RunningRegistry> = {};
  for (const [name, registry] of Object.entries(state.registries)) {
    const running = await startRegistry({ ...registryOptions, profile: readBehaviour(registry.behaviour) });
    registries[name] = running;
    await fill(running, directory, registry.repos);
  }
  for (const name of hosts) registries[name] ??= await startRegistry(registryOptions);
  const host = (name: string): string => {
    const found = registries[name];
    if (found === undefined) throw new Error(`case ${id} has no host ${name}`);
    return found.host;
  };
  const text = (template: string): string =>
    // The longest first: one host's name may be part of another's.
    Object.keys(registries)
      .sort((one, other) => other.length - one.length)
      .reduce((done, name) => done.replaceAll(name, host(name)), template);
  return {
    id,
    directory,
    registries,
    host,
    text,
    file: async (name) => text(await readFile(join(directory, name), 'utf8')),
    expect: JSON.parse(text(await readFile(join(directory, 'expect.json'), 'utf8'))) as Record<string, unknown>,
    close: async () => {
      for (const registry of Object.values(registries)) await registry.close();
    },
  };
}

async function readState(directory: string): Promise<CaseState> {
  try {
    return JSON.parse(await readFile(join(directory, 'state.json'), 'utf8')) as CaseState;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { registries: {} };
    throw error;
  }
}

async function fill(
  registry: RunningRegistry,
  directory: string,
  repos: CaseState['registries'][string]['repos'],
): Promise<void> {
  for (const [repository, content] of Object.entries(repos)) {
    registry.createRepository(repository);
    for (const digest of content.blobs) {
      same(digest, registry.putBlob(repository, await readFile(join(directory, 'blobs', fileName(digest)))));
    }
    for (const { digest, mediaType } of content.manifests) {
      const bytes = await readFile(join(directory, 'manifests', `${fileName(digest)}.json`));
      same(digest, registry.putManifest(repository, bytes, mediaType));
    }
    for (const [tag, digest] of Object.entries(content.tags)) registry.setTag(repository, tag, parseDigest(digest));
  }
}

function fileName(digest: string): string {
  return digest.replace(':', '_');
}

function same(named: string, computed: string): void {
  if (named !== computed) throw new Error(`the file of ${named} has the digest ${computed}: was it reformatted?`);
}

const MOUNTS: Readonly<Record<string, MountMode>> = {
  '201': 'exists',
  '202': 'ignore',
  '404 BLOB_UNKNOWN': 'off(404)',
  '201 but the blob is not linked': 'lie201',
};

const MANIFEST_PUTS: Readonly<Record<string, ProfileChanges>> = {
  '400 MANIFEST_BLOB_UNKNOWN with detail = missing digest, one error per blob': {},
  '400 MANIFEST_INVALID when an OCI index holds a Docker child': { manifest: { mixed: '400' } },
};

/** The words of `behaviour` as switches. @throws Error for a word without a meaning here */
export function readBehaviour(behaviour: Readonly<Record<string, unknown>>): ProfileChanges {
  let changes: ProfileChanges = {};
  for (const [word, value] of Object.entries(behaviour)) changes = { ...changes, ...meaning(word, value, changes) };
  return changes;
}

function meaning(word: string, value: unknown, so: ProfileChanges): ProfileChanges {
  switch (word) {
    case 'mount':
      return { mount: { ...so.mount, mode: lookUp(MOUNTS, word, value) } };
    case 'mountByDigest': {
      const modes = Object.entries(value as Record<string, unknown>).map(([digest, one]) => [
        digest,
        lookUp(MOUNTS, word, one),
      ]);
      return { mount: { ...so.mount, byDigest: Object.fromEntries(modes) as Record<string, MountMode> } };
    }
    case 'omitHeaders':
      return { answer: { omitHeaders: value as readonly string[] } };
    case 'headManifest':
      return lookUp({ '200 without digest': { manifest: { ...so.manifest, digestHeader: false } } }, word, value);
    case 'manifestPut':
      return lookUp(MANIFEST_PUTS, word, value);
    case 'foreignBlobs':
      return lookUp({ 'HEAD/GET 404': {} }, word, value);
    case 'parallelSameBlob':
      return lookUp(
        { 'second upload of the same digest in flight answers 500': { upload: { parallelSameBlob: '500' } } },
        word,
        value,
      );
    case 'immutableTags':
      return lookUp({ true: { manifest: { immutable: '400evenSame' } } }, word, value);
    default:
      throw new Error(`behaviour "${word}" is not known`);
  }
}

function lookUp<T>(table: Readonly<Record<string, T>>, word: string, value: unknown): T {
  const found = table[String(value)];
  if (found === undefined) throw new Error(`behaviour "${word}": ${JSON.stringify(value)} is not known`);
  return found;
}
