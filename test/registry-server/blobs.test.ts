import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { memorySink } from '../../src/registry-server/content.ts';
import { withRegistry } from '../helpers/registry.ts';
import { send } from './http.ts';

const bytes = Buffer.from('0123456789');
const digest = digestOf(bytes);
const absent = digestOf(Buffer.from('absent'));

describe('pulling blobs (distribution-spec v1.1.1, "Pulling blobs")', () => {
  it('serves an existing blob with 200, its bytes and its digest', () =>
    withRegistry({}, async (registry) => {
      registry.putBlob('a/b', bytes);
      const answer = await send(registry, 'GET', `/v2/a/b/blobs/${digest}`);
      expect(answer.status).toBe(200);
      expect(answer.bytes).toEqual(bytes);
      expect(answer.headers['docker-content-digest']).toBe(digest);
    }));

  it('answers HEAD of an existing blob with 200, size and digest, and no body', () =>
    withRegistry({}, async (registry) => {
      registry.putBlob('a/b', bytes);
      const answer = await send(registry, 'HEAD', `/v2/a/b/blobs/${digest}`);
      expect(answer).toMatchObject({
        status: 200,
        headers: { 'content-length': '10', 'docker-content-digest': digest },
      });
      expect(answer.bytes).toHaveLength(0);
    }));

  it.each(['GET', 'HEAD'])('answers %s with 404 where the repository has no such blob', (method) =>
    withRegistry({}, async (registry) => {
      registry.putBlob('a/b', bytes);
      expect((await send(registry, method, `/v2/a/b/blobs/${absent}`)).status).toBe(404);
      expect((await send(registry, method, `/v2/a/other/blobs/${digest}`)).status).toBe(404);
    }),
  );

  it('names the error BLOB_UNKNOWN', () =>
    withRegistry({}, async (registry) => {
      expect((await send(registry, 'GET', `/v2/a/b/blobs/${absent}`)).codes).toEqual(['BLOB_UNKNOWN']);
    }));

  it('refuses what is not a digest with 400', () =>
    withRegistry({}, async (registry) => {
      expect(await send(registry, 'GET', '/v2/a/b/blobs/sha256:xyz')).toMatchObject({
        status: 400,
        codes: ['DIGEST_INVALID'],
      });
    }));

  it.each([
    ['bytes=2-4', '234', 'bytes 2-4/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-2', '89', 'bytes 8-9/10'],
    ['bytes=5-99', '56789', 'bytes 5-9/10'],
  ])('answers the range %s with 206', (range, part, contentRange) =>
    withRegistry({}, async (registry) => {
      registry.putBlob('a/b', bytes);
      const answer = await send(registry, 'GET', `/v2/a/b/blobs/${digest}`, { headers: { range } });
      expect(answer.status).toBe(206);
      expect(answer.bytes.toString()).toBe(part);
      expect(answer.headers['content-range']).toBe(contentRange);
    }),
  );

  it.each(['bytes=10-', 'bytes=-0'])('answers the range %s beyond the end with 416', (range) =>
    withRegistry({}, async (registry) => {
      registry.putBlob('a/b', bytes);
      const answer = await send(registry, 'GET', `/v2/a/b/blobs/${digest}`, { headers: { range } });
      expect(answer).toMatchObject({ status: 416, headers: { 'content-range': 'bytes */10' } });
    }),
  );

  it.each(['bytes=1-2,4-5', 'lines=1-2', 'bytes=-', 'bytes=4-2'])('ignores the range %s', (range) =>
    withRegistry({}, async (registry) => {
      registry.putBlob('a/b', bytes);
      expect((await send(registry, 'GET', `/v2/a/b/blobs/${digest}`, { headers: { range } })).status).toBe(200);
    }),
  );

  it('serves the empty blob', () =>
    withRegistry({}, async (registry) => {
      const empty = registry.putBlob('a/b', Buffer.alloc(0));
      expect(await send(registry, 'GET', `/v2/a/b/blobs/${empty}`)).toMatchObject({
        status: 200,
        headers: { 'content-length': '0' },
      });
    }));

  it('serves sha512 blobs under their own digest', () =>
    withRegistry({}, async (registry) => {
      const long = digestOf(bytes, 'sha512');
      const opened = await send(registry, 'POST', '/v2/a/b/blobs/uploads/?digest-algorithm=sha512');
      const put = await send(registry, 'PUT', `${opened.headers['location']}?digest=${long}`, { body: bytes });
      expect(put).toMatchObject({ status: 201, headers: { 'docker-content-digest': long } });
      expect((await send(registry, 'GET', `/v2/a/b/blobs/${long}`)).bytes).toEqual(bytes);
    }));
});

