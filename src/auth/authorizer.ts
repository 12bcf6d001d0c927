import { PublishError } from '../errors.ts';
import type { Clock } from '../http/clock.ts';
import { canonicalHost } from '../http/endpoint.ts';
import type { HttpRequest, HttpResponse, Transport } from '../http/message.ts';
import { deferred, orAborted } from '../http/promises.ts';
import { parseUrl } from '../model/url.ts';
import { loginAdvice, loginsDiffer, realmMissing, schemeUnknown, tokenRefused } from './advice.ts';
import { answerable, type Challenge, parseChallenges } from './challenge.ts';
import type { CredentialSource } from './credentials.ts';
import { createLoginFinder, type Login } from './login.ts';
import { type Authorizer, mergeScopes, type Scope } from './scope.ts';
import { createSecrets, type Secrets } from './secrets.ts';
import { basicLogin, sendingTime, type Token, type TokenService } from './token.ts';
import { createTokenCache } from './token-cache.ts';

/** The world as the authorizer sees it. */
export type AuthorizerOptions = {
  readonly transport: Transport;
  readonly credentials: CredentialSource;
  readonly clock: Clock;
  /** Is told every login and token, and hides them in the words of answers. */
  readonly secrets?: Secrets;
  /** Ends with the run: what was announced is asked for until then, since nobody waits for it. */
  readonly signal?: AbortSignal;
};

/**
 * How a registry wants to be shown who asks; `open`: it answered, and has asked for nothing yet. That reads are public
 * says nothing about writes: `writes` tells that one of them was answered so too.
 */
type Scheme =
  | { readonly kind: 'open'; readonly writes: boolean }
  | { readonly kind: 'basic' }
  | { readonly kind: 'bearer'; readonly service: TokenService };

type HostState = {
  /** Undefined until the first answer. */
  scheme: Scheme | undefined;
  /** Ends when the request that is sent ahead of all others has its status, or has failed to get one. */
  probe: Promise<'over' | 'unanswered'> | undefined;
  /** Scope sets to fetch tokens for once it is known that there are tokens. */
  announced: (readonly Scope[])[];
  /** Tokens that were renewed after an `insufficient_scope` and brought another: no use renewing them again. */
  readonly insufficient: Set<string>;
};

/** What `Authorization` a request is sent with. */
type Proof =
  | { readonly kind: 'none' }
  | { readonly kind: 'basic'; readonly header: string }
  | { readonly kind: 'bearer'; readonly header: string; readonly token: Token };

const NOTHING: Proof = { kind: 'none' };

const NEVER: AbortSignal = new AbortController().signal;

