import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import type { TransportOptions } from '../../src/http/transport.ts';
import { ask, client, closeAll, failure, listen, textOf } from './fixture.ts';

afterEach(closeAll);

const OK = 'HTTP/1.1 200 OK\r\n';
const WHOLE = `${OK}Content-Length: 2\r\n\r\nok`;
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n`;
const EARLY = 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n';

/** More than a client that stops reading can be made to take, on any kernel; far less than a flood has. In bytes. */
const FLOOD = 32 * 1024 * 1024;

/** A server of bytes: `speak` is called with every request's socket, and with its number, counted from 1. */
async function raw(speak: (socket: Socket, count: number) => void, options: Partial<TransportOptions> = {}) {
  let count = 0;
  const sockets: Socket[] = [];
  const server = await listen(
    createServer((socket) => {
      sockets.push(socket);
      socket.once('data', () => {
        count += 1;
        speak(socket, count);
        // Of a request with a body more comes; of a connection that is kept, the next request.
        socket.on('data', (data) => {
          if (!data.includes('GET ')) return;
          count += 1;
          speak(socket, count);
        });
      });
    }),
    {
      requests: [],
      connections: () => sockets.length,
      open: () => sockets.filter(({ destroyed }) => !destroyed).length,
    },
  );
  const transport = client({ hosts: { [server.host]: { plainHttp: true } }, retries: 1, ...options });
  return {
    transport,
    get: (path = '/') => ask(transport, server.host, path),
    put: (stream: Readable, length: number) =>
      ask(transport, server.host, '/u', { method: 'PUT', body: { stream, length } }),
    requests: () => count,
    open: server.open,
    written: () => sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
  };
}

/** Writes `part` again and again, as fast as it is taken. */
function flood(socket: Socket, part: string): void {
  const block = part.repeat(Math.ceil(16_384 / part.length));
  const more = () => {
    while (!socket.destroyed && socket.bytesWritten < 2 * FLOOD && socket.write(block));
  };
  socket.on('drain', more);
  more();
}

/** Writes `start`, then `part` every few milliseconds, for ever. */
function drip(socket: Socket, part: string, start = ''): void {
  socket.write(start);
  const timer = setInterval(() => socket.write(part), 10);
  socket.on('close', () => clearInterval(timer));
}

describe('headers that are not as they should be', () => {
  it.each<[string, string, string]>([
    ['folded', `${OK}X-A: a\r\n b\r\nContent-Length: 2\r\n\r\nok`, 'unexpected whitespace after header value'],
    ['folded by a tab', `${OK}Location: /a\r\n\t/b\r\nContent-Length: 2\r\n\r\nok`, 'unexpected whitespace'],
    ['folded behind a length', `${OK}Content-Length: 2\r\nX-A: a\r\n b\r\n\r\nok`, 'headers that contradict'],
    ['a folded length', `${OK}Content-Length: 1\r\n 0\r\n\r\n0123456789`, 'headers that contradict'],
    ['a folded encoding', `${OK}Transfer-Encoding:\r\n chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`, 'invalid header value'],
    ['a length hidden in a fold', `${OK}X-A: a\r\n Content-Length: 3\r\nContent-Length: 2\r\n\r\nok`, 'unexpected'],
    ['a fold before the first', `${OK} X-A: a\r\nContent-Length: 2\r\n\r\nok`, 'unexpected space after start line'],
    ['a line that ends in LF alone', `${OK}X-A: a\n b\r\nContent-Length: 2\r\n\r\nok`, 'missing expected CR'],
    ['a line with a CR in it', `${OK}X-A: a\rLocation: /b\r\nContent-Length: 2\r\n\r\nok`, 'missing expected LF'],
    ['two lengths', `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`, 'headers that contradict'],
    [
      'a length and chunks',
      `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
      'headers',
    ],
    ['a status below 100', `HTTP/1.1 099 What\r\n\r\n${WHOLE}`, 'headers that contradict'],
  ])('are said to be so at once, and the next request is as good as any: %s', async (_what, bytes, why) => {
    const { get, requests, transport } = await raw((socket, count) => socket.write(count === 1 ? bytes : WHOLE));
    const error = await failure(get());
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(error.message).toContain(`not HTTP as it is spoken: ${why}`);
    expect(error.hint).toContain('a proxy may be changing its answers');
    expect(requests()).toBe(1);
    expect(transport.events.filter(({ kind }) => kind === 'retry')).toEqual([]);
    expect(await textOf(await get())).toBe('ok');
  });

  it.each([
    ['ended', (socket: Socket) => socket.end()],
    ['cut', (socket: Socket) => socket.resetAndDestroy()],
  ])('but only broke off are asked for again: %s', async (_how, stop) => {
    const { get, requests } = await raw((socket, count) => {
      if (count > 1) socket.write(WHOLE);
      else socket.write(`${OK}Content-Length: 2\r\nX-A: a`, () => setTimeout(() => stop(socket), 20));
    });
    expect(await textOf(await get())).toBe('ok');
    expect(requests()).toBe(2);
  });

  it.each([
    ['a byte at a time', (socket: Socket) => drip(socket, 'a', `${OK}X-A: `)],
    ['a reason without end', (socket: Socket) => drip(socket, 'OK'.repeat(8192), 'HTTP/1.1 200 ')],
  ])('end with their time: %s', async (_what, speak) => {
    const { get, open } = await raw(speak, { retries: 0, timeouts: { headers: 200 } });
    const start = performance.now();
    const error = await failure(get());
    expect(error).toMatchObject({ code: 'NETWORK_FAILED', exitCode: 5 });
    expect(error.message).toContain('no answer came in time');
    expect(performance.now() - start).toBeLessThan(5_000);
    await expect.poll(open).toBe(0);
  });

  it('without end are read no further than 16 KiB', async () => {
    const { get, open, written } = await raw((socket) => {
      socket.write(OK);
      flood(socket, `X-A: ${'a'.repeat(500)}\r\n`);
    });
    expect((await failure(get())).message).toContain('headers of more than 16 KiB');
    await expect.poll(open).toBe(0);
    expect(written()).toBeLessThan(FLOOD);
  });
});

