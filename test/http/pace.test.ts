import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPace } from '../../src/http/pace.ts';

const never = new AbortController().signal;

/** A clock that stands until it is told to go on, from sleeper to sleeper. */
function ticking() {
  let time = 0;
  const sleepers = new Set<{ readonly until: number; readonly wake: () => void }>();
  return {
    now: () => time,
    epoch: () => time,
    sleep(milliseconds: number, signal: AbortSignal) {
      return new Promise<void>((resolve, reject) => {
        const sleeper = { until: time + milliseconds, wake: resolve };
        sleepers.add(sleeper);
        signal.addEventListener('abort', () => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        });
      });
    },
    async advance(milliseconds: number) {
      const end = time + milliseconds;
      for (;;) {
        await turn();
        const next = Math.min(end, ...[...sleepers].map(({ until }) => until));
        time = Math.max(time, next);
        const due = [...sleepers].filter(({ until }) => until <= time);
        for (const sleeper of due) {
          sleepers.delete(sleeper);
          sleeper.wake();
        }
        await turn();
        if (due.length === 0) return;
      }
    },
  };
}

function pace(most?: number) {
  const clock = ticking();
  const times: number[] = [];
  const made = createPace(clock, most);
  const ask = () => made.ready(never).then(() => times.push(Math.round(clock.now())));
  return { clock, times, ask, ...made };
}

describe('the pace of a host', () => {
  it('is that of the requests until one is refused', async () => {
    const { ask, times } = pace();
    for (let count = 0; count < 1000; count += 1) ask();
    await turn();
    expect(times).toHaveLength(1000);
  });

  it('after a refusal is that of the answers of the second before', async () => {
    const { clock, ask, good, overrun, times } = pace();
    for (let count = 0; count < 20; count += 1) good();
    await clock.advance(100);
    overrun(1000, 50);
    for (let count = 0; count < 5; count += 1) ask();
    await clock.advance(5000);
    expect(times).toEqual([1100, 1150, 1200, 1250, 1300]);
  });

  it('holds up nothing that goes aside, unless the user set a rate', async () => {
    const { clock, overrun, ready } = pace();
    overrun(5000, 50);
    await ready(never, true);
    expect(clock.now()).toBe(0);

    const own = pace(1);
    const gone = [own.ready(never, true), own.ready(never, true)].map((each) => each.then(() => own.clock.now()));
    await own.clock.advance(1000);
    expect(await Promise.all(gone)).toEqual([0, 1000]);
  });

  it('doubles with every eight good answers, and is free again in the end', async () => {
    const { clock, ask, good, overrun, times } = pace();
    overrun(0, 0.5);
    await clock.advance(1);
    for (let count = 0; count < 8; count += 1) good();
    for (let count = 0; count < 3; count += 1) ask();
    await clock.advance(1000);
    expect(times.map((time) => time - (times[0] ?? 0))).toEqual([0, 50, 100]);
    for (let count = 0; count < 60; count += 1) good();
    for (let count = 0; count < 100; count += 1) ask();
    await clock.advance(1);
    expect(times).toHaveLength(103);
  });

  it('gets slower with each burst of refusals, and not with each refusal of a burst', async () => {
    const { clock, ask, overrun, refusals, times } = pace();
    await clock.advance(10);
    for (let count = 0; count < 64; count += 1) overrun(0, 5);
    expect(refusals()).toBe(1);
    await clock.advance(10);
    overrun(0, 15);
    expect(refusals()).toBe(2);
    for (let count = 0; count < 3; count += 1) ask();
    await clock.advance(1000);
    expect(times.map((time) => time - (times[0] ?? 0))).toEqual([0, 143, 286]);
  });

  it('never falls below one request in two seconds by itself', async () => {
    const { clock, ask, overrun, times } = pace();
    for (let count = 0; count < 30; count += 1) {
      await clock.advance(10);
      overrun(0, clock.now() - 1);
    }
    for (let count = 0; count < 3; count += 1) ask();
    await clock.advance(10_000);
    expect(times.map((time) => time - (times[0] ?? 0))).toEqual([0, 2000, 4000]);
  });

  it('holds what waits when another wait begins meanwhile', async () => {
    const { clock, ask, overrun, times } = pace(10);
    for (let count = 0; count < 4; count += 1) ask();
    await clock.advance(150);
    expect(times).toEqual([0, 100]);
    overrun(1000, 140);
    await clock.advance(5000);
    expect(times.map((time) => time >= 1150 || time <= 100)).toEqual([true, true, true, true]);
    expect((times[3] ?? 0) - (times[2] ?? 0)).toBeGreaterThanOrEqual(100);
  });
});

describe('for any order of requests, answers, refusals, waits and aborts', () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('ask' as const) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('good' as const) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('abort' as const), index: fc.nat() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('overrun' as const),
        wait: fc.integer({ min: 0, max: 5000 }),
        ago: fc.integer({ min: 0, max: 500 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('advance' as const), by: fc.integer({ min: 1, max: 3000 }) }),
    },
  );

  it('all get their turn in the order in which they came, none in a pause, and the user’s rate holds', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
        async (steps, most) => {
          const clock = ticking();
          const made = createPace(clock, most);
          const served: number[] = [];
          const times: number[] = [];
          const waiting = new Map<number, AbortController>();
          const aborted = new Set<number>();
          let next = 0;
          for (const one of steps) {
            if (one.kind === 'ask') {
              const id = next;
              next += 1;
              const controller = new AbortController();
              waiting.set(id, controller);
              made.ready(controller.signal).then(
                () => {
                  expect(made.isPaused()).toBe(false);
                  served.push(id);
                  times.push(clock.now());
                  waiting.delete(id);
                },
                () => {
                  aborted.add(id);
                  waiting.delete(id);
                },
              );
            } else if (one.kind === 'good') made.good();
            else if (one.kind === 'overrun') made.overrun(one.wait, clock.now() - one.ago);
            else if (one.kind === 'advance') await clock.advance(one.by);
            else [...waiting.values()][one.index % Math.max(1, waiting.size)]?.abort(new Error('stop'));
            await turn();
          }
          // The longest pause, and then two seconds for each at the slowest pace.
          await clock.advance(5000 + 2100 * (next + 1));
          expect(waiting.size).toBe(0);
          expect(served).toEqual(Array.from({ length: next }, (_, id) => id).filter((id) => !aborted.has(id)));
          if (most !== undefined) {
            for (const [index, time] of times.entries()) {
              const before = times[index - 1];
              if (before !== undefined) expect(time - before).toBeGreaterThanOrEqual(1000 / most - 0.001);
            }
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
