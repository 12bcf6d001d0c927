import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { withRegistry } from '../helpers/registry.ts';
import { octets, openUpload, send, upload, withQuery } from './http.ts';

const bytes = Buffer.from('0123456789');
const digest = digestOf(bytes);
const POST = '/v2/a/b/blobs/uploads/';
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/;

describe('pushing a blob monolithically (distribution-spec v1.1.1, "POST then PUT")', () => {
  it('answers POST with 202 and a Location that holds a UUID', () =>
    withRegistry({}, async (registry) => {
      const answer = await send(registry, 'POST', POST);
      expect(answer.status).toBe(202);
      expect(answer.headers['location']).toMatch(UUID);
      expect(registry.openSessions()).toBe(1);
    }));

  it('answers PUT with 201 and the Location of a pullable blob, and ends the session', () =>
    withRegistry({}, async (registry) => {
      const answer = await upload(registry, 'a/b', bytes);
      expect(answer.status).toBe(201);
      expect((await send(registry, 'GET', answer.headers['location'] ?? '')).bytes).toEqual(bytes);
      expect(registry.openSessions()).toBe(0);
    }));

  it('takes the empty blob', () =>
    withRegistry({}, async (registry) => {
      expect((await upload(registry, 'a/b', Buffer.alloc(0))).status).toBe(201);
    }));

  it('refuses bytes that do not hash to the digest with 400 DIGEST_INVALID', () =>
    withRegistry({}, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      const answer = await send(registry, 'PUT', withQuery(location, `digest=${digest}`), { body: 'other' });
      expect(answer).toMatchObject({ status: 400, codes: ['DIGEST_INVALID'] });
      expect(registry.hasBlob('a/b', digest)).toBe(false);
    }));

  it.each(['', 'digest=', 'digest=sha256:12', 'digest=md5:0123'])('refuses the closing query "%s" with 400', (query) =>
    withRegistry({}, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      expect(await send(registry, 'PUT', withQuery(location, query), { body: bytes })).toMatchObject({
        status: 400,
        codes: ['DIGEST_INVALID'],
      });
    }),
  );

  it('refuses an algorithm that it cannot compute with 400', () =>
    withRegistry({}, async (registry) => {
      expect((await send(registry, 'POST', `${POST}?digest-algorithm=md5`)).status).toBe(400);
    }));

  it('answers an unknown session with 404 BLOB_UPLOAD_UNKNOWN, also one of another repository', () =>
    withRegistry({}, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      const elsewhere = location.replace('/a/b/', '/a/c/');
      for (const url of [`${POST}nothing`, elsewhere]) {
        expect(await send(registry, 'PUT', withQuery(url, `digest=${digest}`), { body: bytes })).toMatchObject({
          status: 404,
          codes: ['BLOB_UPLOAD_UNKNOWN'],
        });
      }
    }));

  it.each(['A', 'a//b', '-a', 'a..b', 'a'.repeat(256)])(
    'refuses the repository name %s with 400 NAME_INVALID',
    (name) =>
      withRegistry({}, async (registry) => {
        const answer = await send(registry, 'POST', `/v2/${name}/blobs/uploads/`);
        expect(answer).toMatchObject({ status: 400, codes: ['NAME_INVALID'] });
      }),
  );
});

describe('single POST (distribution-spec v1.1.1, "Single POST")', () => {
  it('is answered with a session unless it is supported', () =>
    withRegistry({}, async (registry) => {
      const answer = await send(registry, 'POST', `${POST}?digest=${digest}`, { body: bytes });
      expect(answer.status).toBe(202);
      expect(registry.hasBlob('a/b', digest)).toBe(false);
    }));

  it('stores the blob and answers 201 with its Location where it is supported', () =>
    withRegistry({ upload: { singlePost: '201' } }, async (registry) => {
      const answer = await send(registry, 'POST', `${POST}?digest=${digest}`, { body: bytes });
      expect(answer.status).toBe(201);
      expect((await send(registry, 'GET', answer.headers['location'] ?? '')).bytes).toEqual(bytes);
    }));

  it('refuses an invalid digest with 400', () =>
    withRegistry({ upload: { singlePost: '201' } }, async (registry) => {
      expect((await send(registry, 'POST', `${POST}?digest=sha256:1`, { body: bytes })).status).toBe(400);
    }));
});

