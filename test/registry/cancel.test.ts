import { describe, expect, test } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import { createTransport } from '../../src/http/transport.ts';
import { createCanceller } from '../../src/registry/cancel.ts';
import { createAccess } from '../../src/registry/wire.ts';
import { clientOf, onClose, realClock, reply, script, serve, world } from './fixture.ts';

const sessions = (host: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ repository: 'app', url: `http://${host}/u/${index}?_state=x` }));

/** A canceller on a host with few places, and by a clock that does not jump. */
function crowded(host: string, requests: number, timeout?: number) {
  const limiter = createLimiter({ clock: realClock, requests });
  const transport = createTransport({ limiter, clock: realClock, random: () => 0 });
  onClose(() => transport.close());
  const lookup = async () => ({ kind: 'none' }) as const;
  const authorizer = createAuthorizer({ transport, clock: realClock, credentials: { lookup } });
  const canceller = createCanceller({ host, transport, authorizer, access: createAccess() }, realClock, timeout);
  return { canceller, limiter, transport };
}

describe('cancelUpload', () => {
  test('is one DELETE of the session’s own address', async () => {
    const server = await script({ status: 204 });
    const [session] = sessions(server.host, 1);
    if (session !== undefined) await clientOf(server).cancelUpload(session);
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(['DELETE /u/0?_state=x']);
  });

  test.each([{ status: 500 }, { status: 404 }, { status: 401 }, { status: 405 }, 'reset' as const])(
    'never fails and never tries again: %j',
    async (answer) => {
      const server = await script(answer);
      await Promise.all(sessions(server.host, 1).map(clientOf(server).cancelUpload));
      expect(server.seen).toHaveLength(1);
    },
  );

  test('never fails when nobody is there', async () => {
    const server = await script({ status: 204 });
    await server.close();
    await Promise.all(sessions(server.host, 3).map(clientOf(server).cancelUpload));
  });

  test('waits no longer than its time for all of them together', async () => {
    const server = await serve(() => undefined);
    const started = performance.now();
    await Promise.all(sessions(server.host, 5).map(world().client(server.host, 100).cancelUpload));
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  test('all are sent where the registry lets us cancel', async () => {
    const server = await script({ status: 204 });
    await Promise.all(sessions(server.host, 10).map(clientOf(server).cancelUpload));
    expect(server.seen.map(({ url }) => url).sort()).toEqual(
      sessions(server.host, 10).map((_, index) => `/u/${index}?_state=x`),
    );
  });

  test.each([405, 400])('after one %i the others are not sent (GHCR, crane)', async (status) => {
    const server = await script({ status });
    const client = clientOf(server);
    await Promise.all(sessions(server.host, 10).map(client.cancelUpload));
    await Promise.all(sessions(server.host, 10).map(client.cancelUpload));
    expect(server.seen).toHaveLength(1);
  });

  test('a registry that wants the delete action costs one token round, however many sessions are left', async () => {
    const server = await serve(async ({ request, response, whole }) => {
      await whole;
      if (request.url?.startsWith('/token')) return reply(response, { status: 200, body: '{"token":"t"}' });
      const realm = `Bearer realm="http://${request.headers.host}/token",error="insufficient_scope"`;
      return reply(response, { status: 401, headers: { 'www-authenticate': realm } });
    });
    await Promise.all(sessions(server.host, 20).map(clientOf(server).cancelUpload));
    expect(server.seen.filter(({ url }) => url.startsWith('/token'))).toHaveLength(1);
    expect(server.seen.filter(({ method }) => method === 'DELETE')).toHaveLength(2);
  });

  test('so does one whose token server gives none', async () => {
    const server = await serve(async ({ request, response, whole }) => {
      await whole;
      if (request.url?.startsWith('/token')) return reply(response, { status: 403 });
      const realm = `Bearer realm="http://${request.headers.host}/token"`;
      return reply(response, { status: 401, headers: { 'www-authenticate': realm } });
    });
    await Promise.all(sessions(server.host, 20).map(clientOf(server).cancelUpload));
    expect(server.seen.filter(({ url }) => url.startsWith('/token'))).toHaveLength(1);
  });

  test('holders of every place and one without are not kept waiting for each other', async () => {
    const server = await script({ status: 204 });
    const { canceller, limiter } = crowded(server.host, 2);
    const stop = new AbortController().signal;
    const places = await Promise.all([limiter.take(server.host, stop), limiter.take(server.host, stop)]);
    const [first, second, third] = sessions(server.host, 3);
    if (first === undefined || second === undefined || third === undefined) return;
    const started = performance.now();
    const scout = canceller(first);
    // As a failed upload does: it gives its place back when this is done.
    await Promise.all([canceller(second, places[0]), canceller(third, places[1])]);
    await scout;
    for (const place of places) place.release();
    expect(performance.now() - started).toBeLessThan(2_000);
    await expect.poll(() => server.seen.length).toBe(3);
  });

  test('who holds a place is not held up, and the end of the transport waits for the cancellation', async () => {
    const server = await serve(async ({ response, whole }) => {
      await whole;
      setTimeout(() => reply(response, { status: 204 }), 300);
    });
    const { canceller, limiter, transport } = crowded(server.host, 2);
    const place = await limiter.take(server.host, new AbortController().signal);
    const started = performance.now();
    for (const session of sessions(server.host, 12)) await canceller(session, place);
    expect(performance.now() - started).toBeLessThan(200);
    await transport.close();
    expect(performance.now() - started).toBeGreaterThan(290);
    expect(server.seen).toHaveLength(12);
  });

  test('no more than eight are under way at a time, and none takes a place', async () => {
    let now = 0;
    let most = 0;
    const server = await serve(async ({ response, whole }) => {
      now += 1;
      most = Math.max(most, now);
      await whole;
      setTimeout(() => {
        now -= 1;
        reply(response, { status: 204 });
      }, 20);
    });
    const { canceller, limiter } = crowded(server.host, 2);
    const stop = new AbortController().signal;
    await Promise.all([limiter.take(server.host, stop), limiter.take(server.host, stop)]);
    await Promise.all(sessions(server.host, 40).map((session) => canceller(session)));
    expect(server.seen).toHaveLength(40);
    expect(most).toBe(8);
  });

  test('a 429 slows nobody else, and the host is asked again only after a rest', async () => {
    let count = 0;
    const server = await serve(async ({ request, response, whole }) => {
      await whole;
      count += 1;
      if (request.method === 'DELETE' && count === 1)
        reply(response, { status: 429, headers: { 'retry-after': '60' } });
      else reply(response, { status: request.method === 'DELETE' ? 204 : 200 });
    });
    const { canceller, transport } = crowded(server.host, 64);
    const [session] = sessions(server.host, 1);
    if (session === undefined) return;
    const started = performance.now();
    const cancelling = canceller(session);
    await expect.poll(() => server.seen.length).toBe(1);
    const url = new URL('/v2/', transport.baseUrl(server.host));
    const response = await transport.send({ method: 'GET', url, signal: AbortSignal.timeout(5_000) });
    await response.discard();
    expect(performance.now() - started).toBeLessThan(400);
    await cancelling;
    expect(performance.now() - started).toBeGreaterThan(450);
    expect(server.seen.map(({ method }) => method)).toEqual(['DELETE', 'GET', 'DELETE']);
  });

  test('a host that wants to be left alone is sent none meanwhile, and nobody waits beyond the time', async () => {
    const server = await script({ status: 429, headers: { 'retry-after': '60' } });
    const { canceller, transport } = crowded(server.host, 64, 300);
    const url = new URL('/v2/', transport.baseUrl(server.host));
    const limited = await transport.send({ method: 'GET', url, retries: 0, signal: AbortSignal.timeout(5_000) });
    await limited.discard();
    const started = performance.now();
    await Promise.all(sessions(server.host, 20).map((session) => canceller(session)));
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(server.seen).toHaveLength(1);
  });

  test('a passing failure does not speak for the others', async () => {
    const server = await script({ status: 503 }, { status: 204 });
    await Promise.all(sessions(server.host, 3).map(clientOf(server).cancelUpload));
    expect(server.seen).toHaveLength(3);
  });
});
