import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { FaultAction, RunningRegistry } from '../../src/registry-server/index.ts';
import { withRegistry } from '../helpers/registry.ts';
import { openUpload, send, upload, withQuery } from './http.ts';

const bytes = Buffer.from('0123456789');
const digest = digestOf(bytes);
const blob = (registry: RunningRegistry) => send(registry, 'GET', `/v2/a/b/blobs/${digest}`);

/** A registry with the blob and one fault at its next read. */
function faulty(action: FaultAction, use: (registry: RunningRegistry) => Promise<void>): Promise<void> {
  return withRegistry({}, async (registry) => {
    registry.putBlob('a/b', bytes);
    registry.addFault({ operation: 'blobGet', action });
    await use(registry);
    registry.clearFaults();
    expect((await blob(registry)).bytes).toEqual(bytes);
  });
}

describe('which requests a rule concerns', () => {
  const broken = { kind: 'answer', status: 503 } as const;

  it('the first one, unless times says more', () =>
    withRegistry({}, async (registry) => {
      registry.addFault({ path: /^\/v2\/$/, action: broken });
      registry.addFault({ path: /^\/v2\/$/, times: 2, action: { ...broken, status: 502 } });
      const statuses: number[] = [];
      for (let turn = 0; turn < 4; turn += 1) statuses.push((await send(registry, 'GET', '/v2/')).status);
      // The second rule saw the first request, too, but a request has one fault.
      expect(statuses).toEqual([503, 502, 502, 200]);
    }));

  it('nth counts the matching ones', () =>
    withRegistry({}, async (registry) => {
      registry.addFault({ operation: 'ping', nth: 3, action: broken });
      const statuses: number[] = [];
      for (let turn = 0; turn < 4; turn += 1) {
        await send(registry, 'GET', '/v2/a/b/tags/list');
        statuses.push((await send(registry, 'GET', '/v2/')).status);
      }
      expect(statuses).toEqual([200, 200, 503, 200]);
    }));

  it('method, repository, query and operation must all fit', () =>
    withRegistry({}, async (registry) => {
      registry.addFault({
        method: 'POST',
        repository: 'a/b',
        query: /mount=/,
        operation: ['mount', 'uploadPost'],
        action: broken,
      });
      const post = (path: string) => send(registry, 'POST', path);
      expect((await post('/v2/a/b/blobs/uploads/')).status).toBe(202);
      expect((await post(`/v2/a/c/blobs/uploads/?mount=${digest}&from=x`)).status).toBe(202);
      expect((await post(`/v2/a/b/blobs/uploads/?mount=${digest}&from=x`)).status).toBe(503);
    }));
});