describe('pushing a blob in chunks (distribution-spec v1.1.1, "Pushing a blob in chunks")', () => {
  const chunk = (location: string, range: string, body: string) =>
    [location, { body, headers: { ...octets, 'content-range': range } }] as const;

  it('answers each chunk with 202, Location and the range so far', () =>
    withRegistry({}, async (registry) => {
      const first = await send(registry, 'PATCH', ...chunk(await openUpload(registry, 'a/b'), '0-3', '0123'));
      expect(first).toMatchObject({ status: 202, headers: { range: '0-3' } });
      const second = await send(registry, 'PATCH', ...chunk(first.headers['location'] ?? '', '4-9', '456789'));
      expect(second).toMatchObject({ status: 202, headers: { range: '0-9' } });
      const closed = await send(registry, 'PUT', withQuery(second.headers['location'] ?? '', `digest=${digest}`));
      expect(closed.status).toBe(201);
      expect(registry.blobOf('a/b', digest)).toEqual(bytes);
    }));

  it('takes the last chunk in the closing PUT', () =>
    withRegistry({}, async (registry) => {
      const first = await send(registry, 'PATCH', ...chunk(await openUpload(registry, 'a/b'), '0-3', '0123'));
      const closing = withQuery(first.headers['location'] ?? '', `digest=${digest}`);
      expect((await send(registry, 'PUT', ...chunk(closing, '4-9', '456789'))).status).toBe(201);
    }));

  it.each(['1-4', '5-9'])('answers the chunk %s out of order with 416 and where to go on', (range) =>
    withRegistry({}, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      const first =
        range === '1-4'
          ? location
          : ((await send(registry, 'PATCH', ...chunk(location, '0-3', '0123'))).headers['location'] ?? '');
      const answer = await send(registry, 'PATCH', ...chunk(first, range, '56789'.slice(0, range === '1-4' ? 4 : 5)));
      expect(answer.status).toBe(416);
      expect(answer.headers['location']).toMatch(UUID);
      expect(answer.headers['range']).toBe(range === '1-4' ? '0-0' : '0-3');
    }),
  );

  it('answers a repeated chunk and a closing chunk out of order with 416', () =>
    withRegistry({}, async (registry) => {
      const first = await send(registry, 'PATCH', ...chunk(await openUpload(registry, 'a/b'), '0-3', '0123'));
      const location = first.headers['location'] ?? '';
      expect((await send(registry, 'PATCH', ...chunk(location, '0-3', '0123'))).status).toBe(416);
      expect(
        (await send(registry, 'PUT', ...chunk(withQuery(location, `digest=${digest}`), '5-9', '56789'))).status,
      ).toBe(416);
    }));

  it.each(['bytes 0-3', '0-3/10', 'bytes 0-3/*'])(
    'refuses the content range "%s", which has a unit or a total',
    (range) =>
      withRegistry({}, async (registry) => {
        expect((await send(registry, 'PATCH', ...chunk(await openUpload(registry, 'a/b'), range, '0123'))).status).toBe(
          400,
        );
      }),
  );

  it('refuses a content range that is not as long as the body', () =>
    withRegistry({}, async (registry) => {
      const answer = await send(registry, 'PATCH', ...chunk(await openUpload(registry, 'a/b'), '0-5', '0123'));
      expect(answer).toMatchObject({ status: 400, codes: ['SIZE_INVALID'] });
    }));

  it('takes a PATCH without a range as the next bytes, also without a length', () =>
    withRegistry({}, async (registry) => {
      const first = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), { body: '01234', chunked: true });
      expect(first).toMatchObject({ status: 202, headers: { range: '0-4' } });
      const second = await send(registry, 'PATCH', first.headers['location'] ?? '', { body: '56789' });
      expect(
        (await send(registry, 'PUT', withQuery(second.headers['location'] ?? '', `digest=${digest}`))).status,
      ).toBe(201);
    }));

  it('tells the state of a session with 204, Location and Range (end-13)', () =>
    withRegistry({}, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      await send(registry, 'PATCH', ...chunk(location, '0-3', '0123'));
      const answer = await send(registry, 'GET', location);
      expect(answer).toMatchObject({ status: 204, headers: { range: '0-3' } });
      expect(answer.headers['location']).toMatch(UUID);
    }));

  it('cancels a session with 204, after which it is unknown (end-14)', () =>
    withRegistry({}, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      expect((await send(registry, 'DELETE', location)).status).toBe(204);
      expect(registry.openSessions()).toBe(0);
      expect((await send(registry, 'GET', location)).status).toBe(404);
    }));

  it('keeps what arrived before the connection broke, so that an upload can be resumed', () =>
    withRegistry({}, async (registry) => {
      const location = new URL(await openUpload(registry, 'a/b'));
      const socket = connect(Number(location.port), '127.0.0.1');
      socket.write(`PATCH ${location.pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123`);
      while (registry.journal.at(-1)?.bytesIn !== 4) await new Promise((resolve) => setTimeout(resolve, 1));
      socket.destroy();
      while (registry.journal.at(-1)?.end === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
      expect(registry.journal.at(-1)).toMatchObject({ operation: 'uploadPatch', status: undefined });
      const state = await send(registry, 'GET', location.pathname);
      expect(state.headers['range']).toBe('0-3');
      await send(registry, 'PATCH', ...chunk(location.pathname, '4-9', '456789'));
      expect((await send(registry, 'PUT', withQuery(location.pathname, `digest=${digest}`))).status).toBe(201);
    }));
});

