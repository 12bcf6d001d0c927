import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { digestOf } from '../../src/model/digest.ts';
import { type Answer, clientOf, errors, failure, reply, script, serve, verb, world } from './fixture.ts';

const DIGEST = digestOf(Buffer.from('layer'));
const SHA512 = digestOf(Buffer.from('layer'), 'sha512');
const OTHER = digestOf(Buffer.from('other'));
const LOCATION = { location: '/v2/app/blobs/uploads/1?_state=x' };

async function mountAt(...answers: readonly (Answer | 'reset')[]) {
  const server = await script(...answers);
  const { client, events } = world();
  const answer = await client(server.host).mountBlob('team/app', DIGEST, 'team/arm64', verb());
  return { answer, server, retries: events.filter((event) => event.kind === 'retry').length };
}

describe('mountBlob', () => {
  test('is a POST with both parameters, an empty body and a length of 0', async () => {
    const { server, answer } = await mountAt({ status: 201 });
    expect(answer).toEqual({ kind: 'mounted' });
    const [request] = server.seen;
    expect(request).toMatchObject({
      method: 'POST',
      url: `/v2/team/app/blobs/uploads/?mount=${encodeURIComponent(DIGEST)}&from=team%2Farm64`,
      complete: true,
    });
    expect(request?.headers['content-length']).toBe('0');
    expect(request?.headers['transfer-encoding']).toBeUndefined();
    expect(request?.body).toHaveLength(0);
  });

  test.each([
    { 'docker-content-digest': DIGEST },
    { 'docker-content-digest': SHA512 },
    { location: `/v2/team/app/blobs/${DIGEST}` },
    {},
  ])('201 is mounted: %j', async (headers) => {
    expect((await mountAt({ status: 201, headers })).answer).toEqual({ kind: 'mounted' });
  });

  test.each([{ 'docker-content-digest': OTHER }, { location: `/v2/team/app/blobs/${OTHER}` }])(
    '201 for another digest is a refusal that does not bar the source: %j',
    async (headers) => {
      expect((await mountAt({ status: 201, headers })).answer).toEqual({
        kind: 'refused',
        sourceBarred: false,
        why: 'mount answered 201 for another digest',
      });
    },
  );

  test.each([202, 200, 204])('%i with a Location is a session', async (status) => {
    const { answer, server } = await mountAt({ status, headers: LOCATION });
    expect(answer).toEqual({
      kind: 'session',
      session: { repository: 'team/app', url: `http://${server.host}/v2/app/blobs/uploads/1?_state=x` },
      why: `mount answered ${status}`,
    });
  });

  test.each([{}, { location: '' }, { location: 'http://[::1' }])(
    '202 without a usable Location is a refusal that does not bar the source: %j',
    async (headers) => {
      expect((await mountAt({ status: 202, headers })).answer).toEqual({
        kind: 'refused',
        sourceBarred: false,
        why: 'mount answered 202 without a usable Location',
      });
    },
  );

  test('202 with two Locations has none: to pick one would be to let the sender choose', async () => {
    const { answer } = await mountAt({ status: 202, headers: { location: ['/u/1', '/u/2'] } });
    expect(answer).toMatchObject({ kind: 'refused', sourceBarred: false });
  });

  test.each([
    [400, 'NAME_INVALID'],
    [401, 'UNAUTHORIZED'],
    [403, 'DENIED'],
    [404, 'BLOB_UNKNOWN'],
    [405, 'UNSUPPORTED'],
    [409, 'CONFLICT'],
  ])('%i bars the source for the run, and says why', async (status, code) => {
    const { answer, server } = await mountAt({ status, body: errors(code, 'no') });
    expect(answer).toEqual({ kind: 'refused', sourceBarred: true, why: `mount answered ${status} ${code}` });
    expect(server.seen).toHaveLength(1);
  });

  test('501 is a refusal that is believed at once', async () => {
    const { answer, server } = await mountAt({ status: 501 });
    expect(answer).toEqual({ kind: 'refused', sourceBarred: false, why: 'mount answered 501' });
    expect(server.seen).toHaveLength(1);
  });

  test.each([408, 425, 500, 502, 503, 504])('%i is asked for twice more, then it is a refusal', async (status) => {
    const { answer, server } = await mountAt({ status });
    expect(answer).toEqual({ kind: 'refused', sourceBarred: false, why: `mount answered ${status}` });
    expect(server.seen).toHaveLength(3);
  });

  test('so is a connection that is cut', async () => {
    const { answer, server } = await mountAt('reset');
    expect(answer).toEqual({ kind: 'refused', sourceBarred: false, why: 'mount got no answer' });
    expect(server.seen).toHaveLength(3);
  });

  test('a passing failure costs nothing', async () => {
    const { answer, server } = await mountAt({ status: 503 }, 'reset', { status: 201 });
    expect(answer).toEqual({ kind: 'mounted' });
    expect(server.seen).toHaveLength(3);
  });

  test('429 is waited for as long as any other request would', async () => {
    const limited = { status: 429, headers: { 'retry-after': '2' } };
    const server = await script(limited, limited, limited, limited, { status: 201 });
    const { client, slept } = world();
    expect(await client(server.host).mountBlob('a', DIGEST, 'b', verb())).toEqual({ kind: 'mounted' });
    expect(slept.filter((milliseconds) => milliseconds >= 1_900).length).toBeGreaterThanOrEqual(4);
  });

  test('a 429 that lasts is thrown, never a reason to copy', async () => {
    const server = await script({ status: 429, body: 'slow down' });
    const error = await failure(clientOf(server).mountBlob('a', DIGEST, 'b', verb()));
    expect(error).toMatchObject({ code: 'RATE_LIMITED', exitCode: 5, side: 'target' });
    expect(error.message).toContain('"slow down"');
  });

  test('a wait that is too long to be taken ends the run as well', async () => {
    const server = await script({ status: 429, headers: { 'retry-after': '86400' } });
    expect((await failure(clientOf(server).mountBlob('a', DIGEST, 'b', verb()))).code).toBe('RATE_LIMITED');
    expect(server.seen).toHaveLength(1);
  });

  test('the end of the run is thrown as it is', async () => {
    const run = new AbortController();
    // Another part of the run has failed: that is no refusal of this mount.
    const reason = new PublishError('UNAUTHORIZED', 'elsewhere', 'Log in.');
    const server = await serve(() => run.abort(reason));
    const mounting = clientOf(server).mountBlob('a', DIGEST, 'b', { signal: run.signal });
    await expect(mounting).rejects.toBe(reason);
  });
});

