import { PassThrough, Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { Secret } from '../../src/http/credential.ts';
import { digestOf } from '../../src/model/digest.ts';
import type { UploadAnswer, UploadBody } from '../../src/registry/client.ts';
import {
  type Answer,
  type Blob,
  blobOf,
  clientOf,
  errors,
  failure,
  type Handler,
  reply,
  script,
  serve,
  verb,
  world,
} from './fixture.ts';

const SESSION = '/v2/app/blobs/uploads/1?_state=a-_%3D%2f';
const BLOB = blobOf(300_000);

/** A registry that answers PUTs by `answer` once they are in, and takes cancellations. */
async function target(...answers: readonly (Answer | 'reset')[]) {
  let next = 0;
  const server = await serve(async ({ request, response, whole }) => {
    await whole;
    if (request.method === 'DELETE') return reply(response, { status: 204 });
    const answer = answers[Math.min(next, answers.length - 1)] ?? { status: 201 };
    next += 1;
    if (answer === 'reset') request.socket.resetAndDestroy();
    else reply(response, answer);
  });
  return server;
}

function sessionAt(server: { readonly host: string }) {
  return { repository: 'app', url: `http://${server.host}${SESSION}` };
}

function streamOf(blob: Blob, chunk = 16_384): Readable {
  const chunks: Buffer[] = [];
  for (let at = 0; at < blob.size; at += chunk) chunks.push(blob.bytes.subarray(at, at + chunk));
  return Readable.from(chunks, { objectMode: false });
}

async function uploadTo(server: { readonly host: string }, body: UploadBody, blob: Blob = BLOB): Promise<UploadAnswer> {
  return clientOf(server).upload(sessionAt(server), blob, body, verb());
}

const methods = (server: Awaited<ReturnType<typeof target>>) => server.seen.map(({ method }) => method);

const bodies: readonly [string, () => UploadBody][] = [
  ['a stream', () => streamOf(BLOB)],
  ['bytes', () => BLOB.bytes],
];

describe.each(bodies)('uploading %s', (_name, makeBody) => {
  test.each<[number, number?]>([[201], [200, 200], [202, 200], [204, 200], [204, 403]])(
    '%i is stored, in one PUT with exact length and type to the session’s own text; but for 201 with one look: %s',
    async (status, look) => {
      const server = await target({ status }, { status: look ?? 500 });
      expect(await uploadTo(server, makeBody())).toEqual({ kind: 'stored', bytesSent: BLOB.size });
      const [request] = server.seen;
      expect(request).toMatchObject({ method: 'PUT', url: `${SESSION}&digest=${encodeURIComponent(BLOB.digest)}` });
      expect(request?.headers['content-type']).toBe('application/octet-stream');
      expect(request?.headers['content-length']).toBe(String(BLOB.size));
      expect(request?.headers['transfer-encoding']).toBeUndefined();
      expect(request?.headers['content-range']).toBeUndefined();
      expect(request?.body.equals(BLOB.bytes)).toBe(true);
      expect(methods(server)).toEqual(look === undefined ? ['PUT'] : ['PUT', 'HEAD']);
    },
  );

  test.each([200, 202, 204])(
    '%i of a blob that is not there broke it, and the session is cancelled',
    async (status) => {
      const own = await target({ status, headers: { location: '/moved' } }, { status: 404 });
      const answer = await uploadTo(own, makeBody());
      expect(answer).toMatchObject({ kind: 'broken', error: { code: 'PROTOCOL_VIOLATED', exitCode: 6, status } });
      expect(answer).not.toHaveProperty('alive');
      expect(own.seen.map(({ method, url }) => (method === 'DELETE' ? url : method))).toEqual([
        'PUT',
        'HEAD',
        '/moved',
      ]);
      // The Location may be the blob's: that is not one to delete.
      const blobs = `/v2/app/blobs/${BLOB.digest}`;
      const other = await target({ status, headers: { location: blobs } }, { status: 404 });
      await uploadTo(other, makeBody());
      expect(other.seen.map(({ method, url }) => `${method} ${url}`).slice(1)).toEqual([
        `HEAD ${blobs}`,
        `DELETE ${SESSION}`,
      ]);
    },
  );

  test('an answer in another algorithm is fine; another digest ends the run', async () => {
    const sha512 = { 'docker-content-digest': digestOf(BLOB.bytes, 'sha512') };
    expect(await uploadTo(await target({ status: 201, headers: sha512 }), makeBody())).toMatchObject({
      kind: 'stored',
    });
    const other = { 'docker-content-digest': blobOf(1).digest };
    const error = await failure(uploadTo(await target({ status: 201, headers: other }), makeBody()));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
  });

  test.each([
    [401, 'UNAUTHORIZED', 'UNAUTHORIZED'],
    [404, 'BLOB_UPLOAD_UNKNOWN', 'UPLOAD_REFUSED'],
    [404, 'BLOB_UNKNOWN', 'UPLOAD_REFUSED'],
    [400, 'BLOB_UPLOAD_INVALID', 'UPLOAD_REFUSED'],
    [409, 'BLOB_UPLOAD_INVALID', 'UPLOAD_REFUSED'],
    [416, 'RANGE_INVALID', 'UPLOAD_REFUSED'],
    [408, 'TIMEOUT', 'REGISTRY_FAILED'],
    [425, 'TOO_EARLY', 'REGISTRY_FAILED'],
    [500, 'UNKNOWN', 'REGISTRY_FAILED'],
    [503, 'UNAVAILABLE', 'REGISTRY_FAILED'],
  ])('%i %s broke it; the PUT is not repeated', async (status, code, ours) => {
    const server = await target({ status, body: errors(code, 'some words') });
    const answer = await uploadTo(server, makeBody());
    if (answer.kind !== 'broken') throw new Error(answer.kind);
    expect(answer.error).toMatchObject({ code: ours, side: 'target', status });
    expect(answer.error.message).toContain(`${status} ${code}: "some words"`);
    expect(answer.error.message).toContain(`${server.host}/app`);
    // Cancelled, unless the session is gone, or the answer may stand for a commit that is still going on.
    const left = code === 'BLOB_UPLOAD_UNKNOWN' || [408, 425].includes(status) || status >= 500;
    expect(methods(server)).toEqual(left ? ['PUT'] : ['PUT', 'DELETE']);
    expect(answer.alive).toBe(left && status !== 404 ? true : undefined);
  });

  test('429 is a kind of its own; the PUT is not repeated, and the session is left to the caller', async () => {
    const server = await target({ status: 429, body: errors('TOOMANYREQUESTS', 'some words') });
    const answer = await uploadTo(server, makeBody());
    expect(answer).toMatchObject({ kind: 'limited', alive: true, error: { code: 'RATE_LIMITED', side: 'target' } });
    expect('error' in answer && answer.error.message).toContain('429 TOOMANYREQUESTS: "some words"');
    // A cancellation would have to wait as long as everything else.
    expect(methods(server)).toEqual(['PUT']);
  });

  test.each([
    [403, 'DENIED', 'DENIED', 3],
    [400, 'NAME_INVALID', 'UPLOAD_REFUSED', 5],
    [411, 'LENGTH_REQUIRED', 'UPLOAD_REFUSED', 5],
  ])('%i %s is the last word, and the session is cancelled', async (status, code, ours, exitCode) => {
    const server = await target({ status, body: errors(code, 'quota exceeded') });
    const answer = await uploadTo(server, makeBody());
    if (answer.kind !== 'refused') throw new Error(answer.kind);
    expect(answer.error).toMatchObject({ code: ours, exitCode, side: 'target', status });
    expect(answer.error.message).toContain('"quota exceeded"');
    expect(methods(server)).toEqual(['PUT', 'DELETE']);
    expect(server.seen[1]?.url).toBe(SESSION);
  });

  test.each([405, 413])('%i is the last word where blobs are to be sent whole', async (status) => {
    const server = await target({ status });
    const client = world().client(server.host, undefined, { uploading: { mode: 'whole' } });
    const answer = await client.upload(sessionAt(server), BLOB, makeBody(), verb());
    expect(answer).toMatchObject({ kind: 'refused', error: { code: 'UPLOAD_REFUSED', status } });
  });

  test('405 to a PUT asks for another form, and the session is cancelled', async () => {
    const server = await target({ status: 405, body: errors('UNSUPPORTED') });
    expect(await uploadTo(server, makeBody())).toMatchObject({ kind: 'otherwise', error: { status: 405 } });
    expect(methods(server)).toEqual(['PUT', 'DELETE']);
  });

  test('a page with 200 stores nothing: somebody answers for the registry', async () => {
    const page = { headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>log in</html>' };
    const error = await failure(uploadTo(await target({ status: 200, ...page }), makeBody()));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(await uploadTo(await target({ status: 201, ...page }), makeBody())).toMatchObject({ kind: 'stored' });
  });

  test('413 by a proxy tells the size that was sent, without the page', async () => {
    const page = '<html><title>413 Request Entity Too Large</title></html>';
    const server = await target({ status: 413, headers: { 'content-type': 'text/html' }, body: page });
    // Smaller than any chunk: there is no other form left.
    const answer = await uploadTo(server, makeBody());
    if (answer.kind !== 'refused') throw new Error(answer.kind);
    expect(answer.error).toMatchObject({ code: 'UPLOAD_REFUSED', exitCode: 5, status: 413 });
    expect(answer.error.hint).toContain('client_max_body_size');
    expect(answer.error.message).toContain(`refused after ${BLOB.size} of ${BLOB.size} bytes`);
    expect(answer.error.message).toContain('answered by a proxy');
    expect(answer.error.message).not.toContain('<');
  });

  test.each(['DIGEST_INVALID', 'SIZE_INVALID'])('400 %s calls the bytes wrong: worth one more try', async (code) => {
    const server = await target({ status: 400, body: errors(code, 'provided digest did not match') });
    const answer = await uploadTo(server, makeBody());
    if (answer.kind !== 'corrupt') throw new Error(answer.kind);
    expect(answer.error).toMatchObject({ code: 'DIGEST_MISMATCH', exitCode: 6, side: 'target' });
    expect(answer.error.message).toContain(BLOB.digest);
  });

  test('Nexus, which has the blob but may not update it: ask, then start anew', async () => {
    const server = await target({ status: 400, body: errors('UNKNOWN', 'asset cannot be updated') });
    expect((await uploadTo(server, makeBody())).kind).toBe('broken');
  });

  test('a lost answer broke it, and cancelling is left to the caller: it may have been committed', async () => {
    const server = await target('reset');
    const answer = await uploadTo(server, makeBody());
    if (answer.kind !== 'broken') throw new Error(answer.kind);
    expect(answer.error).toMatchObject({ code: 'NETWORK_FAILED', side: 'target' });
    expect(answer.error.message).toContain(`copying ${BLOB.digest} to ${server.host}/app`);
    expect(answer.error.message.split('copying')).toHaveLength(2);
    expect(methods(server)).toEqual(['PUT']);
    expect(answer.alive).toBe(true);
  });

  test('a registry that is gone broke it', async () => {
    const server = await target();
    await server.close();
    expect(await uploadTo(server, makeBody())).toMatchObject({ kind: 'broken', error: { code: 'NETWORK_FAILED' } });
  });

  test('progress ends at the size', async () => {
    const server = await target({ status: 201 });
    const told: number[] = [];
    const progress = (sent: number) => told.push(sent);
    await clientOf(server).upload(sessionAt(server), BLOB, makeBody(), { ...verb(), progress });
    expect(told.at(-1)).toBe(BLOB.size);
    expect([...told].sort((a, b) => a - b)).toEqual(told);
  });

  test('an empty blob goes out with a length of 0', async () => {
    const server = await target({ status: 201 });
    const empty = blobOf(0);
    const body = makeBody() instanceof Readable ? Readable.from([]) : empty.bytes;
    expect(await uploadTo(server, body, empty)).toEqual({ kind: 'stored', bytesSent: 0 });
    expect(server.seen[0]?.headers['content-length']).toBe('0');
    expect(server.seen[0]?.headers['transfer-encoding']).toBeUndefined();
  });

  test('a Location on another host is sent to without a login, and the registry’s own with it', async () => {
    const own = await target({ status: 201 });
    const other = await target({ status: 201 });
    const credential = { kind: 'basic', username: 'u', password: new Secret('hunter2') } as const;
    const challenge = await serve(async ({ request, response, whole }) => {
      await whole;
      if (request.headers.authorization === undefined) {
        return reply(response, { status: 401, headers: { 'www-authenticate': 'Basic realm="r"' } });
      }
      return reply(response, { status: 202, headers: { location: `http://${other.host}/u/1` } });
    });
    const client = world(credential).client(challenge.host);
    const session = await client.openUpload('app', BLOB.digest, verb());
    expect(await client.upload(session, BLOB, makeBody(), verb())).toMatchObject({ kind: 'stored' });
    expect(other.seen[0]?.headers.authorization).toBeUndefined();
    expect(challenge.seen.at(-1)?.headers.authorization).toMatch(/^Basic /);
    expect(own.seen).toHaveLength(0);
  });
});

describe('bytes that are wrong', () => {
  test('in memory: nothing is sent, the session is cancelled', async () => {
    const server = await target({ status: 201 });
    const answer = await uploadTo(server, blobOf(BLOB.size, 2).bytes);
    expect(answer).toMatchObject({ kind: 'corrupt', error: { code: 'DIGEST_MISMATCH', exitCode: 6 } });
    expect(methods(server)).toEqual(['DELETE']);
  });

  test.each([
    ['one bit', () => streamOf({ ...BLOB, bytes: flipped(BLOB.bytes) }), 'DIGEST_MISMATCH'],
    ['too short', () => streamOf(blobOf(BLOB.size - 1)), 'SIZE_MISMATCH'],
    ['too long', () => streamOf(blobOf(BLOB.size + 1)), 'SIZE_MISMATCH'],
    ['all in one chunk', () => Readable.from([flipped(BLOB.bytes)], { objectMode: false }), 'DIGEST_MISMATCH'],
  ])('in a stream, %s: the last bytes never leave and the session is cancelled', async (_name, makeBody, code) => {
    const server = await target({ status: 201 });
    const body = makeBody();
    const answer = await uploadTo(server, body);
    expect(answer).toMatchObject({ kind: 'corrupt', error: { code, exitCode: 6, side: 'source' } });
    expect(server.seen.every(({ method, complete }) => method !== 'PUT' || !complete)).toBe(true);
    expect(server.seen.at(-1)?.method).toBe('DELETE');
    expect(body.destroyed).toBe(true);
  });
});

describe('streams that break', () => {
  test('the source in the middle: its side, its session left to the caller', async () => {
    const server = await target({ status: 201 });
    const source = new PassThrough();
    const uploading = uploadTo(server, source);
    // The newest piece is held back until the next one comes.
    source.write(BLOB.bytes.subarray(0, 50_000));
    source.write(BLOB.bytes.subarray(50_000, 100_000));
    setTimeout(() => source.destroy(new PublishError('NETWORK_FAILED', 'src: cut', 'Again.')), 30);
    const answer = await uploading;
    expect(answer).toMatchObject({ kind: 'broken', error: { code: 'NETWORK_FAILED', side: 'source' } });
    expect(answer.kind === 'broken' && answer.error.message).toContain('src: cut');
    expect(answer).toMatchObject({ interrupted: { session: sessionAt(server) } });
    expect(answer).not.toHaveProperty('interrupted.cut');
    expect(methods(server)).not.toContain('DELETE');
  });

  test('the source before the upload begins', async () => {
    const server = await target({ status: 201 });
    const source = new PassThrough();
    source.on('error', () => undefined);
    source.destroy(new Error('gone'));
    await new Promise((resolve) => source.once('close', resolve));
    expect(await uploadTo(server, source)).toMatchObject({ kind: 'broken', error: { side: 'source' } });
  });

  test('the target in the middle: its side, and the source is ended', async () => {
    const server = await serve(({ request, response }) => {
      if (request.method === 'DELETE') return reply(response, { status: 204 });
      request.once('data', () => request.socket.resetAndDestroy());
    });
    const source = endless();
    const answer = await uploadTo(server, source, { ...BLOB, size: 500_000_000 });
    expect(answer).toMatchObject({ kind: 'broken', error: { code: 'NETWORK_FAILED', side: 'target' } });
    expect(answer).not.toHaveProperty('alive');
    expect(source.destroyed).toBe(true);
    // The session may know how far it got: it is the caller's.
    expect(answer).toMatchObject({ interrupted: { session: sessionAt(server), cut: 500_000_000 }, chunked: true });
    expect(methods(server)).toEqual(['PUT']);
  });

  const early = (status: number, headers: Record<string, string> = {}): Handler => {
    return ({ request, response }) => {
      if (request.method === 'DELETE') return reply(response, { status: 204 });
      request.pause();
      reply(response, { status, headers, body: errors('EARLY', 'before the body was in') });
    };
  };

  test.each([
    [413, 'otherwise', {}],
    [401, 'broken', {}],
    [500, 'broken', {}],
    [413, 'otherwise', { connection: 'close' }],
  ] as const)('an answer of %i before the body is in is read: %s', async (status, kind, headers) => {
    const server = await serve(early(status, headers));
    const source = endless();
    const answer = await uploadTo(server, source, { ...BLOB, size: 500_000_000 });
    expect(answer).toMatchObject({ kind, error: { status } });
    expect('error' in answer && answer.error.message).toContain('before the body was in');
    expect(source.destroyed).toBe(true);
    expect(server.seen.filter(({ method }) => method === 'PUT')).toHaveLength(1);
  });

  test('a success before the body is in proves nothing: ask, then start anew', async () => {
    const server = await serve(early(201));
    const answer = await uploadTo(server, endless(), { ...BLOB, size: 500_000_000 });
    expect(answer).toMatchObject({ kind: 'broken', error: { code: 'PROTOCOL_VIOLATED' } });
  });

  test('a registry that never answers is given up, by the time a blob of that size may take', async () => {
    const server = await serve(() => undefined);
    const asked: (number | undefined)[] = [];
    const { client } = world({ kind: 'none' }, {}, (request) => {
      asked.push(request.headersTimeout);
      return { ...request, headersTimeout: 100 };
    });
    const answer = await client(server.host).upload(sessionAt(server), BLOB, streamOf(BLOB), verb());
    expect(answer).toMatchObject({ kind: 'broken', error: { code: 'NETWORK_FAILED', side: 'target' } });
    expect(asked[0]).toBe(61_000);
  });

  test('the end of the run is thrown as it is, both streams are ended, the session is left to the caller', async () => {
    const run = new AbortController();
    // Another part of the run has failed: that is no break of this upload.
    const reason = new PublishError('NETWORK_FAILED', 'elsewhere', 'Run it again.');
    const server = await serve(({ request }) => request.once('data', () => run.abort(reason)));
    const source = endless();
    const uploading = clientOf(server).upload(sessionAt(server), { ...BLOB, size: 500_000_000 }, source, {
      signal: run.signal,
    });
    await expect(uploading).rejects.toBe(reason);
    expect(source.destroyed).toBe(true);
    expect(server.seen.map(({ method }) => method)).toEqual(['PUT']);
  });
});

test('a login that cannot be had ends the run, and the source is ended though nothing was sent', async () => {
  const server = await target({ status: 201 });
  const reason = new PublishError('CREDENTIALS_FAILED', 'the helper failed', 'Mend it.');
  const source = endless();
  const client = world(reason).client(server.host);
  const error = await failure(client.upload(sessionAt(server), { ...BLOB, size: 500_000_000 }, source, verb()));
  expect(error).toBe(reason);
  expect(source.destroyed).toBe(true);
  expect(server.seen).toHaveLength(0);
});

test('a place that was taken before is used for the PUT', async () => {
  const server = await target({ status: 403 });
  const places: unknown[] = [];
  const { client } = world({ kind: 'none' }, {}, (request) => {
    places.push(request.place);
    return request;
  });
  const place = { host: server.host, release: () => undefined };
  await client(server.host).upload(sessionAt(server), BLOB, BLOB.bytes, { ...verb(), place });
  expect(places[0]).toBe(place);
});

test('a token that runs out during a streamed upload broke it, and the next one goes through', async () => {
  let tokens = 0;
  let refuse = true;
  const server = await serve(async ({ request, response, whole }) => {
    await whole;
    const host = request.headers.host ?? '';
    if (request.url?.startsWith('/token')) {
      tokens += 1;
      return reply(response, { status: 200, body: `{"token":"t${tokens}"}` });
    }
    const fresh = request.headers.authorization === `Bearer t${tokens}`;
    if (!fresh || (request.method === 'PUT' && refuse)) {
      refuse = request.method !== 'PUT';
      return reply(response, { status: 401, headers: { 'www-authenticate': `Bearer realm="http://${host}/token"` } });
    }
    return reply(response, { status: request.method === 'POST' ? 202 : 201, headers: { location: '/u/1' } });
  });
  const client = clientOf(server);
  const session = await client.openUpload('app', BLOB.digest, verb());
  expect(await client.upload(session, BLOB, streamOf(BLOB), verb())).toMatchObject({
    kind: 'broken',
    error: { code: 'UNAUTHORIZED' },
  });
  const again = await client.openUpload('app', BLOB.digest, verb());
  expect(await client.upload(again, BLOB, streamOf(BLOB), verb())).toMatchObject({ kind: 'stored' });
});

test('retries are not the client’s: one 5xx is one PUT', async () => {
  const server = await script({ status: 503 }, { status: 201 });
  expect((await uploadTo(server, BLOB.bytes)).kind).toBe('broken');
});

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[copy.length >> 1] = (copy[copy.length >> 1] ?? 0) ^ 1;
  return copy;
}

function endless(): Readable {
  return new Readable({
    read() {
      this.push(Buffer.alloc(64 * 1024));
    },
  });
}
