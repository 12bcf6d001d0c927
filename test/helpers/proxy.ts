import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

/** One exchange that went through the proxy. Sizes in bytes, of bodies alone. */
export type Exchange = {
  readonly method: string;
  /** As the client wrote it, also where the proxy sent on another one. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Undefined while nothing was answered. */
  readonly status: number | undefined;
  readonly sent: number;
  readonly received: number;
  /** The scheme of the Authorization header, never its secret. */
  readonly authorization: string | undefined;
};

/** A proxy between a client and one registry that writes down what passes. */
export type RecordingProxy = {
  /** `127.0.0.1:PORT`: what stands before the repository in a reference. */
  readonly host: string;
  /** In the order in which the requests came. */
  readonly exchanges: readonly Exchange[];
  /** Starts the record afresh. */
  forget(): void;
  stop(): Promise<void>;
};

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * Listens on 127.0.0.1 and sends everything on to `target`, with the Host header of the client, so that a Location
 * which the registry builds from it leads back here. With `refuseMounts` the query of a mount is dropped on the way:
 * the registry then answers as those do that mount nothing, 202 and an upload session.
 *
 * @param target `127.0.0.1:PORT` of the registry
 */
export async function startProxy(
  target: string,
  options: { readonly refuseMounts?: boolean } = {},
): Promise<RecordingProxy> {
  let exchanges: Exchange[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? '/', `http://${target}`);
    const exchange: Writable<Exchange> = {
      method: incoming.method ?? '',
      path: url.pathname,
      query: new URLSearchParams(url.search),
      status: undefined,
      sent: 0,
      received: 0,
      authorization: incoming.headers.authorization?.split(' ')[0],
    };
    exchanges.push(exchange);
    if (options.refuseMounts === true && isMount(exchange)) url.search = '';
    void pass(incoming, outgoing, url, agent, exchange);
  });
  // An idle connection that the proxy closes just as the client uses it again would be a fault of the proxy's.
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    get exchanges() {
      return exchanges;
    },
    forget: () => {
      exchanges = [];
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

/** Whether the exchange asks for a mount. */
export function isMount(exchange: Exchange): boolean {
  return exchange.method === 'POST' && exchange.path.endsWith('/blobs/uploads/') && exchange.query.has('mount');
}

/** Whether the exchange can change anything at the registry. */
export function isWrite(exchange: Exchange): boolean {
  return !['GET', 'HEAD'].includes(exchange.method);
}

/** Counts by what the requests are for, for example `{ 'mount 201': 40, 'blob HEAD 200': 40 }`. */
export function countByKind(exchanges: readonly Exchange[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const exchange of exchanges) {
    const kind = `${kindOf(exchange)} ${exchange.status ?? 'unanswered'}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

function kindOf(exchange: Exchange): string {
  const { method, path } = exchange;
  if (isMount(exchange)) return 'mount';
  if (/\/blobs\/uploads\//.test(path)) return `upload ${method}`;
  const [, noun] = /\/(blobs|manifests|tags|referrers)\//.exec(path) ?? [];
  return `${noun?.replace(/s$/, '') ?? 'ping'} ${method}`;
}

async function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  url: URL,
  agent: Agent,
  exchange: Writable<Exchange>,
): Promise<void> {
  const onward = request(url, { agent, method: exchange.method, headers: forwarded(incoming) });
  // A client that goes away must be felt by the registry, and the other way round.
  incoming.on('data', (piece: Buffer) => {
    exchange.sent += piece.length;
  });
  outgoing.on('close', () => {
    if (!outgoing.writableFinished) onward.destroy();
  });
  onward.on('error', () => outgoing.destroy());
  onward.on('response', (answer) => {
    exchange.status = answer.statusCode;
    answer.on('data', (piece: Buffer) => {
      exchange.received += piece.length;
    });
    const { connection: _, 'keep-alive': __, ...headers } = answer.headers;
    outgoing.writeHead(answer.statusCode ?? 502, headers as OutgoingHttpHeaders);
    pipeline(answer, outgoing).catch(() => outgoing.destroy());
  });
  await pipeline(incoming, onward).catch(() => onward.destroy());
}

function forwarded(incoming: IncomingMessage): OutgoingHttpHeaders {
  const { connection: _, 'keep-alive': __, ...headers } = incoming.headers;
  return headers;
}