describe('what happens to them', () => {
  it('answer: status, headers and body as written, the request is not handled', () =>
    withRegistry({}, async (registry) => {
      const headers = { 'Retry-After': '2', 'Content-Type': 'text/plain' };
      registry.addFault({
        operation: 'uploadPut',
        action: { kind: 'answer', status: 429, headers, body: 'slow down' },
      });
      const answer = await upload(registry, 'a/b', bytes);
      expect(answer).toMatchObject({ status: 429, headers: { 'retry-after': '2', 'content-type': 'text/plain' } });
      expect(answer.bytes.toString()).toBe('slow down');
      expect(registry.hasBlob('a/b', digest)).toBe(false);
    }));

  it('answer: a header may come twice', () =>
    faulty(
      { kind: 'answer', status: 401, headers: { 'WWW-Authenticate': ['Basic realm="a"', 'Bearer realm="b"'] } },
      async (registry) => {
        expect((await blob(registry)).headers['www-authenticate']).toBe('Basic realm="a", Bearer realm="b"');
      },
    ));

  it('delay', () =>
    faulty({ kind: 'delay', milliseconds: 30 }, async (registry) => {
      const before = performance.now();
      expect((await blob(registry)).status).toBe(200);
      expect(performance.now() - before).toBeGreaterThan(25);
    }));

  it.each(['before', 'after'] as const)('reset %s the request was handled', (when) =>
    withRegistry({}, async (registry) => {
      registry.addFault({ operation: 'uploadPut', action: { kind: 'reset', when } });
      await expect(upload(registry, 'a/b', bytes)).rejects.toThrow(/ECONNRESET|hang up/);
      expect(registry.hasBlob('a/b', digest)).toBe(when === 'after');
      expect(registry.journal.at(-1)).toMatchObject({ operation: 'uploadPut', status: undefined });
    }),
  );

  it('reset after some bytes of the request body; the session keeps them', () =>
    withRegistry({}, async (registry) => {
      registry.addFault({ operation: 'uploadPut', action: { kind: 'reset', when: { bodyBytes: 4 } } });
      const location = await openUpload(registry, 'a/b');
      await expect(send(registry, 'PUT', withQuery(location, `digest=${digest}`), { body: bytes })).rejects.toThrow();
      expect((await send(registry, 'GET', location)).headers['range']).toBe('0-3');
    }));

  it.each([
    [{ kind: 'reset', when: 'before' }, 'ECONNRESET'],
    [{ kind: 'loseAnswer' }, 'closed'],
  ] as const)('%j reaches the client as %s', (action, expected) =>
    faulty(action, async (registry) => {
      const seen = await new Promise((resolve) => {
        const socket = connect(Number(registry.host.split(':')[1]), '127.0.0.1');
        socket.write(`GET /v2/a/b/blobs/${digest} HTTP/1.1\r\nHost: ${registry.host}\r\n\r\n`);
        socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
        socket.once('end', () => resolve('closed'));
      });
      expect(seen).toBe(expected);
    }),
  );

  it('loseAnswer: handled, then silence', () =>
    withRegistry({}, async (registry) => {
      registry.addFault({ operation: 'uploadPut', action: { kind: 'loseAnswer' } });
      await expect(upload(registry, 'a/b', bytes)).rejects.toThrow();
      expect(registry.hasBlob('a/b', digest)).toBe(true);
    }));

  it.each([0, 4])('truncate after %d bytes of the promised ten', (limit) =>
    faulty({ kind: 'truncate', bytes: limit }, async (registry) => {
      await expect(blob(registry)).rejects.toThrow(/aborted/);
      expect(registry.journal.at(-1)).toMatchObject({ status: 200, bytesOut: limit });
    }),
  );

  it('corrupt: one bit differs, the length and the headers do not', () =>
    faulty({ kind: 'corrupt', at: 3 }, async (registry) => {
      const answer = await blob(registry);
      expect(answer.headers).toMatchObject({ 'content-length': '10', 'docker-content-digest': digest });
      expect(answer.bytes.toString()).toBe('0122456789');
    }));

  it.each([undefined, 0, 4])('stall after %s bytes: the connection stays open without a word', (limit) =>
    faulty({ kind: 'stall', ...(limit === undefined ? {} : { bytes: limit }) }, async (registry) => {
      const answer = await Promise.race([
        blob(registry).then(
          () => 'answered',
          () => 'broken',
        ),
        new Promise((resolve) => setTimeout(resolve, 60, 'silent')),
      ]);
      expect(answer).toBe('silent');
      expect(registry.journal.at(-1)).toMatchObject({ end: undefined, bytesOut: limit ?? 0 });
    }),
  );

  it('headers: replaced, added and removed, in any case', () =>
    faulty(
      { kind: 'headers', set: { 'docker-content-digest': 'sha256:wrong', 'X-Extra': '1', 'content-TYPE': undefined } },
      async (registry) => {
        const { headers } = await blob(registry);
        expect(headers).toMatchObject({ 'docker-content-digest': 'sha256:wrong', 'x-extra': '1' });
        expect(headers['content-type']).toBeUndefined();
      },
    ));
});
