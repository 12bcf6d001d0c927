import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import type { CredentialSource } from '../../src/auth/credentials.ts';
import type { Authorizer, Scope } from '../../src/auth/scope.ts';
import { PublishError } from '../../src/errors.ts';
import { readErrorBody } from '../../src/http/error-body.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import type { HttpRequest } from '../../src/http/message.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import {
  type Client,
  client,
  closeAll,
  failure,
  jumpingClock,
  type RunningServer,
  resolver,
  type Seen,
  serve,
  textOf,
} from '../http/fixture.ts';

afterEach(closeAll);

const LOGIN: Credential = { kind: 'basic', username: 'u', password: new Secret('p') };
const BASIC = `Basic ${Buffer.from('u:p').toString('base64')}`;
const IDENTITY: Credential = { kind: 'identity-token', token: new Secret('REFRESH') };
const NONE: Credential = { kind: 'none' };
const PULL: readonly Scope[] = [{ repository: 'a/b', actions: 'pull' }];
const MOUNT: readonly Scope[] = [
  { repository: 't/x', actions: 'pull,push' },
  { repository: 's/x', actions: 'pull' },
];

type Setup = {
  readonly credential?: Credential;
  readonly signal?: AbortSignal;
  readonly lookup?: CredentialSource['lookup'];
  /** What the registry answers; by default 200 with the right token, else a challenge. */
  readonly registry?: (request: IncomingMessage, response: ServerResponse, seen: Seen, challenge: string) => void;
  readonly token?: (request: IncomingMessage, response: ServerResponse, seen: Seen, count: number) => void;
};

type World = {
  readonly registry: RunningServer;
  readonly tokens: RunningServer;
  readonly transport: Client;
  readonly authorizer: Authorizer;
  ask(scopes?: readonly Scope[], rest?: Partial<HttpRequest>): ReturnType<Authorizer['send']>;
};

async function world(setup: Setup = {}): Promise<World> {
  let count = 0;
  const tokens = await serve((request, response, seen) => {
    count += 1;
    if (setup.token !== undefined) setup.token(request, response, seen, count);
    else response.end(JSON.stringify({ token: `t${count}`, expires_in: 300 }));
  });
  const challenge = `Bearer realm="http://${tokens.host}/token",service="r.test",scope="repository:user/image:pull"`;
  const registry = await serve((request, response, seen) => {
    if (setup.registry !== undefined) setup.registry(request, response, seen, challenge);
    else if (/^Bearer t\d+$/.test(request.headers.authorization ?? '')) response.end('ok');
    else response.writeHead(401, { 'www-authenticate': challenge }).end('{"errors":[{"code":"UNAUTHORIZED"}]}');
  });
  const transport = client({ retries: 1 });
  const lookup = setup.lookup ?? (() => Promise.resolve(setup.credential ?? NONE));
  const authorizer = createAuthorizer({
    transport,
    credentials: { lookup },
    clock: transport.clock,
    ...(setup.signal === undefined ? {} : { signal: setup.signal }),
  });
  return {
    registry,
    tokens,
    transport,
    authorizer,
    ask: (scopes = PULL, rest = {}) =>
      authorizer.send(
        {
          method: 'GET',
          url: new URL('/v2/a/b/manifests/1', transport.baseUrl(registry.host)),
          signal: AbortSignal.timeout(10_000),
          ...rest,
        },
        registry.host,
        scopes,
      ),
  };
}

const query = (seen: Seen | undefined) => new URL(seen?.url ?? '', 'http://x').searchParams;
const proofs = (server: RunningServer) => server.requests.map(({ headers }) => headers.authorization);

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

