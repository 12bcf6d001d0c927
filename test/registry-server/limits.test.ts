import { describe, expect, it } from 'vitest';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { send, upload } from './http.ts';

/** A registry whose clock is turned by hand. */
function limited(
  limit: ProfileChanges['limit'],
  use: (registry: RunningRegistry, pass: (ms: number) => void) => Promise<void>,
) {
  let now = 1_000_000;
  const pass = (ms: number): void => {
    now += ms;
  };
  return withRegistry({ options: { profile: { limit: limit ?? {} }, now: () => now } }, (registry) =>
    use(registry, pass),
  );
}

const pull = async (registry: RunningRegistry, method = 'GET') => send(registry, method, '/v2/a/b/manifests/1');

describe('limit', () => {
  it('pull.perSec: 429 with Retry-After for the manifest read too many, and again free a second later', () =>
    limited({ pull: { perSec: 2, retryAfter: 3 } }, async (registry, pass) => {
      seedImage(registry, 'a/b', '1');
      const statuses = [await pull(registry), await pull(registry), await pull(registry)].map(
        (answer) => answer.status,
      );
      expect(statuses).toEqual([200, 200, 429]);
      expect(await pull(registry)).toMatchObject({ codes: ['TOOMANYREQUESTS'], headers: { 'retry-after': '3' } });
      expect((await pull(registry, 'HEAD')).status).toBe(200);
      pass(1000);
      expect((await pull(registry)).status).toBe(200);
    }));

  it('pull.countHead counts HEAD too', () =>
    limited({ pull: { perSec: 1, countHead: true } }, async (registry) => {
      seedImage(registry, 'a/b', '1');
      expect((await pull(registry, 'HEAD')).status).toBe(200);
      expect((await pull(registry)).status).toBe(429);
    }));

  it('pull.perWindow and headers: what is left is told, and then it is over', () =>
    limited({ pull: { perWindow: 2, headers: true, retryAfter: 0 } }, async (registry, pass) => {
      seedImage(registry, 'a/b', '1');
      expect((await pull(registry)).headers).toMatchObject({
        'ratelimit-limit': '2;w=21600',
        'ratelimit-remaining': '1;w=21600',
      });
      expect((await pull(registry)).headers['ratelimit-remaining']).toBe('0;w=21600');
      pass(60_000);
      const over = await pull(registry);
      expect(over.status).toBe(429);
      expect(over.headers['retry-after']).toBeUndefined();
    }));

  it('commitPerSec limits closing PUTs and manifest PUTs, each by itself', () =>
    limited({ commitPerSec: 1, retryAfter: 0 }, async (registry, pass) => {
      expect((await upload(registry, 'a/b', Buffer.from('1'))).status).toBe(201);
      const second = await upload(registry, 'a/b', Buffer.from('2'));
      expect(second.status).toBe(429);
      expect(second.headers['retry-after']).toBeUndefined();
      const body = '{"layers":[]}';
      const headers = { 'content-type': 'application/vnd.oci.image.manifest.v1+json' };
      expect((await send(registry, 'PUT', '/v2/a/b/manifests/1', { body, headers })).status).toBe(201);
      expect((await send(registry, 'PUT', '/v2/a/b/manifests/1', { body, headers })).status).toBe(429);
      pass(1000);
      expect((await upload(registry, 'a/b', Buffer.from('2'))).status).toBe(201);
    }));

  it('allPerSec limits everything, and body text is no JSON', () =>
    limited({ allPerSec: 1, retryAfter: 2, body: 'text' }, async (registry) => {
      expect((await send(registry, 'GET', '/v2/')).status).toBe(200);
      const answer = await send(registry, 'GET', '/v2/');
      expect(answer).toMatchObject({ status: 429, headers: { 'retry-after': '2' } });
      expect(answer.headers['content-type']).toMatch(/^text\/plain/);
      expect(() => JSON.parse(answer.bytes.toString())).toThrow();
    }));
});

describe('proxy', () => {
  it('maxBody: a page with 413, and the connection closes', () =>
    withRegistry({ proxy: { maxBody: 4 } }, async (registry) => {
      expect((await upload(registry, 'a/b', Buffer.from('1234'))).status).toBe(201);
      const answer = await upload(registry, 'a/b', Buffer.from('12345'));
      expect(answer).toMatchObject({ status: 413, headers: { 'content-type': 'text/html', connection: 'close' } });
    }));

  it('html false: 413 without a body', () =>
    withRegistry({ proxy: { maxBody: 4, html: false } }, async (registry) => {
      const answer = await upload(registry, 'a/b', Buffer.from('12345'));
      expect([answer.status, answer.bytes.length]).toEqual([413, 0]);
    }));

  it('closeEarly: the connection is reset instead', () =>
    withRegistry({ proxy: { maxBody: 4, closeEarly: true } }, async (registry) => {
      await expect(upload(registry, 'a/b', Buffer.from('12345'))).rejects.toThrow(/ECONNRESET|hang up|EPIPE/);
    }));
});

describe('answer.latencyMs', () => {
  it('delays every answer', () =>
    withRegistry({ answer: { latencyMs: 30 } }, async (registry) => {
      const before = performance.now();
      await send(registry, 'GET', '/v2/');
      expect(performance.now() - before).toBeGreaterThan(25);
    }));
});
