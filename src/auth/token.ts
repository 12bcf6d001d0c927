import { PublishError } from '../errors.ts';
import type { Clock } from '../http/clock.ts';
import { oneLine, readErrorBody } from '../http/error-body.ts';
import type { HttpRequest, HttpResponse, Transport } from '../http/message.ts';
import { type Credential, Secret } from '../http/origin.ts';
import { parseUrl } from '../model/url.ts';
import type { Scope } from './scope.ts';
import type { Secrets } from './secrets.ts';

/** Where tokens of a registry come from, as its challenge says. */
export type TokenService = { readonly realm: string; readonly service: string | undefined };

/** A bearer token, never looked into: many are opaque. Times by the clock's `now`. */
export type Token = {
  readonly value: Secret;
  /** Before it was asked for, so that it never seems to last longer than it does. */
  readonly asked: number;
  /** When it ends by the token server's word. */
  readonly lapses: number;
};

/** What a token is asked for with. */
export type TokenRequest = {
  /** The registry as the user knows it. */
  readonly host: string;
  readonly service: TokenService;
  /** The target's first: some servers read only one. */
  readonly scopes: readonly Scope[];
  readonly credential: Credential;
  readonly signal: AbortSignal;
  /** How long in ms the request will be under way that the token is for; 0 unless it has a large body. */
  readonly lasting: number;
};

/** What the token server said when it gave none. */
export type TokenRefusal = {
  readonly kind: 'refused';
  readonly status: number;
  readonly server: string;
  readonly code: string | undefined;
  readonly message: string | undefined;
};

/** Largest answer of a token server in bytes. */
const ANSWER_LIMIT = 1024 * 1024;
/** In seconds; what is said to live no longer is not believed. */
const SHORTEST_LIFE = 0.001;
/** What the spec says a token without `expires_in` lives, in seconds. */
const DEFAULT_LIFE = 60;
/** Longest life that is believed, in seconds. */
const LONGEST_LIFE = 24 * 60 * 60;
/** What is left after this part of its life is too little to rely on. */
const RELIABLE_PART = 0.8;
/** Before this part of its life is over, a new one would not last much longer. */
const YOUNG_PART = 0.2;
/** Longest token in characters; servers take 8 to 64 KiB of headers. */
const TOKEN_LIMIT = 32 * 1024;
/** Fields of a token server's answer that nobody may read in our output. */
const TOKEN_FIELDS = ['token', 'access_token', 'refresh_token', 'id_token'] as const;
const CLIENT_ID = 'manifest-publish';

/**
 * Statuses with which token servers turn down the POST form as such: GCR 404, Artifactory 401, Azure 400, others 405.
 *
 * @see containerd core/remotes/docker/authorizer.go, fetchToken
 */
const POST_UNKNOWN: readonly number[] = [400, 401, 404, 405];

/** `repository:name:actions`. */
export function scopeText({ repository, actions }: Scope): string {
  return `repository:${repository}:${actions}`;
}

/**
 * Whether the token may be sent with a request that is under way for so long: some registries look at it once more
 * when the body has come. One that can hardly be better is taken, however short its life is.
 */
export function isGoodFor({ asked, lapses }: Token, now: number, lasting: number): boolean {
  const life = lapses - asked;
  if (now >= asked + life * RELIABLE_PART) return false;
  return now + lasting <= lapses || now < asked + life * YOUNG_PART;
}

/**
 * Asks the token server once; an identity token by POST, everything else by GET.
 *
 * @throws PublishError `PROTOCOL_VIOLATED`, and whatever the transport throws: the realm is an address that the
 *   registry named
 * @see https://distribution.github.io/distribution/spec/auth/token/
 * @see https://distribution.github.io/distribution/spec/auth/oauth/
 */
export async function fetchToken(
  request: TokenRequest,
  transport: Transport,
  clock: Clock,
  secrets: Secrets,
): Promise<Token | TokenRefusal> {
  const realm = parseRealm(request);
  const asked = clock.now();
  let response = await transport.send(
    request.credential.kind === 'identity-token' ? postRequest(realm, request) : getRequest(realm, request),
  );
  if (request.credential.kind === 'identity-token' && POST_UNKNOWN.includes(response.status)) {
    const refusal = await refusalOf(response, realm, secrets);
    response = await transport.send(getRequest(realm, request));
    // What the server had to say of the token itself is the better explanation.
    if (response.status === 401 || response.status === 403) {
      await response.discard();
      return refusal;
    }
  }
  if (response.status !== 200) return refusalOf(response, realm, secrets);
  return parseAnswer(await response.bytes(ANSWER_LIMIT), request.host, asked, secrets);
}

