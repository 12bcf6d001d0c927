import { PublishError } from '../errors.ts';
import type { HttpHeaders } from './message.ts';

const SECOND = 1000;

/** Longest wait that a registry may ask for, in ms; a longer one ends the run (Docker Hub asks for hours). */
export const LONGEST_WAIT: number = 120 * SECOND;

const BACKOFF_FIRST = 250;
const BACKOFF_CAP = 30 * SECOND;

/**
 * Milliseconds to wait after the failure number `attempt`, counted from 0: exponential with full jitter, so that
 * requests which failed together do not come back together.
 *
 * @param random uniform in [0, 1)
 * @see https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 */
export function backoff(attempt: number, random: () => number): number {
  return random() * Math.min(BACKOFF_CAP, BACKOFF_FIRST * 2 ** attempt);
}

/** 499 is nginx's "client closed request", 520 to 524 are Cloudflare's; 501 says that asking again is no use. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 499, 500, 502, 503, 504, 520, 521, 522, 523, 524]);

/** Whether an answer of this status may turn out differently a little later. */
export function isPassingStatus(status: number): boolean {
  return PASSING.has(status);
}

/**
 * How long the registry asks to be left alone, in ms; undefined when it asks for nothing, for nothing sensible, or for
 * a time that is past. `X-Retry-After` is what some proxies send instead. A date is measured from the answer's own
 * `Date` where there is one, so that a clock that is wrong here makes no difference.
 *
 * @param epoch now, in ms since 1970
 * @see RFC 9110, section 10.2.3
 */
export function retryAfter(headers: HttpHeaders, epoch: number): number | undefined {
  const text = (headers['retry-after'] ?? headers['x-retry-after'])?.trim();
  if (text === undefined || text.length > 64) return undefined;
  if (/^\d+$/.test(text)) return positive(Number(text) * SECOND);
  const then = httpDate(text);
  return then === undefined ? undefined : positive(then - (httpDate(headers['date']?.trim() ?? '') ?? epoch));
}

/** All three forms that RFC 9110 wants understood start with a day's name. */
function httpDate(text: string): number | undefined {
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? /.test(text) || text.length > 64) return undefined;
  // asctime has no zone, and means GMT all the same.
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}

function positive(milliseconds: number): number | undefined {
  return milliseconds > 0 ? milliseconds : undefined;
}

/** The registry wants more time than {@link LONGEST_WAIT}. */
export function waitTooLong(host: string, status: number, milliseconds: number): PublishError {
  const seconds = Math.ceil(milliseconds / 1000);
  return new PublishError(
    'RATE_LIMITED',
    `${host} asks for a wait of ${seconds} s (status ${status}), longer than the ${LONGEST_WAIT / 1000} s that are waited`,
    'Run the same command again after that time; logging in often raises the limit.',
    { registry: host, status },
  );
}
