import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/**
 * Whom the registry lets in: everybody; everybody who fetches a bearer token for the repository; those who fetch one
 * with a user name and a password.
 */
export type Auth = 'none' | 'token' | 'login';

/** What `docker login` would have put into the user's HOME. */
export const LOGIN = { user: 'bench', password: 'loopback' } as const;

/** @see createTokenGate */
export type TokenGate = {
  /** The challenge for a request that may not pass, else undefined. */
  challenge(request: IncomingMessage, target: string): string | undefined;
  /** A token for what was asked, undefined for a stranger. @param body of a POST */
  issue(request: IncomingMessage, target: string, body: string): string | undefined;
};

/** `repository:debian/amd64:pull` */
type Access = { readonly repository: string; readonly action: string };

/**
 * Bearer tokens as distribution demands them: one for reading a repository, one for writing, and for a mount both, of
 * the target and of the repository that the blob comes from. A token holds what it was asked for.
 * @see distribution docs/spec/auth/token.md and scope.md (v2.8)
 */
export function createTokenGate(auth: Exclude<Auth, 'none'>): TokenGate {
  const tokens = new Map<string, ReadonlySet<string>>();
  return {
    challenge: (request, target) => {
      const needed = accessNeeded(request.method ?? '', target);
      const held = tokens.get(/^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '');
      if (held !== undefined && needed.every((access) => held.has(key(access)))) return undefined;
      const scope = scopeOf(needed);
      const realm = `http://${request.headers.host}/token`;
      return `Bearer realm="${realm}",service="bench"${scope === '' ? '' : `,scope="${scope}"`}`;
    },
    issue: (request, target, body) => {
      const asked =
        request.method === 'POST' ? new URLSearchParams(body) : new URL(target, 'http://proxy').searchParams;
      if (auth === 'login' && !isKnown(request, asked)) return undefined;
      const token = randomUUID();
      tokens.set(token, new Set(asked.getAll('scope').flatMap(readScopes).map(key)));
      return token;
    },
  };
}

function accessNeeded(method: string, target: string): readonly Access[] {
  const { pathname, searchParams } = new URL(target, 'http://proxy');
  const repository = /^\/v2\/(.+)\/(?:manifests|blobs|tags|referrers)\//.exec(pathname)?.[1];
  if (repository === undefined) return [];
  if (method === 'GET' || method === 'HEAD') return [{ repository, action: 'pull' }];
  const from = searchParams.get('from');
  return [
    { repository, action: 'pull' },
    { repository, action: 'push' },
    ...(from === null ? [] : [{ repository: from, action: 'pull' }]),
  ];
}

function scopeOf(needed: readonly Access[]): string {
  const repositories = [...new Set(needed.map(({ repository }) => repository))];
  const actions = (name: string) => needed.flatMap(({ repository, action }) => (repository === name ? [action] : []));
  return repositories.map((name) => `repository:${name}:${actions(name).join(',')}`).join(' ');
}

/** One parameter may hold several scopes, apart by spaces. */
function readScopes(text: string): readonly Access[] {
  return text.split(' ').flatMap((scope) => {
    const [, repository, actions] = /^repository:(.+):([^:]+)$/.exec(scope) ?? [];
    if (repository === undefined || actions === undefined) return [];
    return actions.split(',').map((action) => ({ repository, action }));
  });
}

function isKnown(request: IncomingMessage, asked: URLSearchParams): boolean {
  const basic = `Basic ${Buffer.from(`${LOGIN.user}:${LOGIN.password}`).toString('base64')}`;
  if (request.headers.authorization === basic) return true;
  return asked.get('username') === LOGIN.user && asked.get('password') === LOGIN.password;
}

function key({ repository, action }: Access): string {
  return `${repository} ${action}`;
}
