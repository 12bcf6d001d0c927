import { setMaxListeners } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { createLimiter, type HostLimiter } from '../../src/http/limiter.ts';
import { ask, client, closeAll, type Handler, serve, steppingClock, textOf } from './fixture.ts';

afterEach(closeAll);

const never = new AbortController().signal;
setMaxListeners(0, never);

/** A server that takes so many requests in each second of the clock, and says how long to wait, or does not. */
function limited(clock: { now(): number }, perSecond: number, retryAfter?: string): Handler {
  let second = -1;
  let taken = 0;
  return (_request, response) => {
    const now = Math.floor(clock.now() / 1000);
    if (now !== second) taken = 0;
    second = now;
    taken += 1;
    if (taken <= perSecond) response.end('ok');
    else response.writeHead(429, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end('slow down');
  };
}

function world(maxRps: Readonly<Record<string, number>> = {}) {
  const clock = steppingClock();
  const limiter = createLimiter({ clock, maxRps });
  /** When requests were let out: the clock may have gone on when they arrive. */
  const times: number[] = [];
  const recording: HostLimiter = {
    ...limiter,
    async ready(host, signal) {
      await limiter.ready(host, signal);
      times.push(Math.round(clock.now()));
    },
  };
  return { clock, times, transport: () => client({ clock, limiter: recording, random: Math.random }) };
}

describe('a registry that limits its rate', () => {
  it('of one read a second with Retry-After: 1 gives eight sources what they want', async () => {
    const { clock, transport } = world();
    const server = await serve(limited(clock, 1, '1'));
    const http = transport();
    const all = Array.from({ length: 8 }, (_, index) => ask(http, server.host, `/${index}`, { signal: never }));
    for (const response of await Promise.all(all)) expect(await textOf(response)).toBe('ok');
    expect(clock.now()).toBeLessThan(30_000);
    expect(server.requests.length).toBeLessThan(8 * 4);
  });

  it.each([undefined, '1'])('of ten writes a second takes a hundred and fifty, with Retry-After: %s', async (after) => {
    const { clock, transport } = world();
    const server = await serve(limited(clock, 10, after));
    const http = transport();
    const put = (index: number) =>
      ask(http, server.host, `/${index}`, { method: 'PUT', body: Buffer.from('x'), signal: never });
    const answers = await Promise.all(Array.from({ length: 150 }, (_, index) => put(index)));
    for (const response of answers) expect(await textOf(response)).toBe('ok');
    // 15 s at best; refusals cost time, and must not cost much of it.
    expect(clock.now()).toBeLessThan(60_000);
    expect(server.requests.length).toBeLessThan(150 * 2);
  });

  it('after a wait is asked one by one, not by all that have waited', async () => {
    const { times, transport } = world();
    const server = await serve((_request, response) => {
      if (server.requests.length <= 20) response.writeHead(429, { 'retry-after': '2' }).end();
      else response.end('ok');
    });
    const http = transport();
    const all = Array.from({ length: 20 }, () => ask(http, server.host, '/', { signal: never }).then(textOf));
    await Promise.all(all);
    const after = times.slice(20);
    expect(after.length).toBe(20);
    expect(after[0]).toBeGreaterThanOrEqual(2000);
    expect(new Set(after).size).toBe(20);
    // And faster with every answer.
    expect((after.at(-1) ?? 0) - (after[0] ?? 0)).toBeLessThan(1000);
  });

  it('and answers nothing else is given up after five minutes, whatever the retries are', async () => {
    const { clock, transport } = world();
    const server = await serve(limited(clock, 0));
    const response = await ask(transport(), server.host, '/', { signal: never, retries: 1 });
    expect(response.status).toBe(429);
    await response.discard();
    expect(clock.now()).toBeGreaterThan(300_000);
    expect(clock.now()).toBeLessThan(400_000);
  });

  it('is waited for as long as it answers anything at all', async () => {
    const { clock, transport } = world();
    const server = await serve((request, response) => {
      const busy = request.url === '/late' && clock.now() < 900_000;
      if (busy) response.writeHead(429, { 'retry-after': '100' }).end();
      else response.end('ok');
    });
    const http = transport();
    const late = ask(http, server.host, '/late', { signal: never }).then(textOf);
    const others = (async () => {
      for (let count = 0; clock.now() < 900_000; count += 1) {
        await textOf(await ask(http, server.host, `/${count}`, { signal: never }));
        await clock.sleep(50_000, never);
      }
    })();
    expect(await late).toBe('ok');
    await others;
  });

  it('is not waited for without retries', async () => {
    const { clock, transport } = world();
    const server = await serve(limited(clock, 0, '1'));
    const response = await ask(transport(), server.host, '/', { retries: 0 });
    expect(response).toMatchObject({ status: 429, sends: 1 });
    await response.discard();
  });
});

describe('--max-rps', () => {
  it('holds for every request of its host, be it sent beside the others', async () => {
    const server = await serve((_request, response) => response.end('ok'));
    const { times, transport } = world({ [server.host]: 5 });
    const http = transport();
    const place = { host: server.host, release: () => undefined };
    const beside = { method: 'DELETE', aside: true, place, signal: never } as const;
    await Promise.all([
      ...Array.from({ length: 5 }, () => ask(http, server.host, '/', { signal: never }).then(textOf)),
      ...Array.from({ length: 5 }, () => ask(http, server.host, '/', beside).then(textOf)),
    ]);
    expect(times).toEqual([0, 200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800]);
  });
});

describe('a request that is sent aside', () => {
  const beside = { method: 'DELETE', aside: true, retries: 0 } as const;

  it('slows nobody when it is answered 429', async () => {
    const server = await serve((request, response) => {
      if (request.method === 'DELETE') response.writeHead(429, { 'retry-after': '60' }).end();
      else response.end('ok');
    });
    const http = client();
    await (await ask(http, server.host, '/', beside)).discard();
    await Promise.all(Array.from({ length: 40 }, () => ask(http, server.host, '/').then(textOf)));
    expect(http.clock.slept).toEqual([]);
  });

  it('is not sent to a host that wants to be left alone', async () => {
    const { clock, transport } = world();
    const server = await serve(limited(clock, 0, '60'));
    const http = transport();
    await (await ask(http, server.host, '/', { retries: 0 })).discard();
    await expect(ask(http, server.host, '/', beside)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    expect(server.requests).toHaveLength(1);
  });
});
