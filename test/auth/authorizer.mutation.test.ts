import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import type { CredentialSource } from '../../src/auth/credentials.ts';
import type { Scope } from '../../src/auth/scope.ts';
import type { HttpRequest } from '../../src/http/message.ts';
import { selfSigned } from '../http/certificate.ts';
import { both, client, closeAll, failure, type RunningServer, serve, textOf } from '../http/fixture.ts';
import { basic } from './fixture.ts';

afterEach(closeAll);

const PULL: readonly Scope[] = [{ repository: 'a/b', actions: 'pull' }];
const LOGIN = basic('u', 'p');

/** A registry, a token server that counts its tokens and gives them 300 s, and an authorizer with a login. */
async function world(
  answer: (request: IncomingMessage, response: ServerResponse, bearer: string) => void,
  lookup: CredentialSource['lookup'] = async () => LOGIN,
) {
  let count = 0;
  const tokens = await serve((_request, response) => {
    count += 1;
    response.end(JSON.stringify({ token: `t${count}`, expires_in: 300 }));
  });
  const registry = await serve((request, response) =>
    answer(request, response, `Bearer realm="http://${tokens.host}/token",service="r.test"`),
  );
  const transport = client({ retries: 0 });
  const authorizer = createAuthorizer({ transport, credentials: { lookup }, clock: transport.clock });
  const ask = (rest: Partial<HttpRequest> = {}, scopes = PULL) =>
    authorizer.send(
      {
        method: 'GET',
        url: new URL('/v2/a/b/manifests/1', transport.baseUrl(registry.host)),
        signal: AbortSignal.timeout(10_000),
        ...rest,
      },
      registry.host,
      scopes,
    );
  return { registry, tokens, transport, authorizer, ask };
}

const unproven = (server: RunningServer) =>
  server.requests.filter(({ headers }) => headers.authorization === undefined).length;

/** 401 with this header, unless the request shows something. */
function demand(request: IncomingMessage, response: ServerResponse, header: string): void {
  if (request.headers.authorization !== undefined) response.end('ok');
  else response.writeHead(401, { 'www-authenticate': header }).end();
}

describe('what a registry asks for', () => {
  it('is asked by a 401 alone, whatever another answer has in its headers', async () => {
    const { ask, registry } = await world((_request, response) => {
      response.writeHead(200, { 'www-authenticate': 'Negotiate, Basic realm="r"' }).end('ok');
    });
    for (let count = 0; count < 2; count += 1) expect(await textOf(await ask())).toBe('ok');
    expect(unproven(registry)).toBe(2);
  });

  it('is not learnt from another place that it redirects to', async () => {
    const other = await serve((_request, response) => response.end('bytes'));
    let redirects = true;
    const { ask, registry } = await world((request, response) => {
      if (redirects) response.writeHead(307, { location: `http://${other.host}/blob` }).end();
      else demand(request, response, 'Basic realm="r"');
    });
    expect(await textOf(await ask())).toBe('bytes');
    redirects = false;
    // Nothing is known yet: again one goes ahead, and the other shows the login at once.
    const answers = await Promise.all([ask(), ask()]);
    for (const answer of answers) expect(await textOf(answer)).toBe('ok');
    expect(unproven(registry)).toBe(2);
  });

  it('of writes is not told by a HEAD', async () => {
    const { ask, registry } = await world((request, response) => {
      if (request.method === 'HEAD') response.end();
      else demand(request, response, 'Basic realm="r"');
    });
    await (await ask({ method: 'HEAD' })).discard();
    const answers = await Promise.all([ask({ method: 'POST' }), ask({ method: 'POST' })]);
    for (const answer of answers) expect(await textOf(answer)).toBe('ok');
    expect(unproven(registry)).toBe(2);
  });

  it('in a way that nobody speaks is told with the repository, where there is one', async () => {
    const strange = await world((request, response) => demand(request, response, 'Negotiate'));
    const error = await failure(strange.ask());
    expect(`${error.message} ${error.repository}`).toContain('a/b');
    expect((await failure(strange.ask({}, []))).code).toBe(error.code);
  });

  it('after a token, in a way that nobody speaks, is a 401 as any other', async () => {
    const { ask, tokens } = await world((request, response, bearer) => {
      const header = request.headers.authorization === undefined ? bearer : 'Negotiate';
      response.writeHead(401, { 'www-authenticate': header }).end();
    });
    // The first learns of tokens, the second shows one at once.
    for (let count = 0; count < 2; count += 1) {
      const answer = await ask();
      expect(answer.status).toBe(401);
      await answer.discard();
    }
    expect(tokens.requests).toHaveLength(1);
  });
});

