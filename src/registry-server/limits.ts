import type { Call } from './call.ts';
import { type Answer, answer, html, plain, type Reply, type ReplyHeaders, refuse } from './reply.ts';
import { type RegistryState, scaled } from './state.ts';

/** When requests of each class were let through, newest last; milliseconds. */
export type LimitCounters = { readonly recent: Map<string, number[]>; pulls: number };

export function createLimitCounters(): LimitCounters {
  return { recent: new Map(), pulls: 0 };
}

/** Width of a window named in the `ratelimit` headers, as Docker Hub names it: six hours. */
const WINDOW_SECONDS = 21_600;

/** What stands in front of the registry: body limits of a proxy, then the registry's own rates. */
export function checkLimits(call: Call, state: RegistryState): Reply | undefined {
  return toHttps(call, state) ?? behindProxy(call, state) ?? csrf(call, state) ?? tooMany(call, state);
}

/**
 * A proxy that ends TLS and sends whoever comes in clear to https, before a registry that does not know of it and
 * names http in its Locations.
 */
function toHttps(call: Call, state: RegistryState): Answer | undefined {
  const { proxy } = state.profile;
  if (proxy === 'none' || !proxy.redirect301 || !call.origin.startsWith('http:')) return undefined;
  const fromSession = call.operation === 'uploadPatch' || call.operation === 'uploadPut';
  if (!state.origin().startsWith('https:') && !fromSession) return undefined;
  const query = call.rawQuery === '' ? '' : `?${call.rawQuery}`;
  const there = `${call.origin.replace('http:', 'https:')}${call.path}${query}`;
  return { ...html(301, 'Moved Permanently', { Location: there }), close: true };
}

/** @see facts: nginx judges `client_max_body_size` from Content-Length, before it reads */
function behindProxy(call: Call, state: RegistryState): Reply | undefined {
  const { proxy } = state.profile;
  if (proxy === 'none' || proxy.maxBody === 0 || (call.body.length ?? 0) <= scaled(state, proxy.maxBody))
    return undefined;
  if (proxy.closeEarly) return { kind: 'cut', how: 'reset' };
  const large = proxy.html ? html(413, 'Request Entity Too Large') : answer(413);
  return { ...large, close: true };
}

/** Harbor: a request that carries the session cookie also needs the CSRF header. */
function csrf(call: Call, state: RegistryState): Answer | undefined {
  if (!state.profile.auth.cookieCsrf || !/(?:^|;\s*)sid=/.test(call.headers.cookie ?? '')) return undefined;
  return call.headers['x-harbor-csrf-token'] === undefined
    ? refuse(403, 'DENIED', 'CSRF token not found in request')
    : undefined;
}

function tooMany(call: Call, state: RegistryState): Answer | undefined {
  const { limit } = state.profile;
  if (limit.allPerSec > 0 && !take(state, 'all', limit.allPerSec)) return slowDown(state, limit.retryAfter);
  const commits = call.operation === 'manifestPut' || call.operation === 'uploadPut';
  if (limit.commitPerSec > 0 && commits && !take(state, call.operation, limit.commitPerSec)) {
    return slowDown(state, limit.retryAfter);
  }
  const pull = limit.pull;
  const counted =
    call.operation === 'manifestGet' || (call.operation === 'manifestHead' && pull !== 'none' && pull.countHead);
  if (pull === 'none' || !counted) return undefined;
  if (pull.perWindow > 0 && state.counters.pulls >= pull.perWindow) return slowDown(state, pull.retryAfter);
  if (pull.perSec > 0 && !take(state, 'pull', pull.perSec)) return slowDown(state, pull.retryAfter);
  state.counters.pulls += 1;
  return undefined;
}

/** Headers that a registry with a pull limit adds to manifest answers. */
export function limitHeaders(call: Call, state: RegistryState): ReplyHeaders {
  const { pull } = state.profile.limit;
  if (pull === 'none' || !pull.headers || (call.operation !== 'manifestGet' && call.operation !== 'manifestHead'))
    return {};
  const left = Math.max(0, pull.perWindow - state.counters.pulls);
  return {
    'RateLimit-Limit': `${pull.perWindow};w=${WINDOW_SECONDS}`,
    'RateLimit-Remaining': `${left};w=${WINDOW_SECONDS}`,
    'Docker-RateLimit-Source': '127.0.0.1',
  };
}

function take(state: RegistryState, kind: string, perSecond: number): boolean {
  const now = state.now();
  const recent = (state.counters.recent.get(kind) ?? []).filter((at) => at > now - 1000);
  const free = recent.length < perSecond;
  state.counters.recent.set(kind, free ? [...recent, now] : recent);
  return free;
}

function slowDown(state: RegistryState, seconds: number): Answer {
  const headers: ReplyHeaders = seconds > 0 ? { 'Retry-After': String(seconds) } : {};
  return state.profile.limit.body === 'text'
    ? plain(429, 'You have reached your pull rate limit.', headers)
    : refuse(429, 'TOOMANYREQUESTS', 'rate exceeded', undefined, headers);
}
