import type { Call, Operation } from './call.ts';
import { type Answer, type Reply, type ReplyHeaders, refuse } from './reply.ts';
import type { RegistryState, RegistryUser } from './state.ts';
import type { MountMode } from './switches.ts';

export type Action = 'pull' | 'push' | 'delete';

/** What a request needs on one repository. */
type Need = { readonly repository: string; readonly actions: readonly Action[] };

/** `sourceBarred`: the mount may not read its source, and the registry answers as if it had no such blob. */
export type Permission =
  | { readonly kind: 'allowed'; readonly sourceBarred: boolean }
  | { readonly kind: 'refused'; readonly reply: Reply };

const ALLOWED: Permission = { kind: 'allowed', sourceBarred: false };

const NEEDS: Readonly<Partial<Record<Operation, readonly Action[]>>> = {
  blobHead: ['pull'],
  blobGet: ['pull'],
  manifestHead: ['pull'],
  manifestGet: ['pull'],
  tagsList: ['pull'],
  referrers: ['pull'],
  mount: ['pull', 'push'],
  uploadPost: ['pull', 'push'],
  uploadPatch: ['pull', 'push'],
  uploadPut: ['pull', 'push'],
  uploadGet: ['pull', 'push'],
  uploadDelete: ['pull', 'push'],
  manifestPut: ['pull', 'push'],
  manifestDelete: ['delete'],
  blobDelete: ['delete'],
};

/** Who asks: known by Basic or by a token, nobody, or somebody whose credential is worth nothing. */
type Principal =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'user'; readonly user: RegistryUser }
  | { readonly kind: 'token'; readonly grants: ReadonlyMap<string, ReadonlySet<Action>> }
  | { readonly kind: 'invalid'; readonly why: 'invalid_token' | 'wrong_password' };

/** Decides whether a call may be handled, by the profile's scheme. */
export function authorize(call: Call, state: RegistryState): Permission {
  const { auth } = state.profile;
  if (auth.scheme === 'none' || call.operation === 'token') return ALLOWED;
  const principal = identify(call, state);
  if (principal.kind === 'invalid') return refused(challenge(call, state, needsOf(call), principal.why));
  if (call.operation === 'ping') return ping(call, state, principal);
  const needs = needsOf(call);
  if (!needs.every((need) => holds(state, principal, need))) return refused(lacking(call, state, principal, needs));
  return mountSource(call, state, principal);
}

function identify(call: Call, state: RegistryState): Principal {
  const header = call.headers.authorization;
  if (header === undefined) return { kind: 'anonymous' };
  const [scheme = '', value = ''] = header.split(/ +/, 2);
  if (state.profile.auth.scheme === 'basic') {
    const user = scheme.toLowerCase() === 'basic' ? login(state, value) : undefined;
    return user === undefined ? { kind: 'invalid', why: 'wrong_password' } : { kind: 'user', user };
  }
  const token = scheme.toLowerCase() === 'bearer' ? state.tokens.get(value) : undefined;
  if (token === undefined || token.expires <= state.now()) return { kind: 'invalid', why: 'invalid_token' };
  return { kind: 'token', grants: token.grants };
}

