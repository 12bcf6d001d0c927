import { afterEach, describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { PublishError } from '../../src/errors.ts';
import { readErrorBody } from '../../src/http/error-body.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import { closeAll, failure, serve, textOf } from '../http/fixture.ts';
import { BASIC, LOGIN, MOUNT, NONE, PULL, proofs, query, type Setup, world } from './world.ts';

afterEach(closeAll);

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