describe('mountBlob and tokens', () => {
  const bearer = (host: string) => ({
    status: 401,
    headers: { 'www-authenticate': `Bearer realm="http://${host}/token",service="reg"` },
  });

  /** A registry whose token server grants what `grants` allows and whose mounts want both scopes. */
  function registry(grants: (scopes: readonly string[]) => Answer) {
    return serve(async ({ request, response, whole }) => {
      await whole;
      const url = new URL(request.url ?? '', 'http://reg.test');
      if (url.pathname === '/token') return reply(response, grants(url.searchParams.getAll('scope')));
      if (request.headers.authorization === undefined) return reply(response, bearer(request.headers.host ?? ''));
      if (!url.searchParams.has('mount')) return reply(response, { status: 202, headers: LOCATION });
      const both = request.headers.authorization.includes(tokenOf('repository:b:pull'));
      return reply(response, both ? { status: 201 } : bearer(request.headers.host ?? ''));
    });
  }
  const tokenOf = (scope: string) => scope.replace(/[^a-z]/g, '-');
  const grant = (scopes: readonly string[]): Answer => ({
    status: 200,
    body: JSON.stringify({ token: scopes.map(tokenOf).join('.') }),
  });

  test('asks for the target first, then the source, each in a scope of its own', async () => {
    const server = await registry(grant);
    expect(await clientOf(server).mountBlob('a', DIGEST, 'b', verb())).toEqual({ kind: 'mounted' });
    const scopes = server.seen
      .filter(({ url }) => url.startsWith('/token'))
      .map(({ url }) => new URL(url, 'http://reg.test').searchParams.getAll('scope'));
    expect(scopes).toEqual([['repository:a:pull,push', 'repository:b:pull']]);
  });

  test.each([400, 401, 403])('a token server that answers %i for the pair bars the source', async (status) => {
    const server = await registry((scopes) => (scopes.length > 1 ? { status, body: errors('DENIED') } : grant(scopes)));
    const client = clientOf(server);
    expect(await client.mountBlob('a', DIGEST, 'b', verb())).toEqual({
      kind: 'refused',
      sourceBarred: true,
      why: 'no token for this mount',
    });
    expect(await client.openUpload('a', DIGEST, verb())).toMatchObject({ repository: 'a' });
  });

  test('a token that still lacks the source bars it after one new authentication', async () => {
    const server = await registry(() => ({ status: 200, body: '{"token":"target-only"}' }));
    expect(await clientOf(server).mountBlob('a', DIGEST, 'b', verb())).toEqual({
      kind: 'refused',
      sourceBarred: true,
      why: 'mount answered 401',
    });
    expect(server.seen.filter(({ method }) => method === 'POST')).toHaveLength(2);
  });

  test('after announcing a push, reads of the target use the token of its pushes', async () => {
    const server = await registry(grant);
    const client = clientOf(server);
    client.announce([{ repository: 'a', access: 'push', mountFrom: ['b'] }]);
    await client.hasBlob('a', DIGEST, verb());
    await client.mountBlob('a', DIGEST, 'b', verb());
    const scopes = server.seen
      .filter(({ url }) => url.startsWith('/token'))
      .map(({ url }) => new URL(url, 'http://reg.test').searchParams.getAll('scope').join(' '));
    expect(scopes.sort()).toEqual(['repository:a:pull,push', 'repository:a:pull,push repository:b:pull']);
  });
});

