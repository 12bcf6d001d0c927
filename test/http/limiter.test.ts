import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/http/limiter.ts';
import type { CopyPlaces, Place } from '../../src/http/message.ts';
import { jumpingClock } from './fixture.ts';

const MiB = 1024 * 1024;
const BIG = 5 * MiB;
const never = new AbortController().signal;

function limiter(options: { requests?: number; jobs?: number; maxRps?: Record<string, number> } = {}) {
  const clock = jumpingClock();
  return { clock, ...createLimiter({ clock, ...options }) };
}

/** How many of the promises have been fulfilled by now. */
async function settled(promises: readonly Promise<unknown>[]): Promise<number> {
  let count = 0;
  for (const promise of promises) promise.then(() => (count += 1)).catch(() => undefined);
  await turn();
  return count;
}

describe('requests', () => {
  it('are 64 at a time on a host, and each host has its own', async () => {
    const { take } = limiter();
    const one = Array.from({ length: 70 }, () => take('a.test', never));
    const other = Array.from({ length: 70 }, () => take('b.test', never));
    expect(await settled([...one, ...other])).toBe(128);
  });

  it('count Docker Hub by all its names as one host', async () => {
    const { take } = limiter({ requests: 2 });
    const names = ['docker.io', 'index.docker.io', 'registry-1.docker.io', 'registry-1.docker.io:443'];
    expect(await settled(names.map((name) => take(name, never)))).toBe(2);
  });

  it('are served in the order in which they came', async () => {
    const { take } = limiter({ requests: 2 });
    const held = await Promise.all([take('a', never), take('a', never)]);
    const order: number[] = [];
    for (let index = 0; index < 5; index += 1) {
      void take('a', never).then((place) => {
        order.push(index);
        place.release();
      });
    }
    for (const place of held) place.release();
    await turn();
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it('that may go last go when nobody else waits, in their order', async () => {
    const { take, takeCopy } = limiter({ requests: 2 });
    const held = await Promise.all([take('a', never), take('a', never)]);
    const order: string[] = [];
    const note = (name: string) => (given: Place | CopyPlaces) => {
      order.push(name);
      given.release();
    };
    const late = ['first look', 'second look'].map((name) => take('a', never, { last: true }).then(note(name)));
    const copy = takeCopy({ source: 'a', target: 'a', size: 1, signal: never }).then(note('copy'));
    const other = take('a', never).then(note('request'));
    for (const place of held) {
      place.release();
      await turn();
    }
    await Promise.all([...late, copy, other]);
    expect(order).toEqual(['copy', 'request', 'first look', 'second look']);
  });

  it('that may go last take what is free at once', async () => {
    const { take } = limiter({ requests: 2 });
    expect(await settled([take('a', never, { last: true }), take('a', never, { last: true })])).toBe(2);
  });

  it('may be given back twice without harm', async () => {
    const { take } = limiter({ requests: 2 });
    const place = await take('a', never);
    place.release();
    place.release();
    expect(await settled([take('a', never), take('a', never), take('a', never)])).toBe(2);
  });

  it('leave the queue when they are aborted, and let the next ones by', async () => {
    const { take, takeCopy } = limiter({ requests: 2 });
    const held = await take('a', never);
    const stop = new AbortController();
    const reason = new Error('stop');
    const copy = takeCopy({ source: 'a', target: 'a', size: 1, signal: stop.signal });
    const behind = take('a', never);
    expect(await settled([behind])).toBe(0);
    stop.abort(reason);
    await expect(copy).rejects.toBe(reason);
    expect(await settled([behind])).toBe(1);
    held.release();
    await expect(take('a', stop.signal)).rejects.toBe(reason);
  });
});

describe('requests of those who hold a place already', () => {
  const holding = { holding: true };

  it('go beyond the width where it is used up, one at a time', async () => {
    const { take } = limiter({ requests: 2 });
    const held = await Promise.all([take('a', never), take('a', never)]);
    const first = take('a', never, holding);
    const second = take('a', never, holding);
    expect(await settled([first, second])).toBe(1);
    (await first).release();
    expect(await settled([second])).toBe(1);
    const third = take('a', never, holding);
    expect(await settled([third])).toBe(0);
    held[0]?.release();
    expect(await settled([third])).toBe(1);
    expect(await settled([take('a', never)])).toBe(0);
  });

  it('go before all others, and leave the queue when they are aborted', async () => {
    const { take } = limiter({ requests: 2 });
    const held = await Promise.all([take('a', never), take('a', never), take('a', never, holding)]);
    const stop = new AbortController();
    const earlier = take('a', never);
    const gone = take('a', stop.signal, holding);
    const later = take('a', never, holding);
    stop.abort(new Error('stop'));
    await expect(gone).rejects.toThrow('stop');
    held[0]?.release();
    expect(await settled([later])).toBe(1);
    expect(await settled([earlier])).toBe(0);
    held[1]?.release();
    expect(await settled([earlier])).toBe(1);
  });
});

describe('copies', () => {
  it('of more than 4 MiB are as many at a time as there are jobs', async () => {
    const { takeCopy } = limiter({ jobs: 3 });
    const copies = Array.from({ length: 6 }, () =>
      takeCopy({ source: 'a', target: 'a', size: 4 * MiB + 1, signal: never }),
    );
    expect(await settled(copies)).toBe(3);
    (await copies[0])?.release();
    expect(await settled(copies)).toBe(4);
  });

  it('up to 4 MiB take places only', async () => {
    const { takeCopy } = limiter({ jobs: 1 });
    const copies = Array.from({ length: 40 }, () =>
      takeCopy({ source: 'a', target: 'a', size: 4 * MiB, signal: never }),
    );
    expect(await settled(copies)).toBe(32);
  });

  it('from memory take the target’s place only', async () => {
    const { takeCopy } = limiter({ requests: 2 });
    const one = await takeCopy({ target: 'a', size: 1, signal: never });
    expect(one.source).toBeUndefined();
    expect(await settled([takeCopy({ target: 'a', size: 1, signal: never })])).toBe(1);
  });

  it('that wait for a job let requests and small copies pass', async () => {
    const { take, takeCopy } = limiter({ jobs: 1 });
    await takeCopy({ source: 'a', target: 'b', size: BIG, signal: never });
    const waiting = takeCopy({ source: 'a', target: 'b', size: BIG, signal: never });
    const others = [take('a', never), take('b', never), takeCopy({ source: 'a', target: 'b', size: 1, signal: never })];
    expect(await settled(others)).toBe(3);
    expect(await settled([waiting])).toBe(0);
  });

  it('that go beside another pass those that wait, within the number of jobs', async () => {
    const { takeCopy } = limiter({ jobs: 2 });
    const copy = (source: string | undefined, target: string, beside = false) =>
      takeCopy({ ...(source === undefined ? {} : { source }), target, size: BIG, beside, signal: never });
    await Promise.all([copy('s', 'a'), copy('s', 'a')]);
    const waiting = copy('s', 'b');
    expect(await settled([waiting, copy(undefined, 'b')])).toBe(0);
    const beside = [1, 2, 3].map(() => copy(undefined, 'b', true));
    expect(await settled(beside)).toBe(2);
    expect(await settled([waiting])).toBe(0);
  });

  it('that go beside another go before all that wait for places', async () => {
    const { take, takeCopy } = limiter({ requests: 2 });
    const held = await Promise.all([take('a', never), take('a', never)]);
    const waiting = [takeCopy({ source: 'a', target: 'a', size: 1, signal: never }), take('a', never)];
    const beside = takeCopy({ target: 'a', size: 1, beside: true, signal: never });
    held[0]?.release();
    expect(await settled([beside])).toBe(1);
    expect(await settled(waiting)).toBe(0);
  });

  it('that wait for places are not passed by requests', async () => {
    const { take, takeCopy } = limiter({ requests: 2 });
    const first = await take('a', never);
    await take('a', never);
    const copy = takeCopy({ source: 'a', target: 'a', size: 1, signal: never });
    const later = take('a', never);
    first.release();
    expect(await settled([later])).toBe(0);
    expect(await settled([copy])).toBe(0);
  });

  it('hold no end while they wait for the other', async () => {
    const { take, takeCopy } = limiter({ requests: 2 });
    const held = await Promise.all([take('b', never), take('b', never)]);
    const stop = new AbortController();
    const copy = takeCopy({ source: 'a', target: 'b', size: 1, signal: stop.signal });
    expect(await settled([copy])).toBe(0);
    stop.abort(new Error('stop'));
    expect(await settled([take('a', never), take('a', never)])).toBe(2);
    for (const place of held) place.release();
  });
});

describe('a 429', () => {
  it('halves both widths once for a burst, never under 2 requests and 1 copy', async () => {
    const { clock, overrun, take, takeCopy } = limiter();
    const sentAt = clock.now();
    for (let count = 0; count < 64; count += 1) overrun('a', 0, sentAt);
    expect(await settled(Array.from({ length: 64 }, () => take('a', never)))).toBe(32);
    for (let count = 0; count < 20; count += 1) overrun('b', 0, clock.now());
    expect(await settled(Array.from({ length: 5 }, () => take('b', never)))).toBe(2);
    for (let count = 0; count < 20; count += 1) overrun('c', 0, clock.now());
    expect(await settled(Array.from({ length: 5 }, () => takeCopy({ target: 'c', size: BIG, signal: never })))).toBe(1);
  });

  it('is got over by one place for each window of good answers', async () => {
    const { clock, overrun, good, take } = limiter();
    overrun('a', 0, clock.now());
    for (let count = 0; count < 32; count += 1) good('a');
    const places = Array.from({ length: 64 }, () => take('a', never));
    expect(await settled(places)).toBe(33);
    for (let count = 0; count < 32; count += 1) good('a');
    expect(await settled(places)).toBe(33);
    good('a');
    expect(await settled(places)).toBe(34);
  });

  it('keeps all requests of the host waiting, and those of no other', async () => {
    const { clock, overrun, ready } = limiter();
    overrun('a', 5000, clock.now());
    await ready('b', never);
    expect(clock.slept).toEqual([]);
    const start = clock.now();
    await Promise.all([ready('a', never), ready('a', never)]);
    expect(clock.now() - start).toBeGreaterThanOrEqual(4990);
  });
});

describe('--max-rps', () => {
  it('spaces the requests of its host evenly', async () => {
    const { clock, ready } = limiter({ maxRps: { 'docker.io': 4 } });
    const times: number[] = [];
    const start = clock.now();
    for (let count = 0; count < 5; count += 1) {
      await ready('registry-1.docker.io', never);
      times.push(Math.round((clock.now() - start) / 10) * 10);
    }
    expect(times).toEqual([0, 250, 500, 750, 1000]);
    await ready('quay.io', never);
    expect(clock.slept).toHaveLength(4);
  });

  it('gives up waiting when it is aborted', async () => {
    const { ready } = limiter({ maxRps: { a: 1 } });
    await ready('a', never);
    await expect(ready('a', AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
  });
});

describe('for any order of requests, copies, 429s and aborts', () => {
  type Step =
    | { readonly kind: 'take'; readonly host: string; readonly last: boolean }
    | {
        readonly kind: 'copy';
        readonly source: string | undefined;
        readonly target: string;
        readonly size: number;
        readonly beside: boolean;
      }
    | { readonly kind: 'release' | 'abort'; readonly index: number }
    | { readonly kind: 'overrun' | 'good'; readonly host: string };

  const host = fc.constantFrom('a', 'b');
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('take' as const), host, last: fc.boolean() }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('copy' as const),
        source: fc.option(host, { nil: undefined }),
        target: host,
        size: fc.constantFrom(1, BIG),
        beside: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constantFrom('release' as const, 'abort' as const), index: fc.nat() }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('overrun' as const, 'good' as const), host }) },
  );

  it('no width is exceeded, nobody waits for ever, and everything is given back', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 3 }),
        async (steps, requests, jobs) => {
          const { clock, ...limits } = limiter({ requests, jobs });
          const width = Math.max(2, requests);
          const use = new Map([
            ['a', 0],
            ['b', 0],
          ]);
          const jobUse = new Map([
            ['a', 0],
            ['b', 0],
          ]);
          const count = (map: Map<string, number>, key: string, by: number, most: number) => {
            map.set(key, (map.get(key) ?? 0) + by);
            expect(map.get(key)).toBeLessThanOrEqual(most);
            expect(map.get(key)).toBeGreaterThanOrEqual(0);
          };
          const held: (() => void)[] = [];
          const waiting = new Map<AbortController, Promise<void>>();
          const start = (wait: (signal: AbortSignal) => Promise<() => void>) => {
            const controller = new AbortController();
            const done = wait(controller.signal).then(
              (release) => {
                held.push(release);
                waiting.delete(controller);
              },
              () => {
                waiting.delete(controller);
              },
            );
            waiting.set(controller, done);
          };
          const hold = (places: Place | CopyPlaces, hosts: readonly string[], job: boolean) => {
            for (const name of hosts) count(use, name, 1, width);
            if (job) for (const name of new Set(hosts)) count(jobUse, name, 1, jobs);
            return () => {
              for (const name of hosts) count(use, name, -1, width);
              if (job) for (const name of new Set(hosts)) count(jobUse, name, -1, jobs);
              places.release();
            };
          };
          for (const one of steps) {
            switch (one.kind) {
              case 'take':
                start(async (signal) =>
                  hold(await limits.take(one.host, signal, { last: one.last }), [one.host], false),
                );
                break;
              case 'copy': {
                const { source, target, size, beside } = one;
                const ends = source === undefined ? [target] : [source, target];
                start(async (signal) =>
                  hold(
                    await limits.takeCopy({
                      target,
                      size,
                      beside,
                      signal,
                      ...(source === undefined ? {} : { source }),
                    }),
                    ends,
                    size === BIG,
                  ),
                );
                break;
              }
              case 'release':
                if (held.length > 0) held.splice(one.index % held.length, 1)[0]?.();
                break;
              case 'abort': {
                const all = [...waiting.keys()];
                all[one.index % all.length]?.abort(new Error('stop'));
                break;
              }
              case 'overrun':
                limits.overrun(one.host, 0, clock.now());
                break;
              case 'good':
                limits.good(one.host);
            }
            await turn();
          }
          // Whoever holds places gives them back; then everybody must have had a turn.
          for (let rounds = 0; rounds < 200 && (held.length > 0 || waiting.size > 0); rounds += 1) {
            held.shift()?.();
            await turn();
          }
          expect(waiting.size).toBe(0);
          expect([...use.values(), ...jobUse.values()]).toEqual([0, 0, 0, 0]);
          // Nothing was lost on the way: a full width is there again.
          for (let times = 0; times < 100; times += 1) for (const name of ['a', 'b']) limits.good(name);
          const all = Array.from({ length: width }, () => limits.take('a', never));
          expect(await settled(all)).toBe(width);
        },
      ),
      { numRuns: 300 },
    );
  });
});
