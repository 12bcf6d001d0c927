import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { PublishError } from '../../src/errors.ts';
import { client, closeAll, failure, resolver, serve, textOf } from '../http/fixture.ts';
import { BASIC, LOGIN, MOUNT, PULL, proofs, world } from './world.ts';

afterEach(closeAll);

describe('a token server that gives none', () => {
  it('401: says that no login was found, for what, and how to log in', async () => {
    const { ask, registry } = await world({
      token: (_request, response) => response.writeHead(401).end('{"details":"incorrect username or password"}'),
    });
    const error = await failure(ask(MOUNT));
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3, status: 401, repository: 't/x' });
    expect(error.message).toContain('incorrect username or password');
    expect(error.message).toContain('repository:t/x:pull,push');
    expect(error.message).toContain(`no login was found for ${registry.host}/t/x`);
    expect(error.hint).toContain(`docker login ${registry.host}`);
  });

  it('401: says that the login was refused', async () => {
    const { ask } = await world({ credential: LOGIN, token: (_request, response) => response.writeHead(401).end() });
    expect((await failure(ask())).message).toMatch(/the login found for \S+ was refused: a wrong or expired password/);
  });

  it('403: denied', async () => {
    const body = '{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}';
    const { ask } = await world({ token: (_request, response) => response.writeHead(403).end(body) });
    const error = await failure(ask());
    expect(error).toMatchObject({ code: 'DENIED', exitCode: 3, status: 403 });
    expect(error.message).toContain('DENIED');
  });

  it.each([400, 404])('%i: not authorized', async (status) => {
    const { ask } = await world({ token: (_request, response) => response.writeHead(status).end() });
    expect(await failure(ask())).toMatchObject({ code: 'UNAUTHORIZED', status });
  });

  it('429: a limit, after retries', async () => {
    const { ask } = await world({ token: (_request, response) => response.writeHead(429).end('slow down') });
    const error = await failure(ask());
    expect(error).toMatchObject({ code: 'RATE_LIMITED', exitCode: 5, status: 429 });
    expect(error.message).toContain('slow down');
  });

  it('503: a failure of the registry, after retries', async () => {
    const { ask, tokens } = await world({ token: (_request, response) => response.writeHead(503).end() });
    expect(await failure(ask())).toMatchObject({ code: 'REGISTRY_FAILED', exitCode: 5, status: 503 });
    expect(tokens.requests).toHaveLength(2);
  });

  it.each([
    '<html>secret</html>',
    '{}',
    '{"token":""}',
    '{"token":7}',
    '{"token":{"secret":1},"access_token":["secret"]}',
    '[]',
    'null',
    '"secret"',
    '',
    '{"token":"a b"}',
    '{"token":"ä"}',
    '{"token":"secret\\r\\nX-Injected: 1"}',
    '{"token":"secret\\u0000"}',
    `{"token":"${'s'.repeat(64 * 1024)}"}`,
    `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`,
  ])('200 with %.60j: a breach of the protocol, and what came is not repeated', async (body) => {
    const { ask, registry } = await world({ token: (_request, response) => response.end(body) });
    const error = await failure(ask());
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(error.message).toContain('token server');
    expect(error.message).not.toMatch(/secret|sss/);
    expect(registry.requests).toHaveLength(1);
  });

  it('200 with more than 1 MiB: stopped', async () => {
    const { ask } = await world({ token: (_request, response) => response.end(Buffer.alloc(1024 * 1024 + 1)) });
    expect(await failure(ask())).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
  });

  it('200 with any JSON at all: a token or a breach of the protocol, never a bug', async () => {
    let body = '';
    const { ask } = await world({ token: (_request, response) => response.end(body) });
    const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.string({ unit: 'binary' }), fc.stringMatching(/^[!-~]+$/));
    const answer = fc.record(
      { token: value, access_token: value, expires_in: fc.oneof(fc.double(), value), issued_at: value },
      { requiredKeys: [] },
    );
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(answer, fc.jsonValue()), async (document) => {
        body = JSON.stringify(document);
        count += 1;
        const outcome = await ask([{ repository: `a/${count}`, actions: 'pull' }]).then(
          (response) => response.discard().then(() => response.status),
          (error) => (error instanceof PublishError ? error.code : error),
        );
        // 401: it is no token of which the registry knows.
        expect([200, 401, 'PROTOCOL_VIOLATED']).toContain(outcome);
      }),
      { numRuns: 100 },
    );
  });

  it('leaves the connection to the registry usable', async () => {
    const { ask, registry, tokens } = await world({
      token: (_request, response, _seen, count) =>
        count === 1 ? response.writeHead(403).end() : response.end('{"token":"t1"}'),
    });
    await failure(ask());
    await (await ask()).discard();
    expect(tokens.requests).toHaveLength(2);
    expect(registry.connections()).toBe(1);
  });
});