describe('a host', () => {
  it('is its own whatever scheme it turned out to speak, but not under an address that it names', async () => {
    const certificate = selfSigned(['127.0.0.1']);
    const secure = await serve((request, response) => demand(request, response, 'Basic realm="r"'), certificate);
    const plain = await serve((request, response) => {
      response.writeHead(308, { location: `https://${request.headers.host}${request.url}` }).end();
    });
    const { host } = await both(plain, secure);
    const transport = client({ ca: [certificate.cert], hosts: { [host]: { plainHttp: true } }, retries: 0 });
    const authorizer = createAuthorizer({
      transport,
      credentials: { lookup: async () => LOGIN },
      clock: transport.clock,
    });
    // Built while http was all that was known of it.
    const url = new URL('/v2/a/b/manifests/1', transport.baseUrl(host));
    const ask = (more: Partial<HttpRequest> = {}) =>
      authorizer.send({ method: 'GET', url, signal: AbortSignal.timeout(5000), ...more }, host, PULL);
    for (let count = 0; count < 3; count += 1) expect(await textOf(await ask())).toBe('ok');
    expect(transport.baseUrl(host).protocol).toBe('https:');
    expect(unproven(secure)).toBe(1);
    expect(secure.requests).toHaveLength(4);
    const named = await ask({ url: new URL(`https://127.0.0.1:${secure.port}/u/1`), namedBy: host });
    expect(named.status).toBe(401);
    await named.discard();
    expect(secure.requests.at(-1)?.headers.authorization).toBeUndefined();
  });
});

describe('a token', () => {
  it('that was too narrow once is renewed all the same when it has run out', async () => {
    let error = 'insufficient_scope';
    const { ask, tokens } = await world((request, response, bearer) => {
      if (request.headers.authorization === 'Bearer t3') response.end('ok');
      else response.writeHead(401, { 'www-authenticate': `${bearer},error="${error}"` }).end();
    });
    await (await ask()).discard();
    const narrow = await ask();
    expect(narrow.status).toBe(401);
    await narrow.discard();
    expect(tokens.requests).toHaveLength(2);
    error = 'invalid_token';
    expect(await textOf(await ask())).toBe('ok');
    expect(tokens.requests).toHaveLength(3);
  });

  it('that was renewed when it had run out is renewed once more when it is too narrow', async () => {
    let taken = 'Bearer t1';
    let error = 'invalid_token';
    const { ask, tokens } = await world((request, response, bearer) => {
      if (request.headers.authorization === taken) response.end('ok');
      else response.writeHead(401, { 'www-authenticate': `${bearer},error="${error}"` }).end();
    });
    await (await ask()).discard();
    taken = 'Bearer t2';
    expect(await textOf(await ask())).toBe('ok');
    taken = 'Bearer t3';
    error = 'insufficient_scope';
    expect(await textOf(await ask())).toBe('ok');
    expect(tokens.requests).toHaveLength(3);
  });

  it.each([
    ['kept for a body that is sent before it lapses', 500, 1],
    ['renewed for one that is not', 1000, 2],
  ])('is %s', async (_what, mebibytes, requests) => {
    const { ask, tokens, transport } = await world((request, response, bearer) => demand(request, response, bearer));
    await (await ask()).discard();
    transport.clock.advance(100_000);
    // At 4 MiB/s, with 200 s left. That the connection then closes on the length that was announced is no matter.
    const body = { stream: Readable.from([Buffer.from('x')]), length: mebibytes * 1024 * 1024 };
    await ask({ method: 'PUT', body, retries: 0, signal: AbortSignal.timeout(300) }).catch(() => undefined);
    expect(tokens.requests).toHaveLength(requests);
  });
});

describe('advice', () => {
  it('hides no bug of the look-up', async () => {
    const bug = new TypeError('a bug');
    const { authorizer } = await world(
      (_request, response) => response.end(),
      () => Promise.reject(bug),
    );
    await expect(authorizer.advise('r.test', 'a/b')).rejects.toBe(bug);
  });
});
