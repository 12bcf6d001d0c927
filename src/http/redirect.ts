import { PublishError } from '../errors.ts';
import type { Endpoint } from './endpoint.ts';
import type { HttpMethod } from './message.ts';
import { checkNamedUrl, originRefused, reachOf } from './origin.ts';

/** Longest chain that is followed. */
export const MOST_HOPS = 5;

const FOLLOWED_BY_READS: readonly number[] = [301, 302, 303, 307, 308];
/** Only these promise that method and body stay as they are. */
const FOLLOWED_BY_WRITES: readonly number[] = [307, 308];
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

/**
 * Where to go on. A write is never turned into a read, and never sent to another origin: a proxy that redirects
 * uploads is configured wrongly, and who follows it ends in a puzzling 405 (jfrog/charts#1854).
 *
 * @throws PublishError `ORIGIN_REFUSED`
 */
export function followRedirect({ method, status, location, from, endpoint, canResend, hops }: Redirect): URL {
  const refused = (why: string) =>
    new PublishError(
      'ORIGIN_REFUSED',
      `${endpoint.host} answered ${method} with a redirect (${status}) that is not followed: ${why}`,
      'Check the address of the registry and the proxy in front of it.',
      { registry: endpoint.host, status },
    );
  if (hops >= MOST_HOPS) throw refused(`more than ${MOST_HOPS} in a row`);
  // A Location without content would lead back to where it came from.
  if (location === undefined || location.trim() === '' || !URL.canParse(location, from.href))
    throw refused('it names no address');
  const next = new URL(location, from);
  const isRead = method === 'GET' || method === 'HEAD';
  if (!(isRead ? FOLLOWED_BY_READS : FOLLOWED_BY_WRITES).includes(status)) {
    throw refused(isRead ? 'it leaves the choice to the client' : 'it does not promise to keep method and body');
  }
  if (next.protocol === 'http:' && from.protocol === 'https:') {
    throw originRefused(next, endpoint.host, 'it leads from https to http');
  }
  if (!isRead && next.origin !== from.origin) throw refused(`it leads to another origin, ${next.origin}`);
  if (!isRead && !canResend) throw refused('what was sent cannot be sent twice');
  if (next.origin !== endpoint.base().origin) {
    checkNamedUrl(next, { registry: endpoint.host, reach: reachOf(endpoint), scheme: from.protocol });
  } else if (next.username !== '' || next.password !== '') {
    throw originRefused(next, endpoint.host, 'it carries a user name');
  }
  return next;
}
