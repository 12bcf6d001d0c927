import { setTimeout as realSleep } from 'node:timers/promises';
import type { Clock } from '../../src/publish/ports.ts';

/** What goes on besides waiting: `steps` grows with everything that happens, `open` counts requests under way. */
export type Activity = { readonly steps: () => number; readonly open: () => number };

/** Turns of the event loop in which nothing happens before time is moved on; a connection opens in two or three. */
const QUIET_TURNS = 8;
/** With a request under way the world may merely be slow: so many ms must pass as well. */
const QUIET_TIME = 5;

/**
 * Time that passes only when nothing else is left to happen: whoever waits longest costs as little as whoever waits
 * shortest, and they wake in the right order. Sockets stay real, so that their own time-outs run on real time.
 */
export function simulatedClock(activity: Activity): Clock & { stop(): void } {
  let now = 0;
  let running = false;
  let stopped = false;
  const sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();

  async function quiet(): Promise<void> {
    let seen = activity.steps();
    let since = performance.now();
    for (let turns = 0; turns < QUIET_TURNS || (activity.open() > 0 && performance.now() - since < QUIET_TIME); ) {
      if (turns < QUIET_TURNS) await new Promise(setImmediate);
      else await realSleep(1);
      turns += 1;
      if (activity.steps() === seen) continue;
      seen = activity.steps();
      since = performance.now();
      turns = 0;
    }
  }

  async function run(): Promise<void> {
    running = true;
    while (sleepers.size > 0 && !stopped) {
      await quiet();
      const next = Math.min(...[...sleepers].map(({ at }) => at));
      if (next === Number.POSITIVE_INFINITY) break;
      now = Math.max(now, next);
      for (const sleeper of [...sleepers]) if (sleeper.at <= now) sleeper.wake();
    }
    running = false;
  }

  return {
    now: () => now,
    epoch: () => EPOCH + now,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const over = (settle: () => void) => () => {
          sleepers.delete(sleeper);
          signal.removeEventListener('abort', onAbort);
          settle();
        };
        const onAbort = over(() => reject(signal.reason));
        const sleeper = { at: now + Math.max(0, milliseconds), wake: over(resolve) };
        signal.addEventListener('abort', onAbort, { once: true });
        sleepers.add(sleeper);
        if (!running) void run();
      }),
    stop: () => {
      stopped = true;
    },
  };
}

/** Any day will do. */
const EPOCH = Date.UTC(2026, 10, 30);
