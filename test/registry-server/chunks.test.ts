import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { withRegistry } from '../helpers/registry.ts';
import { octets, openUpload, send, withQuery } from './http.ts';

/** Sends chunks of these sizes, each to the newest Location; the statuses, until one is refused. */
async function patches(
  registry: RunningRegistry,
  sizes: readonly number[],
  ranged = true,
): Promise<{ statuses: number[]; location: string; sent: Buffer }> {
  let location = await openUpload(registry, 'a/b');
  let sent = Buffer.alloc(0);
  const statuses: number[] = [];
  for (const size of sizes) {
    const body = Buffer.alloc(size, statuses.length + 1);
    const headers = ranged ? { ...octets, 'content-range': `${sent.length}-${sent.length + size - 1}` } : octets;
    const answer = await send(registry, 'PATCH', location, { body, headers });
    statuses.push(answer.status);
    if (answer.status > 299) break;
    sent = Buffer.concat([sent, body]);
    location = answer.headers['location'] ?? location;
  }
  return { statuses, location, sent };
}

type Upload = NonNullable<ProfileChanges['upload']>;

describe('chunk limits', () => {
  const limits: readonly (readonly [string, Upload, readonly number[], readonly number[]])[] = [
    ['a chunk over the maximum is refused', { chunk: { max: 4 } }, [4, 5], [202, 416]],
    ['a small chunk is refused once another follows', { chunk: { min: 5 } }, [4, 5], [202, 416]],
    ['the last chunk may be small', { chunk: { min: 5 } }, [5, 5, 1], [202, 202, 202]],
    ['ECR says 400', { chunk: { min: 5, maxStatus: 400 } }, [4, 5], [202, 400]],
    ['equal: no chunk is larger than the one before', { chunk: { equal: true } }, [5, 6], [202, 416]],
    ['equal: a smaller chunk was the last one', { chunk: { equal: true } }, [6, 5, 5], [202, 202, 416]],
    ['equal: equal chunks and a smaller last one pass', { chunk: { equal: true } }, [5, 5, 2], [202, 202, 202]],
    ['equal: a smaller follower of a small chunk passes', { chunk: { equal: true, min: 5 } }, [4, 2], [202, 202]],
    ['equal: an equal follower of a small chunk does not', { chunk: { equal: true, min: 5 } }, [4, 4], [202, 416]],
    ['a chunk of one byte', { chunk: { oneByte: false } }, [5, 1], [202, 416]],
    ['none(404) takes no PATCH', { patch: 'none(404)' }, [5], [404]],
    ['streamOnly takes no ranges', { patch: 'streamOnly' }, [5], [400]],
    ['firstStreamOnly takes ranges', { patch: 'firstStreamOnly' }, [5, 5], [202, 202]],
    ['patchStatus 201', { patchStatus: '201' }, [5, 5], [201, 201]],
    ['patchStatus 204', { patchStatus: '204' }, [5], [204]],
  ];

  it.each(limits)('%s', (_, changes, sizes, statuses) =>
    withRegistry({ upload: changes }, async (registry) => {
      expect((await patches(registry, sizes)).statuses).toEqual(statuses);
    }),
  );

  it('the maximum does not concern a stream without a range', () =>
    withRegistry({ upload: { chunk: { max: 4 } } }, async (registry) => {
      expect((await patches(registry, [50], false)).statuses).toEqual([202]);
    }));

  it.each(['streamOnly', 'firstStreamOnly'] as const)('%s takes one stream and no second', (patch) =>
    withRegistry({ upload: { patch } }, async (registry) => {
      expect((await patches(registry, [5, 5], false)).statuses).toEqual([202, 400]);
    }),
  );

  it.each([
    ['none', undefined, undefined],
    ['min', '5', undefined],
    ['min+max', '5', '10'],
  ] as const)('chunkHeaders %s', (chunkHeaders, min, max) =>
    withRegistry({ upload: { chunkHeaders, chunk: { min: 5, max: 10 } } }, async (registry) => {
      const { headers } = await send(registry, 'POST', '/v2/a/b/blobs/uploads/');
      expect([headers['oci-chunk-min-length'], headers['oci-chunk-max-length']]).toEqual([min, max]);
    }),
  );

  it.each([
    ['right', '0-9'],
    ['stuck', '0-4'],
    ['absent', undefined],
    ['plusOne', '0-10'],
  ] as const)('patchRange %s', (patchRange, range) =>
    withRegistry({ upload: { patchRange } }, async (registry) => {
      const first = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), { body: '01234' });
      const second = await send(registry, 'PATCH', first.headers['location'] ?? '', { body: '56789' });
      expect(second.headers['range']).toBe(range);
    }),
  );

  it('rangeCheck none appends whatever comes, and only the digest catches it', () =>
    withRegistry({ upload: { rangeCheck: 'none' } }, async (registry) => {
      const headers = { 'content-range': '7-9' };
      const answer = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), { body: '012', headers });
      expect(answer.status).toBe(202);
      const put = withQuery(answer.headers['location'] ?? '', `digest=${digestOf(Buffer.from('012'))}`);
      expect((await send(registry, 'PUT', put)).status).toBe(201);
    }));
});

describe('the closing PUT after chunks', () => {
  const closings: readonly (readonly [string, Upload, Readonly<Record<string, string>>, number])[] = [
    ['append takes a body without a range', {}, {}, 201],
    ['ignore drops the body', { finalPutBody: 'ignore' }, {}, 400],
    ['ignore and digestError 500', { finalPutBody: 'ignore', digestError: '500' }, {}, 500],
    ['needsRange416 wants a range', { finalPutBody: 'needsRange416' }, {}, 416],
    ['needsRange416 takes a range', { finalPutBody: 'needsRange416' }, { 'content-range': '5-9' }, 201],
    ['sameSessionRestart 416 wants a range', { sameSessionRestart: '416' }, {}, 416],
  ];

  it.each(closings)('%s', (_, changes, headers, status) =>
    withRegistry({ upload: changes }, async (registry) => {
      const { location } = await patches(registry, [5]);
      const whole = Buffer.concat([Buffer.alloc(5, 1), Buffer.alloc(5, 2)]);
      const put = withQuery(location, `digest=${digestOf(whole)}`);
      expect((await send(registry, 'PUT', put, { body: whole.subarray(5), headers })).status).toBe(status);
    }),
  );

  it.each(['append', 'ignore', 'needsRange416'] as const)('%s: an empty PUT closes', (finalPutBody) =>
    withRegistry({ upload: { finalPutBody } }, async (registry) => {
      const { location, sent } = await patches(registry, [5, 5]);
      expect((await send(registry, 'PUT', withQuery(location, `digest=${digestOf(sent)}`))).status).toBe(201);
    }),
  );
});
