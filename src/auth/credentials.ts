import { join } from 'node:path';
import { PublishError } from '../errors.ts';
import type { Credential } from '../http/origin.ts';
import { type AuthFile, INLINE, keysFor, normaliseKey, parseAuthFile } from './auth-file.ts';
import { askHelper, type RunHelper } from './helper.ts';

/** Finds logins. The same login is the same object, however often it is looked up. */
export interface CredentialSource {
  /** @throws PublishError `CREDENTIALS_FAILED` */
  lookup(host: string, repository: string): Promise<Credential>;
  /** The file, variable or helper that had the login, for messages. */
  originOf?(credential: Credential): string | undefined;
}

/** Where logins may be. */
export type CredentialWorld = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home folder. */
  readonly home: string;
  /** The text of a file; undefined when there is no such file. */
  readonly readFile: (path: string) => Promise<string | undefined>;
  readonly runHelper: RunHelper;
};

const NONE: Credential = { kind: 'none' };

/** What `docker login` writes the login of Docker Hub under, in files and in stores. */
const HUB_SERVER = 'https://index.docker.io/v1/';

/**
 * Reads the logins that docker and podman have written, in this order; the first that knows the host decides:
 * `DOCKER_AUTH_CONFIG`, `REGISTRY_AUTH_FILE`, docker's config.json, podman's auth.json. Within each the most
 * particular path decides. Nothing is read before it is needed, and nothing twice.
 *
 * @see docker/cli docs/reference/commandline/cli.md; containers-auth.json(5)
 */
export function createCredentialSource(world: CredentialWorld): CredentialSource {
  const { runHelper } = world;
  let files: Promise<readonly AuthFile[]> | undefined;
  const found = new Map<string, Promise<Credential>>();
  const origins = new WeakMap<Credential, string>();
  const stored = new Map<string, Promise<Credential | undefined>>();

  function ask(program: string, server: string): Promise<Credential | undefined> {
    const key = `${program} ${server}`;
    const running = stored.get(key) ?? askHelper(program, server, runHelper).then(from(`docker-credential-${program}`));
    stored.set(key, running);
    return running;
  }

  function from(origin: string): (credential: Credential | undefined) => Credential | undefined {
    return (credential) => {
      if (credential !== undefined) origins.set(credential, origin);
      return credential;
    };
  }

  /** Undefined when the file knows nothing of the host. */
  async function lookIn(file: AuthFile, host: string, repository: string): Promise<Credential | undefined> {
    const keys = keysFor(host, repository);
    const named = keys.find((key) => file.credHelpers.has(key));
    const helper = named === undefined ? undefined : file.credHelpers.get(named);
    // A helper that was named for this host has the only word. Of a path it may have several logins for one host.
    if (named !== undefined && helper !== undefined) {
      return (await askInTurn(helper, [...pathOf(named), serverName(host)])) ?? NONE;
    }
    const entries = keys.map((key) => file.auths.get(key)).filter((entry) => entry !== undefined);
    const login = entries.findIndex(({ credential }) => credential !== undefined);
    const store = file.credsStore;
    // An empty entry tells under which name the store has the login; one with a longer path comes before a login.
    const empty = (login === -1 ? entries : entries.slice(0, login)).map(({ key }) => key);
    const paths = empty.filter((key) => pathOf(normaliseKey(key)).length > 0);
    const ofPath = store === undefined ? undefined : await askInTurn(store, paths);
    if (ofPath !== undefined) return ofPath;
    const credential = entries[login]?.credential;
    if (credential !== undefined) return from(file.name)(credential);
    return store === undefined ? undefined : askInTurn(store, [serverName(host), ...empty]);
  }

  /** The first login that the program has under one of the names. */
  async function askInTurn(program: string, names: readonly string[]): Promise<Credential | undefined> {
    for (const name of new Set(names)) {
      const credential = await ask(program, name);
      if (credential !== undefined) return credential;
    }
    return undefined;
  }

  async function find(host: string, repository: string): Promise<Credential> {
    files ??= readFiles(world);
    for (const file of await files) {
      const credential = await lookIn(file, host, repository);
      if (credential !== undefined) return credential;
    }
    return NONE;
  }

  return {
    lookup(host, repository) {
      const key = `${host} ${repository}`;
      const running = found.get(key) ?? find(host, repository);
      found.set(key, running);
      return running;
    },
    originOf: (credential) => origins.get(credential),
  };
}

/** The key itself if it names more than a host. */
function pathOf(key: string): readonly string[] {
  return key.includes('/') ? [key] : [];
}

function serverName(host: string): string {
  return normaliseKey(host) === 'docker.io' ? HUB_SERVER : host;
}

async function readFiles({ env, home, readFile }: CredentialWorld): Promise<readonly AuthFile[]> {
  const files: AuthFile[] = [];
  const inline = env[INLINE];
  // Only logins: naming programs to be run is for files.
  if (isSet(inline)) {
    const { name, auths } = parseAuthFile(inline, INLINE);
    files.push({ name, auths, credHelpers: new Map(), credsStore: undefined });
  }
  for (const path of pathsOf(env, home)) {
    const text = await readFile(path).catch((error: unknown) => {
      throw new PublishError(
        'CREDENTIALS_FAILED',
        `cannot read the logins in ${path}: ${error instanceof Error && 'code' in error ? error.code : 'it failed'}`,
        'Give yourself the right to read it, or name another: DOCKER_CONFIG=FOLDER.',
        { cause: error },
      );
    });
    if (text !== undefined && text.trim() !== '') files.push(parseAuthFile(text, path));
  }
  return files;
}

function pathsOf(env: CredentialWorld['env'], home: string): readonly string[] {
  const folder = (name: string, fallback: string) => (isSet(env[name]) ? env[name] : fallback);
  const paths = [
    env['REGISTRY_AUTH_FILE'],
    join(folder('DOCKER_CONFIG', join(home, '.docker')), 'config.json'),
    isSet(env['XDG_RUNTIME_DIR']) ? join(env['XDG_RUNTIME_DIR'], 'containers', 'auth.json') : undefined,
    join(folder('XDG_CONFIG_HOME', join(home, '.config')), 'containers', 'auth.json'),
  ];
  return [...new Set(paths.filter(isSet))];
}

function isSet(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}
