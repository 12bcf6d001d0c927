import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as SecureServer } from 'node:https';
import { type AddressInfo, createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type Call, ClientGone, readTarget } from './call.ts';
import { CutHere, drawFault, withFault } from './faults.ts';
import { closeEntry, type JournalEntry, type OpenEntry, openEntry } from './journal.ts';
import { limitHeaders } from './limits.ts';
import { type Answer, type Reply, type ReplyHeaders, refuse } from './reply.ts';
import { pause, type RegistryState } from './state.ts';

/** Certificate and key in PEM. */
export type TlsFiles = { readonly key: string; readonly cert: string };

export type Listener = { readonly host: string; readonly origin: string; close(): Promise<void> };

type Handler = (call: Call) => Promise<Reply>;

/** How long an idle connection is kept, in ms; longer than any pause between two requests of one run. */
const KEEP_ALIVE = 65_000;

/** Speaks HTTP on a real socket: parses, journals, applies faults, writes. */
export async function listen(
  state: RegistryState,
  kind: JournalEntry['listener'],
  handler: Handler,
  options: { readonly address: string; readonly port: number; readonly tls: TlsFiles | undefined },
): Promise<Listener> {
  const connections = new WeakMap<Socket, number>();
  let connected = 0;
  const number = (socket: Socket): number => {
    const known = connections.get(socket) ?? ++connected;
    connections.set(socket, known);
    return known;
  };
  const scheme = options.tls === undefined ? 'http' : 'https';
  const onRequest =
    (spoken: string) =>
    (request: IncomingMessage, response: ServerResponse): void => {
      void serve(state, kind, spoken, handler, request, response, number(request.socket));
    };
  const plain = createServer(onRequest('http'));
  const secure = options.tls === undefined ? undefined : createTlsServer(options.tls, onRequest('https'));
  for (const one of [plain, secure]) {
    if (one === undefined) continue;
    one.keepAliveTimeout = KEEP_ALIVE;
    one.requestTimeout = 0;
  }
  const { proxy } = state.profile;
  const both = secure !== undefined && proxy !== 'none' && proxy.redirect301;
  const sockets = new Set<Socket>();
  const server = both ? eitherServer(plain, secure, sockets) : (secure ?? plain);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.address, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo;
  const host = family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    plain.closeAllConnections();
    secure?.closeAllConnections();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { host, origin: `${scheme}://${host}`, close };
}

/** First byte of a TLS handshake record. @see RFC 8446 section 5.1 */
const HANDSHAKE = 22;

/** One port that speaks HTTP and TLS, as two ports of a proxy would, so that a Location may keep the client's port. */
function eitherServer(plain: Server, secure: SecureServer, open: Set<Socket>): NetServer {
  return createNetServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    const left = (): void => void socket.destroy();
    socket.once('error', left);
    // Only looked at: a socket that has begun to flow would lose the handshake before TLS reads it.
    socket.once('readable', () => {
      const first: Buffer | null = socket.read(1);
      if (first === null) return left();
      socket.unshift(first);
      socket.off('error', left);
      (first[0] === HANDSHAKE ? secure : plain).emit('connection', socket);
    });
  });
}

async function serve(
  state: RegistryState,
  kind: JournalEntry['listener'],
  scheme: string,
  handler: Handler,
  request: IncomingMessage,
  response: ServerResponse,
  connection: number,
): Promise<void> {
  const url = request.url ?? '/';
  const mark = url.indexOf('?');
  const [path, rawQuery] = mark < 0 ? [url, ''] : [url.slice(0, mark), url.slice(mark + 1)];
  const method = request.method ?? 'GET';
  const query = new URLSearchParams(rawQuery);
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const target = readTarget(method, path, query);
  const entry = openEntry(state.journal, {
    ...target,
    listener: kind,
    connection,
    method,
    path,
    query: rawQuery,
    headers,
    startedAt: state.now(),
  });
  // What the second listener names is the registry's own address, but for a session that goes on there.
  const origin = kind === 'storage' ? state.origin() : `${scheme}://${request.headers.host ?? ''}`;
  const body = { length: lengthOf(request), pieces: () => readBody(request, entry) };
  const call: Call = { ...target, method, path, query, rawQuery, headers: request.headers, origin, body };
  try {
    const wait = state.profile.answer.latencyMs;
    if (wait > 0) await pause(wait);
    await state.hold?.();
    const fault = drawFault(state.faults, call, rawQuery);
    const reply = await withFault(fault, call, handler);
    if (state.profile.answer.afterBody && reply.kind === 'answer') await drain(call.body.pieces());
    const headFirst = fault?.kind === 'stall' || fault?.kind === 'truncate';
    await send(state, call, entry, reply, request, response, headFirst);
  } catch (error) {
    fail(error, entry, request, response);
  } finally {
    closeEntry(state.journal, entry, state.now());
  }
}

