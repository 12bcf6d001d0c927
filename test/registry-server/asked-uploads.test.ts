import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { withRegistry } from '../helpers/registry.ts';
import { octets, openUpload, send, upload, withQuery } from './http.ts';

// Switches for what zot, distribution, crane and serverless-registry were seen to do with uploads (2026-11-30).

const bytes = Buffer.from('0123456789');
const digest = digestOf(bytes);
const uploads = '/v2/a/b/blobs/uploads/';

type Upload = NonNullable<ProfileChanges['upload']>;

const withUpload = (changes: Upload, use: (registry: RunningRegistry) => Promise<void>) =>
  withRegistry({ upload: changes }, use);

const closing = async (registry: RunningRegistry, query = `digest=${digest}`) =>
  withQuery(await openUpload(registry, 'a/b'), query);

describe('upload.noLength', () => {
  it.each([
    ['accept', 202],
    ['ignoreBody', 202],
    ['400', 400],
    ['500', 202],
  ] as const)('%s answers a PATCH of unknown length with %d', (noLength, status) =>
    withUpload({ noLength }, async (registry) => {
      const patch = { body: bytes, chunked: true, headers: octets };
      const answer = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), patch);
      expect(answer.status).toBe(status);
      if (status !== 202) return;
      expect(answer.headers['range']).toBe('0-9');
      const put = withQuery(answer.headers['location'] ?? '', `digest=${digest}`);
      expect((await send(registry, 'PUT', put)).status).toBe(201);
    }),
  );
});

describe('a chunk out of order', () => {
  const outOfOrder = async (registry: RunningRegistry) =>
    send(registry, 'PATCH', await openUpload(registry, 'a/b'), {
      body: '789',
      headers: { ...octets, 'content-range': '7-9' },
    });

  it.each(['BLOB_UPLOAD_INVALID', 'RANGE_INVALID', 'RANGE_ERROR', 'BLOB_UPLOAD_UNKNOWN'] as const)(
    'rangeError %s',
    (rangeError) =>
      withUpload({ rangeError }, async (registry) => {
        expect(await outOfOrder(registry)).toMatchObject({ status: 416, codes: [rangeError] });
      }),
  );

  it('rangeHelp false: nothing says where to go on, also at a Location that is not the newest', () =>
    withUpload({ rangeHelp: false, state: '_state' }, async (registry) => {
      const { headers } = await outOfOrder(registry);
      expect([headers['location'], headers['range']]).toEqual([undefined, undefined]);
      const old = await openUpload(registry, 'a/b');
      await send(registry, 'PATCH', old, { body: '01234' });
      const stale = await send(registry, 'PATCH', old, { body: '56789' });
      expect(stale).toMatchObject({ status: 416, codes: ['RANGE_INVALID'] });
      expect(stale.headers['location']).toBeUndefined();
    }));

  it.each(['0-0', '0--1'] as const)('emptyRange %s: of a session without a byte', (emptyRange) =>
    withUpload({ emptyRange }, async (registry) => {
      expect((await send(registry, 'GET', await openUpload(registry, 'a/b'))).headers['range']).toBe(emptyRange);
      expect((await outOfOrder(registry)).headers['range']).toBe(emptyRange);
    }),
  );
});

describe('upload.digestError 500', () => {
  it.each(['', 'digest=sha256:12', `digest=${digestOf(bytes, 'sha512')}`, `digest=${digestOf(Buffer.from('other'))}`])(
    'answers the closing query "%s" with 500',
    (query) =>
      withUpload({ digestError: '500' }, async (registry) => {
        const answer = await send(registry, 'PUT', await closing(registry, query), { body: bytes });
        expect(answer).toMatchObject({ status: 500, codes: ['INTERNAL_ERROR'] });
      }),
  );
});

describe('upload.afterBadDigest: a second PUT into a session whose bytes did not hash', () => {
  it.each([
    ['gone', {}, 404],
    ['before', {}, 201],
    ['before', { state: '_stateHash' }, 201],
    ['keeps', {}, 400],
    ['keeps', { finalPutBody: 'needsRange416' }, 416],
    ['keeps', { state: '_state' }, 416],
    ['keeps', { state: '_state', stale: '404' }, 404],
  ] as const)('%s with %j: %d', (afterBadDigest, changes, status) =>
    withUpload({ afterBadDigest, ...changes }, async (registry) => {
      const put = await closing(registry);
      expect((await send(registry, 'PUT', put, { body: 'other' })).status).toBe(400);
      expect((await send(registry, 'PUT', put, { body: bytes })).status).toBe(status);
    }),
  );

  it('before: chunks end with their session', () =>
    withUpload({ afterBadDigest: 'before' }, async (registry) => {
      const patched = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), { body: 'other' });
      const put = withQuery(patched.headers['location'] ?? '', `digest=${digest}`);
      expect((await send(registry, 'PUT', put)).status).toBe(400);
      expect((await send(registry, 'PUT', put, { body: bytes })).status).toBe(404);
    }));
});