function parseRealm({ host, service }: TokenRequest): URL {
  const realm = parseUrl(service.realm);
  if (realm !== undefined) return realm;
  throw violated(host, `names no address as its token server: ${JSON.stringify(oneLine(service.realm, 100))}`);
}

/** One `scope` for each repository: Quay takes no list in one value, and most others take either. */
function getRequest(realm: URL, { host, service, scopes, credential, signal }: TokenRequest): HttpRequest {
  const url = new URL(realm);
  if (service.service !== undefined) url.searchParams.append('service', service.service);
  for (const scope of scopes) url.searchParams.append('scope', scopeText(scope));
  const login = basicLogin(credential);
  return {
    method: 'GET',
    url,
    namedBy: host,
    headers: { accept: 'application/json', ...(login === undefined ? {} : { authorization: login }) },
    place: freePlace(host),
    signal,
  };
}

function postRequest(url: URL, { host, service, scopes, credential, signal }: TokenRequest): HttpRequest {
  const form = new URLSearchParams({ grant_type: 'refresh_token', client_id: CLIENT_ID });
  if (service.service !== undefined) form.set('service', service.service);
  if (scopes.length > 0) form.set('scope', scopes.map(scopeText).join(' '));
  if (credential.kind === 'identity-token') form.set('refresh_token', credential.token.reveal());
  return {
    method: 'POST',
    url,
    namedBy: host,
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: Buffer.from(form.toString()),
    place: freePlace(host),
    signal,
  };
}

/**
 * Tokens are asked for outside the limiter: whoever waits for one may hold the last place of the host. There are
 * never many, since one request serves all who want the same token.
 */
function freePlace(host: string): NonNullable<HttpRequest['place']> {
  return { host, release: () => undefined };
}

/** The value of `Authorization` for Basic; an identity token is the password of a user without a name. */
export function basicLogin(credential: Credential): string | undefined {
  if (credential.kind === 'none') return undefined;
  const login =
    credential.kind === 'basic'
      ? `${credential.username}:${credential.password.reveal()}`
      : `:${credential.token.reveal()}`;
  return `Basic ${Buffer.from(login).toString('base64')}`;
}

async function refusalOf(response: HttpResponse, realm: URL, secrets: Secrets): Promise<TokenRefusal> {
  const { code, message, detail } = await readErrorBody({ ...response, conceal: secrets.conceal });
  return { kind: 'refused', status: response.status, server: realm.host, code, message: message ?? detail };
}

function parseAnswer(bytes: Uint8Array, host: string, asked: number, secrets: Secrets): Token {
  const answer = parseObject(bytes);
  for (const field of TOKEN_FIELDS) {
    const secret = answer?.[field];
    if (typeof secret === 'string') secrets.add(secret);
  }
  const value = [answer?.['token'], answer?.['access_token']].find((text) => typeof text === 'string' && text !== '');
  // Never quoted: it may be a token in another form.
  if (typeof value !== 'string') throw violated(host, 'has a token server that answered without a token');
  if (value.length > TOKEN_LIMIT || !/^[\x21-\x7e]+$/.test(value)) {
    throw violated(host, 'has a token server that gave a token no header can carry');
  }
  return { value: new Secret(value), asked, lapses: asked + lifeOf(answer?.['expires_in']) * 1000 };
}

/** In seconds, by a number or a text of one; nonsense is as good as nothing, and so is a life that would be over at once. */
function lifeOf(said: unknown): number {
  const seconds = typeof said === 'number' || typeof said === 'string' ? Number(said) : 0;
  return seconds >= SHORTEST_LIFE ? Math.min(seconds, LONGEST_LIFE) : DEFAULT_LIFE;
}

function parseObject(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function violated(host: string, what: string): PublishError {
  return new PublishError(
    'PROTOCOL_VIOLATED',
    `${host} ${what}`,
    'Check that the address is a registry; a proxy or a login page may be answering for it.',
    { registry: host },
  );
}

/** In bytes a second: a body is taken to be under way no longer than this speed makes it. */
const SLOW_UPLOAD = 4 * 1024 * 1024;

/** How long a request may be under way, in ms: its token must not lapse meanwhile. */
export function sendingTime({ body }: Pick<HttpRequest, 'body'>): number {
  if (body === undefined) return 0;
  return ((body instanceof Uint8Array ? body.byteLength : body.length) / SLOW_UPLOAD) * 1000;
}
