import { createServer as createNetServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/http/limiter.ts';
import { ask, client, closeAll, failure, type Handler, listen, serve, standingClock, textOf } from './fixture.ts';

afterEach(closeAll);

const ok: Handler = (_request, response) => response.end('ok');

describe('what goes over the wire', () => {
  it('asks for no compression, names itself and keeps the connection', async () => {
    const server = await serve(ok);
    const transport = client({ userAgent: 'manifest-publish/1' });
    for (let count = 0; count < 3; count += 1)
      expect(await textOf(await ask(transport, server.host, '/v2/'))).toBe('ok');
    expect(server.requests[0]?.headers).toMatchObject({
      'accept-encoding': 'identity',
      'user-agent': 'manifest-publish/1',
      connection: 'keep-alive',
    });
    expect(server.connections()).toBe(1);
  });

  it('keeps the connection after a HEAD', async () => {
    const server = await serve((_request, response) => response.setHeader('content-length', '123456789').end());
    const transport = client();
    for (let count = 0; count < 3; count += 1) {
      const response = await ask(transport, server.host, '/blob', { method: 'HEAD' });
      expect(response.headers['content-length']).toBe('123456789');
      await response.discard();
    }
    expect(server.connections()).toBe(1);
  });

  it.each(['POST', 'PUT', 'PATCH'] as const)('says Content-Length: 0 in a %s without a body', async (method) => {
    const server = await serve(ok);
    await (await ask(client(), server.host, '/x', { method })).discard();
    expect(server.requests[0]?.headers['content-length']).toBe('0');
    expect(server.requests[0]?.headers['transfer-encoding']).toBeUndefined();
  });

  it('sends a stream with its exact length and never in chunked encoding', async () => {
    const server = await serve(ok);
    const bytes = Buffer.alloc(300_000, 7);
    const transport = client();
    const body = { stream: Readable.from([bytes.subarray(0, 100_000), bytes.subarray(100_000)]), length: bytes.length };
    await (await ask(transport, server.host, '/x?a=b', { method: 'PUT', body })).discard();
    const [seen] = server.requests;
    expect(seen?.headers['content-length']).toBe('300000');
    expect(seen?.headers['transfer-encoding']).toBeUndefined();
    expect(seen?.body.equals(bytes)).toBe(true);
    expect(transport.events).toMatchObject([
      { kind: 'request', method: 'PUT', bytesSent: 300_000, status: 200, send: 1 },
    ]);
    expect(JSON.stringify(transport.events)).not.toContain('a=b');
  });

  it('sends an empty stream as no body', async () => {
    const server = await serve(ok);
    const body = { stream: Readable.from([]), length: 0 };
    await (await ask(client(), server.host, '/x', { method: 'PUT', body })).discard();
    expect(server.requests[0]?.headers['content-length']).toBe('0');
  });

  it('opens a connection for each request in flight, up to 64', async () => {
    const waiting: (() => void)[] = [];
    const server = await serve((_request, response) => {
      waiting.push(() => response.end('ok'));
    });
    const transport = client();
    const all = Array.from({ length: 70 }, (_, index) => ask(transport, server.host, `/${index}`).then(textOf));
    await expect.poll(() => waiting.length).toBe(64);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(waiting.length).toBe(64);
    const answerAll = setInterval(() => {
      for (const answer of waiting.splice(0)) answer();
    }, 5);
    await Promise.all(all);
    clearInterval(answerAll);
    expect(server.connections()).toBe(64);
  });
});

describe('answers that are refused', () => {
  it('refuses a compressed body', async () => {
    const server = await serve((_request, response) => response.setHeader('content-encoding', 'gzip').end('x'));
    expect(await failure(ask(client(), server.host, '/'))).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(server.requests).toHaveLength(1);
  });

  it.each(['Location', 'Docker-Content-Digest', 'Content-Range', 'Content-Type'])(
    'refuses a repeated %s',
    async (name) => {
      const server = await serve((_request, response) => {
        response.writeHead(200, [name, 'a', name, 'b']).end();
      });
      const error = await failure(ask(client(), server.host, '/'));
      expect(error.code).toBe('PROTOCOL_VIOLATED');
      expect(error.message).toContain(name.toLowerCase());
    },
  );

  it('joins other repeated headers', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(401, ['WWW-Authenticate', 'Basic realm="a"', 'WWW-Authenticate', 'Bearer realm="b"']).end();
    });
    const response = await ask(client(), server.host, '/');
    await response.discard();
    expect(response.headers['www-authenticate']).toBe('Basic realm="a", Bearer realm="b"');
  });

  it('refuses more than the limit, announced or not', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/announced') response.setHeader('content-length', '1001');
      response.end(Buffer.alloc(1001));
    });
    const transport = client();
    for (const path of ['/announced', '/chunked']) {
      const response = await ask(transport, server.host, path);
      expect((await failure(response.bytes(1000))).code).toBe('PROTOCOL_VIOLATED');
      expect((await (await ask(transport, server.host, path)).bytes(1001)).byteLength).toBe(1001);
    }
  });

  it('passes over 1xx, but not over many', async () => {
    const server = await listen(
      createNetServer((socket: Socket) =>
        socket.on('data', (request) => {
          const count = request.includes('/many') ? 100 : 5;
          const early = 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'.repeat(count);
          socket.write(`${early}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`);
        }),
      ),
      { requests: [], connections: () => 0, open: () => 0 },
    );
    const transport = client({ hosts: { [server.host]: { plainHttp: true } } });
    expect(await textOf(await ask(transport, server.host, '/few'))).toBe('ok');
    const error = await failure(ask(transport, server.host, '/many'));
    expect(error.code).toBe('PROTOCOL_VIOLATED');
    expect(error.hint).not.toContain('--plain-http');
  });

  it('refuses headers of more than 16 KiB', async () => {
    const server = await serve((_request, response) => response.setHeader('x-long', 'x'.repeat(20_000)).end());
    const transport = client();
    await ask(transport, server.host, '/').catch(() => undefined);
    const plain = client({ hosts: { [server.host]: { plainHttp: true } } });
    const error = await failure(ask(plain, server.host, '/'));
    expect(error.code).toBe('PROTOCOL_VIOLATED');
    expect(error.message).toContain('headers of more than 16 KiB');
    expect(`${error.message} ${error.hint}`).not.toContain('--plain-http');
  });
});

