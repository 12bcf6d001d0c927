import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut } from '../../src/registry/chunks.ts';
import { chunkLimits, continues, rangeEnd } from '../../src/registry/protocol.ts';
import { blobOf, clientOf, errors, failure, type Handler, reply, serve, verb, world } from './fixture.ts';

const BLOB = blobOf(300_000);
const SIZES = { chunk: 100_000, tooLarge: 80_000, least: 10_000, scout: 20_000, uncut: 20_000 };

describe('the borders of chunks', () => {
  test('cover the blob once, are equal but for the last, which is no larger and never one byte', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 3, max: 50 }),
        fc.integer({ min: 2, max: 2000 }),
        fc.nat(100),
        fc.boolean(),
        (size, left, start, grows) => {
          const most = grows ? size + 1 : size;
          const chunks = [...cut(start, start + left, { size, most })];
          let at = start;
          for (const { from, to } of chunks) {
            expect(from).toBe(at);
            at = to;
          }
          expect(at).toBe(start + left);
          const lengths = chunks.map(({ from, to }) => to - from);
          const last = lengths.at(-1) ?? 0;
          expect(new Set(lengths.slice(0, -1)).size).toBeLessThanOrEqual(1);
          expect(Math.max(...lengths)).toBeLessThanOrEqual(most);
          expect(last).toBeLessThanOrEqual(lengths[0] ?? 0);
          // With one chunk more than a chunk has bytes there is no way to spread one byte.
          if (lengths.length <= size) expect(last).toBeGreaterThan(1);
        },
      ),
    );
  });

  test('are made one by one, of however many chunks', () => {
    const chunks = cut(0, 1e15, { size: 1, most: 1 });
    expect([chunks.next().value, chunks.next().value]).toEqual([
      { from: 0, to: 1 },
      { from: 1, to: 2 },
    ]);
  });
});

describe('headers', () => {
  test.each([
    ['0-99', 100],
    ['bytes=0-99', 100],
    ['bytes 0-99', 100],
    ['0-0', 0],
    ['bytes=0--1', 0],
    ['1-99', undefined],
    ['garbage', undefined],
    ['', undefined],
  ])('Range %j is %s bytes', (range, bytes) => {
    expect(rangeEnd({ range })).toBe(bytes);
  });

  test.each([
    ['bytes 100-299/300', true],
    ['Bytes 100-299/300', true],
    ['bytes 100-298/300', false],
    ['bytes 0-299/300', false],
    ['bytes 100-299/301', false],
    ['bytes 100-299/*', false],
  ])('Content-Range %j continues at 100 of 300: %s', (range, is) => {
    expect(continues({ 'content-range': range }, 100, 300)).toBe(is);
  });

  test.each([
    ['5242880', '100000000', { min: 5_242_880, max: 100_000_000 }],
    ['5242880', undefined, { min: 5_242_880 }],
    ['0', '-1', undefined],
    ['5MiB', '1e9', undefined],
  ])('chunk lengths %s and %s', (min, max, limits) => {
    const headers = {
      ...(min === undefined ? {} : { 'oci-chunk-min-length': min }),
      ...(max === undefined ? {} : { 'oci-chunk-max-length': max }),
    };
    expect(chunkLimits(headers)).toEqual(limits);
  });
});

/** Answers the nth PATCH by `answers[n]`, the others by 202 with a Location of their own, and every PUT by 201. */
function chunky(...answers: readonly (((n: number) => Parameters<typeof reply>[1]) | undefined)[]): Handler {
  let n = 0;
  return async ({ request, response, whole }) => {
    await whole;
    if (request.method === 'DELETE') return reply(response, { status: 204 });
    if (request.method === 'PUT') return reply(response, { status: 201 });
    if (request.method === 'GET') return reply(response, { status: 404 });
    const answer = answers[n]?.(n) ?? {
      status: 202,
      headers: { location: `/u/${n + 1}?state=%2f${n + 1}`, range: '0-7' },
    };
    n += 1;
    return reply(response, answer);
  };
}