/** The user whose name and password, base64 with a colon between, these are. */
export function login(state: RegistryState, basic: string): RegistryUser | undefined {
  const text = Buffer.from(basic, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  const [name, password] = [text.slice(0, colon), text.slice(colon + 1)];
  return state.users.find((user) => colon >= 0 && user.name === name && user.password === password);
}

/** What somebody may do in a repository; `undefined` is the anonymous public. */
export function rights(state: RegistryState, user: RegistryUser | undefined, repository: string): ReadonlySet<Action> {
  if (user === undefined) return new Set(state.profile.auth.anonymousPull ? ['pull'] : []);
  const all = Object.entries(user.access ?? { '*': 'push' });
  const entries = state.profile.auth.perRepoUser ? all.slice(0, 1) : all;
  const level = entries.find(([pattern]) => fits(pattern, repository))?.[1] ?? 'none';
  if (level === 'push') return new Set(['pull', 'push', 'delete']);
  return new Set(level === 'pull' ? ['pull'] : []);
}

function fits(pattern: string, repository: string): boolean {
  return (
    pattern === '*' || pattern === repository || (pattern.endsWith('/*') && repository.startsWith(pattern.slice(0, -1)))
  );
}

function needsOf(call: Call): Need[] {
  const actions = NEEDS[call.operation];
  return actions === undefined ? [] : [{ repository: call.repository, actions }];
}

function holds(state: RegistryState, principal: Principal, need: Need): boolean {
  if (principal.kind === 'invalid') return false;
  // Where tokens are spoken, the public too has to fetch one: every read without a token is a 401 with a challenge.
  if (principal.kind === 'anonymous' && state.profile.auth.scheme === 'bearer') return false;
  const held =
    principal.kind === 'token'
      ? (principal.grants.get(need.repository) ?? new Set())
      : rights(state, principal.kind === 'user' ? principal.user : undefined, need.repository);
  return need.actions.every((action) => held.has(action));
}

function lacking(call: Call, state: RegistryState, principal: Principal, needs: readonly Need[]): Reply {
  // Basic knows who it is and says no; a token only proves that it was not asked for enough.
  if (principal.kind === 'user' && !state.profile.auth.perRepoUser)
    return refuse(403, 'DENIED', 'requested access to the resource is denied');
  return challenge(call, state, needs, principal.kind === 'token' ? 'insufficient_scope' : undefined);
}

function ping(call: Call, state: RegistryState, principal: Principal): Permission {
  if (state.profile.auth.ping === '200' || principal.kind !== 'anonymous') return ALLOWED;
  const placeholder: Need[] = [{ repository: 'user/image', actions: ['pull'] }];
  return refused(challenge(call, state, state.profile.auth.ping === 'placeholderScope' ? placeholder : [], undefined));
}

/** The second repository of a mount: strict registries want `pull` on it in the same token. */
function mountSource(call: Call, state: RegistryState, principal: Principal): Permission {
  const { mount } = state.profile;
  const from = call.query.get('from');
  const mode: MountMode = mount.byDigest[call.query.get('mount') ?? ''] ?? mount.mode;
  if (call.operation !== 'mount' || from === null || from === call.repository) return ALLOWED;
  if (mode === 'ignore' || mode === 'anywhere') return ALLOWED;
  const source: Need = { repository: from, actions: ['pull'] };
  if (holds(state, principal, source)) return ALLOWED;
  switch (mount.noSourceScope) {
    case '401bearer2':
      return refused(challenge(call, state, [...needsOf(call), source], 'insufficient_scope'));
    case '202':
      return { kind: 'allowed', sourceBarred: true };
    case '401basic':
      return refused(unauthorized({ 'WWW-Authenticate': 'Basic realm="registry"' }));
    case '401empty':
      return refused(unauthorized({}));
    case '403':
      return refused(refuse(403, 'DENIED', 'no right to read the source repository', from));
    case 'ok':
      return ALLOWED;
  }
}

type Why = 'invalid_token' | 'wrong_password' | 'insufficient_scope' | undefined;

function challenge(call: Call, state: RegistryState, needs: readonly Need[], why: Why): Answer {
  const { host } = new URL(call.origin);
  const realm = state.profile.auth.realm === 'url' ? `${call.origin}${call.path}` : host;
  if (state.profile.auth.scheme === 'basic') return unauthorized({ 'WWW-Authenticate': `Basic realm="${realm}"` });
  const scope = needs.map(({ repository, actions }) => `repository:${repository}:${actions.join(',')}`).join(' ');
  const parts = [`realm="${call.origin}/token"`, `service="${host}"`];
  if (scope !== '') parts.push(`scope="${scope}"`);
  if (why === 'invalid_token' || why === 'insufficient_scope') parts.push(`error="${why}"`);
  return unauthorized({ 'WWW-Authenticate': `Bearer ${parts.join(',')}` });
}

function unauthorized(headers: ReplyHeaders): Answer {
  return refuse(401, 'UNAUTHORIZED', 'authentication required', undefined, headers);
}

function refused(reply: Reply): Permission {
  return { kind: 'refused', reply };
}