describe('trying again', () => {
  const failing = (
    statuses: readonly (number | 'cut')[],
    headers: Record<string, string> = {},
  ): Promise<Awaited<ReturnType<typeof serve>>> => {
    let count = 0;
    return serve((request, response) => {
      const status = statuses[count++] ?? 200;
      if (status === 'cut') request.socket.destroy();
      else response.writeHead(status, status === 200 ? {} : headers).end(`answer ${count}`);
    });
  };

  it.each([408, 425, 429, 499, 500, 502, 503, 504, 520, 521, 522, 523, 524])('asks again after %i', async (status) => {
    const server = await failing([status]);
    const transport = client();
    const response = await ask(transport, server.host, '/');
    expect(response).toMatchObject({ status: 200, sends: 2 });
    expect(await textOf(response)).toBe('answer 2');
    expect(transport.events).toMatchObject([
      { kind: 'request', status },
      { kind: 'retry', host: server.host, reason: `status ${status}` },
      { kind: 'request', status: 200, send: 2 },
    ]);
  });

  it.each([400, 401, 403, 404, 405, 409, 413, 416, 501, 505, 530])('takes %i for an answer', async (status) => {
    const server = await failing([status, 200], { 'content-type': 'application/json' });
    const response = await ask(client(), server.host, '/');
    expect(response).toMatchObject({ status, sends: 1 });
    await response.discard();
    expect(server.requests).toHaveLength(1);
  });

  it('sends at most 1 + retries times, and hands out the last answer with its body', async () => {
    const server = await failing(Array(20).fill(503));
    const transport = client({ retries: 5 });
    const response = await ask(transport, server.host, '/');
    expect(response).toMatchObject({ status: 503, sends: 6 });
    expect(await textOf(response)).toBe('answer 6');
    // Full jitter at its longest: 250 ms, doubled each time.
    expect(transport.clock.slept).toEqual([250, 500, 1000, 2000, 4000]);
    expect(await textOf(await ask(transport, server.host, '/', { retries: 2 }))).toBe('answer 9');
    expect(await textOf(await ask(transport, server.host, '/', { retries: 0 }))).toBe('answer 10');
  });

  it('waits for a 429 as often as the run allows, however few retries the request has', async () => {
    const server = await failing(Array(4).fill(429));
    const response = await ask(client(), server.host, '/', { retries: 2 });
    expect(response).toMatchObject({ status: 200, sends: 5 });
    await response.discard();
  });

  it('sends the bytes of a body again', async () => {
    const server = await failing([503]);
    await (await ask(client(), server.host, '/', { method: 'PUT', body: Buffer.from('abc') })).discard();
    expect(server.requests.map(({ body }) => body.toString())).toEqual(['abc', 'abc']);
  });

  it('never sends a stream again', async () => {
    const server = await failing([503]);
    const body = { stream: Readable.from([Buffer.from('abc')]), length: 3 };
    const response = await ask(client(), server.host, '/', { method: 'PUT', body });
    expect(response).toMatchObject({ status: 503, sends: 1 });
    await response.discard();
    expect(server.requests).toHaveLength(1);
  });

  it('asks again after a cut connection, 1 + retries times', async () => {
    const server = await failing(Array(20).fill('cut'));
    const transport = client({ hosts: { [server.host]: { plainHttp: true } } });
    const error = await failure(ask(transport, server.host, '/'));
    expect(error).toMatchObject({ code: 'NETWORK_FAILED', exitCode: 5, registry: server.host });
    expect(error.message).toContain('6 tries');
    expect(server.requests).toHaveLength(6);
  });

  it('asks again after a refused connection', async () => {
    const server = await serve(ok);
    await server.close();
    const transport = client({ retries: 2 });
    expect(await failure(ask(transport, server.host, '/'))).toMatchObject({ code: 'NETWORK_FAILED' });
    expect(transport.clock.slept).toEqual([250, 500]);
  });

  it('asks once more for a name that is not known', async () => {
    const transport = client({
      lookup: (hostname, _options, callback) =>
        callback(Object.assign(new Error(hostname), { code: 'ENOTFOUND' }), '', 0),
    });
    const error = await failure(ask(transport, 'registry.example.test', '/'));
    expect(error.code).toBe('NETWORK_FAILED');
    expect(error.message).toContain('2 tries');
  });

  it('sends a request again at once when an idle connection was closed, and does not count it', async () => {
    const server = await serve((request, response, seen) => {
      // The second request on a connection meets a server that has just given up on it.
      if (server.requests.filter(({ connection }) => connection === seen.connection).length === 2)
        request.socket.destroy();
      else response.end('ok');
    });
    const transport = client({ retries: 0 });
    for (let count = 0; count < 3; count += 1) expect(await textOf(await ask(transport, server.host, '/'))).toBe('ok');
    expect(transport.clock.slept).toEqual([]);
    expect(transport.events.filter(({ kind }) => kind === 'retry')).toMatchObject([
      { waitMilliseconds: 0 },
      { waitMilliseconds: 0 },
    ]);
  });

  it('does so once only', async () => {
    let first = true;
    const server = await serve((request, response) => {
      if (!first) request.socket.destroy();
      else response.end('ok');
      first = false;
    });
    const transport = client({ retries: 0 });
    await textOf(await ask(transport, server.host, '/'));
    expect((await failure(ask(transport, server.host, '/'))).code).toBe('NETWORK_FAILED');
    expect(server.requests).toHaveLength(3);
  });

  it('does not where the request asks for no retry, as a body into an upload session does', async () => {
    let first = true;
    const server = await serve((request, response) => {
      if (!first) request.socket.destroy();
      else response.end('ok');
      first = false;
    });
    const transport = client();
    await textOf(await ask(transport, server.host, '/'));
    const once = ask(transport, server.host, '/', { method: 'PUT', body: new Uint8Array(3), retries: 0 });
    expect((await failure(once)).code).toBe('NETWORK_FAILED');
    expect(server.requests).toHaveLength(2);
  });
});

