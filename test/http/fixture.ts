import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, LookupFunction, Server as NetServer, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { PublishError } from '../../src/errors.ts';
import type { Clock } from '../../src/http/clock.ts';
import { createLimiter, type LimiterOptions } from '../../src/http/limiter.ts';
import type { HttpEvent, HttpRequest, Transport } from '../../src/http/message.ts';
import { createTransport, type TransportOptions } from '../../src/http/transport.ts';

/** One request as the server saw it. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** Which connection it came on, counted from 0. */
  readonly connection: number;
};

export type Handler = (request: IncomingMessage, response: ServerResponse, seen: Seen) => void;

export type RunningServer = {
  readonly host: string;
  readonly port: number;
  readonly requests: readonly Seen[];
  readonly connections: () => number;
  readonly open: () => number;
  close(): Promise<void>;
};

const closers: (() => Promise<void>)[] = [];

/** Ends everything that a test has started; call it in `afterEach`. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

export function onClose(close: () => Promise<void>): void {
  closers.push(close);
}

/** A server on loopback that reads each request whole before it answers. */
export function serve(handler: Handler, tls?: { readonly key: string; readonly cert: string }): Promise<RunningServer> {
  const requests: Seen[] = [];
  const numbers = new Map<Socket, number>();
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const seen = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
        connection: numbers.get(request.socket) ?? -1,
      };
      requests.push(seen);
      handler(request, response, seen);
    });
    // Tests cut connections on purpose.
    request.on('error', () => undefined);
  };
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  const event = tls === undefined ? 'connection' : 'secureConnection';
  server.on(event, (socket: Socket) => numbers.set(socket, numbers.size));
  return listen(server, {
    requests,
    connections: () => numbers.size,
    open: () => [...numbers.keys()].filter((socket) => !socket.destroyed).length,
  });
}

/** Starts any server on a free port of loopback. */
export async function listen(
  server: NetServer,
  rest: Pick<RunningServer, 'requests' | 'connections' | 'open'>,
  address = '127.0.0.1',
): Promise<RunningServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  onClose(close);
  return { ...rest, host: address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`, port, close };
}

/** A clock that sleeps without taking time: it jumps. */
export type JumpingClock = Clock & { readonly slept: readonly number[]; advance(milliseconds: number): void };

export function jumpingClock(): JumpingClock {
  let ahead = 0;
  const slept: number[] = [];
  return {
    slept,
    advance: (milliseconds) => {
      ahead += milliseconds;
    },
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

/** A clock whose sleepers sleep until it is turned. */
export function standingClock(): Clock & { advance(milliseconds: number): void } {
  let time = 0;
  const sleepers = new Set<{ readonly until: number; readonly wake: () => void }>();
  return {
    now: () => time,
    epoch: () => time,
    async sleep(milliseconds, signal) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => sleepers.add({ until: time + milliseconds, wake: resolve }));
    },
    advance(milliseconds) {
      time += milliseconds;
      for (const sleeper of sleepers) {
        if (sleeper.until > time) continue;
        sleepers.delete(sleeper);
        sleeper.wake();
      }
    },
  };
}

export type Client = Transport & { readonly events: HttpEvent[]; readonly clock: JumpingClock };

/** A transport with a jumping clock that always waits the longest time its jitter allows. */
export function client(
  options: Partial<TransportOptions> & { readonly limits?: Partial<LimiterOptions> } = {},
): Client {
  const clock = jumpingClock();
  const events: HttpEvent[] = [];
  const transport = createTransport({
    limiter: createLimiter({ clock, ...options.limits }),
    clock,
    random: () => 1,
    onEvent: (event) => events.push(event),
    ...options,
  });
  onClose(() => transport.close());
  return { ...transport, events, clock };
}

/** A request of a test; the path is resolved against the host's base. */
export function ask(
  transport: Transport,
  host: string,
  path: string,
  rest: Partial<HttpRequest> = {},
): ReturnType<Transport['send']> {
  return transport.send({
    method: 'GET',
    url: new URL(path, transport.baseUrl(host)),
    signal: AbortSignal.timeout(20_000),
    ...rest,
  });
}

export async function textOf(response: Awaited<ReturnType<Transport['send']>>): Promise<string> {
  return Buffer.from(await response.bytes(1 << 20)).toString();
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

/** A resolver that knows these names alone. */
export function resolver(addressesOf: (name: string) => readonly string[]): LookupFunction {
  return (name, _options, callback) => {
    const addresses = addressesOf(name).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    callback(null, addresses);
  };
}
