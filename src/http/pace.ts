import type { Clock } from './clock.ts';
import { deferred, orAborted } from './promises.ts';

const SECOND = 1000;

/** What is learnt from a refusal when nothing was answered in the second before it: requests a second. */
const FIRST_RATE = 10;
/** Never slower than this by our own choice; a registry that wants less says so with each refusal. Requests a second. */
const LEAST_RATE = 0.5;
/** From here on no request need wait for another: 64 at a time are no more than that over any distance. */
const FREE_RATE = 500;
/** A second burst of refusals: what was learnt was still too much. */
const SLOWER = 0.7;
/** Each good answer: 8 of them double a rate that came of one refusal, which may have been a whim. */
const FASTER: number = 2 ** (1 / 8);
/** 32 of them double one that was refused as well. */
const CAREFULLY: number = 2 ** (1 / 32);

/**
 * How fast requests follow each other on one host. Until a host refuses any, as fast as they come, or as `--max-rps`
 * has it. After a refusal, as fast as the host has answered in the second before, then faster again with every good
 * answer: requests that have waited for the same moment go out one by one, or most of them would be refused once more.
 */
export interface Pace {
  /** Resolves when the next request may be sent; who asked first is served first. `aside`: by the user's rate alone. */
  ready(signal: AbortSignal, aside?: boolean): Promise<void>;
  good(): void;
  /** A refusal; the host asks for `wait` ms. Whether it is news: see {@link HostLimiter.overrun}. */
  overrun(wait: number, sentAt: number): boolean;
  /** Bursts of refusals since the last good answer. */
  refusals(): number;
  lastGood(): number | undefined;
  isPaused(): boolean;
}

/** @param most requests a second that the user allows */
export function createPace(clock: Clock, most: number | undefined): Pace {
  const goods: number[] = [];
  let rate = Number.POSITIVE_INFINITY;
  /** Whether requests at this rate, or faster ones, have been refused. */
  let tested = false;
  let refusals = 0;
  let lastGood: number | undefined;
  let slowedAt = Number.NEGATIVE_INFINITY;
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let nextSlot = Number.NEGATIVE_INFINITY;
  /** Ends when the one that asked last has gone; undefined when nobody waits. */
  let last: Promise<undefined> | undefined;

  const interval = () => SECOND / Math.min(rate, most ?? Number.POSITIVE_INFINITY);
  const opensAt = () => Math.max(pausedUntil, nextSlot);

  /** How many were answered well in the second that ends now. */
  function recent(now: number): number {
    while ((goods[0] ?? now) <= now - SECOND) goods.shift();
    return goods.length;
  }

  function go(): void {
    // The bucket holds one request: a burst after a rest would be refused by registries that count per second.
    nextSlot = Math.max(clock.now(), nextSlot) + interval();
  }

  return {
    async ready(signal, aside = false) {
      signal.throwIfAborted();
      if (aside && most === undefined) return;
      if (last === undefined && opensAt() <= clock.now()) return go();
      const before = last;
      const turn = deferred<undefined>();
      last = turn.promise;
      try {
        if (before !== undefined) await orAborted(before, signal);
        // A pause may begin or be prolonged while this waits.
        for (let wait = opensAt() - clock.now(); wait > 0; wait = opensAt() - clock.now()) {
          await clock.sleep(wait, signal);
        }
        go();
      } finally {
        // Who leaves the queue from the middle lets nobody pass those before it.
        const leave = () => {
          if (last === turn.promise) last = undefined;
          turn.resolve(undefined);
        };
        if (before === undefined) leave();
        else before.then(leave);
      }
    },

    good() {
      const now = clock.now();
      recent(now);
      goods.push(now);
      lastGood = now;
      refusals = 0;
      rate *= tested ? CAREFULLY : FASTER;
      if (rate < FREE_RATE) return;
      rate = Number.POSITIVE_INFINITY;
      tested = false;
    },

    overrun(wait, sentAt) {
      const now = clock.now();
      pausedUntil = Math.max(pausedUntil, now + wait);
      if (sentAt <= slowedAt) return false;
      slowedAt = now;
      refusals += 1;
      tested = rate !== Number.POSITIVE_INFINITY;
      const slower = tested ? rate * SLOWER : FIRST_RATE;
      const answered = recent(now);
      rate = Math.max(LEAST_RATE, answered === 0 ? slower : Math.min(rate * SLOWER, answered));
      return true;
    },

    refusals: () => refusals,
    lastGood: () => lastGood,
    isPaused: () => pausedUntil > clock.now(),
  };
}