describe('realms', () => {
  it.each([
    ['a metadata service', 'http://169.254.169.254/token'],
    ['another protocol', 'file:///etc/passwd'],
    ['one with a user', 'http://user:pass@127.0.0.1/'],
  ])('are not asked when they are %s', async (_name, realm) => {
    const { ask } = await world({
      credential: LOGIN,
      registry: (_request, response) =>
        response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}"` }).end(),
    });
    expect(await failure(ask())).toMatchObject({ code: 'ORIGIN_REFUSED', exitCode: 7 });
  });

  /** A registry with a public address; whatever is connected to is the server of the test. */
  async function publicRegistry(realm: string) {
    const server = await serve((request, response) => {
      if (request.url?.startsWith('/token')) response.end('{"token":"t1"}');
      else if (request.headers.authorization === 'Bearer t1') response.end('ok');
      else response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}"` }).end();
    });
    const transport = client({
      hosts: { 'r.test': { plainHttp: true } },
      lookup: resolver((name) => (name === 'inside.test' ? ['10.1.2.3'] : ['203.0.113.7'])),
      connectTo: () => ({ host: '127.0.0.1', port: String(server.port) }),
      retries: 0,
    });
    const authorizer = createAuthorizer({
      transport,
      credentials: { lookup: async () => LOGIN },
      clock: transport.clock,
    });
    const url = new URL('/v2/a/b/manifests/1', transport.baseUrl('r.test'));
    const asked = authorizer.send({ method: 'GET', url, signal: AbortSignal.timeout(5000) }, 'r.test', PULL);
    return { asked, server };
  }

  it.each([
    'http://10.1.2.3/token',
    'http://127.0.0.1:1/token',
    'http://2130706433/token',
    'http://localhost/token',
    'http://[::ffff:7f00:1]/token',
    'http://[fe80::1]/token',
    'http://metadata.google.internal/token',
    'http://inside.test/token',
  ])('nearer to the user than the registry are shown nothing: %s', async (realm) => {
    const { asked, server } = await publicRegistry(realm);
    expect(await failure(asked)).toMatchObject({ code: 'ORIGIN_REFUSED', exitCode: 7 });
    expect(proofs(server)).toEqual([undefined]);
  });

  it('on another public host are shown the login, and the registry the token', async () => {
    const { asked, server } = await publicRegistry('http://auth.other.test/token');
    expect(await textOf(await asked)).toBe('ok');
    expect(server.requests.map(({ headers }) => [headers.host, headers.authorization])).toEqual([
      ['r.test', undefined],
      ['auth.other.test', BASIC],
      ['r.test', 'Bearer t1'],
    ]);
  });

  it('must be addresses', async () => {
    const { ask } = await world({
      registry: (_request, response) => response.writeHead(401, { 'www-authenticate': 'Bearer realm="token"' }).end(),
    });
    expect(await failure(ask())).toMatchObject({ code: 'PROTOCOL_VIOLATED' });
  });
});

describe('announced scopes', () => {
  it('are fetched side by side as soon as tokens are known to be wanted', async () => {
    const waiting: ServerResponse[] = [];
    const { ask, authorizer, registry, tokens } = await world({
      token: (_request, response) => waiting.push(response),
    });
    const sets = ['a', 'b', 'c'].map((repository) => [{ repository, actions: 'pull' as const }]);
    authorizer.announce(registry.host, sets);
    expect(tokens.requests).toHaveLength(0);
    const first = ask(sets[0]);
    await expect.poll(() => waiting.length).toBe(3);
    for (const [index, response] of waiting.entries()) response.end(JSON.stringify({ token: `t${index}` }));
    await (await first).discard();
    for (const set of sets) await (await ask(set)).discard();
    expect(tokens.requests).toHaveLength(3);
    authorizer.announce(registry.host, [[{ repository: 'd', actions: 'pull' }]]);
    await expect.poll(() => tokens.requests.length).toBe(4);
    waiting.at(-1)?.end('{"token":"t9"}');
  });

  it('are asked for no longer than the run lasts', async () => {
    const run = new AbortController();
    let gone = 0;
    const { ask, authorizer, registry, tokens } = await world({
      signal: run.signal,
      token: (request, response, _seen, count) => {
        if (request.url?.includes('slow') !== true) response.end(JSON.stringify({ token: `t${count}` }));
        else response.on('close', () => (gone += 1));
      },
    });
    authorizer.announce(registry.host, [[{ repository: 'slow', actions: 'pull' }]]);
    await (await ask()).discard();
    await expect.poll(() => tokens.requests.length).toBe(2);
    run.abort(new Error('the run has ended'));
    await expect.poll(() => gone).toBe(1);
  });

  it('never fail', async () => {
    const { ask, authorizer, registry, tokens } = await world({
      token: (request, response, _seen, count) => {
        if (request.url?.includes('bad') === true) response.writeHead(403).end();
        else response.end(JSON.stringify({ token: `t${count}` }));
      },
    });
    authorizer.announce(registry.host, [[{ repository: 'bad', actions: 'pull' }]]);
    await (await ask()).discard();
    await expect.poll(() => tokens.requests.length).toBe(2);
    expect((await failure(ask([{ repository: 'bad', actions: 'pull' }]))).code).toBe('DENIED');
  });
});
