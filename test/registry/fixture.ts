import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { afterEach } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { PublishError } from '../../src/errors.ts';
import type { Clock } from '../../src/http/clock.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import type { HttpEvent, HttpRequest, Transport } from '../../src/http/message.ts';
import type { Credential } from '../../src/http/origin.ts';
import { createTransport, type TransportOptions } from '../../src/http/transport.ts';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { createRegistryClient, type RegistryClientOptions } from '../../src/registry/remote.ts';

/** A request as the server saw it; `body` grows while it arrives. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  body: Buffer;
  complete: boolean;
};

export type Server = { readonly host: string; readonly seen: readonly Seen[]; close(): Promise<void> };

/** May answer before the body is in; `whole` resolves when it is, or when the client has gone. */
export type Handler = (exchange: {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly seen: Seen;
  readonly whole: Promise<void>;
}) => void;

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Ends with the test. */
export function onClose(close: () => Promise<void>): void {
  closers.push(close);
}

/** A server on loopback. */
export async function serve(handler: Handler): Promise<Server> {
  const seen: Seen[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const entry: Seen = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headers,
      body: Buffer.alloc(0),
      complete: false,
    };
    seen.push(entry);
    const whole = new Promise<void>((resolve) => {
      request.on('end', () => {
        entry.complete = true;
      });
      request.on('close', resolve);
    });
    request.on('data', (chunk: Buffer) => {
      entry.body = Buffer.concat([entry.body, chunk]);
    });
    // Tests cut connections on purpose.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    handler({ request, response, seen: entry, whole });
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  onClose(close);
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, seen, close };
}

/** One answer of a script. */
export type Answer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
};

/** Answers each request, once it is in whole, with the next answer; the last one is repeated. `reset` cuts instead. */
export function script(...answers: readonly (Answer | 'reset')[]): Promise<Server> {
  let next = 0;
  return serve(async ({ request, response, whole }) => {
    const answer = answers[Math.min(next, answers.length - 1)] ?? { status: 500 };
    next += 1;
    await whole;
    if (answer === 'reset') request.socket.resetAndDestroy();
    else reply(response, answer);
  });
}

export function reply(response: ServerResponse, { status, headers = {}, body = '' }: Answer): void {
  const type = typeof body === 'string' && body.startsWith('{') ? { 'content-type': 'application/json' } : {};
  const copied = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : [...value]]),
  );
  const length = status === 204 ? {} : { 'content-length': Buffer.byteLength(body) };
  response.writeHead(status, { ...type, ...length, ...copied }).end(body);
}

/** The body of an error as the spec has it. */
export function errors(code: string, message = '', detail?: unknown): string {
  return JSON.stringify({ errors: [{ code, message, ...(detail === undefined ? {} : { detail }) }] });
}

/** Jumps instead of sleeping. */
export function jumpingClock(): Clock & { readonly slept: number[] } {
  let ahead = 0;
  const slept: number[] = [];
  return {
    slept,
    now: () => performance.now() + ahead,
    epoch: () => Date.now() + ahead,
    async sleep(milliseconds, signal) {
      signal.throwIfAborted();
      slept.push(milliseconds);
      ahead += milliseconds;
      await turn();
      signal.throwIfAborted();
    },
  };
}

/** For deadlines, which a clock that jumps would end at once. */
export const realClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  sleep: (milliseconds, signal) => sleep(milliseconds, undefined, { signal, ref: false }),
};

export type World = {
  readonly transport: Transport;
  readonly events: readonly HttpEvent[];
  readonly slept: readonly number[];
  client(host: string, cancelTimeout?: number, more?: Partial<RegistryClientOptions>): RegistryClient;
};

/** Transport and authorizer as they are in the program, but for the time; `onSend` sees and may change requests. */
export function world(
  credential: Credential | PublishError = { kind: 'none' },
  options: Partial<TransportOptions> = {},
  onSend: (request: HttpRequest) => HttpRequest = (request) => request,
): World {
  const clock = jumpingClock();
  const events: HttpEvent[] = [];
  const real = createTransport({
    limiter: createLimiter({ clock }),
    clock,
    random: () => 0.5,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const transport: Transport = { ...real, send: (request) => real.send(onSend(request)) };
  onClose(() => transport.close());
  const lookup = async () => {
    if (credential instanceof PublishError) throw credential;
    return credential;
  };
  const authorizer = createAuthorizer({ transport, clock, credentials: { lookup } });
  return {
    transport,
    events,
    slept: clock.slept,
    client: (host, cancelTimeout, more = {}) =>
      createRegistryClient({
        host,
        transport,
        authorizer,
        clock: realClock,
        ...(cancelTimeout === undefined ? {} : { cancelTimeout }),
        ...more,
      }),
  };
}

/** A client without a login. */
export function clientOf(server: { readonly host: string }, options: Partial<TransportOptions> = {}): RegistryClient {
  return world({ kind: 'none' }, options).client(server.host);
}

/** For every verb of a test: ends what hangs. */
export function verb(): { readonly signal: AbortSignal } {
  return { signal: AbortSignal.timeout(20_000) };
}

export type Blob = { readonly bytes: Buffer; readonly digest: Digest; readonly size: number };

/** Bytes that look random and are the same in every run. */
export function blobOf(size: number, seed = 1): Blob {
  const bytes = Buffer.alloc(size);
  let state = seed;
  for (let at = 0; at < size; at += 1) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    bytes[at] = state >> 16;
  }
  return { bytes, digest: digestOf(bytes), size };
}

/** The error that the promise fails with. */
export async function failure(promise: Promise<unknown>): Promise<PublishError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}
