import { PublishError } from '../errors.ts';
import { canonicalHost } from '../http/endpoint.ts';
import type { Credential } from '../http/origin.ts';
import type { LoginAdvice, Scope } from './scope.ts';
import { scopeText, type TokenRefusal } from './token.ts';

/**
 * Says whether there was a login and what to do; the full name shows a registry that was left out by mistake.
 *
 * @param from the file or helper that had the login
 */
export function loginAdvice(
  host: string,
  repository: string,
  credential: Credential,
  from: string | undefined,
): LoginAdvice {
  const hub = canonicalHost(host) === 'docker.io';
  const name = `${hub ? 'docker.io' : host}/${repository}`;
  const command = hub ? 'docker login' : `docker login ${host}`;
  if (credential.kind !== 'none') {
    return {
      login: `the login found for ${name}${from === undefined ? '' : ` in ${from}`} was refused: a wrong or expired password, or no right to this`,
      hint: `Check that this login may use ${name}, or log in again: ${command}`,
    };
  }
  return {
    login: `no login was found for ${name}`,
    hint: hub
      ? `Log in: ${command}; or write the registry in front if another was meant: HOST/${repository}.`
      : `Log in: ${command}`,
  };
}

/**
 * For a refusal by a place that the registry has sent us to, by a redirect or a Location: no login is sent there, so that
 * none was refused and none will help.
 *
 * @param elsewhere its host
 */
export function elsewhereAdvice(host: string, elsewhere: string): LoginAdvice {
  const name = canonicalHost(host);
  return {
    login: `${name} sends us to ${elsewhere}, where no login is sent and which lets nobody in`,
    hint: `Ask the operator of ${name}: the addresses that it names at ${elsewhere} must be open or signed, and signed ones run out; another login does not help.`,
  };
}

/** The error for a token server that gave no token, by its status. */
export function tokenRefused(
  refusal: TokenRefusal,
  host: string,
  scopes: readonly Scope[],
  credential: Credential,
  from: string | undefined,
): PublishError {
  const { status, server, code, message } = refusal;
  const repository = scopes[0]?.repository ?? '';
  const advice = loginAdvice(host, repository, credential, from);
  const words = [`status ${status}`, code, message === undefined ? undefined : JSON.stringify(message)]
    .filter((word) => word !== undefined)
    .join(', ');
  const what = `its token server ${server} gave no token for ${scopes.map(scopeText).join(' ')} (${words})`;
  const details = { registry: canonicalHost(host), repository, status };
  const name = `${canonicalHost(host)}/${repository}`;
  if (status === 429) {
    return new PublishError('RATE_LIMITED', `${name}: ${what}`, 'Wait, then run the same command again.', details);
  }
  if (status >= 500) {
    return new PublishError('REGISTRY_FAILED', `${name}: ${what}`, 'Run the same command again in a while.', details);
  }
  const text = `${name}: ${what}; ${advice.login}`;
  return new PublishError(status === 403 ? 'DENIED' : 'UNAUTHORIZED', text, advice.hint, details);
}

/** The error for a registry that wants something we cannot do, such as Negotiate or NTLM. */
export function schemeUnknown(host: string, repository: string, schemes: readonly string[]): PublishError {
  const name = canonicalHost(host);
  return new PublishError(
    'UNAUTHORIZED',
    `${name}/${repository}: ${name} wants ${schemes.join(' or ')} authentication, which is not supported`,
    "Ask the registry's operator for access by password or token (Basic or Bearer).",
    { registry: name, repository, status: 401 },
  );
}

/** The error for a registry that asks for a token and leaves out where tokens come from. */
export function realmMissing(host: string, repository: string): PublishError {
  const name = canonicalHost(host);
  return new PublishError(
    'UNAUTHORIZED',
    `${name}/${repository}: ${name} asks for a token, but names no token server (a Bearer challenge without realm)`,
    "Ask the registry's operator; a proxy before it may have cut its WWW-Authenticate header.",
    { registry: name, repository, status: 401 },
  );
}

/** The error for a request on two repositories that each have a login of their own: it can show only one. */
export function loginsDiffer(host: string, scopes: readonly Scope[], other: string): PublishError {
  const name = canonicalHost(host);
  const repository = scopes[0]?.repository ?? '';
  return new PublishError(
    'DENIED',
    `${name}/${repository} and ${name}/${other} have different logins, and one request can show only one`,
    `Log in to ${name} with one account that may read ${other} and push to ${repository}.`,
    { registry: name, repository },
  );
}
