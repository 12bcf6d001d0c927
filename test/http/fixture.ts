import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  connect,
  createServer as createNetServer,
  isIP,
  type LookupFunction,
  type Server as NetServer,
  type Socket,
} from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { TlsOptions } from 'node:tls';
import { PublishError } from '../../src/errors.ts';
import type { Clock } from '../../src/http/clock.ts';
import { createLimiter, type LimiterOptions } from '../../src/http/limiter.ts';
import type { HttpEvent, HttpRequest, Transport } from '../../src/http/message.ts';
import type { ConnectTo } from '../../src/http/pool.ts';
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
export function serve(handler: Handler, tls?: TlsOptions, address?: string): Promise<RunningServer> {
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
  const rest = {
    requests,
    connections: () => numbers.size,
    open: () => [...numbers.keys()].filter((socket) => !socket.destroyed).length,
  };
  return listen(server, rest, address);
}

/** One port for both: anything that looks like TLS goes to the one server, the rest to the other. */
export function both(plain: RunningServer, secure: RunningServer): Promise<RunningServer> {
  const front = createNetServer((socket) =>
    socket.once('data', (first) => {
      const back = connect(first[0] === 0x16 ? secure.port : plain.port, '127.0.0.1');
      back.write(first);
      back.pipe(socket).pipe(back);
      for (const end of [socket, back]) end.on('error', () => socket.destroy());
    }),
  );
  return listen(front, secure);
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

/**
 * A clock that goes on to the next sleeper's end when nothing has begun to sleep for a few real milliseconds, so that
 * what the network has to say in between is heard. Server and client may share it.
 */
export function steppingClock(): Clock {
  let time = 0;
  let timer: NodeJS.Timeout | undefined;
  const sleepers = new Map<object, { readonly until: number; readonly wake: () => void }>();
  const step = () => {
    const next = Math.min(...[...sleepers.values()].map(({ until }) => until));
    time = Math.max(time, next);
    for (const [key, { until, wake }] of sleepers) {
      if (until > time) continue;
      sleepers.delete(key);
      wake();
    }
    timer = sleepers.size === 0 ? undefined : setTimeout(step, 4);
  };
  return {
    now: () => time,
    epoch: () => time,
    sleep(milliseconds, signal) {
      return new Promise<void>((resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        const key = {};
        signal.addEventListener('abort', () => {
          sleepers.delete(key);
          reject(signal.reason);
        });
        sleepers.set(key, { until: time + milliseconds, wake: resolve });
        clearTimeout(timer);
        timer = setTimeout(step, 4);
      });
    },
  };
}

export type Client = Transport & { readonly events: HttpEvent[]; readonly clock: JumpingClock };

/**
 * For tests that name addresses beyond this machine: a client that is wrong about them reaches nothing. Names are left
 * to the resolver of the test.
 */
export const loopbackOnly: ConnectTo = (host) => {
  const literal = host.replace(/^\[|\]$/g, '');
  if (isIP(literal) === 0 || literal === '::1' || literal.startsWith('127.')) return undefined;
  return { host: '127.0.0.1', port: '1' };
};

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
    connectTo: loopbackOnly,
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