describe('upload.unknownSession', () => {
  it.each([
    ['404', 404, 'BLOB_UPLOAD_UNKNOWN'],
    ['500', 500, 'INTERNAL_ERROR'],
    ['taken', 201, undefined],
  ] as const)('%s: a PUT to one that is unknown, used or cancelled is %d %s', (unknownSession, status, code) =>
    withUpload({ unknownSession }, async (registry) => {
      const used = await closing(registry);
      expect((await send(registry, 'PUT', used, { body: bytes })).status).toBe(201);
      const cancelled = await closing(registry);
      expect((await send(registry, 'DELETE', cancelled)).status).toBe(204);
      for (const put of [used, cancelled, `${uploads}nothing?digest=${digest}`]) {
        const answer = await send(registry, 'PUT', put, { body: bytes });
        expect([answer.status, answer.codes[0]]).toEqual([status, code]);
      }
      expect((await send(registry, 'GET', `${uploads}nothing`)).status).toBe(404);
    }),
  );

  it('with _state, one whose state was made for another session is BLOB_UPLOAD_INVALID, a used one is not', () =>
    withUpload({ state: '_state' }, async (registry) => {
      const put = await closing(registry);
      const other = put.replace(/uploads\/[^?]+/, 'uploads/00000000-0000-4000-8000-000000000000');
      expect(await send(registry, 'PUT', other, { body: bytes })).toMatchObject({
        status: 404,
        codes: ['BLOB_UPLOAD_INVALID'],
      });
      expect((await send(registry, 'PUT', put, { body: bytes })).status).toBe(201);
      expect((await send(registry, 'PUT', put, { body: bytes })).codes).toEqual(['BLOB_UPLOAD_UNKNOWN']);
    }));
});

describe('chunks that are equal but for the last', () => {
  it('the commit of a small one and a smaller one is 500, and nothing is stored', () =>
    withUpload({ chunk: { min: 5, equal: true } }, async (registry) => {
      const first = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), { body: '0123' });
      const second = await send(registry, 'PATCH', first.headers['location'] ?? '', { body: '45' });
      const whole = digestOf(Buffer.from('012345'));
      const put = withQuery(second.headers['location'] ?? '', `digest=${whole}`);
      expect((await send(registry, 'PUT', put)).status).toBe(500);
      expect(registry.hasBlob('a/b', whole)).toBe(false);
    }));
});

describe('upload.storedLocation false', () => {
  it('nothing that was stored is told by Location', () =>
    withUpload({ storedLocation: false, singlePost: '201' }, async (registry) => {
      const post = `${uploads}?digest=${digest}`;
      const manifest = { body: '{"mediaType":"application/vnd.oci.image.manifest.v1+json"}' };
      for (const answer of [
        await upload(registry, 'a/b', bytes),
        await send(registry, 'POST', post, { body: bytes }),
        await send(registry, 'POST', `/v2/a/c/blobs/uploads/?mount=${digest}&from=a/b`),
        await send(registry, 'PUT', '/v2/a/b/manifests/1', manifest),
      ]) {
        expect(answer.status).toBe(201);
        expect(answer.headers['location']).toBeUndefined();
      }
    }));
});

describe('blob', () => {
  it('range false: whoever asks for a part gets the whole', () =>
    withRegistry({ blob: { range: false } }, async (registry) => {
      registry.putBlob('a/b', bytes);
      const headers = { range: 'bytes=5-' };
      const answer = await send(registry, 'GET', `/v2/a/b/blobs/${digest}`, { headers });
      expect([answer.status, answer.bytes, answer.headers['content-range']]).toEqual([200, bytes, undefined]);
    }));

  it.each([
    ['202', true],
    ['everywhere202', false],
  ] as const)('delete.blob %s: another repository keeps it: %s', (blob, kept) =>
    withRegistry({ delete: { blob } }, async (registry) => {
      registry.putBlob('a/b', bytes);
      registry.putBlob('a/c', bytes);
      expect((await send(registry, 'DELETE', `/v2/a/b/blobs/${digest}`)).status).toBe(202);
      expect([registry.hasBlob('a/b', digest), registry.hasBlob('a/c', digest)]).toEqual([false, kept]);
      expect((await send(registry, 'DELETE', `/v2/a/b/blobs/${digest}`)).status).toBe(404);
    }),
  );
});

describe('answer.afterBody', () => {
  it.each([true, false])('%s: a refusal waits for the body', (afterBody) =>
    withRegistry({ answer: { afterBody }, upload: { put: '413over(4)' } }, async (registry) => {
      const path = await closing(registry);
      const { port, hostname } = new URL(registry.url);
      const socket = connect(Number(port), hostname);
      const answered = new Promise<string>((resolve, reject) => {
        socket.once('data', (data) => resolve(data.toString('latin1')));
        socket.once('error', reject);
      });
      const { pathname, search } = new URL(path, registry.url);
      socket.write(`PUT ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234`);
      const early = await Promise.race([answered, new Promise((resolve) => setTimeout(() => resolve('silence'), 60))]);
      expect(early === 'silence').toBe(afterBody);
      socket.write('56789');
      expect(await answered).toContain('413');
      socket.destroy();
    }),
  );
});
