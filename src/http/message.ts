import type { Readable } from 'node:stream';

/** Methods the distribution spec uses. */
export type HttpMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * A right to have one request in flight on a host. Whoever takes one gives it back with `release`, once; giving
 * back twice is harmless. A request that is sent without one takes its own and gives it back when the answer's
 * body has ended.
 */
export interface Place {
  readonly host: string;
  release(): void;
}

/** One request as a protocol room asks for it; scheme and redirects are the transport's business. */
export type HttpRequest = {
  readonly method: HttpMethod;
  /** `https:` unless the user's host is known to speak plain HTTP; see {@link Transport.baseUrl}. */
  readonly url: URL;
  /**
   * Set when the URL came out of an answer (realm, Location): the registry host that named it. Such a URL must pass
   * the rule for named addresses; one built from {@link Transport.baseUrl} needs not.
   */
  readonly namedBy?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Bytes can be sent again by a retry or a redirect; a stream is sent once and never retried. `disposable`: nobody else
   * looks at its chunks, so that their memory may be used anew once they have left.
   */
  readonly body?: Uint8Array | { readonly stream: Readable; readonly length: number; readonly disposable?: boolean };
  /**
   * Sends at most `1 + retries` times; absent: the run's `--retries`. Two things do not count: the second try on a
   * connection that the other side had closed for want of use, and a 429, which is waited for as long as the host answers
   * anything at all, and then for five minutes. With 0 neither is done: the request goes out once.
   */
  readonly retries?: number;
  /**
   * With `retries: 0`, for what must not go out again before the caller has looked: a 401 too is returned, after the
   * token was renewed.
   */
  readonly once?: boolean;
  /**
   * For what nobody waits for, such as a cancellation: it fails with `RATE_LIMITED` while the host wants to be left
   * alone, does not wait for the pace that refusals have taught, and a 429 to it slows nobody else. Bring a place along,
   * or it takes one.
   */
  readonly aside?: boolean;
  /** A place taken before; the caller gives it back. */
  readonly place?: Place;
  /** Without a place: it takes one when nobody else wants it. */
  readonly last?: boolean;
  /** Longest wait for the answer's headers in ms; absent: 60,000. */
  readonly headersTimeout?: number;
  readonly signal: AbortSignal;
};

/** Header names in lower case; a header that came more than once where once is allowed is an error, never a list. */
export type HttpHeaders = Readonly<Record<string, string>>;

/** An answer of any status. Its body must be ended by exactly one of the three ways. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: HttpHeaders;
  /** Where the answer came from, after redirects: what a relative `Location` is resolved against. */
  readonly url: URL;
  /** How many times the request was sent. */
  readonly sends: number;
  /** Takes secrets out of words of the answer that will be shown; absent where there are none. */
  conceal?(text: string): string;
  /** The whole body, `limit` bytes at most. @throws PublishError `PROTOCOL_VIOLATED` beyond the limit */
  bytes(limit: number): Promise<Uint8Array>;
  /** The body as it arrives; destroying the stream closes the connection. */
  stream(): Readable;
  /** Reads the rest away, or closes the connection when there is much of it. */
  discard(): Promise<void>;
}

/**
 * Sends requests: pool, limits, retries, redirects and the rule of where a request may go. Resolves for every
 * status, also 5xx when the tries are used up.
 *
 * @throws PublishError `NETWORK_FAILED`, `TLS_FAILED`, `RATE_LIMITED` (a wait beyond 120 s asked for),
 *   `ORIGIN_REFUSED`, `PROTOCOL_VIOLATED`; the signal's reason, such as `TIMED_OUT`; what the stream of a body failed
 *   with
 */
export interface Transport {
  /** `https://host/` or `http://host/`, by what the user said of the host and what it answered so far. */
  baseUrl(host: string): URL;
  send(request: HttpRequest): Promise<HttpResponse>;
  /**
   * The request will be sent soon, for certain: its connection is opened meanwhile, where it is known how. One connection
   * for each call.
   */
  openAhead?(request: Pick<HttpRequest, 'url' | 'namedBy'>): void;
  /** `close` waits for this. It must end by itself, and never fail. */
  outlive?(work: Promise<void>): void;
  close(): Promise<void>;
}

/** Hands out places; one for the whole process, counting per host. */
export interface Limiter {
  /**
   * One request. `holding`: for whoever cannot but hold a place already, here or elsewhere, and will wait for nothing else
   * once it has this one. They go first, and one at a time may go beyond the host's width: were they to wait for one
   * another's places, none would ever get any. `last`: it goes when nobody else wants what it needs.
   */
  take(
    host: string,
    signal: AbortSignal,
    options?: { readonly holding?: boolean; readonly last?: boolean },
  ): Promise<Place>;
  /**
   * Both ends of one streamed copy, or only the target's when the bytes are in memory, taken together so that no
   * copy holds one end while it waits for the other. `size` in bytes decides whether it counts as a copy job. `beside`:
   * its bytes come with those of another copy, which has its places and waits for it, so that it goes before all others.
   */
  takeCopy(copy: {
    readonly source?: string;
    readonly target: string;
    readonly size: number;
    readonly beside?: boolean;
    readonly signal: AbortSignal;
  }): Promise<CopyPlaces>;
}

/** @see Limiter.takeCopy */
export interface CopyPlaces {
  /** Absent when the copy reads from memory. */
  readonly source: Place | undefined;
  readonly target: Place;
  release(): void;
}

/** What one request came to, for `--debug`, counters and progress; nothing in it is secret. */
export type HttpEvent =
  | {
      readonly kind: 'request';
      readonly method: HttpMethod;
      /** Scheme, host and path, without the query. */
      readonly url: string;
      readonly status: number | undefined;
      readonly failure: string | undefined;
      readonly milliseconds: number;
      readonly bytesSent: number;
      readonly send: number;
    }
  | {
      readonly kind: 'retry';
      readonly host: string;
      readonly reason: string;
      readonly waitMilliseconds: number;
    }
  /** What a registry wants its users to be told; each text once for each host, fit to be printed. */
  | { readonly kind: 'warning'; readonly host: string; readonly text: string }
  /** Little is left of what a registry allows; once for each step down. */
  | {
      readonly kind: 'rate';
      readonly host: string;
      readonly remaining: number;
      readonly limit: number;
      readonly windowSeconds?: number;
      /** Whom the registry counts it for: an address, or an account. */
      readonly source?: string;
    };
