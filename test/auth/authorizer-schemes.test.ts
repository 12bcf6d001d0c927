import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import { client, closeAll, failure, jumpingClock, serve, textOf } from '../http/fixture.ts';
import { BASIC, IDENTITY, LOGIN, MOUNT, NONE, PULL, proofs, type Setup, world } from './world.ts';

afterEach(closeAll);

describe('Basic', () => {
  const basicOnly: Setup['registry'] = (request, response) => {
    if (request.headers.authorization === BASIC) response.end('ok');
    else response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end('no');
  };

  it('shows the login after the first 401, and from then on at once', async () => {
    const { ask, registry } = await world({ credential: LOGIN, registry: basicOnly });
    for (let count = 0; count < 3; count += 1) expect(await textOf(await ask())).toBe('ok');
    expect(proofs(registry)).toEqual([undefined, BASIC, BASIC, BASIC]);
  });

  it('is never sent unasked', async () => {
    const { ask, registry } = await world({ credential: LOGIN, registry: (_request, response) => response.end('ok') });
    for (let count = 0; count < 3; count += 1) await (await ask()).discard();
    expect(proofs(registry)).toEqual([undefined, undefined, undefined]);
  });

  it('returns the 401 of a wrong login, without asking twice', async () => {
    const wrong: Credential = { kind: 'basic', username: 'u', password: new Secret('wrong') };
    const { ask, registry } = await world({ credential: wrong, registry: basicOnly });
    for (let count = 0; count < 2; count += 1) {
      const response = await ask();
      expect(response.status).toBe(401);
      expect(await textOf(response)).toBe('no');
    }
    expect(registry.requests).toHaveLength(3);
  });

  it.each([NONE, IDENTITY])('returns the 401 when there is no password: $kind', async (credential) => {
    const { ask, registry } = await world({ credential, registry: basicOnly });
    const response = await ask();
    expect(response.status).toBe(401);
    await response.discard();
    expect(proofs(registry)).toEqual([undefined]);
  });

  it('comes after Bearer where both are offered', async () => {
    const { ask, registry } = await world({
      credential: LOGIN,
      registry: (request, response, _seen, challenge) => {
        if (request.headers.authorization?.startsWith('Bearer')) response.end('ok');
        else response.writeHead(401, ['WWW-Authenticate', 'Basic realm="r"', 'WWW-Authenticate', challenge]).end();
      },
    });
    await (await ask()).discard();
    expect(proofs(registry)).toEqual([undefined, 'Bearer t1']);
  });
});

describe('other answers of 401', () => {
  it('names schemes that are not supported', async () => {
    const { ask } = await world({
      credential: LOGIN,
      registry: (_request, response) => response.writeHead(401, { 'www-authenticate': 'Negotiate, NTLM' }).end(),
    });
    const error = await failure(ask());
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3 });
    expect(error.message).toContain('negotiate or ntlm');
  });

  it.each([{}, { 'www-authenticate': '' }, { 'www-authenticate': ', ,' }])(
    'returns one that asks for nothing: %j',
    async (headers) => {
      const { ask, registry } = await world({
        credential: LOGIN,
        registry: (_request, response) => response.writeHead(401, headers).end(),
      });
      const response = await ask();
      expect(response.status).toBe(401);
      await response.discard();
      expect(registry.requests).toHaveLength(1);
    },
  );

  it('says of a Bearer challenge without a realm what is missing', async () => {
    const { ask, registry } = await world({
      credential: LOGIN,
      registry: (_request, response) =>
        response.writeHead(401, { 'www-authenticate': 'Bearer service="x", Negotiate' }).end(),
    });
    const error = await failure(ask());
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3, status: 401 });
    expect(error.message).toContain('names no token server (a Bearer challenge without realm)');
    expect(registry.requests).toHaveLength(1);
  });
});

