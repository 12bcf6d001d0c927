import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { type CountingProxy, createProxy } from '../../bench/proxy.ts';

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function proxyBefore(handler: Handler): Promise<CountingProxy> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(async () => server.close());
  const proxy = await createProxy((server.address() as AddressInfo).port);
  closers.push(() => proxy.close());
  return proxy;
}

describe('proxy', () => {
  it('keeps Host, so that the Location which a registry builds from it leads back through the proxy', async () => {
    const proxy = await proxyBefore(({ headers }, response) => {
      response.writeHead(202, { location: `http://${headers.host}/v2/a/blobs/uploads/1` }).end();
    });
    const answer = await fetch(`http://127.0.0.1:${proxy.port}/v2/a/blobs/uploads/`, { method: 'POST' });
    expect(answer.headers.get('location')).toBe(`http://127.0.0.1:${proxy.port}/v2/a/blobs/uploads/1`);
  });

  it('takes the query from a mount, and from nothing else, when mounts are refused', async () => {
    const seen: string[] = [];
    const proxy = await proxyBefore(({ method, url }, response) => {
      seen.push(`${method} ${url}`);
      response.writeHead(202).end();
    });
    proxy.begin({ delay: 0, mounts: 'refused' });
    const base = `http://127.0.0.1:${proxy.port}/v2/a/blobs/uploads/`;
    await fetch(`${base}?mount=sha256:1&from=b`, { method: 'POST' });
    await fetch(`${base}?from=b&mount=sha256:1`, { method: 'POST' });
    await fetch(`${base}?digest=sha256:1`, { method: 'POST' });
    await fetch(`${base}7?_state=x&digest=sha256:1`, { method: 'PUT' });
    expect(seen).toEqual([
      'POST /v2/a/blobs/uploads/',
      'POST /v2/a/blobs/uploads/',
      'POST /v2/a/blobs/uploads/?digest=sha256:1',
      'PUT /v2/a/blobs/uploads/7?_state=x&digest=sha256:1',
    ]);
    expect(proxy.end().exchanges[0]?.target).toBe('/v2/a/blobs/uploads/?mount=sha256:1&from=b');
  });

  it('streams both bodies, with a length or chunked, and counts their bytes', async () => {
    const proxy = await proxyBefore((asked, response) => void asked.pipe(response));
    proxy.begin({ delay: 0, mounts: 'work' });
    const body = 'x'.repeat(300_000);
    const known = await fetch(`http://127.0.0.1:${proxy.port}/a`, { method: 'PUT', body });
    expect(await known.text()).toBe(body);
    const chunked = request({ port: proxy.port, host: '127.0.0.1', path: '/b', method: 'PATCH' });
    chunked.write(body);
    chunked.end('y');
    const [answer] = await once(chunked, 'response');
    expect(await text(answer)).toBe(`${body}y`);
    expect(proxy.end().exchanges.map(({ up, down, status }) => ({ up, down, status }))).toEqual([
      { up: 300_000, down: 300_000, status: 200 },
      { up: 300_001, down: 300_001, status: 200 },
    ]);
  });

  it('keeps a HEAD without a body and its Content-Length', async () => {
    const proxy = await proxyBefore((_, response) => void response.writeHead(200, { 'content-length': '77' }).end());
    const answer = await fetch(`http://127.0.0.1:${proxy.port}/v2/a/blobs/sha256:1`, { method: 'HEAD' });
    expect(answer.headers.get('content-length')).toBe('77');
  });

  it('delays each request once, side by side', async () => {
    const proxy = await proxyBefore((_, response) => void response.end());
    proxy.begin({ delay: 60, mounts: 'work' });
    const started = performance.now();
    await Promise.all([1, 2, 3, 4].map((number) => fetch(`http://127.0.0.1:${proxy.port}/${number}`)));
    const took = performance.now() - started;
    expect(took).toBeGreaterThan(58);
    const { exchanges } = proxy.end();
    expect(exchanges).toHaveLength(4);
    for (const { start, end } of exchanges) expect(end - start).toBeGreaterThan(58);
  });

  it('answers TLS with a plain 400 at once and does not count it as a request', async () => {
    const proxy = await proxyBefore((_, response) => void response.end());
    proxy.begin({ delay: 10_000, mounts: 'work' });
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(Buffer.from([0x16, 0x03, 0x01, 0x00, 0x05, 0x01, 0x00, 0x00, 0x01, 0x00]));
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
    expect(proxy.end()).toEqual({ exchanges: [], tlsHellos: 1 });
  });

  it('cuts the client off when the registry cuts the proxy off, and shows status 0', async () => {
    const proxy = await proxyBefore((asked) => void asked.socket.destroy());
    proxy.begin({ delay: 0, mounts: 'work' });
    await expect(fetch(`http://127.0.0.1:${proxy.port}/v2/`)).rejects.toThrow('fetch failed');
    expect(proxy.end().exchanges).toMatchObject([{ status: 0 }]);
  });
});
