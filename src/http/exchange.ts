import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { AnswerBody } from './answer-body.ts';
import type { Clock } from './clock.ts';
import { failureCode } from './failure.ts';
import type { HttpMethod } from './message.ts';
import type { Route } from './pool.ts';
import { deferred, onAbort } from './promises.ts';
import { type Watch, watchConnection } from './watch.ts';

/** One request on one connection: no retry, no redirect, no rule. */
export type WireRequest = {
  readonly route: Route;
  readonly method: HttpMethod;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | Readable | undefined;
  readonly headersTimeout: number;
  /** Longest time in which the other side takes nothing of what is sent, in ms. */
  readonly sendTimeout: number;
  readonly signal: AbortSignal;
  /** Told of each chunk of the body that the connection is done with; not of those that it still held at the end. */
  readonly spent?: ((chunk: Uint8Array) => void) | undefined;
  /** Turns a failure of the connection, in the middle of the body, into the error that the body's reader gets. */
  readonly bodyError: (cause: Error) => Error;
};

/** Header values as they came: a list where a name came more than once. */
export type WireHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export type WireAnswer = { readonly status: number; readonly headers: WireHeaders; readonly body: Readable };

/** What is known of an exchange while it goes on and after it has failed. */
export type WireFacts = {
  /** Whether the connection had served a request before. */
  readonly reused: boolean;
  /** Of the request's body. */
  readonly bytesSent: number;
};

type Progress = {
  reused: boolean;
  bytesSent: number;
  connection: Socket | undefined;
  watch: Watch | undefined;
  /** Chunks that the connection may still hold. */
  unspent: Uint8Array[];
  readonly request: WireRequest;
};

/** A running exchange. */
export type Exchange = {
  readonly answer: Promise<WireAnswer>;
  readonly facts: Readonly<WireFacts>;
  /** When the connection is done with: the whole answer has come, or nothing more will. */
  readonly finished: Promise<undefined>;
};

/** Starts exchanges; closed at the end, since it listens to undici. */
export interface Wire {
  exchange(request: WireRequest): Exchange;
  close(): void;
}

/** Answers of 1xx before the answer itself. */
const MOST_INFORMATIONAL = 32;

/**
 * undici tells only on its diagnostics channels which connection a request went out on and how much of its body left.
 * It publishes both while it calls us, so what is published belongs to the request that it announced last.
 *
 * @see https://undici.nodejs.org/#/docs/api/DiagnosticsChannel
 */
export function createWire(clock: Clock): Wire {
  let starting: Progress | undefined;
  const used = new WeakSet<object>();
  const progressOf = new WeakMap<object, Progress>();

  const onHeaders = (message: unknown) => {
    const { request, socket } = message as { readonly request: object; readonly socket: Socket };
    if (starting === undefined) return;
    starting.reused = used.has(socket);
    starting.connection = socket;
    const timeout = starting.request.body === undefined ? undefined : starting.request.sendTimeout;
    used.add(socket);
    progressOf.set(request, starting);
    starting.watch = watchConnection(socket, timeout);
    starting = undefined;
  };
  const onChunk = (message: unknown) => {
    const { request, chunk } = message as { readonly request: object; readonly chunk: Uint8Array };
    const progress = progressOf.get(request);
    if (progress === undefined) return;
    progress.bytesSent += chunk.byteLength;
    if (progress.request.spent !== undefined) tellSpent(progress, chunk);
  };
  subscribe('undici:client:sendHeaders', onHeaders);
  subscribe('undici:request:bodyChunkSent', onChunk);

  return {
    exchange(request) {
      const progress: Progress = {
        reused: false,
        bytesSent: 0,
        connection: undefined,
        watch: undefined,
        unspent: [],
        request,
      };
      return startExchange(request, progress, clock, () => {
        starting = progress;
      });
    },
    close() {
      unsubscribe('undici:client:sendHeaders', onHeaders);
      unsubscribe('undici:request:bodyChunkSent', onChunk);
    },
  };
}

/** Once nothing is left to be written, nothing of what was written is looked at any more. */
function tellSpent({ unspent, connection, request }: Progress, chunk: Uint8Array): void {
  unspent.push(chunk);
  if (connection === undefined || connection.destroyed || connection.writableLength > 0) return;
  for (const one of unspent.splice(0)) request.spent?.(one);
}

