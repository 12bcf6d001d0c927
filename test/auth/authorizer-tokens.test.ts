import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import type { Scope } from '../../src/auth/scope.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import { client, closeAll, failure, jumpingClock, serve, textOf } from '../http/fixture.ts';
import { BASIC, IDENTITY, LOGIN, MOUNT, NONE, PULL, proofs, query, world } from './world.ts';

afterEach(closeAll);

describe('Bearer', () => {
  it('asks the token server without a login for exactly our scopes, one parameter each, the target first', async () => {
    const { ask, tokens, registry } = await world();
    expect(await textOf(await ask(MOUNT))).toBe('ok');
    expect(tokens.requests).toHaveLength(1);
    const [seen] = tokens.requests;
    expect(seen?.method).toBe('GET');
    expect(seen?.headers.authorization).toBeUndefined();
    expect(query(seen).getAll('scope')).toEqual(['repository:t/x:pull,push', 'repository:s/x:pull']);
    expect(query(seen).get('service')).toBe('r.test');
    expect(proofs(registry)).toEqual([undefined, 'Bearer t1']);
  });

  it('shows the login to the token server only', async () => {
    const { ask, tokens, registry } = await world({ credential: LOGIN });
    await (await ask()).discard();
    expect(proofs(tokens)).toEqual([BASIC]);
    expect(proofs(registry)).toEqual([undefined, 'Bearer t1']);
  });

  it('keeps the realm’s own query', async () => {
    const { ask, tokens } = await world({
      registry: (request, response, _seen, challenge) => {
        if (request.headers.authorization !== undefined) response.end('ok');
        else response.writeHead(401, { 'www-authenticate': challenge.replace('/token', '/token?a=b') }).end();
      },
    });
    await (await ask()).discard();
    expect(query(tokens.requests[0]).get('a')).toBe('b');
    expect(query(tokens.requests[0]).get('scope')).toBe('repository:a/b:pull');
  });

  it('AUT-06: exchanges an identity token by POST, with the scopes in one field', async () => {
    const { ask, tokens } = await world({
      credential: IDENTITY,
      token: (_request, response) => response.end('{"access_token":"t1","refresh_token":"new"}'),
    });
    await (await ask(MOUNT)).discard();
    expect(tokens.requests).toHaveLength(1);
    const [seen] = tokens.requests;
    expect(seen?.method).toBe('POST');
    expect(seen?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(seen?.headers.authorization).toBeUndefined();
    expect(Object.fromEntries(new URLSearchParams(seen?.body.toString()))).toEqual({
      grant_type: 'refresh_token',
      client_id: 'manifest-publish',
      service: 'r.test',
      scope: 'repository:t/x:pull,push repository:s/x:pull',
      refresh_token: 'REFRESH',
    });
  });

  it.each([400, 401, 404, 405])('turns to GET when a POST is answered with %i', async (status) => {
    const { ask, tokens } = await world({
      credential: IDENTITY,
      token: (request, response) => {
        if (request.method === 'POST') response.writeHead(status).end();
        else response.end('{"token":"t1"}');
      },
    });
    expect((await ask()).status).toBe(200);
    expect(tokens.requests.map(({ method }) => method)).toEqual(['POST', 'GET']);
  });

  it('tells what the token server had to say of the identity token, when neither form helps', async () => {
    const { ask } = await world({
      credential: IDENTITY,
      token: (request, response) => {
        const body = request.method === 'POST' ? '{"error":"invalid_grant","error_description":"token expired"}' : 'no';
        response.writeHead(401, { 'content-type': 'text/plain' }).end(body);
      },
    });
    const error = await failure(ask());
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3 });
    expect(error.message).toContain('token expired');
    expect(error.message).not.toContain('REFRESH');
  });

  it('uses a token again, and tokens of other scopes not', async () => {
    const { ask, tokens, registry } = await world();
    for (let count = 0; count < 3; count += 1) await (await ask(PULL)).discard();
    expect(tokens.requests).toHaveLength(1);
    await (await ask(MOUNT)).discard();
    expect(proofs(registry)).toEqual([undefined, 'Bearer t1', 'Bearer t1', 'Bearer t1', 'Bearer t2']);
  });

  it('asks once for many who want the same token at the same time', async () => {
    const { ask, tokens, registry } = await world();
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask()));
    for (const answer of answers) expect(await textOf(answer)).toBe('ok');
    expect(tokens.requests).toHaveLength(1);
    expect(registry.requests.length).toBeLessThanOrEqual(40);
  });

  it('does not let one who gives up spoil it for the others', async () => {
    const waiting: ServerResponse[] = [];
    const { ask, tokens } = await world({ token: (_request, response) => waiting.push(response) });
    const stop = new AbortController();
    const given = ask(PULL, { signal: stop.signal });
    const kept = ask(PULL);
    await expect.poll(() => waiting.length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    stop.abort(new Error('stop'));
    await expect(given).rejects.toThrow('stop');
    waiting[0]?.end('{"token":"t1"}');
    expect(await textOf(await kept)).toBe('ok');
    expect(tokens.requests).toHaveLength(1);
  });

  it('gives a token request up when nobody waits for it any more', async () => {
    const { ask, tokens } = await world({ token: () => undefined });
    const stop = new AbortController();
    const given = ask(PULL, { signal: stop.signal });
    await expect.poll(() => tokens.requests.length).toBe(1);
    stop.abort(new Error('stop'));
    await expect(given).rejects.toThrow('stop');
    await expect.poll(() => tokens.open()).toBe(0);
  });

  it.each([
    ['80 % of the life it was given', { token: 't1', expires_in: 100 }, 79_000, 81_000],
    ['48 s when it was given none', { token: 't1' }, 47_000, 49_000],
    ['48 s when it was given less than nothing', { token: 't1', expires_in: -1 }, 47_000, 49_000],
    ['48 s when it was given next to nothing', { token: 't1', expires_in: 1e-112 }, 47_000, 49_000],
    ['48 s when it was given no number', { token: 't1', expires_in: { seconds: 900 } }, 47_000, 49_000],
    ['48 s when it was given words', { token: 't1', expires_in: 'soon' }, 47_000, 49_000],
    ['80 % of a life that is written as a text', { token: 't1', expires_in: '100' }, 79_000, 81_000],
    ['19 hours when it was given for ever', { token: 't1', expires_in: 1e300 }, 69_000_000, 69_200_000],
    ['48 s when both names are there', { token: 't1', access_token: 'other' }, 47_000, 49_000],
    ['a life of five seconds, too', { access_token: 't1', expires_in: 5 }, 3500, 4500],
  ])('renews a token after %s', async (_what, answer, before, after) => {
    const { ask, tokens, transport } = await world({
      token: (_request, response) => response.end(JSON.stringify(answer)),
    });
    await (await ask()).discard();
    transport.clock.advance(before);
    await (await ask()).discard();
    expect(tokens.requests).toHaveLength(1);
    transport.clock.advance(after - before);
    await (await ask()).discard();
    expect(tokens.requests).toHaveLength(2);
  });

  it('renews a token that is turned down, once for a request', async () => {
    let valid = 'Bearer t1';
    const { ask, tokens, registry } = await world({
      registry: (request, response, _seen, challenge) => {
        if (request.headers.authorization === valid) response.end('ok');
        else response.writeHead(401, { 'www-authenticate': `${challenge},error="invalid_token"` }).end();
      },
    });
    await (await ask()).discard();
    valid = 'Bearer t2';
    const answers = await Promise.all([ask(), ask(), ask()]);
    for (const answer of answers) expect(await textOf(answer)).toBe('ok');
    expect(tokens.requests).toHaveLength(2);
    valid = 'never';
    const refused = await ask();
    expect(refused.status).toBe(401);
    await refused.discard();
    expect(tokens.requests).toHaveLength(3);
    expect(proofs(registry).at(-1)).toBe('Bearer t3');
  });

  it('renews a token that is too narrow once, and not for every request that follows', async () => {
    const { ask, tokens } = await world({
      registry: (_request, response, _seen, challenge) => {
        response.writeHead(401, { 'www-authenticate': `${challenge},error="insufficient_scope"` }).end();
      },
    });
    for (let count = 0; count < 5; count += 1) {
      const response = await ask();
      expect(response.status).toBe(401);
      await response.discard();
    }
    expect(tokens.requests).toHaveLength(2);
  });

  it.each(['Basic realm="harbor"', ''])('takes %j after a token for its last word', async (header) => {
    const { ask, tokens, registry } = await world({
      credential: LOGIN,
      registry: (request, response, _seen, challenge) => {
        if (request.headers.authorization === undefined)
          response.writeHead(401, { 'www-authenticate': challenge }).end();
        else response.writeHead(401, header === '' ? {} : { 'www-authenticate': header }).end();
      },
    });
    for (let count = 0; count < 3; count += 1) {
      const response = await ask();
      expect(response.status).toBe(401);
      await response.discard();
    }
    expect(tokens.requests).toHaveLength(1);
    expect(proofs(registry)).toEqual([undefined, 'Bearer t1', 'Bearer t1', 'Bearer t1']);
  });

  it('asks for one scope of a repository, the widest, since GitLab reads only the last', async () => {
    const { ask, tokens } = await world();
    const twice: readonly Scope[] = [
      { repository: 'a/b', actions: 'pull,push,delete' },
      { repository: 'c/d', actions: 'pull' },
      { repository: 'a/b', actions: 'pull' },
    ];
    await (await ask(twice)).discard();
    expect(query(tokens.requests[0]).getAll('scope')).toEqual([
      'repository:a/b:pull,push,delete',
      'repository:c/d:pull',
    ]);
  });

  it('takes no scope from a challenge: neither GHCR’s placeholder nor the two of a mount', async () => {
    const { ask, tokens } = await world({
      registry: (request, response, _seen, challenge) => {
        const two = challenge.replace('user/image:pull', 't/x:pull,push repository:s/x:pull');
        if (request.headers.authorization === undefined)
          response.writeHead(401, { 'www-authenticate': challenge }).end();
        else response.writeHead(401, { 'www-authenticate': two }).end();
      },
    });
    for (let count = 0; count < 2; count += 1) await (await ask(PULL)).discard();
    expect(tokens.requests.map((seen) => query(seen).getAll('scope'))).toEqual([
      ['repository:a/b:pull'],
      ['repository:a/b:pull'],
    ]);
  });

  it.each([
    ['renews one that would lapse while a large body is sent', 300, 100_000, 2],
    ['keeps one that will last', 3000, 100_000, 1],
    ['keeps a young one that no new one could outlast', 60, 10_000, 1],
  ])('%s', async (_what, life, age, requests) => {
    const { ask, tokens, transport } = await world({
      token: (_request, response, _seen, count) =>
        response.end(JSON.stringify({ token: `t${count}`, expires_in: life })),
    });
    await (await ask()).discard();
    transport.clock.advance(age);
    // One GiB at 4 MiB/s takes 256 s. That the connection then closes on the length that was announced is no matter.
    const body = { stream: Readable.from([Buffer.from('x')]), length: 1024 ** 3 };
    await ask(PULL, { method: 'PUT', body, retries: 0, signal: AbortSignal.timeout(300) }).catch(() => undefined);
    expect(tokens.requests).toHaveLength(requests);
    await (await ask()).discard();
    expect(tokens.requests).toHaveLength(requests);
  });

  it('does not send a stream again: its 401 is returned, and the token is renewed', async () => {
    const { ask, tokens, registry } = await world();
    const body = { stream: Readable.from([Buffer.from('abc')]), length: 3 };
    const response = await ask(PULL, { method: 'PUT', body });
    expect(response.status).toBe(401);
    expect(await textOf(response)).toContain('UNAUTHORIZED');
    expect(registry.requests).toHaveLength(1);
    expect(tokens.requests).toHaveLength(1);
    await (await ask()).discard();
    expect(proofs(registry)).toEqual([undefined, 'Bearer t1']);
  });

  it('needs no place for its token request, which the one who waits for it may hold', async () => {
    const registry = await serve((request, response) => {
      if (request.url?.startsWith('/token')) response.end('{"token":"t1"}');
      else if (request.headers.authorization === 'Bearer t1') response.end('ok');
      else response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${registry.host}/token"` }).end();
    });
    const clock = jumpingClock();
    const limiter = createLimiter({ clock, requests: 2 });
    const transport = client({ clock, limiter });
    const credentials = { lookup: async () => NONE };
    const authorizer = createAuthorizer({ transport, credentials, clock });
    const signal = AbortSignal.timeout(2000);
    const url = new URL('/v2/', transport.baseUrl(registry.host));
    const places = await Promise.all([limiter.take(registry.host, signal), limiter.take(registry.host, signal)]);
    const answers = places.map((place) => authorizer.send({ method: 'GET', url, place, signal }, registry.host, PULL));
    for (const answer of await Promise.all(answers)) expect(await textOf(answer)).toBe('ok');
  });
});