describe('being asked to wait', () => {
  const limited = (headers: Record<string, string>): ReturnType<typeof serve> => {
    let count = 0;
    return serve((_request, response) => {
      if (count++ === 0) response.writeHead(429, headers).end('toomanyrequests');
      else response.end('ok');
    });
  };

  it.each(['retry-after', 'x-retry-after'])('waits as long as %s says', async (name) => {
    const server = await limited({ [name]: '2' });
    const transport = client();
    expect(await textOf(await ask(transport, server.host, '/'))).toBe('ok');
    expect(transport.clock.slept).toEqual([2000]);
  });

  it('measures a date from the date of the answer', async () => {
    const server = await limited({
      date: 'Tue, 01 Jan 2030 00:00:00 GMT',
      'retry-after': 'Tue, 01 Jan 2030 00:00:07 GMT',
    });
    const transport = client();
    await (await ask(transport, server.host, '/')).discard();
    expect(transport.clock.slept).toEqual([7000]);
  });

  it.each(['-5', 'soon', '0', 'Tue, 01 Jan 1980 00:00:00 GMT', '1e9', ''])(
    'backs off by itself at %j',
    async (text) => {
      const server = await limited({ 'retry-after': text });
      const transport = client();
      await (await ask(transport, server.host, '/')).discard();
      expect(transport.clock.slept).toEqual([250]);
    },
  );

  it('stops at once when more than 120 s are asked for, and names them', async () => {
    const server = await limited({ 'retry-after': '86400' });
    const transport = client();
    const error = await failure(ask(transport, server.host, '/'));
    expect(error).toMatchObject({ code: 'RATE_LIMITED', exitCode: 5, status: 429 });
    expect(error.message).toContain('86400 s');
    expect(transport.clock.slept).toEqual([]);
  });

  it('keeps every request from a host that is being waited for', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/limited' && server.requests.length === 1)
        response.writeHead(429, { 'retry-after': '60' }).end();
      else response.end('ok');
    });
    const clock = standingClock();
    const transport = client({ clock, limiter: createLimiter({ clock }) });
    const limited = ask(transport, server.host, '/limited').then(textOf);
    await expect.poll(() => transport.events.some(({ kind }) => kind === 'retry')).toBe(true);
    const other = ask(transport, server.host, '/other').then(textOf);
    clock.advance(59_999);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.requests).toHaveLength(1);
    clock.advance(1);
    await expect.poll(() => server.requests.length).toBe(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    // What has waited for the same moment goes out one by one.
    expect(server.requests).toHaveLength(2);
    clock.advance(100);
    expect(await Promise.all([limited, other])).toEqual(['ok', 'ok']);
  });
});