describe('switches of uploads', () => {
  const shapes = {
    absolute: /^http:\/\/127\.0\.0\.1:\d+\/v2\/a\/b\/blobs\/uploads\/[^?]+$/,
    relative: /^\/v2\/a\/b\/blobs\/uploads\/[^?]+$/,
    relativeNoQuery: /^\/v2\/a\/b\/blobs\/uploads\/[^?]+$/,
    otherPath: /^http:\/\/127\.0\.0\.1:\d+\/artifacts-uploads\/namespaces\/a\/b\/uploads\/[^?]+$/,
    otherHost: /^http:\/\/127\.0\.0\.1:\d+\/v2\/a\/b\/blobs\/uploads\/[^?]+\?X-Signature=\w+$/,
    httpScheme: /^http:\/\/127\.0\.0\.1:\d+\/v2\/a\/b\/blobs\/uploads\/[^?]+$/,
  } as const;

  it.each(Object.entries(shapes))('upload.location %s: the upload can be finished there', (location, shape) =>
    withRegistry({ upload: { location: location as keyof typeof shapes } }, async (registry) => {
      const given = await openUpload(registry, 'a/b');
      expect(given).toMatch(shape);
      const there = new URL(given, registry.url);
      expect(there.host === registry.host).toBe(location !== 'otherHost');
      const put = withQuery(there.pathname + there.search, `digest=${digest}`);
      expect((await send({ url: there.origin }, 'PUT', put, { body: bytes })).status).toBe(201);
      expect(registry.blobOf('a/b', digest)).toEqual(bytes);
    }),
  );

  it('upload.location otherHost: without its query the session is refused', () =>
    withRegistry({ upload: { location: 'otherHost' } }, async (registry) => {
      const there = new URL(await openUpload(registry, 'a/b'));
      const put = `${there.pathname}?digest=${digest}`;
      expect((await send({ url: there.origin }, 'PUT', put, { body: bytes })).status).toBe(403);
    }));

  it.each([
    ['_state', '416', 416],
    ['_state', '404', 404],
    ['_stateHash', '416', 416],
    ['_stateHash', '500', 500],
  ] as const)('upload.state %s, upload.stale %s: an old Location is refused with %d', (state, stale, status) =>
    withRegistry({ upload: { state, stale } }, async (registry) => {
      const old = await openUpload(registry, 'a/b');
      const first = await send(registry, 'PATCH', old, { body: '01234' });
      expect((await send(registry, 'PATCH', old, { body: '56789' })).status).toBe(status);
      expect((await send(registry, 'PATCH', first.headers['location'] ?? '', { body: '56789' })).status).toBe(202);
    }),
  );

  it.each([
    ['_state', 404],
    ['_stateHash', 500],
  ] as const)('upload.state %s: a Location without it is refused with %d', (state, status) =>
    withRegistry({ upload: { state } }, async (registry) => {
      const path = new URL(await openUpload(registry, 'a/b')).pathname;
      expect((await send(registry, 'PUT', `${path}?digest=${digest}`, { body: bytes })).status).toBe(status);
    }),
  );

  it.each([
    [{ postRange: 'bytes=0--1' } as const, 'bytes=0--1'],
    [{ postRange: 'absent' } as const, undefined],
    [{} as const, '0-0'],
  ])('upload.postRange %j', (changes, range) =>
    withRegistry({ upload: changes }, async (registry) => {
      expect((await send(registry, 'POST', POST)).headers['range']).toBe(range);
    }),
  );

  it('upload.postNeedsLength 411html refuses a POST without a length with a page', () =>
    withRegistry({ upload: { postNeedsLength: '411html' } }, async (registry) => {
      const answer = await send(registry, 'POST', POST, { chunked: true });
      expect(answer).toMatchObject({ status: 411, headers: { 'content-type': 'text/html' } });
      expect((await send(registry, 'POST', POST)).status).toBe(202);
    }));

  it.each([
    [{ put: '204' } as const, 204],
    [{ put: '404blobUnknown' } as const, 404],
    [{ put: '413over(9)' } as const, 413],
    [{ put: '413over(10)' } as const, 201],
    [{ emptyBlob: '500' } as const, 201],
    [{ digestError: '500' } as const, 201],
  ])('%j answers the closing PUT of ten bytes with %d', (changes, status) =>
    withRegistry({ upload: changes }, async (registry) => {
      expect((await upload(registry, 'a/b', bytes)).status).toBe(status);
    }),
  );

  it('upload.put 404blobUnknown takes the same bytes by PATCH', () =>
    withRegistry({ upload: { put: '404blobUnknown' } }, async (registry) => {
      const patched = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), { body: bytes });
      expect(
        (await send(registry, 'PUT', withQuery(patched.headers['location'] ?? '', `digest=${digest}`))).status,
      ).toBe(201);
    }));

  it('scale multiplies the limits', () =>
    withRegistry({ options: { profile: { upload: { put: '413over(1000)' } }, scale: 0.005 } }, async (registry) => {
      expect((await upload(registry, 'a/b', bytes)).status).toBe(413);
      expect((await upload(registry, 'a/b', bytes.subarray(5))).status).toBe(201);
    }));

  it('upload.put resetOver cuts the connection', () =>
    withRegistry({ upload: { put: 'resetOver(4)' } }, async (registry) => {
      await expect(upload(registry, 'a/b', bytes)).rejects.toThrow();
      expect(registry.hasBlob('a/b', digest)).toBe(false);
    }));

  it.each([
    ['accept', 201],
    ['ignoreBody', 400],
    ['400', 400],
    ['500', 500],
  ] as const)('upload.noLength %s answers a chunked body with %d', (noLength, status) =>
    withRegistry({ upload: { noLength } }, async (registry) => {
      const put = withQuery(await openUpload(registry, 'a/b'), `digest=${digest}`);
      expect((await send(registry, 'PUT', put, { body: bytes, chunked: true })).status).toBe(status);
    }),
  );

  it.each([
    ['any', 202],
    ['octetOnly415', 415],
    ['octetOnly500', 500],
  ] as const)('upload.contentType %s answers another type with %d', (contentType, status) =>
    withRegistry({ upload: { contentType } }, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      expect(
        (await send(registry, 'PATCH', location, { body: bytes, headers: { 'content-type': 'text/plain' } })).status,
      ).toBe(status);
      expect((await send(registry, 'PATCH', location, { body: bytes, headers: octets })).status).toBe(202);
    }),
  );

  it.each(['400', '401', '405'] as const)('upload.cancel %s leaves the session open', (cancel) =>
    withRegistry({ upload: { cancel } }, async (registry) => {
      expect((await send(registry, 'DELETE', await openUpload(registry, 'a/b'))).status).toBe(Number(cancel));
      expect(registry.openSessions()).toBe(1);
    }),
  );

  it.each([
    ['plusOne', true, '0-5'],
    ['noLocation+plusOne', false, 'bytes=0-5'],
  ] as const)('upload.status %s', (status, located, range) =>
    withRegistry({ upload: { status } }, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      await send(registry, 'PATCH', location, { body: '01234' });
      const answer = await send(registry, 'GET', location);
      expect(answer.headers['location'] !== undefined).toBe(located);
      expect(answer.headers['range']).toBe(range);
    }),
  );

  it('upload.commit loseAnswer stores the blob and drops the connection', () =>
    withRegistry({ upload: { commit: 'loseAnswer' } }, async (registry) => {
      await expect(upload(registry, 'a/b', bytes)).rejects.toThrow();
      expect(registry.hasBlob('a/b', digest)).toBe(true);
    }));

  it('upload.commit retry404lost loses the first commit: the session is unknown, the blob is not there', () =>
    withRegistry({ upload: { commit: 'retry404lost' } }, async (registry) => {
      const put = withQuery(await openUpload(registry, 'a/b'), `digest=${digest}`);
      await expect(send(registry, 'PUT', put, { body: bytes })).rejects.toThrow();
      expect(await send(registry, 'PUT', put, { body: bytes })).toMatchObject({ status: 404, codes: ['BLOB_UNKNOWN'] });
      expect(registry.hasBlob('a/b', digest)).toBe(false);
      expect((await upload(registry, 'a/b', bytes)).status).toBe(201);
    }));

  it('upload.commit dup400 refuses what is there already', () =>
    withRegistry({ upload: { commit: 'dup400' } }, async (registry) => {
      expect((await upload(registry, 'a/b', bytes)).status).toBe(201);
      expect(await upload(registry, 'a/b', bytes)).toMatchObject({ status: 400, codes: ['BLOB_UPLOAD_INVALID'] });
    }));

  it('upload.commit slow waits', () =>
    withRegistry({ upload: { commit: 'slow(30)' } }, async (registry) => {
      const before = performance.now();
      expect((await upload(registry, 'a/b', bytes)).status).toBe(201);
      expect(performance.now() - before).toBeGreaterThan(25);
    }));

  it('upload.parallelSameBlob 500 refuses a second upload of a digest while the first is under way', () =>
    withRegistry({ upload: { parallelSameBlob: '500' } }, async (registry) => {
      const both = await Promise.all([upload(registry, 'a/b', bytes), upload(registry, 'a/b', bytes)]);
      expect(both.map((answer) => answer.status).sort()).toEqual([201, 500]);
      expect((await upload(registry, 'a/b', bytes)).status).toBe(201);
    }));

  it('upload.ttlSec forgets blobs that no manifest names', () => {
    let now = 1_000_000;
    return withRegistry({ options: { profile: { upload: { ttlSec: 60 } }, now: () => now } }, async (registry) => {
      await upload(registry, 'a/b', bytes);
      await upload(registry, 'a/b', Buffer.from('config'));
      const config = digestOf(Buffer.from('config'));
      registry.putManifest(
        'a/b',
        Buffer.from(JSON.stringify({ config: { mediaType: 'x', digest: config, size: 6 } })),
        'x/y',
      );
      now += 60_000;
      expect((await send(registry, 'HEAD', `/v2/a/b/blobs/${digest}`)).status).toBe(404);
      expect((await send(registry, 'HEAD', `/v2/a/b/blobs/${config}`)).status).toBe(200);
    });
  });

  it.each([
    ['404nameUnknown', 'create', 404],
    ['createOnPushToken', 'create', 404],
    ['create', 'create', 202],
  ] as const)('repo.missing %s', (missing, _, status) =>
    withRegistry({ repo: { missing } }, async (registry) => {
      expect((await send(registry, 'POST', POST)).status).toBe(status);
      registry.createRepository('a/b');
      expect((await send(registry, 'POST', POST)).status).toBe(202);
    }),
  );

  it('repo.missing reset cuts the connection', () =>
    withRegistry({ repo: { missing: 'reset' } }, async (registry) => {
      await expect(send(registry, 'POST', POST)).rejects.toThrow(/ECONNRESET|hang up/);
    }));
});
