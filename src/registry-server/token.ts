import { type Action, login, rights } from './auth.ts';
import { type Call, isRepositoryName } from './call.ts';
import { json, plain, type Reply, refuse } from './reply.ts';
import { sign } from './sessions.ts';
import type { RegistryState, RegistryUser } from './state.ts';
import { createRepository } from './store.ts';

/** A bearer token and what it was given for. */
export type Token = { readonly grants: ReadonlyMap<string, ReadonlySet<Action>>; readonly expires: number };

/** A token request may not make the registry hold more than this many bytes of form. */
const FORM_LIMIT = 64 * 1024;

const ACTIONS: readonly Action[] = ['pull', 'push', 'delete'];

type Applicant = { readonly user: RegistryUser | undefined } | undefined;

/**
 * The token endpoint: GET with Basic or nothing, POST with a refresh token or password.
 *
 * @see https://distribution.github.io/distribution/spec/auth/token/ and /oauth/
 */
export async function answerToken(call: Call, state: RegistryState): Promise<Reply> {
  const { auth } = state.profile;
  if (auth.scheme !== 'bearer') return plain(404, '404 page not found\n');
  const post = call.method === 'POST';
  if (post ? !auth.token.post : call.method !== 'GET' || !auth.token.get) {
    return refuse(post ? auth.token.postStatus : 405, 'UNSUPPORTED', 'method not allowed at the token endpoint');
  }
  const fields = post ? await readForm(call) : call.query;
  if (post && !auth.token.password && fields.get('grant_type') === 'password') {
    return refuse(auth.token.postStatus, 'UNSUPPORTED', 'the password grant is not supported');
  }
  const applicant = post ? byGrant(state, fields) : byHeader(call, state);
  if (applicant === undefined) return refuse(401, 'UNAUTHORIZED', 'incorrect username or password');
  const wanted = readScopes(state, fields.getAll('scope'));
  if (wanted === undefined) return refuse(400, 'UNSUPPORTED', 'a scope parameter names exactly one repository');
  const badName = [...wanted.keys()].find((repository) => !isRepositoryName(repository));
  if (badName !== undefined && auth.badName === '400') {
    return refuse(400, 'NAME_INVALID', 'a scope names no repository', badName);
  }
  const grants = new Map<string, ReadonlySet<Action>>();
  let less = false;
  for (const [repository, actions] of wanted) {
    const allowed = rights(state, applicant.user, repository);
    const granted = new Set([...actions].filter((action) => allowed.has(action)));
    less ||= granted.size < actions.size;
    grants.set(repository, granted);
  }
  if (less && auth.denied !== 'downscope') return refuse(Number(auth.denied), 'DENIED', 'requested access is denied');
  if (state.profile.repo.missing === 'createOnPushToken') {
    for (const [repository, actions] of grants) if (actions.has('push')) createRepository(state.store, repository);
  }
  return issue(state, grants, post ? 'access_token' : auth.token.field);
}

function issue(state: RegistryState, grants: Token['grants'], field: string): Reply {
  const { ttl, opaque } = state.profile.auth.token;
  const expires = state.now() + ttl * 1000;
  const token = opaque ? state.newId() : webToken(state, grants, expires);
  state.tokens.set(token, { grants, expires });
  return json(200, { [field]: token, expires_in: ttl, issued_at: new Date(state.now()).toISOString() });
}

/** @see https://distribution.github.io/distribution/spec/auth/jwt/ */
function webToken(state: RegistryState, grants: Token['grants'], expires: number): string {
  const access = [...grants].map(([name, actions]) => ({ type: 'repository', name, actions: [...actions] }));
  const claims = { iss: state.origin(), exp: Math.floor(expires / 1000), jti: state.newId(), access };
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ typ: 'JWT', alg: 'none' })}.${part(claims)}`;
  return `${signed}.${sign(state, signed)}`;
}

async function readForm(call: Call): Promise<URLSearchParams> {
  let text = '';
  for await (const piece of call.body.pieces()) {
    text += piece.toString('latin1');
    if (text.length > FORM_LIMIT) return new URLSearchParams();
  }
  return new URLSearchParams(text);
}

function byGrant(state: RegistryState, form: URLSearchParams): Applicant {
  const grant = form.get('grant_type');
  const user = state.users.find((one) =>
    grant === 'refresh_token'
      ? one.identityToken !== undefined && one.identityToken === form.get('refresh_token')
      : grant === 'password' && one.name === form.get('username') && one.password === form.get('password'),
  );
  return user === undefined ? undefined : { user };
}

function byHeader(call: Call, state: RegistryState): Applicant {
  const header = call.headers.authorization;
  if (header === undefined) return { user: undefined };
  const [scheme = '', value = ''] = header.split(/ +/, 2);
  const user = scheme.toLowerCase() === 'basic' ? login(state, value) : undefined;
  return user === undefined ? undefined : { user };
}

/** Repository to actions, read as this token service reads the parameters; undefined: it does not take them. */
function readScopes(
  state: RegistryState,
  parameters: readonly string[],
): ReadonlyMap<string, ReadonlySet<Action>> | undefined {
  const mode = state.profile.auth.scopes;
  const split = parameters.map((parameter) => parameter.split(' ').filter((scope) => scope !== ''));
  if (mode === 'repeatedOnly400' && split.some((scopes) => scopes.length > 1)) return undefined;
  const scopes = mode === 'firstOnly' ? split.flat().slice(0, 1) : split.flat();
  const wanted = new Map<string, Set<Action>>();
  for (const scope of scopes) {
    const found = /^repository:(.+):([a-z*,]*)$/.exec(scope);
    if (found === null) continue;
    const [, repository = '', list = ''] = found;
    const known = mode === 'lastPerRepo' ? undefined : wanted.get(repository);
    const asked = list.split(',');
    wanted.set(
      repository,
      new Set([...(known ?? []), ...ACTIONS.filter((action) => asked.includes(action) || asked.includes('*'))]),
    );
  }
  return wanted;
}
