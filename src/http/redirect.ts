import { PublishError } from '../errors.ts';
import { parseUrl } from '../model/url.ts';
import type { Endpoint } from './endpoint.ts';
import type { HttpMethod } from './message.ts';
import { checkNamedUrl, originRefused, reachOf } from './origin.ts';

/** Longest chain that is followed. */
export const MOST_HOPS = 5;

const FOLLOWED_BY_READS: readonly number[] = [301, 302, 303, 307, 308];
/** Only these promise that method and body stay as they are. */
const FOLLOWED_BY_WRITES: readonly number[] = [307, 308];
/** What proxies send everything to https with; browsers would come back with a GET, we do not. */
const UPGRADES: readonly number[] = [301, 302, 307, 308];
/** 304 answers a question that is never asked here. */
const REDIRECTS: readonly number[] = [300, 301, 302, 303, 305, 307, 308];

/** Whether the answer sends us elsewhere. */
export function isRedirect(status: number): boolean {
  return REDIRECTS.includes(status);
}

/** A redirect as it came. */
export type Redirect = {
  readonly method: HttpMethod;
  readonly status: number;
  readonly location: string | undefined;
  /** The URL that was asked. */
  readonly from: URL;
  /** The registry that was asked first. */
  readonly endpoint: Endpoint;
  /** Whether the request can be sent again as it is. */
  readonly canResend: boolean;
  /** How many redirects have been followed before. */
  readonly hops: number;
};

/** Whether it leads from http to https at the registry's own place, which is that place still. */
export function isUpgrade(endpoint: Endpoint, from: URL, next: URL): boolean {
  return (
    from.protocol === 'http:' &&
    next.protocol === 'https:' &&
    from.origin === endpoint.base('http:').origin &&
    next.origin === endpoint.base('https:').origin
  );
}

/**
 * Where to go on. A write is never turned into a read, and never sent to another origin but from http to https on the
 * same host: a proxy that redirects uploads is configured wrongly, and who follows it ends in a puzzling 405
 * (jfrog/charts#1854).
 *
 * @throws PublishError `ORIGIN_REFUSED`
 */
export function followRedirect({ method, status, location, from, endpoint, canResend, hops }: Redirect): URL {
  const isRead = method === 'GET' || method === 'HEAD';
  const refused = (why: string) =>
    new PublishError(
      'ORIGIN_REFUSED',
      `${endpoint.host} answered ${method} with a redirect (${status}) that is not followed: ${why}`,
      isRead
        ? 'Check the address of the registry and the proxy in front of it.'
        : `Have the proxy in front of ${endpoint.host} pass ${method} on instead of redirecting it, or use the address that it redirects to.`,
      { registry: endpoint.host, status },
    );
  if (hops >= MOST_HOPS) throw refused(`more than ${MOST_HOPS} in a row`);
  // A Location without content would lead back to where it came from.
  const next = location === undefined || location.trim() === '' ? undefined : parseUrl(location, from);
  if (next === undefined) throw refused('it names no address');
  const upgrade = isUpgrade(endpoint, from, next) && UPGRADES.includes(status);
  if (!upgrade && !(isRead ? FOLLOWED_BY_READS : FOLLOWED_BY_WRITES).includes(status)) {
    throw refused(isRead ? 'it leaves the choice to the client' : 'it does not promise to keep method and body');
  }
  if (next.protocol === 'http:' && from.protocol === 'https:') {
    throw originRefused(next, endpoint.host, 'it leads from https to http');
  }
  if (!isRead && !upgrade && next.origin !== from.origin) throw refused(`it leads to another origin, ${next.origin}`);
  if (!isRead && !canResend) throw refused('what was sent cannot be sent twice');
  if (!upgrade && next.origin !== endpoint.base().origin) {
    checkNamedUrl(next, { registry: endpoint.host, reach: reachOf(endpoint), scheme: from.protocol });
  } else if (next.username !== '' || next.password !== '') {
    throw originRefused(next, endpoint.host, 'it carries a user name');
  }
  return next;
}
