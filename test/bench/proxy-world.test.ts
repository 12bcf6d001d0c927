import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CountingProxy, createProxy } from '../../bench/proxy.ts';
import { LOGIN } from '../../bench/token-gate.ts';
import { classify } from '../../bench/traffic.ts';

const closers: (() => Promise<unknown>)[] = [];
const seen: string[] = [];
let proxy: CountingProxy;

beforeEach(async () => {
  seen.length = 0;
  const server = createServer((asked, response) => {
    seen.push(`${asked.method} ${asked.url}${asked.headers.authorization === undefined ? '' : ' with a token'}`);
    asked.resume();
    asked.on('end', () => response.writeHead(asked.method === 'GET' ? 200 : 201).end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(async () => server.close());
  proxy = await createProxy((server.address() as AddressInfo).port);
  closers.push(() => proxy.close());
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const url = (path: string) => `http://127.0.0.1:${proxy.port}${path}`;
const ask = (method: string, path: string, authorization?: string) =>
  fetch(url(path), { method, headers: authorization === undefined ? {} : { authorization } });
const basic = (password: string) => `Basic ${Buffer.from(`${LOGIN.user}:${password}`).toString('base64')}`;

async function tokenFor(scopes: readonly string[], authorization?: string): Promise<string> {
  const query = new URLSearchParams(scopes.map((scope): [string, string] => ['scope', scope]));
  const answer = await ask('GET', `/token?${query}`, authorization);
  return `Bearer ${((await answer.json()) as { token: string }).token}`;
}

describe('tokens', () => {
  it('are demanded for the repository and for what is done there', async () => {
    proxy.begin({ delay: 0, mounts: 'work', auth: 'token' });
    const answers = await Promise.all([
      ask('GET', '/v2/a/b/manifests/1'),
      ask('PUT', '/v2/a/manifests/1'),
      ask('POST', '/v2/a/blobs/uploads/?mount=sha256:1&from=b/c'),
      ask('GET', '/v2/'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    const challenge = `Bearer realm="${url('/token')}",service="bench"`;
    expect(answers.map(({ headers }) => headers.get('www-authenticate'))).toEqual([
      `${challenge},scope="repository:a/b:pull"`,
      `${challenge},scope="repository:a:pull,push"`,
      `${challenge},scope="repository:a:pull,push repository:b/c:pull"`,
      challenge,
    ]);
    expect(seen).toEqual([]);
  });

  it('hold what was asked for and nothing else, and do not reach the registry', async () => {
    proxy.begin({ delay: 0, mounts: 'work', auth: 'token' });
    const token = await tokenFor(['repository:a:pull,push repository:b:pull']);
    expect((await ask('POST', '/v2/a/blobs/uploads/?mount=sha256:1&from=b', token)).status).toBe(201);
    expect((await ask('POST', '/v2/a/blobs/uploads/?mount=sha256:1&from=c', token)).status).toBe(401);
    expect((await ask('PUT', '/v2/b/manifests/1', token)).status).toBe(401);
    expect(seen).toEqual(['POST /v2/a/blobs/uploads/?mount=sha256:1&from=b']);
    expect(proxy.end().exchanges.map(classify)).toContain('token GET');
  });

  it('are for a known user only where a login is demanded', async () => {
    proxy.begin({ delay: 0, mounts: 'work', auth: 'login' });
    expect((await ask('GET', '/token?scope=repository:a:pull')).status).toBe(401);
    expect((await ask('GET', '/token?scope=repository:a:pull', basic('wrong'))).status).toBe(401);
    const token = await tokenFor(['repository:a:pull'], basic(LOGIN.password));
    expect((await ask('GET', '/v2/a/manifests/1', token)).status).toBe(200);
    const form = { grant_type: 'password', username: LOGIN.user, password: LOGIN.password, scope: 'repository:a:pull' };
    const posted = await fetch(url('/token'), { method: 'POST', body: new URLSearchParams(form) });
    expect(posted.status).toBe(200);
  });

  it('of one run are worth nothing in the next', async () => {
    proxy.begin({ delay: 0, mounts: 'work', auth: 'token' });
    const token = await tokenFor(['repository:a:pull']);
    proxy.begin({ delay: 0, mounts: 'work', auth: 'token' });
    expect((await ask('GET', '/v2/a/manifests/1', token)).status).toBe(401);
  });
});

describe('a halt', () => {
  const mount = (number: number) => `/v2/a/blobs/uploads/?mount=sha256:${number}&from=b`;
  const cut = async (path: string, method = 'POST') => {
    const asked = request(url(path), { method }).on('error', () => undefined);
    asked.end();
    await sleep(60);
    asked.destroy();
  };

  it('lets so many blobs pass, says so, and holds every later write but no read', async () => {
    let halted = 0;
    proxy.begin({ delay: 0, mounts: 'work', stopAfter: 2 }, () => {
      halted += 1;
    });
    await ask('POST', mount(1));
    await ask('PUT', '/v2/a/manifests/1');
    expect(halted).toBe(0);
    await ask('PUT', '/v2/a/blobs/uploads/7?digest=sha256:2');
    await expect.poll(() => halted).toBe(1);
    await cut(mount(3));
    await cut('/v2/a/manifests/2', 'PUT');
    expect((await ask('GET', '/v2/a/manifests/1')).status).toBe(200);
    expect(seen).toEqual([
      `POST ${mount(1)}`,
      'PUT /v2/a/manifests/1',
      'PUT /v2/a/blobs/uploads/7?digest=sha256:2',
      'GET /v2/a/manifests/1',
    ]);
    expect(halted).toBe(1);
  });

  it('does not count mounts that are refused', async () => {
    let halted = 0;
    proxy.begin({ delay: 0, mounts: 'refused', stopAfter: 1 }, () => {
      halted += 1;
    });
    await ask('POST', mount(1));
    await ask('POST', mount(2));
    expect(halted).toBe(0);
    await ask('PUT', '/v2/a/blobs/uploads/7?digest=sha256:2');
    await expect.poll(() => halted).toBe(1);
  });
});

describe('idle', () => {
  it('waits for clients that are still there, so that their requests count for the run before', async () => {
    proxy.begin({ delay: 0, mounts: 'work', stopAfter: 1 });
    const agent = new Agent({ keepAlive: true });
    for (const number of [1, 2, 3]) {
      const path = `/v2/a/blobs/uploads/?mount=sha256:${number}&from=b`;
      request(url(path), { method: 'POST', agent })
        .on('error', () => undefined)
        .on('response', (answer) => answer.resume())
        .end();
    }
    let idle = false;
    const waiting = proxy.idle().then(() => {
      idle = true;
    });
    await sleep(120);
    expect(idle).toBe(false);
    agent.destroy();
    await waiting;
    expect(proxy.end().exchanges).toHaveLength(3);
  });
});

describe('a connection', () => {
  it('costs once what it costs', async () => {
    proxy.begin({ delay: 0, mounts: 'work', connectionCost: 80 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const took: number[] = [];
    for (let number = 0; number < 2; number += 1) {
      const started = performance.now();
      const asked = request(url('/v2/'), { agent });
      asked.end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      await text(answer);
      took.push(performance.now() - started);
    }
    agent.destroy();
    expect(took[0]).toBeGreaterThan(75);
    expect(took[1]).toBeLessThan(75);
  });
});
