import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request that came to the gate. `number` counts from 1. */
export type Passing = {
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Bytes of its body that went on. */
  sent: number;
  /** Of the registry's answer. */
  status: number | undefined;
};

/** Asked before a request goes on to the registry, and before its answer goes back. `drop` breaks the connection off. */
export type Warden = (passing: Passing, when: 'before' | 'after') => 'pass' | 'drop' | Promise<'pass' | 'drop'>;

/** A proxy before one registry that can stop the world at any request. */
export type Gate = {
  /** `127.0.0.1:PORT` */
  readonly host: string;
  readonly passed: readonly Passing[];
  /** From here on; the numbers begin anew. */
  watch(warden: Warden): void;
  stop(): Promise<void>;
};

const FREE: Warden = () => 'pass';

/**
 * Bodies are read whole before they go on, so that every request has exactly two sides: the registry has not seen
 * it, or has answered it. The Host header is the client's, so that a Location leads back here.
 *
 * @param target `127.0.0.1:PORT` of the registry
 */
export async function startGate(target: string, options: { readonly refuseMounts?: boolean } = {}): Promise<Gate> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  let passed: Passing[] = [];
  let warden = FREE;
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? '/', `http://${target}`);
    const { method = '' } = incoming;
    const query = new URLSearchParams(url.search);
    const passing: Passing = {
      number: passed.length + 1,
      method,
      path: url.pathname,
      query,
      sent: 0,
      status: undefined,
    };
    passed.push(passing);
    if (options.refuseMounts === true && query.has('mount')) url.search = '';
    const cut = () => void incoming.socket.destroy();
    pass(incoming, outgoing, url, passing).catch(cut);
  });
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse, url: URL, passing: Passing): Promise<void> {
    const ask = warden;
    const body = await readAll(incoming);
    if ((await ask(passing, 'before')) === 'drop') throw new Error('dropped');
    const onward = request(url, { agent, method: passing.method, headers: incoming.headers });
    const answered = once(onward, 'response');
    passing.sent = body.length;
    onward.end(body);
    const [answer] = (await answered) as [IncomingMessage];
    const content = await readAll(answer);
    passing.status = answer.statusCode;
    if ((await ask(passing, 'after')) === 'drop') throw new Error('dropped');
    const { connection: _, 'keep-alive': __, ...headers } = answer.headers;
    outgoing.writeHead(answer.statusCode ?? 502, headers);
    outgoing.end(passing.method === 'HEAD' ? undefined : content);
  }

  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get passed() {
      return passed;
    },
    watch(next) {
      passed = [];
      warden = next;
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

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