function startExchange(request: WireRequest, progress: Progress, clock: Clock, onStart: () => void): Exchange {
  const { signal } = request;
  const finished = deferred<undefined>();
  const answer = deferred<WireAnswer>();
  let controller: Dispatcher.DispatchController | undefined;
  let received: AnswerBody | undefined;
  let over = false;
  let forget = (): void => undefined;
  let informational = 0;
  /** The whole answer has come: the connection is none of ours any more. */
  let complete = false;

  /** Nothing more will come; whoever still waits is told why. */
  const end = (error: Error | undefined) => {
    if (over) return;
    over = true;
    forget();
    progress.watch?.end();
    if (error !== undefined) {
      answer.reject(error);
      received?.destroy(signal.aborted ? signal.reason : request.bodyError(error));
    }
    finished.resolve(undefined);
  };
  /**
   * Breaks the connection off. undici's own abort would leave the request in its queue and open another connection
   * for it, only to find it aborted. While connecting there is nothing to break off: the request is let go, and
   * stopped should it ever start.
   */
  const abort = (reason: Error) => {
    if (complete) return;
    progress.connection?.destroy(reason);
  };

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      if (over) {
        started.abort(signal.reason ?? new Error('closed'));
        return;
      }
      controller = started;
      onStart();
    },
    onResponseStart(_controller, status, headers) {
      if (controller === undefined) return;
      if (status < 200) {
        // They come before the answer and say nothing we need, and each makes undici wait anew.
        informational += 1;
        if (informational > MOST_INFORMATIONAL)
          abort(Object.assign(new Error('too many 1xx'), { code: 'TOO_MANY_1XX' }));
        return;
      }
      progress.watch?.answered();
      received = new AnswerBody(controller, abort, clock);
      answer.resolve({ status, headers, body: received });
    },
    onResponseData(_controller, chunk) {
      received?.receive(chunk);
    },
    onResponseEnd() {
      complete = true;
      afterReuse(() => {
        received?.push(null);
        end(undefined);
      });
    },
    onResponseError(_controller, error) {
      const first = progress.watch?.firstError() ?? error;
      end(received === undefined ? beforeHeaders(first) : first);
    },
  };

  if (signal.aborted) {
    end(signal.reason);
  } else {
    forget = onAbort(signal, () => {
      abort(signal.reason);
      end(signal.reason);
    });
    request.route.pool.dispatch(
      {
        method: request.method,
        path: request.route.prefix + request.url.pathname + request.url.search,
        headers: { ...request.headers, ...request.route.headers },
        body: request.body ?? null,
        headersTimeout: request.headersTimeout,
        // Or undici closes the connection after every HEAD.
        reset: false,
      },
      handler,
    );
  }
  return { answer: answer.promise, facts: progress, finished: finished.promise };
}

/**
 * What a failure is that comes before the headers are in, where undici calls it by another name: once it has read a
 * Content-Length, whatever is wrong with the headers is a body of another length; a status below 100 trips one of its
 * own checks; and a 100 or 101 that nobody asked for, which RFC 9110 lets a client pass over, it takes for the end of
 * the connection.
 */
function beforeHeaders(error: Error): Error {
  const code = failureCode(error);
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' || code === 'ERR_ASSERTION') {
    return Object.assign(new Error('malformed headers', { cause: error }), { code: 'MALFORMED_HEADERS' });
  }
  const unasked = UNASKED[code === 'UND_ERR_SOCKET' ? error.message : ''];
  return unasked === undefined
    ? error
    : Object.assign(new Error('an unasked 1xx', { cause: error }), { code: unasked });
}

/** By undici's message. */
const UNASKED: Readonly<Record<string, string>> = { 'bad response': 'UNASKED_100', 'bad upgrade': 'UNASKED_101' };

/**
 * undici takes a connection for free one turn of the event loop after the answer's end. Who sent the next request at
 * once would get a new connection, and pay for its handshake; so the end is told when the old one is free.
 */
function afterReuse(action: () => void): void {
  setImmediate(() => setImmediate(action));
}
