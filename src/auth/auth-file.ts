import { PublishError } from '../errors.ts';
import { type Credential, Secret } from '../http/origin.ts';
import { quoted } from '../model/quoted.ts';

/** One entry under `auths`, as docker and podman write it. */
export type AuthEntry = {
  /** As it is spelled in the file; helpers know the login under this name. */
  readonly key: string;
  /** Undefined for an empty entry, which says that the login is in the store. */
  readonly credential: Credential | undefined;
};

/** What a file says of logins; keys are host or host/path, in the form of {@link normaliseKey}. */
export type AuthFile = {
  /** For messages. */
  readonly name: string;
  readonly auths: ReadonlyMap<string, AuthEntry>;
  /** Programs by key. */
  readonly credHelpers: ReadonlyMap<string, string>;
  readonly credsStore: string | undefined;
};

/** The variable that may hold the text of such a file. */
export const INLINE = 'DOCKER_AUTH_CONFIG';

const HUB = 'docker.io';
const HUB_ALIASES: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/**
 * `host` or `host/path` for all spellings in which keys are found: with scheme, with `/v1/` or `/v2/` behind it, and
 * the names of Docker Hub.
 *
 * @see moby/moby registry/auth.go, ConvertToHostname; docker/docker-py#2402 (spellings in the wild)
 */
export function normaliseKey(key: string): string {
  const bare = key.trim().replace(/^https?:\/\//i, '');
  const slash = bare.indexOf('/');
  const host = (slash === -1 ? bare : bare.slice(0, slash)).toLowerCase();
  const path = slash === -1 ? '' : withoutEnd(bare.slice(slash), '/').replace(/^\/v[12]$/, '');
  // A port that is the scheme's own names the same registry.
  const plain = host.replace(/:(?:80|443)$/, '');
  return `${HUB_ALIASES.has(plain) ? HUB : plain}${path}`;
}

/** By hand: an expression would look at every row of the character anew from each of its members. */
function withoutEnd(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

/** The keys under which a login for the repository may be found, the most particular first. */
export function keysFor(host: string, repository: string): readonly string[] {
  const parts = repository.split('/');
  const paths = parts.map((_, index) => parts.slice(0, parts.length - index).join('/'));
  const base = normaliseKey(host);
  return [...paths.filter((path) => path !== '').map((path) => `${base}/${path}`), base];
}

/**
 * Reads the text of a `config.json` or `auth.json`.
 *
 * @param name of the file, for messages; the text itself is never quoted
 * @throws PublishError `CREDENTIALS_FAILED`
 */
export function parseAuthFile(text: string, name: string): AuthFile {
  const document = asObject(parseJson(text, name));
  if (document === undefined) throw unreadable(name, 'it is not a JSON object');
  const auths = new Map<string, AuthEntry>();
  for (const [key, value] of Object.entries(asObject(document['auths']) ?? {})) {
    const normal = normaliseKey(key);
    const credential = parseEntry(value, key, name);
    // Of two spellings of one host, one with a login in it says more than one without.
    if (auths.get(normal)?.credential === undefined) auths.set(normal, { key, credential });
  }
  const credHelpers = new Map<string, string>();
  for (const [key, program] of Object.entries(asObject(document['credHelpers']) ?? {})) {
    if (typeof program === 'string') credHelpers.set(normaliseKey(key), program);
  }
  const store = document['credsStore'];
  return { name, auths, credHelpers, credsStore: typeof store === 'string' && store !== '' ? store : undefined };
}

/**
 * The login in an entry: a token to be exchanged before anything else, since what stands beside it is a placeholder
 * (Azure's zero GUID); then `auth`, as docker has it; then the plain fields.
 */
function parseEntry(value: unknown, key: string, name: string): Credential | undefined {
  const entry = asObject(value);
  if (entry === undefined) return undefined;
  const text = (field: string): string => {
    const content = entry[field];
    return typeof content === 'string' ? content : '';
  };
  if (text('identitytoken') !== '') return { kind: 'identity-token', token: new Secret(text('identitytoken')) };
  if (text('auth') !== '') return decodeAuth(text('auth'), key, name);
  return basic(text('username'), text('password'));
}

/**
 * `base64(user:password)`, split at the first colon. Some writers fill it up with zero bytes.
 *
 * @see docker/cli cli/config/configfile/file.go, decodeAuth
 */
function decodeAuth(auth: string, key: string, name: string): Credential | undefined {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(auth)) throw unreadable(name, `auth of ${quoted(key)} is not base64`);
  const plain = withoutEnd(Buffer.from(auth, 'base64').toString('utf8'), '\0');
  const colon = plain.indexOf(':');
  if (colon === -1) throw unreadable(name, `auth of ${quoted(key)} holds no user:password`);
  return basic(plain.slice(0, colon), plain.slice(colon + 1));
}

/** @returns undefined when both are empty */
export function basic(username: string, password: string): Credential | undefined {
  if (username === '' && password === '') return undefined;
  // What docker and its helpers call a user of this name is a token for the token server.
  if (username === '<token>') return { kind: 'identity-token', token: new Secret(password) };
  return { kind: 'basic', username, password: new Secret(password) };
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    // The parser's message quotes the text around the fault, which may be a password.
    if (error instanceof SyntaxError) throw unreadable(name, 'it is not JSON');
    throw error;
  }
}

function unreadable(name: string, why: string): PublishError {
  return new PublishError(
    'CREDENTIALS_FAILED',
    `cannot read the logins in ${name}: ${why}`,
    name === INLINE ? `Mend or unset ${INLINE}.` : 'Mend or remove the file, then log in again: docker login HOST.',
  );
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}
