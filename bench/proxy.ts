import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Exchange, Traffic } from './traffic.ts';

/** How the registry behind the proxy shall look while one command runs. */
export type ProxySettings = {
  /** Milliseconds that each request waits once, whatever its size: the round trip. */
  readonly delay: number;
  /** `refused` takes the query from a mount POST: the registry answers 202 and opens an upload session. */
  readonly mounts: 'work' | 'refused';
};

/** @see createProxy */
export type CountingProxy = {
  readonly port: number;
  begin(settings: ProxySettings): void;
  /** What has passed since `begin`; requests that are still open end now. */
  end(): Traffic;
  close(): Promise<void>;
};

/** Hop by hop, RFC 9110 section 7.6.1; framing (Content-Length, Transfer-Encoding) passes as it came. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade']);

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
  const connections = new WeakMap<Socket, number>();
  let connectionCount = 0;
  let settings: ProxySettings = { delay: 0, mounts: 'work' };
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
      connection: connections.get(request.socket) ?? 0,
    };
    exchanges.push(exchange);
    response.once('close', () => {
      exchange.end = performance.now();
    });
    void relay(request, response, exchange, settings, { agent, port: registryPort });
  });
  server.on('connection', (socket) => {
    connectionCount += 1;
    connections.set(socket, connectionCount);
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
    begin: (wanted) => {
      settings = wanted;
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
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

async function relay(
  request: IncomingMessage,
  response: ServerResponse,
  exchange: OpenExchange,
  settings: ProxySettings,
  registry: { readonly agent: Agent; readonly port: number },
): Promise<void> {
  if (settings.delay > 0) await sleep(settings.delay);
  if (response.closed) return;
  const upstream = httpRequest({
    agent: registry.agent,
    host: '127.0.0.1',
    port: registry.port,
    method: exchange.method,
    path: settings.mounts === 'refused' ? withoutMount(exchange.method, exchange.target) : exchange.target,
    headers: endToEnd(request.rawHeaders),
  });
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
  return raw.filter((_, index) => !HOP_BY_HOP.has((raw[index - (index % 2)] ?? '').toLowerCase()));
}
