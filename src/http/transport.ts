import type { LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import type { Clock } from './clock.ts';
import { createEndpoints, type Endpoint, type HostSettings } from './endpoint.ts';
import { createWire } from './exchange.ts';
import { exchangeFailed, failureCode, failureKind, isHangUp, leftAlone } from './failure.ts';
import { type HopAnswer, type HopFailure, type HopResult, type HopTools, sendHop } from './hop.ts';
import type { HostLimiter } from './limiter.ts';
import type { HttpEvent, HttpRequest, HttpResponse, Transport } from './message.ts';
import { createNotices } from './notices.ts';
import { checkNamedUrl, reachOf } from './origin.ts';
import { isStream, wireBody, withoutAuthorization } from './outgoing.ts';
import { type ConnectTo, createPools } from './pool.ts';
import type { ProxyRule } from './proxy.ts';
import { followRedirect, isRedirect, isUpgrade } from './redirect.ts';
import { createResponse, discardBody } from './response.ts';
import { backoff, isPassingStatus, LONGEST_WAIT, retryAfter, waitTooLong } from './retry.ts';

/** The world as the transport sees it. */
export type TransportOptions = {
  readonly limiter: HostLimiter;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** `--retries`. Default 5. */
  readonly retries?: number;
  /** By host as the user knows it. */
  readonly hosts?: Readonly<Record<string, HostSettings>>;
  /** Certificate authorities to trust besides the system's, PEM. */
  readonly ca?: readonly string[];
  readonly onEvent?: (event: HttpEvent) => void;
  readonly userAgent?: string;
  /** In ms: for a connection 10,000, for the answer's headers 60,000, for silence in a body 30,000. */
  readonly timeouts?: { readonly connect?: number; readonly headers?: number; readonly body?: number };
  readonly lookup?: LookupFunction;
  /** Where to connect to instead, as curl's `--connect-to` has it. */
  readonly connectTo?: ConnectTo;
  readonly proxy?: ProxyRule;
};

const RETRIES = 5;
const CONNECT_TIMEOUT = 10_000;
const HEADERS_TIMEOUT = 60_000;
const BODY_TIMEOUT = 30_000;
/**
 * How long a host may answer nothing but 429 before a request to it is given up, in ms. As long as it answers anything
 * else, requests have to wait for their turn, and that is all: how often they were refused says nothing.
 */
const LIMITED_PATIENCE = 300_000;

/**
 * HTTP as registries need it spoken. One layer retries, this one, and only what can be sent again; one place follows
 * redirects; one limiter counts.
 */
export function createTransport(options: TransportOptions): Transport {
  const { limiter, clock, random, timeouts = {} } = options;
  const runRetries = options.retries ?? RETRIES;
  const onEvent = options.onEvent ?? (() => undefined);
  const endpoints = createEndpoints(options.hosts ?? {});
  const wire = createWire(clock);
  const pools = createPools({
    connectTimeout: timeouts.connect ?? CONNECT_TIMEOUT,
    bodyTimeout: timeouts.body ?? BODY_TIMEOUT,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.lookup === undefined ? {} : { lookup: options.lookup }),
    ...(options.connectTo === undefined ? {} : { connectTo: options.connectTo }),
    ...(options.proxy === undefined ? {} : { proxy: options.proxy }),
  });
  const tools: HopTools = {
    wire,
    pools,
    limiter,
    clock,
    onEvent,
    notices: createNotices(onEvent),
    sendTimeout: timeouts.body ?? BODY_TIMEOUT,
  };
  const outliving = new Set<Promise<void>>();
  const closing = new AbortController();

  /** The request as it is sent first. */
  async function prepare(request: HttpRequest): Promise<Prepared> {
    const { endpoint, url, named } = destination(request);
    const body = await wireBody(request.body);
    return {
      endpoint,
      url,
      named,
      body,
      disposable: isStream(request.body) && request.body.disposable === true,
      name: named ? url.host : endpoint.host,
      // Whoever wants no retry at all sends what must not come twice: a body into an upload session.
      canResend: !(body instanceof Readable) && request.retries !== 0,
      retries: body instanceof Readable ? 0 : (request.retries ?? runRetries),
      aside: request.aside === true,
      method: request.method,
      signal: request.signal,
      headersTimeout: request.headersTimeout ?? timeouts.headers ?? HEADERS_TIMEOUT,
      headers: {
        ...request.headers,
        'accept-encoding': 'identity',
        'user-agent': options.userAgent ?? 'manifest-publish',
        // With a length undici never falls back to chunked encoding, which registries misread (zot drops the body).
        ...(body instanceof Readable && isStream(request.body)
          ? { 'content-length': String(request.body.length) }
          : {}),
      },
    };
  }

  function destination({
    url,
    namedBy,
  }: Pick<HttpRequest, 'url' | 'namedBy'>): Pick<Prepared, 'endpoint' | 'url' | 'named'> {
    if (namedBy === undefined) return { endpoint: endpoints.ofUrl(url), url, named: false };
    const endpoint = endpoints.of(namedBy);
    const named = url.origin !== endpoint.base().origin || url.username !== '' || url.password !== '';
    if (named) checkNamedUrl(url, { registry: endpoint.host, reach: reachOf(endpoint), scheme: endpoint.scheme });
    return { endpoint, url, named };
  }

  /** One try: the request and the redirects that follow from it. */
  async function attempt(prepared: Prepared, send: number): Promise<HopResult> {
    let { url, named, headers } = prepared;
    let upgraded = false;
    for (let hops = 0; ; hops += 1) {
      const result = await sendHop({ ...prepared, url, named, headers, send }, tools);
      // What the registry's own place wants spoken is remembered, now that it turned out to speak it.
      if (upgraded && result.kind === 'answer') prepared.endpoint.settle('https:');
      if (result.kind === 'failed' || !isRedirect(result.status)) return result;
      const from = result.url;
      try {
        url = followRedirect({ ...prepared, status: result.status, location: result.headers['location'], from, hops });
      } finally {
        await discardBody(result.body, result.expected);
      }
      upgraded = isUpgrade(prepared.endpoint, from, url);
      // Authorization is as welcome there as before.
      if (url.origin !== from.origin && !upgraded) headers = withoutAuthorization(headers);
      named = url.origin !== prepared.endpoint.base().origin;
    }
  }

  /**
   * One try that counts. A server may close an idle connection at the moment in which we use it: nothing was wrong
   * with the request, so that it goes out once more at once, on another connection.
   */
  async function tryOnce(prepared: Prepared, counter: Counter): Promise<HopResult> {
    counter.tries += 1;
    counter.sends += 1;
    const result = await attempt(prepared, counter.sends);
    const stale = result.kind === 'failed' && result.reused && isHangUp(result.error);
    if (!stale || counter.freeUsed || !prepared.canResend || prepared.signal.aborted) return result;
    counter.freeUsed = true;
    onEvent({ kind: 'retry', host: prepared.name, reason: 'idle connection closed', waitMilliseconds: 0 });
    counter.sends += 1;
    return attempt(prepared, counter.sends);
  }

  /** Sends until there is an answer to be handed out, or none to be hoped for. */
  async function sendPrepared(request: HttpRequest, prepared: Prepared): Promise<HttpResponse> {
    const { name, signal } = prepared;
    const counter: Counter = { tries: 0, sends: 0, freeUsed: false, limitedSince: undefined };
    for (;;) {
      const place = request.place ?? (await limiter.take(name, signal, { last: request.last === true }));
      const release = request.place === undefined ? place.release : () => undefined;
      let result: HopResult;
      let delay: number | undefined;
      try {
        result = await tryOnce(prepared, counter);
        delay = result.kind === 'answer' ? delayAfter(result, prepared, counter) : backoff(counter.tries - 1, random);
        if (result.kind === 'failed') giveUp(result, prepared, counter);
      } catch (error) {
        release();
        throw error;
      }
      if (result.kind === 'answer' && (delay === undefined || stands(result, prepared, counter))) {
        result.finished.then(release);
        return createResponse({ ...result, sends: counter.sends, host: name });
      }
      if (result.kind === 'answer') await discardBody(result.body, result.expected);
      release();
      onEvent({ kind: 'retry', host: name, reason: reasonOf(result), waitMilliseconds: delay ?? 0 });
      await clock.sleep(delay ?? 0, AbortSignal.any([signal, closing.signal]));
    }
  }

  /** Whether an answer is handed out though it might turn out differently a little later. */
  function stands({ status, url }: HopAnswer, { retries }: Prepared, counter: Counter): boolean {
    if (status !== 429 || retries === 0) return counter.tries > retries;
    // It does not count, however few retries the request has: a mount is worth three sends, and this was none.
    counter.tries -= 1;
    const now = clock.now();
    counter.limitedSince ??= now;
    const progress = Math.max(counter.limitedSince, limiter.lastGood(url.host) ?? counter.limitedSince);
    return now - progress > LIMITED_PATIENCE;
  }

  /** @throws what the request failed with, unless another try is due */
  function giveUp(failure: HopFailure, { name, endpoint, retries, signal }: Prepared, { tries, sends }: Counter): void {
    signal.throwIfAborted();
    const kind = failureKind(failure.error);
    const most = kind === 'again' ? retries : kind === 'once' ? Math.min(1, retries) : 0;
    if (tries <= most) return;
    // The place that failed may be one that the registry sent us to.
    const { host, protocol } = failure.url;
    const isOwn = [endpoint.base('http:').origin, endpoint.base('https:').origin].includes(failure.url.origin);
    throw exchangeFailed(failure.error, {
      host: isOwn ? name : host,
      namedBy: failure.named ? endpoint.host : undefined,
      via: failure.via,
      sends,
      plain: protocol === 'http:' && (endpoint.settings.plainHttp === true ? 'wanted' : 'tried'),
    });
  }

  /**
   * How long to wait before the answer is asked for again; undefined for an answer that stands.
   *
   * @throws PublishError `RATE_LIMITED` when the registry wants more time than a run should take
   */
  function delayAfter(answer: HopAnswer, { aside }: Prepared, { tries }: Counter): number | undefined {
    const { status, headers, url } = answer;
    if (!isPassingStatus(status)) {
      if (status < 500) limiter.good(url.host);
      return undefined;
    }
    const asked = retryAfter(headers, clock.epoch());
    if (asked !== undefined && asked > LONGEST_WAIT) {
      answer.body.destroy();
      throw waitTooLong(endpoints.ofUrl(url).host, status, asked);
    }
    if (status !== 429) return asked ?? backoff(tries - 1, random);
    // Which of many requests is refused is chance: the wait grows with the host's refusals, not with the request's.
    const delay = asked ?? backoff(limiter.refusals(url.host), random);
    if (!aside) limiter.overrun(url.host, delay, answer.sentAt);
    return delay;
  }

  return {
    baseUrl: (host) => endpoints.of(host).base(),

    async send(request) {
      try {
        request.signal.throwIfAborted();
        if (request.aside === true && limiter.isPaused(request.url.host)) throw leftAlone(request.url.host);
        return await sendPrepared(request, await prepare(request));
      } catch (error) {
        // Whatever feeds the body must not be left waiting for a reader that never comes.
        if (isStream(request.body)) request.body.stream.destroy();
        throw error;
      }
    },

    openAhead(request) {
      const { endpoint, url, named } = destination(request);
      // Which scheme it speaks may have to be found out yet.
      if (endpoint.alternative === undefined) pools.openAhead({ url: endpoint.rewrite(url), endpoint, named });
    },

    outlive(work) {
      outliving.add(work);
      work.then(() => outliving.delete(work));
    },

    async close() {
      await Promise.all(outliving);
      closing.abort(new Error('the transport was closed'));
      await pools.close();
      wire.close();
    },
  };
}

type Prepared = {
  readonly method: HttpRequest['method'];
  /** Of the host, for messages and for the limiter. */
  readonly name: string;
  readonly url: URL;
  readonly endpoint: Endpoint;
  readonly named: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | Readable | undefined;
  readonly disposable: boolean;
  readonly canResend: boolean;
  readonly retries: number;
  readonly aside: boolean;
  readonly headersTimeout: number;
  readonly signal: AbortSignal;
};

/** `tries` are those that count against the retries; `sends` are all. `limitedSince`: of the first 429, by the clock. */
type Counter = { tries: number; sends: number; freeUsed: boolean; limitedSince: number | undefined };

function reasonOf(result: HopResult): string {
  return result.kind === 'answer' ? `status ${result.status}` : failureCode(result.error);
}
