import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHalt, type Halt } from './halt.ts';
import { type Auth, createTokenGate, type TokenGate } from './token-gate.ts';
import type { Exchange, Traffic } from './traffic.ts';

/** How the registry behind the proxy shall look while one command runs. */
export type ProxySettings = {
  /** Milliseconds that each request waits once, whatever its size: the round trip. */
  readonly delay: number;
  /** `refused` takes the query from a mount POST: the registry answers 202 and opens an upload session. */
  readonly mounts: 'work' | 'refused';
  /** Default `none`. */
  readonly auth?: Auth;
  /** Milliseconds from the opening of a connection to its use: TCP and TLS handshakes. Default 0. */
  readonly connectionCost?: number;
  /** Nothing passes after so many blobs have reached the target; whoever began is told. */
  readonly stopAfter?: number;
};

/** @see createProxy */
export type CountingProxy = {
  readonly port: number;
  /** @param onHalt told once when `stopAfter` blobs are in the target */
  begin(settings: ProxySettings, onHalt?: () => void): void;
  /** What has passed since `begin`; requests that are still open end now. */
  end(): Traffic;
  /** Resolves when no client is connected: what a killed program left in flight does not count for the next. */
  idle(): Promise<void>;
  close(): Promise<void>;
};

/** Hop by hop, RFC 9110 section 7.6.1; framing (Content-Length, Transfer-Encoding) passes as it came. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade']);

const IDLE_PAUSE = 20; // ms
const IDLE_PAUSES = 100;

const TLS_HANDSHAKE = 0x16;
/** What a Go server answers to TLS on a plain port: clients go on with HTTP at once instead of waiting. */
const NOT_TLS = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

type OpenExchange = { -readonly [K in keyof Exchange]: Exchange[K] };

/**
 * A counting, delaying relay in front of a registry on loopback. `Host` stays what the client wrote: registries build
 * the Location of an upload from it, so that the upload comes back through here. Bodies are streamed, connections are
 * kept open on both sides.
 */