describe('where Authorization goes', () => {
  it('is stopped by logins that cannot be read', async () => {
    const { ask, registry } = await world({
      lookup: () => Promise.reject(new PublishError('CREDENTIALS_FAILED', 'cannot read', 'Mend it.')),
    });
    expect(await failure(ask())).toMatchObject({ code: 'CREDENTIALS_FAILED', exitCode: 3 });
    expect(registry.requests).toHaveLength(0);
  });

  it('never to a URL of another host, even one that nobody named', async () => {
    const other = await serve((_request, response) => response.end('ok'));
    const { ask } = await world({
      credential: LOGIN,
      registry: (request, response) => {
        if (request.headers.authorization === BASIC) response.end('ok');
        else response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
      },
    });
    await (await ask()).discard();
    await (await ask(PULL, { url: new URL(`http://localhost:${other.port}/`) })).discard();
    expect(proofs(other)).toEqual([undefined]);
  });

  it('never to another origin, though the registry named it and it asks for a login', async () => {
    const other = await serve((_request, response) =>
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end(),
    );
    const { ask, registry } = await world({
      credential: LOGIN,
      registry: (request, response) => {
        if (request.headers.authorization === BASIC) response.end('ok');
        else response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
      },
    });
    await (await ask()).discard();
    const response = await ask(PULL, {
      method: 'PUT',
      url: new URL(`http://${other.host}/upload`),
      namedBy: registry.host,
    });
    expect(response.status).toBe(401);
    await response.discard();
    expect(proofs(other)).toEqual([undefined]);
  });

  it('never behind a redirect, whose 401 is no question to this registry’s login', async () => {
    const other = await serve((_request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://127.0.0.1:1/steal"' }).end();
    });
    const { ask, tokens } = await world({
      credential: LOGIN,
      registry: (_request, response) => response.writeHead(307, { location: `http://${other.host}/blob` }).end(),
    });
    const response = await ask();
    expect(response.status).toBe(401);
    await response.discard();
    expect(proofs(other)).toEqual([undefined]);
    expect(tokens.requests).toHaveLength(0);
  });

  it('takes the login of the repository that is asked for first', async () => {
    const { ask, tokens } = await world({
      lookup: async (_host, repository) =>
        repository === 's/x' ? NONE : { kind: 'basic', username: repository, password: new Secret('p') },
    });
    await (await ask(MOUNT)).discard();
    await (await ask(PULL)).discard();
    const users = proofs(tokens).map((proof) => Buffer.from(proof?.slice(6) ?? '', 'base64').toString());
    expect(users).toEqual(['t/x:p', 'a/b:p']);
  });

  it('serves no token of one login to another', async () => {
    const one: Credential = { kind: 'basic', username: 'one', password: new Secret('p') };
    const two: Credential = { kind: 'basic', username: 'two', password: new Secret('p') };
    let current = one;
    const { ask, tokens } = await world({ lookup: async () => current });
    await (await ask()).discard();
    current = two;
    await (await ask()).discard();
    expect(tokens.requests).toHaveLength(2);
  });
});

describe('advice', () => {
  it('AUT-11: shows the full name, and that a registry may have been left out', async () => {
    const { authorizer } = await world();
    expect(await authorizer.advise('docker.io', 'acme/app')).toEqual({
      login: 'no login was found for docker.io/acme/app',
      hint: 'Log in: docker login; or write the registry in front if another was meant: HOST/acme/app.',
    });
    expect(await authorizer.advise('r.test', 'acme/app')).toEqual({
      login: 'no login was found for r.test/acme/app',
      hint: 'Log in: docker login r.test',
    });
  });

  it('says when the logins could not be read', async () => {
    const { authorizer } = await world({
      lookup: () => Promise.reject(new PublishError('CREDENTIALS_FAILED', 'cannot read', 'Mend it.')),
    });
    expect(await authorizer.advise('r.test', 'a/b')).toEqual({ login: 'cannot read', hint: 'Mend it.' });
  });

  it('says when there was a login', async () => {
    const { authorizer } = await world({ credential: LOGIN });
    expect((await authorizer.advise('r.test', 'a/b')).login).toBe(
      'the login found for r.test/a/b was refused: a wrong or expired password, or no right to this',
    );
  });

  it('names the file that the login was in, where that is known', async () => {
    const credentials = { lookup: async () => LOGIN, originOf: () => '/home/u/.docker/config.json' };
    const { transport } = await world();
    const authorizer = createAuthorizer({ transport, credentials, clock: transport.clock });
    expect((await authorizer.advise('r.test', 'a/b')).login).toContain(
      'the login found for r.test/a/b in /home/u/.docker/config.json was refused',
    );
  });
});

