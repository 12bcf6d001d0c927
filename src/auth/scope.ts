import type { HttpRequest, HttpResponse } from '../http/message.ts';

/**
 * What one request needs on one repository.
 *
 * @see https://distribution.github.io/distribution/spec/auth/scope/
 */
export type Scope = { readonly repository: string; readonly actions: 'pull' | 'pull,push' | 'pull,push,delete' };

/** Sends requests of one registry host with the credential that belongs to it. */
export interface Authorizer {
  /**
   * Adds `Authorization` when the request goes to the registry's own origin and the scheme is known; answers one 401
   * by authenticating for exactly these scopes (the target's first) and sending again. A second 401 is returned as
   * it is. A request whose body is a stream is not sent again: its 401 is returned after the token was renewed.
   *
   * @throws PublishError `UNAUTHORIZED` or `DENIED` when the token server refuses, `CREDENTIALS_FAILED` when a
   *   helper fails, and whatever {@link Transport.send} throws
   */
  send(request: HttpRequest, host: string, scopes: readonly Scope[]): Promise<HttpResponse>;
  /** Fetches tokens for these scope sets side by side as soon as the host is known to want tokens. Never fails. */
  announce(host: string, scopeSets: readonly (readonly Scope[])[]): void;
  /** What to tell a user whom the registry has refused, by a 401 or 403 that {@link Authorizer.send} returned. */
  advise(host: string, repository: string): Promise<LoginAdvice>;
}

/** Whether there was a login, and what to do about it; both ready for a message and its hint. */
export type LoginAdvice = {
  /** For example `no login was found for docker.io/acme/app`. */
  readonly login: string;
  /** One imperative sentence. */
  readonly hint: string;
};

/** The widest of the actions, each of which contains the shorter ones. */
const WIDEST_FIRST: readonly Scope['actions'][] = ['pull,push,delete', 'pull,push', 'pull'];

/** Each repository once, in the order of the first mention: of two entries for one, GitLab reads the last alone. */
export function mergeScopes(scopes: readonly Scope[]): readonly Scope[] {
  return [...new Set(scopes.map(({ repository }) => repository))].map((repository) => {
    const all = scopes.filter((scope) => scope.repository === repository).map(({ actions }) => actions);
    return { repository, actions: WIDEST_FIRST.find((actions) => all.includes(actions)) ?? 'pull' };
  });
}