describe('sending chunks', () => {
  const sent = async (handler: Handler, blob = BLOB) => {
    const server = await serve(handler);
    const client = world().client(server.host, undefined, { uploading: { mode: 'chunks' }, uploadSizes: SIZES });
    const session = { repository: 'app', url: `http://${server.host}/u/0?state=%2f0` };
    const answer = await client.upload(session, blob, blob.bytes, verb());
    return { server, client, answer, session };
  };

  test('goes to the newest Location as it came, all bytes by PATCH, an empty PUT at the end', async () => {
    const { server, answer } = await sent(chunky());
    expect(answer).toEqual({ kind: 'stored', bytesSent: BLOB.size });
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'PATCH /u/0?state=%2f0',
      'PATCH /u/1?state=%2f1',
      'PATCH /u/2?state=%2f2',
      `PUT /u/3?state=%2f3&digest=${encodeURIComponent(BLOB.digest)}`,
    ]);
    expect(server.seen.map(({ headers }) => headers['content-range'])).toEqual([
      '0-99999',
      '100000-199999',
      '200000-299999',
      undefined,
    ]);
    expect(server.seen.map(({ headers }) => headers['content-length'])).toEqual(['100000', '100000', '100000', '0']);
    expect(server.seen.every(({ headers }) => headers['transfer-encoding'] === undefined)).toBe(true);
    expect(Buffer.concat(server.seen.map(({ body }) => body)).equals(BLOB.bytes)).toBe(true);
  });

  test.each([200, 201, 204])('%i takes a chunk; without a Location the last one stays', async (status) => {
    const { server, answer } = await sent(
      chunky(
        () => ({ status }),
        () => ({ status }),
        () => ({ status }),
      ),
    );
    expect(answer.kind).toBe('stored');
    expect(new Set(server.seen.slice(0, 3).map(({ url }) => url))).toEqual(new Set(['/u/0?state=%2f0']));
  });

  test('bytes that are wrong are never committed, and the newest session is cancelled', async () => {
    const server = await serve(chunky());
    const client = world().client(server.host, undefined, { uploading: { mode: 'chunks' }, uploadSizes: SIZES });
    const session = { repository: 'app', url: `http://${server.host}/u/0` };
    const source = (async function* () {
      yield blobOf(BLOB.size, 2).bytes;
    })();
    const answer = await client.upload(session, BLOB, Readable.from(source, { objectMode: false }), verb());
    expect(answer).toMatchObject({ kind: 'corrupt', error: { code: 'DIGEST_MISMATCH' } });
    expect(server.seen.map(({ method }) => method)).toEqual(['PATCH', 'PATCH', 'PATCH', 'DELETE']);
    expect(server.seen.at(-1)?.url).toBe('/u/3?state=%2f3');
  });

  test('a 416 in the middle goes on where the registry says, when that is before us', async () => {
    const range = { range: '0-49999', location: '/u/again' };
    const { answer, client } = await sent(chunky(undefined, () => ({ status: 416, headers: range })));
    if (answer.kind !== 'broken' || answer.interrupted === undefined) throw new Error(answer.kind);
    const point = await client.resumeUpload(answer.interrupted, verb());
    if (point === undefined || point === 'smaller') throw new Error(point);
    expect(point).toMatchObject({ offset: 50_000, mark: { offset: 0 } });
    expect(point.session.url).toMatch(/\/u\/again$/);
  });

  test('a 416 in the middle that says nothing new leads to a new session', async () => {
    const range = { range: '0-99999', location: '/u/again' };
    const { answer } = await sent(chunky(undefined, () => ({ status: 416, headers: range })));
    expect(answer).toMatchObject({ kind: 'broken', chunked: true });
    expect(answer).not.toHaveProperty('interrupted');
  });

  test.each([404, 400, 405])(
    '%i to the first chunk is no way to send, to a later one a lost session',
    async (status) => {
      const refuse = () => ({ status, body: errors('UNSUPPORTED') });
      expect((await sent(chunky(refuse))).answer.kind).toBe('otherwise');
      expect((await sent(chunky(undefined, refuse))).answer.kind).toBe('broken');
    },
  );

  test('a page with 200 takes no chunk: somebody answers for the registry', async () => {
    const page = { headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>log in</html>' };
    const error = await failure(sent(chunky(() => ({ status: 200, ...page }))));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect((await sent(chunky(() => ({ status: 202, ...page })))).answer.kind).toBe('stored');
  });

  test('a closing PUT that was not answered 201 is looked after, and an open session cancelled where it is now', async () => {
    const open: Handler = async ({ request, response, whole }) => {
      await whole;
      if (request.method === 'HEAD') return reply(response, { status: 404 });
      if (request.method === 'DELETE') return reply(response, { status: 204 });
      return reply(response, { status: 202, headers: { location: `/u/${request.method}` } });
    };
    const { server, answer } = await sent(open);
    expect(answer).toMatchObject({ kind: 'broken', error: { code: 'PROTOCOL_VIOLATED' } });
    expect(server.seen.slice(3).map(({ method }) => method)).toEqual(['PUT', 'HEAD', 'DELETE']);
    expect(server.seen.at(-1)?.url).toBe('/u/PUT');
  });

  test('403 is the last word', async () => {
    const { answer } = await sent(chunky(() => ({ status: 403, body: errors('DENIED', 'quota exceeded') })));
    expect(answer).toMatchObject({ kind: 'refused', error: { code: 'DENIED', exitCode: 3 } });
  });
});