describe('bodies that break off', () => {
  it('fails the stream with an error of its own', async () => {
    const server = await serve((request, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('x'.repeat(100));
      setTimeout(() => request.socket.destroy(), 20);
    });
    const response = await ask(client(), server.host, '/');
    const error = await failure(
      (async () => {
        for await (const _chunk of response.stream());
      })(),
    );
    expect(error).toMatchObject({ code: 'NETWORK_FAILED', registry: server.host });
  });

  it('does not crash when it breaks off before anybody reads', async () => {
    const server = await serve((request, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('x');
      setTimeout(() => request.socket.destroy(), 5);
    });
    const response = await ask(client(), server.host, '/');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await failure(response.bytes(2000))).code).toBe('NETWORK_FAILED');
  });

  it('gives up on a body that falls silent', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('x');
    });
    const response = await ask(client({ timeouts: { body: 100 } }), server.host, '/');
    const error = await failure(response.bytes(2000));
    expect(error.code).toBe('NETWORK_FAILED');
    expect(error.message).toContain('fell silent');
  });

  it('gives up on a body that trickles', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      const drip = setInterval(() => response.write('x'), 10);
      response.on('close', () => clearInterval(drip));
    });
    const transport = client();
    const response = await ask(transport, server.host, '/');
    const reading = failure(response.bytes(2000));
    const time = setInterval(() => transport.clock.advance(1000), 10);
    const error = await reading;
    clearInterval(time);
    expect(error.message).toContain('1 KiB a second');
  });

  it('gives up on headers that do not come, and asks again', async () => {
    let count = 0;
    const server = await serve((_request, response) => {
      if (count++ > 0) response.end('ok');
    });
    const response = await ask(client(), server.host, '/', { headersTimeout: 100 });
    expect(response.sends).toBe(2);
    await response.discard();
  });

  it('hands the failure of what is sent back to whoever sent it', async () => {
    const server = await serve(ok);
    const broken = new Error('the source broke');
    const stream = new Readable({ read: () => undefined });
    stream.push(Buffer.alloc(10));
    setTimeout(() => stream.destroy(broken), 20);
    await expect(ask(client(), server.host, '/', { method: 'PUT', body: { stream, length: 100 } })).rejects.toBe(
      broken,
    );
  });

  it('lets go of what is sent when the receiver goes away', async () => {
    const server = await serve(ok);
    const receiver = await listen(
      createNetServer((socket: Socket) => setTimeout(() => socket.destroy(), 30)),
      server,
    );
    const stream = new Readable({
      read() {
        setTimeout(() => this.push(Buffer.alloc(1000)), 5);
      },
    });
    const hosts = { [receiver.host]: { plainHttp: true } };
    const error = await failure(
      ask(client({ hosts }), receiver.host, '/', { method: 'PUT', body: { stream, length: 1e9 } }),
    );
    expect(error.code).toBe('NETWORK_FAILED');
    expect(stream.destroyed).toBe(true);
  });

  it('delivers an answer that comes before the body is out', async () => {
    const server = await listen(
      createNetServer((socket: Socket) =>
        socket.once('data', () =>
          socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig'),
        ),
      ),
      { requests: [], connections: () => 0, open: () => 0 },
    );
    const stream = new Readable({
      read() {
        setTimeout(() => this.push(Buffer.alloc(1000)), 5);
      },
    });
    const response = await ask(client(), server.host, '/', { method: 'PUT', body: { stream, length: 1e9 } });
    expect(response.status).toBe(413);
    expect(await textOf(response)).toBe('big');
    await expect.poll(() => stream.destroyed).toBe(true);
  });
});