describe('the first request', () => {
  it('goes alone where there is a login, until its status is known', async () => {
    let release = (): void => undefined;
    const { ask, registry } = await world({
      credential: LOGIN,
      registry: (request, response) => {
        if (request.headers.authorization === BASIC) response.end('ok');
        else release = () => response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
      },
    });
    const all = Array.from({ length: 9 }, () => ask());
    await expect.poll(() => registry.requests.length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(registry.requests).toHaveLength(1);
    release();
    for (const answer of await Promise.all(all)) expect(await textOf(answer)).toBe('ok');
    expect(proofs(registry)).toEqual([undefined, ...Array(9).fill(BASIC)]);
  });

  it('goes with all others where there is none', async () => {
    const waiting: ServerResponse[] = [];
    const { ask } = await world({ registry: (_request, response) => waiting.push(response) });
    const all = Array.from({ length: 9 }, () => ask());
    await expect.poll(() => waiting.length).toBe(9);
    for (const response of waiting) response.end('ok');
    for (const answer of await Promise.all(all)) await answer.discard();
  });

  it('is followed by the next in line when it fails', async () => {
    let count = 0;
    const { ask, registry } = await world({
      credential: LOGIN,
      registry: (request, response) => {
        count += 1;
        if (count <= 2) request.socket.destroy();
        else if (request.headers.authorization === BASIC) response.end('ok');
        else response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
      },
    });
    const [first, second] = await Promise.allSettled([ask(PULL, { retries: 0 }), ask(PULL, { retries: 1 })]);
    expect(first.status).toBe('rejected');
    expect(second.status).toBe('fulfilled');
    if (second.status === 'fulfilled') await second.value.discard();
    expect(registry.requests.length).toBeGreaterThanOrEqual(3);
  });

  it('is waited for by all others once, where it gets no answer; then they go together, in the places there are', async () => {
    const waiting: ServerResponse[] = [];
    const registry = await serve((request, response) => {
      if (request.headers.authorization === BASIC) response.end('ok');
      else waiting.push(response);
    });
    const clock = jumpingClock();
    const transport = client({ clock, limiter: createLimiter({ clock, requests: 3 }), retries: 0 });
    const authorizer = createAuthorizer({ transport, credentials: { lookup: async () => LOGIN }, clock });
    const url = new URL('/v2/', transport.baseUrl(registry.host));
    const ask = (more: { headersTimeout?: number } = {}) =>
      authorizer.send({ method: 'GET', url, signal: AbortSignal.timeout(10_000), ...more }, registry.host, PULL);
    const silent = failure(ask({ headersTimeout: 200 }));
    await expect.poll(() => waiting.length).toBe(1);
    const others = Array.from({ length: 5 }, () => ask());
    expect((await silent).code).toBe('NETWORK_FAILED');
    await expect.poll(() => waiting.length).toBe(4);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(waiting).toHaveLength(4);
    const answering = setInterval(() => {
      for (const response of waiting.splice(0))
        response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
    }, 5);
    for (const answer of others) expect(await textOf(await answer)).toBe('ok');
    clearInterval(answering);
  });

  it('is followed by one other when it was given up by whoever asked', async () => {
    const waiting: ServerResponse[] = [];
    const { ask } = await world({
      credential: LOGIN,
      registry: (request, response) => {
        if (request.headers.authorization === BASIC) response.end('ok');
        else waiting.push(response);
      },
    });
    const stop = new AbortController();
    const given = ask(PULL, { signal: stop.signal });
    await expect.poll(() => waiting.length).toBe(1);
    const others = Array.from({ length: 3 }, () => ask());
    stop.abort(new Error('stop'));
    await expect(given).rejects.toThrow('stop');
    await expect.poll(() => waiting.length).toBe(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(waiting).toHaveLength(2);
    waiting[1]?.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
    for (const answer of await Promise.all(others)) expect(await textOf(answer)).toBe('ok');
  });

  it('may be given up by one that waits for it', async () => {
    const { ask, registry } = await world({ credential: LOGIN, registry: () => undefined });
    const stop = new AbortController();
    const first = ask(PULL, { signal: stop.signal });
    await expect.poll(() => registry.requests.length).toBe(1);
    const second = ask(PULL, { signal: AbortSignal.abort(new Error('stop two')) });
    await expect(second).rejects.toThrow('stop two');
    stop.abort(new Error('stop one'));
    await expect(first).rejects.toThrow('stop one');
  });
});

describe('the first write, where reads are public', () => {
  const openReads =
    (hold: (release: () => void) => void): NonNullable<Setup['registry']> =>
    (request, response) => {
      if (request.method === 'GET' || request.headers.authorization === BASIC) response.end('ok');
      else hold(() => response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end());
    };

  it('goes alone until its status is known, while reads go on; then all show the login', async () => {
    const held: (() => void)[] = [];
    const { ask, registry } = await world({ credential: LOGIN, registry: openReads((release) => held.push(release)) });
    await (await ask()).discard();
    const writes = Array.from({ length: 9 }, () => ask(MOUNT, { method: 'POST' }));
    await expect.poll(() => held.length).toBe(1);
    expect(await textOf(await ask(MOUNT))).toBe('ok');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(held).toHaveLength(1);
    held[0]?.();
    for (const answer of await Promise.all(writes)) expect(await textOf(answer)).toBe('ok');
    expect(proofs(registry)).toEqual([undefined, undefined, undefined, ...Array(9).fill(BASIC)]);
  });

  it('needs no place, which those who wait for it may hold all of', async () => {
    const registry = await serve((request, response) => {
      if (request.method === 'GET' || request.headers.authorization === BASIC) response.end('ok');
      else response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
    });
    const clock = jumpingClock();
    const limiter = createLimiter({ clock, requests: 2 });
    const transport = client({ clock, limiter });
    const authorizer = createAuthorizer({ transport, credentials: { lookup: async () => LOGIN }, clock });
    const signal = AbortSignal.timeout(2000);
    const url = new URL('/v2/', transport.baseUrl(registry.host));
    await (await authorizer.send({ method: 'GET', url, signal }, registry.host, PULL)).discard();
    const places = await Promise.all([limiter.take(registry.host, signal), limiter.take(registry.host, signal)]);
    const first = authorizer.send({ method: 'PUT', url, signal }, registry.host, MOUNT);
    for (const place of places) {
      const answer = await authorizer.send({ method: 'POST', url, place, signal }, registry.host, MOUNT);
      expect(await textOf(answer)).toBe('ok');
      place.release();
    }
    expect(await textOf(await first)).toBe('ok');
    expect(proofs(registry).filter((proof) => proof === undefined)).toHaveLength(2);
  });

  it('is no longer waited for once a write went through without a login', async () => {
    const waiting: ServerResponse[] = [];
    const { ask } = await world({
      credential: LOGIN,
      registry: (request, response) => (request.method === 'PUT' ? waiting.push(response) : response.end('ok')),
    });
    await (await ask()).discard();
    await (await ask(MOUNT, { method: 'POST' })).discard();
    const all = Array.from({ length: 9 }, () => ask(MOUNT, { method: 'PUT' }));
    await expect.poll(() => waiting.length).toBe(9);
    for (const response of waiting) response.end('ok');
    for (const answer of await Promise.all(all)) await answer.discard();
  });
});