describe('how far an upload got', () => {
  const interrupted = (host: string, sent: number) => ({
    session: { repository: 'app', url: `http://${host}/u/0` },
    sent,
    marks: [],
  });

  test.each([
    [{ status: 404 }],
    [{ status: 204, headers: { range: '0-0' } }],
    [{ status: 204, headers: { range: 'bytes=0--1' } }],
    [{ status: 204 }],
    [{ status: 204, headers: { range: '0-1000' } }],
    [{ status: 500 }],
  ])('is not believed of %j', async (answer) => {
    const server = await serve(({ response }) => reply(response, answer));
    const client = clientOf(server, { retries: 0 });
    const marks = [{ offset: 0, hash: createHash('sha256') }];
    expect(await client.resumeUpload({ ...interrupted(server.host, 1000), marks }, verb())).toBeUndefined();
  });

  test('is the mark before it, and the newest Location', async () => {
    const server = await serve(({ response }) =>
      reply(response, { status: 204, headers: { range: '0-699', location: '/u/9' } }),
    );
    const marks = [0, 300, 600, 900].map((offset) => ({ offset, hash: createHash('sha256') }));
    const point = await clientOf(server).resumeUpload({ ...interrupted(server.host, 1000), marks }, verb());
    expect(point).toMatchObject({ offset: 700, mark: { offset: 600 }, session: { url: `http://${server.host}/u/9` } });
  });

  test('is nothing of a body that was cut: less is sent at a time from now on, once', async () => {
    const server = await serve(({ response }) => reply(response, { status: 204, headers: { range: '0-0' } }));
    const client = world().client(server.host, undefined, { uploadSizes: SIZES });
    const marks = [{ offset: 0, hash: createHash('sha256') }];
    const cut = (length: number) => ({ ...interrupted(server.host, length), marks, cut: length });
    expect(await client.resumeUpload(cut(100_001), verb())).toBe('smaller');
    expect(await client.resumeUpload(cut(50_000), verb())).toBe('smaller');
    // Small bodies say nothing, and there is nothing below the least chunk.
    expect(await client.resumeUpload(cut(20_000), verb())).toBeUndefined();
    expect(await client.resumeUpload({ ...interrupted(server.host, 50_000), marks }, verb())).toBeUndefined();
  });
});