function lengthOf(request: IncomingMessage): number | undefined {
  const given = request.headers['content-length'];
  if (given !== undefined) return Number(given);
  return request.headers['transfer-encoding'] === undefined ? 0 : undefined;
}

async function drain(pieces: AsyncIterable<Buffer>): Promise<void> {
  for await (const piece of pieces) void piece;
}

async function* readBody(request: IncomingMessage, entry: OpenEntry): AsyncGenerator<Buffer> {
  try {
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      entry.bytesIn += piece.length;
      yield piece;
    }
  } catch (cause) {
    throw new ClientGone('the client broke off its request', { cause });
  }
}

async function send(
  state: RegistryState,
  call: Call,
  entry: OpenEntry,
  reply: Reply,
  request: IncomingMessage,
  response: ServerResponse,
  headFirst: boolean,
): Promise<void> {
  if (reply.kind === 'cut') {
    closeEntry(state.journal, entry, state.now());
    if (reply.how === 'reset') reset(request.socket);
    else request.socket.destroy();
    return;
  }
  entry.status = reply.status;
  if (reply.close === true) response.shouldKeepAlive = false;
  const headers = headersOf(state, call, reply);
  if (typeof headers['Location'] === 'string') entry.location = headers['Location'];
  response.writeHead(reply.status, headers as Record<string, string | string[]>);
  const length = reply.body?.length ?? 0;
  if (call.method === 'HEAD' || length === 0) {
    closeEntry(state.journal, entry, state.now());
    response.end();
    return;
  }
  // Otherwise the head leaves together with the first piece, which a fault may hold back for ever.
  if (headFirst) response.flushHeaders();
  for await (const piece of counted(state, entry, reply)) {
    if (!response.write(piece)) await drained(response);
    if (response.destroyed) throw new ClientGone('the client left before the end of the answer');
  }
  response.end();
}

/** Node resets no connection that speaks TLS; there it ends without the farewell that TLS wants, which is as rude. */
function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Resolves when more can be written, or when nobody reads any more. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
    if (response.destroyed) done();
  });
}

/** Counts what leaves, and closes the journal entry before the last piece does. */
async function* counted(state: RegistryState, entry: OpenEntry, reply: Answer): AsyncGenerator<Buffer> {
  const { length = 0, pieces } = reply.body ?? {};
  if (pieces === undefined) return;
  for await (const piece of pieces()) {
    entry.bytesOut += piece.length;
    if (entry.bytesOut >= length) closeEntry(state.journal, entry, state.now());
    yield piece;
  }
}

function headersOf(state: RegistryState, call: Call, reply: Answer): ReplyHeaders {
  const { warning, auth, answer } = state.profile;
  const all: ReplyHeaders = {
    'Docker-Distribution-API-Version': 'registry/2.0',
    ...(reply.status === 204 ? {} : { 'Content-Length': String(reply.body?.length ?? 0) }),
    ...(warning === 'none' ? {} : { Warning: `299 - "${warning}"` }),
    ...(auth.cookieCsrf ? { 'Set-Cookie': 'sid=0123456789abcdef; Path=/; HttpOnly' } : {}),
    ...limitHeaders(call, state),
    ...reply.headers,
  };
  const omitted = new Set(answer.omitHeaders.map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(all).filter(([name]) => !omitted.has(name.toLowerCase())));
}

/** Nothing that goes wrong here may end the process; a bug is answered with 500 and told in the journal. */
function fail(error: unknown, entry: OpenEntry, request: IncomingMessage, response: ServerResponse): void {
  if (error instanceof CutHere) {
    // What was written before the cut must have left, or the client would see less of it than the rule says.
    if (response.headersSent) request.socket.destroySoon();
    else reset(request.socket);
    return;
  }
  entry.failure = error instanceof Error ? error.message : String(error);
  if (error instanceof ClientGone || response.headersSent || request.socket.destroyed) {
    request.socket.destroy();
    return;
  }
  const reply = refuse(500, 'UNKNOWN', 'unknown error', entry.failure);
  entry.status = 500;
  response.writeHead(500, { 'Content-Type': 'application/json', 'Content-Length': String(reply.body?.length ?? 0) });
  response.end(Buffer.concat([...((reply.body?.pieces() ?? []) as Iterable<Buffer>)]));
}