describe('openUpload', () => {
  test('is a POST with a length of 0 whose Location is the session', async () => {
    const server = await script({ status: 202, headers: LOCATION });
    expect(await clientOf(server).openUpload('a', DIGEST, verb())).toEqual({
      repository: 'a',
      url: `http://${server.host}/v2/app/blobs/uploads/1?_state=x`,
    });
    expect(server.seen[0]).toMatchObject({ method: 'POST', url: '/v2/a/blobs/uploads/' });
    expect(server.seen[0]?.headers['content-length']).toBe('0');
  });

  test('announces sha512', async () => {
    const server = await script({ status: 202, headers: LOCATION });
    await clientOf(server).openUpload('a', SHA512, verb());
    expect(server.seen[0]?.url).toBe('/v2/a/blobs/uploads/?digest-algorithm=sha512');
  });

  test.each([
    [404, 'REPOSITORY_NOT_FOUND', 4],
    [401, 'UNAUTHORIZED', 3],
    [403, 'DENIED', 3],
    [405, 'UPLOAD_REFUSED', 5],
    [400, 'UPLOAD_REFUSED', 5],
    [201, 'REGISTRY_FAILED', 5],
    [429, 'RATE_LIMITED', 5],
    [503, 'REGISTRY_FAILED', 5],
  ])('%i is %s', async (status, code, exitCode) => {
    const server = await script({ status, body: errors('SOME_CODE', 'some words') });
    const error = await failure(clientOf(server, { retries: 1 }).openUpload('acme/app', DIGEST, verb()));
    expect(error).toMatchObject({ code, exitCode, status, side: 'target', repository: 'acme/app' });
    expect(error.message).toContain(`${server.host}/acme/app`);
    expect(error.message).toContain('SOME_CODE');
    expect(error.message).toContain('"some words"');
    expect(error.message).not.toContain('\n');
  });

  test('a missing repository says that it must exist; a mirror says so', async () => {
    const missing = await script({ status: 404, body: errors('NAME_UNKNOWN') });
    expect((await failure(clientOf(missing).openUpload('a', DIGEST, verb()))).hint).toContain('CREATE_ON_PUSH');
    const mirror = await script({ status: 405, body: errors('UNSUPPORTED') });
    expect((await failure(clientOf(mirror).openUpload('a', DIGEST, verb()))).hint).toContain('mirrors');
  });

  test('a refused login is told with the right that was needed', async () => {
    const server = await script({ status: 403, body: errors('DENIED', 'requested access to the resource is denied') });
    const error = await failure(clientOf(server).openUpload('acme/app', DIGEST, verb()));
    expect(error.message).toContain(`opening an upload to ${server.host}/acme/app needs pull,push`);
    expect(error.message).toContain('no login was found');
  });

  test('202 without a Location breaks the protocol', async () => {
    const error = await failure(clientOf(await script({ status: 202 })).openUpload('a', DIGEST, verb()));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
  });

  test('a connection that stays cut is thrown', async () => {
    const server = await script('reset');
    expect((await failure(clientOf(server, { retries: 2 }).openUpload('a', DIGEST, verb()))).code).toBe(
      'NETWORK_FAILED',
    );
    expect(server.seen).toHaveLength(3);
  });

  test('ECR cuts the connection where a repository is missing, and the hint says so', async () => {
    const host = '123456789012.dkr.ecr.eu-west-1.amazonaws.com';
    const server = await script('reset');
    const [address = '', port = ''] = server.host.split(':');
    const { client } = world(
      { kind: 'none' },
      {
        retries: 0,
        hosts: { [host]: { plainHttp: true } },
        lookup: (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
        connectTo: () => ({ host: address, port }),
      },
    );
    const error = await failure(client(host).openUpload('app', DIGEST, verb()));
    expect(error).toMatchObject({ code: 'NETWORK_FAILED', side: 'target' });
    expect(error.hint).toContain('CREATE_ON_PUSH');
    expect(server.seen.map(({ headers }) => headers.host)).toEqual([host]);
  });
});
