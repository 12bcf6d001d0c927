import { describe, expect, test } from 'vitest';
import { clientOf, reply, script, serve, world } from './fixture.ts';

const sessions = (host: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ repository: 'app', url: `http://${host}/u/${index}?_state=x` }));

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

  test('a passing failure does not speak for the others', async () => {
    const server = await script({ status: 503 }, { status: 204 });
    await Promise.all(sessions(server.host, 3).map(clientOf(server).cancelUpload));
    expect(server.seen).toHaveLength(3);
  });
});
