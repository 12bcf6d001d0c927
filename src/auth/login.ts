import type { Credential } from '../http/origin.ts';
import type { CredentialSource } from './credentials.ts';
import type { Scope } from './scope.ts';
import type { Secrets } from './secrets.ts';
import { basicLogin } from './token.ts';

/** What one request is sent with. */
export type Login = {
  readonly credential: Credential;
  /** A repository of the request that another login is kept for. */
  readonly barred: string | undefined;
};

const NONE: Credential = { kind: 'none' };

/**
 * Finds the login of a request, which is that of its first scope: the target's. A source that has a login of its own,
 * as each of two Harbor or Quay robots has, cannot be mounted from: the request can show one login only, and these
 * registries answer misleadingly. A source without a login is public, as far as anyone knows here.
 *
 * @see oras-project/oras#1892
 */
export function createLoginFinder(
  credentials: CredentialSource,
  secrets: Secrets,
): (host: string, scopes: readonly Scope[]) => Promise<Login> {
  return async (host, scopes) => {
    const names = scopes.length === 0 ? [''] : scopes.map(({ repository }) => repository);
    const logins = await Promise.all(names.map((name) => credentials.lookup(host, name)));
    for (const login of logins) secrets.addLogin(login);
    const credential = logins[0] ?? NONE;
    return { credential, barred: names.find((_, index) => isOther(logins[index] ?? NONE, credential)) };
  };
}

/** Whether it is a login, and not this one. */
function isOther(login: Credential, than: Credential): boolean {
  return login.kind !== 'none' && login !== than && basicLogin(login) !== basicLogin(than);
}
