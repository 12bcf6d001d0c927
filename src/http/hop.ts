import type { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import type { Clock } from './clock.ts';
import type { Endpoint, Scheme } from './endpoint.ts';
import type { Exchange, Wire, WireAnswer } from './exchange.ts';
import { exchangeFailed, failureCode, failureKind, isHangUp } from './failure.ts';
import type { HostLimiter } from './limiter.ts';
import type { HttpEvent, HttpHeaders, HttpMethod } from './message.ts';
import type { Notices } from './notices.ts';
import type { Pools } from './pool.ts';
import { proxyRefused } from './proxy.ts';
import { checkEncoding, joinHeaders } from './response.ts';

/** One request to one place. */
export type HopRequest = {
  readonly method: HttpMethod;
  readonly url: URL;
  /** The registry that is asked, or that named the URL. */
  readonly endpoint: Endpoint;
  /** Whether the URL is a place of its own that the registry named. */
  readonly named: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | Readable | undefined;
  /** As in {@link HttpRequest.body}. */
  readonly disposable: boolean;
  readonly headersTimeout: number;
  /** As in {@link HttpRequest}. */
  readonly aside: boolean;
  readonly signal: AbortSignal;
  /** Counted from 1. */
  readonly send: number;
};

/** What came of it. */
export type HopResult = HopAnswer | HopFailure;

export type HopAnswer = {
  readonly kind: 'answer';
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly url: URL;
  readonly body: Readable;
  /** Bytes of the body by its own word; 0 for what has none, such as the answer to a HEAD. */
  readonly expected: number;
  readonly finished: Promise<unknown>;
  /** By the clock's `now`. */
  readonly sentAt: number;
};

export type HopFailure = {
  readonly kind: 'failed';
  readonly error: unknown;
  readonly url: URL;
  /** As in {@link HopRequest}. */
  readonly named: boolean;
  /** Host of the proxy that was asked. */
  readonly via: string | undefined;
  /** Whether the connection was one that the other side may have closed for want of use. */
  readonly reused: boolean;
};

export type HopTools = {
  readonly wire: Wire;
  readonly pools: Pools;
  readonly limiter: HostLimiter;
  readonly clock: Clock;
  readonly onEvent: (event: HttpEvent) => void;
  readonly notices: Notices;
  /** In ms. */
  readonly sendTimeout: number;
};

/**
 * Sends one request; while it is not known whether the host speaks http or https, to whichever of them answers. All
 * requests that meet an unknown host find out for themselves, so that none waits for another.
 *
 * @throws PublishError `PROTOCOL_VIOLATED` when the answer's headers contradict each other
 */
export async function sendHop(request: HopRequest, tools: HopTools): Promise<HopResult> {
  const { endpoint } = request;
  if (request.named) return sendOnce(request, tools);
  const alternative = endpoint.alternative;
  const first = await sendOnce({ ...request, url: endpoint.rewrite(request.url) }, tools);
  if (alternative === undefined) return first;

  const scheme = first.url.protocol === 'https:' ? 'https:' : 'http:';
  if (first.kind === 'answer' && !isOtherSchemeAnswer(first)) {
    endpoint.settle(scheme);
    return first;
  }
  const resend = request.body === undefined || request.body instanceof Uint8Array;
  if (!resend || (first.kind === 'failed' && !isOtherScheme(first.error, endpoint))) return first;
  endIfStopped(request.signal, first);

  const second = await sendOnce({ ...request, url: endpoint.rewrite(request.url, alternative) }, tools);
  const believed = schemeToBelieve(second, scheme, alternative);
  if (believed !== undefined) endpoint.settle(believed);
  if (second.kind === 'failed') endIfStopped(request.signal, first);
  if (second.kind === 'failed' && believed !== alternative) return first;
  if (first.kind === 'answer') first.body.destroy();
  return second;
}

/** Half a search for the scheme has found nothing, and its 400 is not the registry's word. */
function endIfStopped(signal: AbortSignal, first: HopResult): void {
  if (signal.aborted && first.kind === 'answer') first.body.destroy();
  signal.throwIfAborted();
}

/** What the second try proves about the host; undefined when it proves nothing. */
function schemeToBelieve(second: HopResult, first: Scheme, alternative: Scheme): Scheme | undefined {
  if (second.kind === 'answer') return alternative;
  const kind = failureKind(second.error);
  // A certificate that is not accepted was at least shown.
  if (kind === 'tls') return 'https:';
  return kind === 'not-tls' ? first : undefined;
}

/** Whether the failure looks like that of a server that expected the other scheme. */
function isOtherScheme(error: unknown, endpoint: Endpoint): boolean {
  const kind = failureKind(error);
  if (kind === 'not-tls' || kind === 'garbled' || isHangUp(error)) return true;
  // Without a port in the host the other scheme has a port of its own.
  return failureCode(error) === 'ECONNREFUSED' && !endpoint.hasPort;
}

/**
 * Servers that wait for TLS answer plain http with 400 and a sentence (Go) or a page (nginx); errors of registries are
 * JSON.
 */
function isOtherSchemeAnswer({ status, url, headers }: HopAnswer): boolean {
  return status === 400 && url.protocol === 'http:' && !(headers['content-type'] ?? '').toLowerCase().includes('json');
}

async function sendOnce(request: HopRequest, tools: HopTools): Promise<HopResult> {
  const { method, url, endpoint, named, signal } = request;
  const { clock, limiter } = tools;
  const host = named ? url.host : endpoint.host;
  await limiter.ready(host, signal, request.aside);

  const route = tools.pools.routeTo({ url, endpoint, named });
  const sentAt = clock.now();
  const exchange = tools.wire.exchange({
    route,
    method,
    url,
    headers: request.headers,
    body: request.body,
    spent: request.disposable ? tools.pools.giveBack : undefined,
    headersTimeout: request.headersTimeout,
    sendTimeout: tools.sendTimeout,
    signal,
    bodyError: (cause) => bodyFailed(cause, host, route.via),
  });
  const outcome = await outcomeOf(exchange);
  tools.onEvent({
    kind: 'request',
    method,
    url: url.origin + url.pathname,
    status: 'status' in outcome ? outcome.status : undefined,
    failure: 'status' in outcome ? undefined : failureCode(outcome.error),
    milliseconds: clock.now() - sentAt,
    bytesSent: exchange.facts.bytesSent,
    send: request.send,
  });
  const { via } = route;
  if (!('status' in outcome)) {
    return { kind: 'failed', error: outcome.error, url, named, via, reused: exchange.facts.reused };
  }

  const { status, body } = outcome;
  if (status === 407) {
    // It is the proxy that speaks, also where it stands in for the host.
    body.destroy();
    return { kind: 'failed', error: proxyRefused(status), url, named, via: via ?? host, reused: false };
  }
  try {
    const headers = joinHeaders(outcome.headers, host, status);
    if (method !== 'HEAD') checkEncoding(headers, host, status);
    // What a place says that the registry only named is not the registry's word.
    if (!named) tools.notices.read(host, headers);
    const expected = method === 'HEAD' ? 0 : Number(headers['content-length'] ?? 0);
    return { kind: 'answer', status, headers, url, body, expected, finished: exchange.finished, sentAt };
  } catch (error) {
    body.destroy();
    throw error;
  }
}

async function outcomeOf(exchange: Exchange): Promise<WireAnswer | { readonly error: unknown }> {
  try {
    return await exchange.answer;
  } catch (error) {
    return { error };
  }
}

/** What the reader of a body is told when it breaks off. */
function bodyFailed(cause: Error, host: string, via: string | undefined): Error {
  const error = exchangeFailed(cause, { host, via, sends: 1 });
  if (error instanceof PublishError) return error;
  return error instanceof Error ? error : cause;
}
