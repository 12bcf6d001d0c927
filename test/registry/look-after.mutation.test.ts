import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import type { HttpRequest, HttpResponse, Place } from '../../src/http/message.ts';
import { type Ended, lookAfter, type Upload } from '../../src/registry/commit.ts';
import type { Wire } from '../../src/registry/wire.ts';
import { type Answer, blobOf, clientOf, errors, jumpingClock, reply, script, serve, verb, world } from './fixture.ts';

const BLOB = blobOf(100);

/** Into a session of a server that is used for nothing else. */
function upload(client: ReturnType<typeof clientOf>, host: string, options: { signal: AbortSignal; place?: Place }) {
  return client.upload({ repository: 'app', url: `http://${host}/u/1?_state=x` }, BLOB, BLOB.bytes, options);
}

/** The PUT is answered so, everything after it by `look`. */
async function looked(put: Answer, look: Answer | 'reset') {
  const server = await script(put, look);
  const answer = await upload(clientOf(server, { retries: 1 }), server.host, verb());
  return { answer, methods: server.seen.map(({ method }) => method) };
}

describe('the look after an upload that ended in another success than 201', () => {
  test('goes out in the place of the upload: those who upload may hold every place of the host', async () => {
    const server = await script({ status: 202 }, { status: 200 });
    const clock = jumpingClock();
    const limiter = createLimiter({ clock, requests: 2 });
    const used: (Place | undefined)[] = [];
    const { client } = world({ kind: 'none' }, { limiter, clock }, (request) => {
      used.push(request.place);
      return request;
    });
    const signal = AbortSignal.timeout(5_000);
    const places = await Promise.all([limiter.take(server.host, signal), limiter.take(server.host, signal)]);
    const [place] = places;
    if (place === undefined) throw new Error('no place');
    expect(await upload(client(server.host), server.host, { signal, place })).toMatchObject({ kind: 'stored' });
    expect(server.seen.map(({ method }) => method)).toEqual(['PUT', 'HEAD']);
    expect(used).toEqual([place, place]);
    for (const taken of places) taken.release();
  });

  test.each<[string, Answer | 'reset']>([
    ['401', { status: 401, body: errors('UNAUTHORIZED') }],
    ['403', { status: 403, body: errors('DENIED') }],
    ['405', { status: 405 }],
    ['429 for longer than is waited', { status: 429, headers: { 'retry-after': '86400' } }],
    ['503', { status: 503 }],
    ['a page', { status: 200, headers: { 'content-type': 'text/html' } }],
    ['a cut connection', 'reset'],
  ])('undoes nothing when it fails: %s', async (_what, look) => {
    const { answer, methods } = await looked({ status: 202, headers: { location: '/moved' } }, look);
    expect(answer).toEqual({ kind: 'stored', bytesSent: BLOB.size });
    expect(new Set(methods)).toEqual(new Set(['PUT', 'HEAD']));
  });

  test('is none where the upload was refused, whatever a look would tell', async () => {
    const { answer, methods } = await looked({ status: 422, body: errors('DENIED') }, { status: 404 });
    expect(answer).toMatchObject({ kind: 'refused', error: { code: 'UPLOAD_REFUSED' } });
    expect(methods).toEqual(['PUT', 'DELETE']);
  });

  test.each([
    ['as the program is told to stop', new PublishError('INTERRUPTED', 'interrupted', 'Run it again.')],
    ['by whatever else', new Error('stopped')],
  ])('ends with the run, which has not stored the blob then: %s', async (_how, reason) => {
    const run = new AbortController();
    const server = await serve(async ({ request, response, whole }) => {
      await whole;
      if (request.method === 'PUT') reply(response, { status: 202 });
      else run.abort(reason);
    });
    await expect(upload(clientOf(server), server.host, { signal: run.signal })).rejects.toBe(reason);
    expect(server.seen.map(({ method }) => method)).toEqual(['PUT', 'HEAD']);
  });

  test('hides no bug of ours', async () => {
    const bug = new TypeError('a bug');
    const asked: HttpRequest[] = [];
    const wire = {
      host: 'r.test',
      transport: { baseUrl: () => new URL('https://r.test/') },
      authorizer: {
        send: (request: HttpRequest) => {
          asked.push(request);
          return Promise.reject(bug);
        },
      },
      access: { actionsFor: () => 'pull,push' },
    } as unknown as Wire;
    const session = { repository: 'app', url: 'https://r.test/u/1' };
    const ended: Ended = { answer: { kind: 'stored', bytesSent: 100 }, cancels: false };
    const looking = lookAfter(
      { wire, session, blob: BLOB } as unknown as Upload,
      { status: 202, headers: {}, url: new URL(session.url) } as unknown as HttpResponse,
      ended,
      verb(),
    );
    await expect(looking).rejects.toBe(bug);
    expect(asked).toMatchObject([{ method: 'HEAD' }]);
    expect(asked[0]).not.toHaveProperty('place');
  });
});