/**
 * Learns from the first 401 how a registry wants to be shown who asks, and does so from then on.
 *
 * Where there is a login, the first request of a host goes alone: the others would all be turned away too. Where reads
 * turn out to be public, so does the first write. Without a login all go at once, since most of what is public needs
 * none.
 */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { transport, credentials, clock, secrets = createSecrets(), signal: run = NEVER } = options;
  const hosts = new Map<string, HostState>();
  const tokens = createTokenCache(transport, clock, secrets);
  const loginFor = createLoginFinder(credentials, secrets);

  function stateOf(host: string): HostState {
    const key = canonicalHost(host);
    const state = hosts.get(key) ?? { scheme: undefined, probe: undefined, announced: [], insufficient: new Set() };
    hosts.set(key, state);
    return state;
  }

  function isOwn(url: URL, host: string): boolean {
    return url.origin === transport.baseUrl(host).origin;
  }

  /** What was built from the host's base is its own whatever scheme it turns out to speak. */
  function isForeign({ url, namedBy }: HttpRequest, host: string): boolean {
    return namedBy === undefined ? url.hostname !== transport.baseUrl(host).hostname : !isOwn(url, host);
  }

  /** @throws PublishError when the token server gives none */
  async function bearer(service: TokenService, asker: Asker, not?: Token): Promise<Extract<Proof, { kind: 'bearer' }>> {
    const { host, scopes, credential, barred } = asker;
    if (barred !== undefined) throw loginsDiffer(host, scopes, barred);
    const answer = await tokens.get({ ...asker, service }, not);
    if (!('value' in answer)) {
      throw tokenRefused(answer, host, scopes, credential, credentials.originOf?.(credential));
    }
    return { kind: 'bearer', header: `Bearer ${answer.value.reveal()}`, token: answer };
  }

  /** An identity token is for the token server alone. */
  function basic({ host, scopes, credential, barred }: Asker): Proof {
    if (barred !== undefined) throw loginsDiffer(host, scopes, barred);
    const header = credential.kind === 'basic' ? basicLogin(credential) : undefined;
    return header === undefined ? NOTHING : { kind: 'basic', header };
  }

  async function proofFor(state: HostState, asker: Asker): Promise<Proof> {
    if (state.scheme?.kind === 'bearer') return bearer(state.scheme.service, asker);
    return state.scheme?.kind === 'basic' ? basic(asker) : NOTHING;
  }

  /** Sends the first request alone whose fate tells that of others like it, if there is a login to be shown. */
  async function sendFirst(request: HttpRequest, state: HostState, asker: Asker): Promise<Sent> {
    const { signal } = request;
    if (asker.credential.kind === 'none') return sendWith(request, await proofFor(state, asker));
    let last: 'over' | 'unanswered' = 'over';
    // The first, and whoever waits for it: they go to the same host in any case.
    if (!foresees(state, request)) transport.openAhead?.(request);
    while (!foresees(state, request) && state.probe !== undefined && last === 'over') {
      last = await orAborted(state.probe, signal);
    }
    // A host that does not answer may take minutes for each: whoever has waited for one goes with all others.
    if (foresees(state, request) || last === 'unanswered') return sendWith(request, await proofFor(state, asker));
    const probe = deferred<'over' | 'unanswered'>();
    let end: 'over' | 'unanswered' = 'unanswered';
    state.probe = probe.promise;
    try {
      // Those who wait for it may hold every place of the host.
      const place = request.place ?? { host: asker.host, release: () => undefined };
      const sent = await sendWith({ ...request, place }, NOTHING);
      end = 'over';
      if (isOwn(sent.response.url, asker.host)) learn(state, asker.host, sent.response, request);
      return sent;
    } finally {
      // Whether it came to something or not: the next in line goes ahead if nothing was learnt, or it was given up.
      state.probe = undefined;
      probe.resolve(signal.aborted ? 'over' : end);
    }
  }

  async function sendWith(request: HttpRequest, proof: Proof): Promise<Sent> {
    const { authorization: _, ...headers } = request.headers ?? {};
    const response = await transport.send({
      ...request,
      headers: proof.kind === 'none' ? headers : { ...headers, authorization: proof.header },
    });
    return { response, proof };
  }

  /** Remembers what the answer shows of the host's scheme, and returns the challenge that can be answered. */
  function learn(state: HostState, host: string, response: HttpResponse, request: HttpRequest): Challenge | undefined {
    const challenge = response.status === 401 ? answerable(challengesOf(response)) : undefined;
    if (challenge === undefined) {
      if (!foresees(state, request)) state.scheme = { kind: 'open', writes: isWrite(request) };
      return undefined;
    }
    const service = tokenServiceOf(challenge);
    if (service !== undefined) {
      // What names no address can never be asked, and must not take the place of what has worked: there may be sessions
      // to cancel yet.
      if (state.scheme !== undefined && parseUrl(service.realm) === undefined) return challenge;
      state.scheme = { kind: 'bearer', service };
      fetchAnnounced(state, host);
    } else if (state.scheme?.kind !== 'bearer') {
      // Once tokens are known to be taken, Basic means that the token's scope is not enough (Harbor), no change.
      state.scheme = { kind: 'basic' };
    }
    return challenge;
  }

  function fetchAnnounced(state: HostState, host: string): void {
    const { scheme } = state;
    if (scheme?.kind !== 'bearer') return;
    for (const scopes of state.announced.splice(0)) {
      const fetching = loginFor(host, scopes).then(async ({ credential, barred }) => {
        if (barred !== undefined) return;
        await tokens.get({ host, service: scheme.service, scopes, credential, signal: run, lasting: 0 });
      });
      // Whoever needs the token asks again, and is told then.
      fetching.catch(() => undefined);
    }
  }

  /** What to answer a 401 with; undefined when nothing will help. */
  async function secondProof(
    state: HostState,
    request: HttpRequest,
    sent: Sent,
    asker: Asker,
  ): Promise<Proof | undefined> {
    const challenge = learn(state, asker.host, sent.response, request);
    const service = challenge === undefined ? undefined : tokenServiceOf(challenge);
    if (challenge !== undefined && service !== undefined) {
      if (sent.proof.kind !== 'bearer') return bearer(service, asker);
      return renewed(state, service, challenge, sent.proof.token, asker);
    }
    if (challenge?.scheme === 'basic' && sent.proof.kind === 'none') {
      const proof = basic(asker);
      return proof.kind === 'none' ? undefined : proof;
    }
    const schemes = challengesOf(sent.response).map(({ scheme: name }) => name);
    if (challenge === undefined && sent.proof.kind === 'none' && schemes.length > 0) {
      const repository = asker.scopes[0]?.repository ?? '';
      throw schemes.includes('bearer')
        ? realmMissing(asker.host, repository)
        : schemeUnknown(asker.host, repository, schemes);
    }
    return undefined;
  }

  /** A token may have run out; one that is said to be too narrow is renewed once, in case rights were given since. */
  async function renewed(
    state: HostState,
    service: TokenService,
    challenge: Challenge,
    old: Token,
    asker: Asker,
  ): Promise<Proof | undefined> {
    const narrow = challenge.parameters.get('error') === 'insufficient_scope';
    if (narrow && state.insufficient.has(old.value.reveal())) return undefined;
    const proof = await bearer(service, asker, old);
    if (narrow) state.insufficient.add(proof.token.value.reveal());
    return proof;
  }

  async function sendProven(request: HttpRequest, host: string, wanted: readonly Scope[]): Promise<HttpResponse> {
    const state = stateOf(host);
    if (isForeign(request, host)) return (await sendWith(request, NOTHING)).response;
    const { signal } = request;
    const scopes = mergeScopes(wanted);
    const login = await orAborted(loginFor(host, scopes), signal);
    const asker: Asker = { host, scopes, ...login, signal, lasting: sendingTime(request) };
    const sent = await sendFirst(request, state, asker);
    // A 401 of another place, reached by a redirect, is no question to this registry's login.
    if (sent.response.status !== 401 || !isOwn(sent.response.url, host)) {
      if (isOwn(sent.response.url, host)) learn(state, host, sent.response, request);
      return sent.response;
    }
    const proof = await secondProof(state, request, sent, asker).catch(async (error: unknown) => {
      await sent.response.discard();
      throw error;
    });
    const once = request.once === true || (request.body !== undefined && !(request.body instanceof Uint8Array));
    if (proof === undefined || once) return sent.response;
    await sent.response.discard();
    return (await sendWith(request, proof)).response;
  }

  return {
    async send(request, host, scopes) {
      return { ...(await sendProven(request, host, scopes)), conceal: secrets.conceal };
    },

    announce(host, scopeSets) {
      const state = stateOf(host);
      state.announced.push(...scopeSets.map(mergeScopes));
      fetchAnnounced(state, host);
    },

    async advise(host, repository) {
      try {
        const credential = await credentials.lookup(host, repository);
        return loginAdvice(host, repository, credential, credentials.originOf?.(credential));
      } catch (error) {
        if (!(error instanceof PublishError)) throw error;
        return { login: error.message, hint: error.hint };
      }
    },
  };
}

/** Who wants to be let in, and for what. */
type Asker = Login & {
  readonly host: string;
  readonly scopes: readonly Scope[];
  readonly signal: AbortSignal;
  /** In ms; how long the request may be under way. */
  readonly lasting: number;
};

type Sent = { readonly response: HttpResponse; readonly proof: Proof };

function isWrite({ method }: HttpRequest): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** Whether it is known how the registry takes a request like this. */
function foresees({ scheme }: HostState, request: HttpRequest): boolean {
  return scheme !== undefined && (scheme.kind !== 'open' || scheme.writes || !isWrite(request));
}

function challengesOf(response: HttpResponse): readonly Challenge[] {
  return parseChallenges(response.headers['www-authenticate'] ?? '');
}

/** The token server that a challenge names. */
function tokenServiceOf({ scheme, parameters }: Challenge): TokenService | undefined {
  const realm = parameters.get('realm');
  return scheme === 'bearer' && realm !== undefined ? { realm, service: parameters.get('service') } : undefined;
}