describe('deleting blobs (distribution-spec v1.1.1, "Deleting Blobs")', () => {
  it('answers 202, and 404 once it is gone', () =>
    withRegistry({}, async (registry) => {
      registry.putBlob('a/b', bytes);
      expect((await send(registry, 'DELETE', `/v2/a/b/blobs/${digest}`)).status).toBe(202);
      expect((await send(registry, 'GET', `/v2/a/b/blobs/${digest}`)).status).toBe(404);
      expect(await send(registry, 'DELETE', `/v2/a/b/blobs/${digest}`)).toMatchObject({
        status: 404,
        codes: ['BLOB_UNKNOWN'],
      });
    }));

  it('answers 405 where deletion is disabled', () =>
    withRegistry({ delete: { blob: '405' } }, async (registry) => {
      registry.putBlob('a/b', bytes);
      expect((await send(registry, 'DELETE', `/v2/a/b/blobs/${digest}`)).status).toBe(405);
      expect(registry.hasBlob('a/b', digest)).toBe(true);
    }));
});

describe('blob.redirect', () => {
  it.each(['307otherHost', '307rejectsAuth400'] as const)('%s sends blobs from another address', (redirect) =>
    withRegistry({ blob: { redirect } }, async (registry) => {
      registry.putBlob('a/b', bytes);
      const answer = await send(registry, 'GET', `/v2/a/b/blobs/${digest}`);
      const there = new URL(answer.headers['location'] ?? '');
      expect(answer.status).toBe(307);
      expect(there.host).not.toBe(registry.host);
      expect((await send({ url: there.origin }, 'GET', there.pathname + there.search)).bytes).toEqual(bytes);
      expect(registry.journal.at(-1)).toMatchObject({ listener: 'storage', operation: 'storage', status: 200 });
    }),
  );

  it('307rejectsAuth400 refuses a credential that was carried along', () =>
    withRegistry({ blob: { redirect: '307rejectsAuth400' } }, async (registry) => {
      registry.putBlob('a/b', bytes);
      const there = new URL((await send(registry, 'GET', `/v2/a/b/blobs/${digest}`)).headers['location'] ?? '');
      const headers = { authorization: 'Bearer secret' };
      expect((await send({ url: there.origin }, 'GET', there.pathname + there.search, { headers })).status).toBe(400);
    }));

  it('serves nothing without the signature', () =>
    withRegistry({ blob: { redirect: '307otherHost' } }, async (registry) => {
      registry.putBlob('a/b', bytes);
      const there = new URL((await send(registry, 'GET', `/v2/a/b/blobs/${digest}`)).headers['location'] ?? '');
      expect((await send({ url: there.origin }, 'GET', there.pathname)).status).toBe(403);
    }));
});

describe('generated blobs', () => {
  it('are the same at every read and in every part', () =>
    withRegistry({}, async (registry) => {
      const size = 200_003;
      const big = registry.putGeneratedBlob('a/b', size, 'seed');
      const whole = await send(registry, 'GET', `/v2/a/b/blobs/${big}`);
      const part = await send(registry, 'GET', `/v2/a/b/blobs/${big}`, { headers: { range: 'bytes=70001-199999' } });
      expect(digestOf(whole.bytes)).toBe(big);
      expect(part.bytes).toEqual(whole.bytes.subarray(70_001, 200_000));
    }));

  it('uploads past keepUpTo are counted and checked, not kept', () =>
    withRegistry({ options: { keepUpTo: 4 } }, async (registry) => {
      const opened = await send(registry, 'POST', '/v2/a/b/blobs/uploads/');
      const put = await send(registry, 'PUT', `${opened.headers['location']}?digest=${digest}`, { body: bytes });
      expect(put.status).toBe(201);
      expect(registry.blobOf('a/b', digest)).toBeUndefined();
      expect((await send(registry, 'GET', `/v2/a/b/blobs/${digest}`)).status).toBe(500);
      expect(await send(registry, 'HEAD', `/v2/a/b/blobs/${digest}`)).toMatchObject({
        status: 200,
        headers: { 'content-length': '10' },
      });
    }));

  it('uploads past keepUpTo are let go as they come', async () => {
    const sink = memorySink(1);
    const before = process.memoryUsage().arrayBuffers;
    for (let piece = 0; piece < 400; piece += 1) await sink.write(Buffer.alloc(1024 * 1024));
    expect(sink.size).toBe(400 * 1024 * 1024);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(300 * 1024 * 1024);
  });

  it('uploads past keepUpTo whose bytes are known from elsewhere can be read back', () =>
    withRegistry({ options: { keepUpTo: 4 } }, async (registry) => {
      registry.putBlob('source', bytes);
      const opened = await send(registry, 'POST', '/v2/a/b/blobs/uploads/');
      await send(registry, 'PUT', `${opened.headers['location']}?digest=${digest}`, { body: bytes });
      expect((await send(registry, 'GET', `/v2/a/b/blobs/${digest}`)).bytes).toEqual(bytes);
    }));
});