describe('1xx', () => {
  it.each([102, 103, 110, 199])('%i says nothing, whatever headers it has', async (status) => {
    const { get, requests } = await raw((socket) => {
      socket.write(
        `HTTP/1.1 ${status} Wait\r\nLocation: /x\r\nContent-Length: 9\r\nContent-Encoding: gzip\r\n\r\n${WHOLE}`,
      );
    });
    const response = await get();
    expect(response).toMatchObject({ status: 200, headers: { 'content-length': '2' }, sends: 1 });
    expect(response.headers).not.toHaveProperty('location');
    expect(await textOf(response)).toBe('ok');
    expect(requests()).toBe(1);
  });

  it.each([
    [100, 'HTTP/1.1 100 Continue\r\n\r\n', '100 Continue, which was not asked for'],
    [101, 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', '101 Switching Protocols'],
    [101, 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 'headers that contradict'],
  ])('%i, which answers what was not asked, is said to be so', async (_status, bytes, why) => {
    const { get, requests } = await raw((socket, count) => socket.write(count === 1 ? bytes + WHOLE : WHOLE));
    const error = await failure(get());
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(error.message).toContain(why);
    expect(requests()).toBe(1);
    expect(await textOf(await get())).toBe('ok');
  });

  it.each<[string, (socket: Socket) => void]>([
    ['as fast as they are taken', (socket) => flood(socket, EARLY)],
    [
      'with 15 KiB of headers each',
      (socket) => flood(socket, `HTTP/1.1 102 Processing\r\nX-A: ${'a'.repeat(15_000)}\r\n\r\n`),
    ],
    // Each of them makes undici wait anew.
    ['one every moment', (socket) => drip(socket, EARLY)],
  ])('without end are ended, and not asked for again: %s', async (_how, speak) => {
    const { get, requests, open, written } = await raw(speak, { timeouts: { headers: 2_000 } });
    const start = performance.now();
    const error = await failure(get());
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(error.message).toContain('one 1xx after another');
    expect(performance.now() - start).toBeLessThan(5_000);
    await expect.poll(open).toBe(0);
    expect(requests()).toBe(1);
    expect(written()).toBeLessThan(FLOOD);
  });

  it('without end let go of what is being sent', async () => {
    const { put, open } = await raw((socket) => drip(socket, EARLY));
    const stream = new Readable({
      read() {
        setTimeout(() => this.push(Buffer.alloc(1000)), 5);
      },
    });
    expect((await failure(put(stream, 1e9))).code).toBe('PROTOCOL_VIOLATED');
    expect(stream.destroyed).toBe(true);
    await expect.poll(open).toBe(0);
  });
});

describe('trailers', () => {
  it('are no headers, and the connection is used again', async () => {
    const trailers = 'Docker-Content-Digest: sha256:x\r\nLocation: /x\r\nRetry-After: 9\r\n';
    const { get, requests, open } = await raw((socket) =>
      socket.write(`${CHUNKED.replace(OK, `${OK}Trailer: Docker-Content-Digest\r\n`)}0\r\n${trailers}\r\n`),
    );
    for (let count = 0; count < 2; count += 1) {
      const response = await get();
      expect(await textOf(response)).toBe('ok');
      expect(response.headers).toEqual({ 'transfer-encoding': 'chunked', trailer: 'Docker-Content-Digest' });
    }
    expect(requests()).toBe(2);
    expect(open()).toBe(1);
  });

  it.each([
    ['folded', 'A: b\r\n c\r\n\r\n', 'unexpected whitespace'],
    ['a length', 'Content-Length: 9\r\n\r\n', 'content-Length'],
    ['more than 16 KiB', `A: ${'a'.repeat(20_000)}\r\n\r\n`, 'headers of more than 16 KiB'],
  ])('that break the protocol spoil the body: %s', async (_what, trailers, why) => {
    const { get } = await raw((socket) => socket.write(`${CHUNKED}0\r\n${trailers}`));
    const error = await failure(get().then(textOf));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(error.message).toContain(why);
  });

  it('that break off leave the body unfinished', async () => {
    const { get } = await raw((socket) =>
      socket.write(`${CHUNKED}0\r\nA: b\r\n`, () => setTimeout(() => socket.end(), 20)),
    );
    expect((await failure(get().then(textOf))).code).toBe('NETWORK_FAILED');
  });

  it('without end are read no further than 16 KiB', async () => {
    const { get, open, written } = await raw((socket) => {
      socket.write(`${CHUNKED}0\r\n`);
      flood(socket, 'A: b\r\n');
    });
    expect((await failure(get().then(textOf))).message).toContain('headers of more than 16 KiB');
    await expect.poll(open).toBe(0);
    expect(written()).toBeLessThan(FLOOD);
  });

  it.each([
    ['trailers', `${CHUNKED}0\r\nA: `, 'b'],
    ['a chunk’s extensions', `${CHUNKED}2;a=`, 'b'.repeat(16_384)],
    ['a chunk’s length', CHUNKED, '0'],
  ])('that trickle are silence, for they bring nothing: %s', async (_what, start, part) => {
    const { get, open } = await raw((socket) => drip(socket, part, start), { timeouts: { body: 200 } });
    const began = performance.now();
    const error = await failure(get().then(textOf));
    expect(['NETWORK_FAILED', 'PROTOCOL_VIOLATED']).toContain(error.code);
    expect(performance.now() - began).toBeLessThan(5_000);
    await expect.poll(open).toBe(0);
  });
});