describe('stopping', () => {
  it('fails with the reason of the signal, in flight and while waiting', async () => {
    const server = await serve(() => undefined);
    const transport = client();
    const stop = new AbortController();
    const reason = new Error('stop');
    const waiting = ask(transport, server.host, '/', { signal: stop.signal });
    await expect.poll(() => server.requests.length).toBe(1);
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(ask(transport, server.host, '/', { signal: stop.signal })).rejects.toBe(reason);
    await expect.poll(() => server.open()).toBe(0);
  });

  it('sends nothing when it is stopped while connecting', async () => {
    const server = await serve(ok);
    let connected = (): void => undefined;
    const transport = client({
      hosts: { 'registry.example.test': { plainHttp: true } },
      lookup: (_name, _options, callback) => {
        connected = () => callback(null, [{ address: '127.0.0.1', family: 4 }]);
      },
      connectTo: () => ({ host: '127.0.0.1', port: String(server.port) }),
    });
    const stop = new AbortController();
    const waiting = ask(transport, 'registry.example.test', '/', { signal: stop.signal, method: 'PUT' });
    await new Promise((resolve) => setTimeout(resolve, 20));
    stop.abort(new Error('stop'));
    await expect(waiting).rejects.toThrow('stop');
    connected();
    await expect.poll(() => server.connections()).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.requests).toHaveLength(0);
  });

  it('lets go of what was to be sent', async () => {
    const stream = Readable.from([Buffer.from('abc')]);
    const signal = AbortSignal.abort(new Error('stop'));
    const sending = ask(client(), '127.0.0.1:1', '/', { method: 'PUT', body: { stream, length: 3 }, signal });
    await expect(sending).rejects.toThrow('stop');
    expect(stream.destroyed).toBe(true);
  });

  it('ends a stream with the reason of the signal', async () => {
    const server = await serve((_request, response) => {
      response.write('x');
    });
    const stop = new AbortController();
    const reason = new Error('stop');
    const response = await ask(client(), server.host, '/', { signal: stop.signal });
    setTimeout(() => stop.abort(reason), 20);
    await expect(response.bytes(100)).rejects.toBe(reason);
  });

  it('closes the connection of a body that is not wanted', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100000000' }).write(Buffer.alloc(1000));
    });
    const transport = client();
    const response = await ask(transport, server.host, '/');
    await response.discard();
    await expect.poll(() => server.open()).toBe(0);
  });

  it('leaves no connection open after close', async () => {
    const server = await serve(ok);
    const transport = client();
    await textOf(await ask(transport, server.host, '/'));
    expect(server.open()).toBe(1);
    await transport.close();
    await expect.poll(() => server.open()).toBe(0);
  });
});

describe('places', () => {
  it('gives its place back when the answer has come or is not wanted', async () => {
    const server = await serve((_request, response) => response.end(Buffer.alloc(2_000_000)));
    const transport = client({ limits: { requests: 2 } });
    const [one, two] = await Promise.all([ask(transport, server.host, '/1'), ask(transport, server.host, '/2')]);
    let third = false;
    const last = ask(transport, server.host, '/3').then((response) => {
      third = true;
      return response.bytes(3_000_000);
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(third).toBe(false);
    one.stream().destroy();
    expect((await last).byteLength).toBe(2_000_000);
    await two.bytes(3_000_000);
  });

  it('takes none when one was given', async () => {
    const server = await serve(ok);
    const transport = client({ limits: { requests: 2 } });
    let released = 0;
    const place = {
      host: server.host,
      release: () => {
        released += 1;
      },
    };
    await Promise.all(Array.from({ length: 5 }, () => ask(transport, server.host, '/', { place }).then(textOf)));
    expect(released).toBe(0);
  });

  it('gives its place back after a failure', async () => {
    const server = await serve((request) => request.socket.destroy());
    const transport = client({ limits: { requests: 2 }, retries: 0, hosts: { [server.host]: { plainHttp: true } } });
    for (let count = 0; count < 5; count += 1) await failure(ask(transport, server.host, '/'));
    expect(server.requests).toHaveLength(5);
  });
});