describe('a source with a login of its own', () => {
  const lookup = async (_host: string, repository: string): Promise<Credential> => ({
    kind: 'basic',
    username: `robot$${repository.slice(0, 1)}+ci`,
    password: new Secret(`p-${repository.slice(0, 1)}`),
  });

  it.each(['Bearer', 'Basic'])('bars the request that would need both, before a %s login is shown', async (scheme) => {
    const { ask, tokens, registry } = await world({
      lookup,
      registry: (request, response, _seen, challenge) => {
        const header = scheme === 'Basic' ? 'Basic realm="r"' : challenge;
        if (request.headers.authorization === undefined) response.writeHead(401, { 'www-authenticate': header }).end();
        else response.end('ok');
      },
    });
    const error = await failure(ask(MOUNT, { method: 'POST' }));
    expect(error).toMatchObject({ code: 'DENIED', exitCode: 3 });
    expect(error.message).toContain(`${registry.host}/t/x and ${registry.host}/s/x have different logins`);
    expect(error.message).not.toContain('p-');
    expect(tokens.requests).toHaveLength(0);
    expect(proofs(registry)).toEqual([undefined]);
    expect(await textOf(await ask([{ repository: 's/x', actions: 'pull' }]))).toBe('ok');
    const shown = proofs(scheme === 'Basic' ? registry : tokens).at(-1);
    expect(Buffer.from(shown?.slice(6) ?? '', 'base64').toString()).toBe('robot$s+ci:p-s');
  });

  it('costs no token ahead of need', async () => {
    const { ask, authorizer, tokens, registry } = await world({ lookup });
    authorizer.announce(registry.host, [MOUNT]);
    await (await ask()).discard();
    expect(tokens.requests.map((seen) => query(seen).getAll('scope'))).toEqual([['repository:a/b:pull']]);
  });

  it('bars nothing where the registry asks for no login', async () => {
    const { ask } = await world({ lookup, registry: (_request, response) => response.end('ok') });
    for (let count = 0; count < 2; count += 1) expect(await textOf(await ask(MOUNT, { method: 'POST' }))).toBe('ok');
  });

  it('is none where the same login stands under two names', async () => {
    const same = async (): Promise<Credential> => ({ kind: 'basic', username: 'u', password: new Secret('p') });
    const { ask, tokens } = await world({ lookup: same });
    expect(await textOf(await ask(MOUNT))).toBe('ok');
    expect(proofs(tokens)).toEqual([BASIC]);
  });
});

describe('an answer that repeats what it was sent', () => {
  it('is read without our secrets, from the registry and from the token server', async () => {
    const echo: NonNullable<Setup['token']> = (request, response) => {
      const message = `no: ${request.headers.authorization} for u:hunter22x`;
      response.writeHead(403).end(JSON.stringify({ errors: [{ code: 'DENIED', message, detail: { message } }] }));
    };
    const credential: Credential = { kind: 'basic', username: 'u', password: new Secret('hunter22x') };
    const refused = await failure((await world({ credential, token: echo })).ask());
    expect(refused.message).toContain('no: Basic *** for ***');
    expect(refused.message).not.toMatch(/hunter22x|dTpodW50ZXIyMng/);

    const { ask } = await world({
      credential,
      registry: (request, response, seen, challenge) => {
        if (request.headers.authorization !== undefined) return echo(request, response, seen, 0);
        response.writeHead(401, { 'www-authenticate': challenge }).end();
      },
      token: (_request, response) => response.end('{"token":"gh0-opaque-token-of-the-day"}'),
    });
    const body = await readErrorBody(await ask());
    expect(body.message).toBe('no: Bearer *** for ***');
    expect(body.detail).toBe('message: no: Bearer *** for ***');
  });
});
