import { createServer } from 'node:https';
import type { LookupFunction } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import { selfSigned } from './certificate.ts';
import { ask, type Client, client, closeAll, listen, textOf } from './fixture.ts';

afterEach(closeAll);

const certificate = selfSigned(['registry.test']);
const loopback: LookupFunction = (_host, { all }, callback) => {
  if (all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};
const LOGIN: Credential = { kind: 'basic', username: 'u', password: new Secret('p') };

/** A TLS registry that wants a login, and how many connections there were when it answered. */
async function registryOf(
  beforeFirst: (connections: () => number) => Promise<void> = () => Promise.resolve(),
  unknown: 401 | 200 = 401,
) {
  let connections = 0;
  const open = new Set<object>();
  const answered: number[] = [];
  const server = createServer(certificate, (request, response) => {
    void (async () => {
      if (answered.length === 0) await beforeFirst(() => connections);
      answered.push(connections);
      const known = request.headers.authorization !== undefined;
      response
        .writeHead(known ? 200 : unknown, known || unknown === 200 ? {} : { 'www-authenticate': 'Basic realm="r"' })
        .end('ok');
    })();
  });
  server.on('secureConnection', (socket) => {
    connections += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  const { port } = await listen(server, { requests: [], connections: () => 0, open: () => 0 });
  return { host: `registry.test:${port}`, answered, connections: () => connections, open: () => open.size };
}

/** Resolves when there are so many, and when that takes too long. */
async function until(count: number, connections: () => number): Promise<void> {
  for (let tries = 0; connections() < count && tries < 200; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function asking(http: Client, host: string, credential: Credential) {
  const credentials = { lookup: () => Promise.resolve(credential) };
  const authorizer = createAuthorizer({ transport: http, credentials, clock: http.clock });
  return async (path: string, method: 'GET' | 'POST' = 'GET') => {
    const request = {
      method,
      url: new URL(path, http.baseUrl(host)),
      signal: AbortSignal.timeout(20_000),
    };
    return textOf(await authorizer.send(request, host, [{ repository: 'a/b', actions: 'pull' }]));
  };
}

const many = (count: number, ask: (path: string) => Promise<string>) =>
  Promise.all(Array.from({ length: count }, (_, index) => ask(`/v2/${index}`)));

describe('while the first request goes alone because of a login', () => {
  it('a connection is opened for each that waits for it, and no more', async () => {
    const registry = await registryOf((connections) => until(9, connections));
    const http = client({ ca: [certificate.cert], lookup: loopback });
    const ask = asking(http, registry.host, LOGIN);
    expect(await many(9, ask)).toEqual(Array.from({ length: 9 }, () => 'ok'));
    expect(registry.answered[0]).toBe(9);
    expect(registry.connections()).toBe(9);
  });

  it('no more than 64 are opened, however many wait', async () => {
    const registry = await registryOf((connections) => until(66, connections));
    const http = client({ ca: [certificate.cert], lookup: loopback });
    await many(80, asking(http, registry.host, LOGIN));
    expect(registry.answered[0]).toBe(64);
  });

  it('none is opened where one is free, as for the first write after public reads', async () => {
    const registry = await registryOf(() => Promise.resolve(), 200);
    const http = client({ ca: [certificate.cert], lookup: loopback });
    const ask = asking(http, registry.host, LOGIN);
    await many(4, ask);
    const before = registry.connections();
    await many(3, (path) => ask(path, 'POST'));
    expect([before, registry.connections()]).toEqual([4, 4]);
  });
});

describe('a connection that was opened ahead', () => {
  it('is closed with the transport when nobody wanted it', async () => {
    const registry = await registryOf();
    const http = client({ ca: [certificate.cert], lookup: loopback });
    const url = new URL('/v2/', http.baseUrl(registry.host));
    for (let number = 0; number < 3; number += 1) http.openAhead?.({ url });
    await until(3, registry.connections);
    expect(registry.open()).toBe(3);
    http.openAhead?.({ url });
    await http.close();
    for (let tries = 0; registry.open() > 0 && tries < 200; tries += 1) await new Promise((go) => setTimeout(go, 10));
    expect(registry.open()).toBe(0);
  });

  it('is not used when the other side has closed it meanwhile', async () => {
    const sockets: { destroy(): void }[] = [];
    const server = createServer(certificate, (_request, response) => response.end('ok'));
    server.on('secureConnection', (socket) => sockets.push(socket));
    const { port } = await listen(server, { requests: [], connections: () => 0, open: () => 0 });
    const host = `registry.test:${port}`;
    const http = client({ ca: [certificate.cert], lookup: loopback, retries: 0 });
    http.openAhead?.({ url: new URL('/v2/', http.baseUrl(host)) });
    await until(1, () => sockets.length);
    sockets[0]?.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await textOf(await ask(http, host, '/v2/'))).toBe('ok');
    expect(sockets).toHaveLength(2);
  });

  it('fails nobody who asks after it has failed, when the other side may be up again', async () => {
    const server = createServer(certificate, (_request, response) => response.end('ok'));
    const { port } = await listen(server, { requests: [], connections: () => 0, open: () => 0 });
    const host = `registry.test:${port}`;
    let up = false;
    let failed = 0;
    const flaky: LookupFunction = (name, options, callback) => {
      if (up) return loopback(name, options, callback);
      failed += 1;
      callback(Object.assign(new Error('try again'), { code: 'EAI_AGAIN' }), '', 0);
    };
    const http = client({ ca: [certificate.cert], lookup: flaky, retries: 1 });
    // More of them than the request has tries.
    for (let number = 0; number < 8; number += 1) http.openAhead?.({ url: new URL('/v2/', http.baseUrl(host)) });
    await until(8, () => failed);
    await new Promise((resolve) => setTimeout(resolve, 50));
    up = true;
    expect(await textOf(await ask(http, host, '/v2/'))).toBe('ok');
  });

  it('fails the request that it was meant for', async () => {
    const nowhere: LookupFunction = (_host, _options, callback) =>
      callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), '', 0);
    const http = client({ lookup: nowhere, retries: 0 });
    http.openAhead?.({ url: new URL('/v2/', http.baseUrl('registry.test')) });
    await expect(ask(http, 'registry.test', '/v2/')).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
  });

  it('is never one to an address that must not be reached, nor of a host that may speak another scheme', async () => {
    const reached: string[] = [];
    const http = client({
      lookup: loopback,
      connectTo: (host) => {
        reached.push(host);
        return { host: '127.0.0.1', port: '1' };
      },
    });
    const namedBy = 'registry.example';
    expect(() => http.openAhead?.({ url: new URL('https://169.254.169.254/'), namedBy })).toThrow();
    http.openAhead?.({ url: new URL('https://inside.test/'), namedBy });
    http.openAhead?.({ url: new URL('/v2/', http.baseUrl('127.0.0.1:5000')) });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(reached).toEqual([]);
  });
});