export async function createProxy(registryPort: number): Promise<CountingProxy> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const connections = new WeakMap<Socket, { readonly number: number; readonly since: number }>();
  let connectionCount = 0;
  let world = worldOf({ delay: 0, mounts: 'work' }, () => undefined);
  let exchanges: OpenExchange[] = [];
  let tlsHellos = 0;

  const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 }, (request, response) => {
    const exchange: OpenExchange = {
      method: request.method ?? '',
      target: request.url ?? '',
      status: 0,
      start: performance.now(),
      end: Number.NaN,
      up: 0,
      down: 0,
      connection: connections.get(request.socket)?.number ?? 0,
    };
    exchanges.push(exchange);
    response.once('close', () => {
      exchange.end = performance.now();
    });
    const { delay, connectionCost = 0 } = world.settings;
    const open = (connections.get(request.socket)?.since ?? 0) + connectionCost;
    const wait = delay + Math.max(0, open - exchange.start);
    const registry = { agent, port: registryPort };
    // A client that leaves in the middle of what it says.
    answer(request, response, exchange, world, wait, registry).catch(() => response.destroy());
  });
  server.on('connection', (socket) => {
    connectionCount += 1;
    connections.set(socket, { number: connectionCount, since: performance.now() });
  });
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    if (error.rawPacket?.[0] === TLS_HANDSHAKE) tlsHellos += 1;
    if (socket.writable && error.code !== 'ECONNRESET') socket.end(NOT_TLS);
    else socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });

  return {
    port: (server.address() as AddressInfo).port,
    begin: (settings, onHalt = () => undefined) => {
      world = worldOf(settings, onHalt);
      exchanges = [];
      tlsHellos = 0;
    },
    end: () => {
      const now = performance.now();
      return {
        exchanges: exchanges.map((one) => (Number.isNaN(one.end) ? { ...one, end: now } : { ...one })),
        tlsHellos,
      };
    },
    idle: async () => {
      const connected = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
      // The first pause is for connections that nobody has accepted yet; the limit for clients that stay.
      for (let pauses = 0; pauses < IDLE_PAUSES; pauses += 1) {
        await sleep(IDLE_PAUSE);
        if ((await connected()) === 0) return;
      }
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

type World = { readonly settings: ProxySettings; readonly gate: TokenGate | undefined; readonly halt: Halt };

type Upstream = { readonly agent: Agent; readonly port: number };

function worldOf(settings: ProxySettings, onHalt: () => void): World {
  const { auth = 'none' } = settings;
  return { settings, gate: auth === 'none' ? undefined : createTokenGate(auth), halt: createHalt(settings, onHalt) };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  exchange: OpenExchange,
  world: World,
  wait: number,
  registry: Upstream,
): Promise<void> {
  if (wait > 0) await sleep(wait);
  if (response.closed) return;
  if (world.gate !== undefined && exchange.target.startsWith('/token')) {
    const token = world.gate.issue(request, exchange.target, await text(request));
    const body = token === undefined ? { details: 'unknown user' } : { token, access_token: token, expires_in: 300 };
    return reply(response, exchange, token === undefined ? 401 : 200, body, {});
  }
  const challenge = world.gate?.challenge(request, exchange.target);
  if (challenge !== undefined) {
    request.resume();
    const errors = [{ code: 'UNAUTHORIZED', message: 'authentication required' }];
    return reply(response, exchange, 401, { errors }, { 'www-authenticate': challenge });
  }
  const ended = await world.halt.admit(exchange.method, exchange.target);
  if (!response.closed) relay(request, response, exchange, world, registry, ended);
}

/** An answer of the proxy's own. */
function reply(
  response: ServerResponse,
  exchange: OpenExchange,
  status: number,
  content: object,
  headers: Readonly<Record<string, string>>,
): void {
  const body = JSON.stringify(content);
  exchange.status = status;
  exchange.down = exchange.method === 'HEAD' ? 0 : body.length;
  const length = { 'content-type': 'application/json', 'content-length': String(body.length) };
  response.writeHead(status, { ...headers, ...length }).end(body);
}

function relay(
  request: IncomingMessage,
  response: ServerResponse,
  exchange: OpenExchange,
  { settings, gate }: World,
  registry: Upstream,
  ended: () => void,
): void {
  const headers = endToEnd(request.rawHeaders);
  const upstream = httpRequest({
    agent: registry.agent,
    host: '127.0.0.1',
    port: registry.port,
    method: exchange.method,
    path: settings.mounts === 'refused' ? withoutMount(exchange.method, exchange.target) : exchange.target,
    // The token was for the proxy; the registry behind it lets everybody in.
    headers: gate === undefined ? headers : without(headers, 'authorization'),
  });
  upstream.once('close', ended);
  upstream.on('response', (answer) => {
    exchange.status = answer.statusCode ?? 0;
    response.sendDate = false;
    response.writeHead(exchange.status, answer.statusMessage ?? '', endToEnd(answer.rawHeaders));
    answer.on('data', (chunk: Buffer) => {
      exchange.down += chunk.length;
    });
    answer.on('error', () => response.destroy());
    answer.pipe(response);
  });
  // The client sees what happened as a cut connection; status 0 shows it in the figures.
  upstream.on('error', () => response.destroy());
  response.once('close', () => {
    if (!response.writableFinished) upstream.destroy();
  });
  request.on('data', (chunk: Buffer) => {
    exchange.up += chunk.length;
  });
  request.pipe(upstream);
}

function withoutMount(method: string, target: string): string {
  const mount = method === 'POST' && /\/blobs\/uploads\/\?(.*&)?mount=/.test(target);
  return mount ? target.slice(0, target.indexOf('?')) : target;
}

/** @param raw names and values in turn, as node:http gives and takes them */
function endToEnd(raw: readonly string[]): string[] {
  return without(raw, ...HOP_BY_HOP);
}

function without(raw: readonly string[], ...names: readonly string[]): string[] {
  return raw.filter((_, index) => !names.includes((raw[index - (index % 2)] ?? '').toLowerCase()));
}
