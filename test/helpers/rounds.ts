import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import type { Clock } from '../../src/publish/ports.ts';
import type { JournalEntry } from '../../src/registry-server/index.ts';

/** How long nothing may come before a round is over, in ms. */
const QUIET = 6;

/** Turns of the event loop after that: what had come while the machine was busy elsewhere is read in these. */
const TURNS = 4;

/** Time in steps: no request is handled before the client has sent all that it can send without an answer. */
export type Rounds = {
  /** For one registry or several. */
  readonly options: { readonly hold: () => Promise<void>; readonly onEntry: () => void };
  /** Counts anew. */
  begin(): void;
  /** How many steps it took. */
  readonly count: number;
  /** Most requests that were held at a time. */
  readonly widest: number;
};

/**
 * Requests of one round are answered together, so that a run takes as many rounds as it has requests in a row, however
 * busy the machine is: client and registry live in one event loop, and what stops one stops the other.
 */
export function createRounds(): Rounds {
  let held: (() => void)[] = [];
  let count = 0;
  let widest = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Something has happened that may make the client send more. */
  function stir(): void {
    clearTimeout(timer);
    timer = setTimeout(() => settle(held.length, TURNS), QUIET);
  }

  function settle(seen: number, turns: number): void {
    if (held.length !== seen) {
      stir();
      return;
    }
    if (turns > 0) {
      setImmediate(() => settle(seen, turns - 1));
      return;
    }
    if (seen === 0) return;
    count += 1;
    widest = Math.max(widest, seen);
    const now = held;
    held = [];
    for (const go of now) go();
  }

  return {
    options: {
      hold: () =>
        new Promise<void>((resolve) => {
          held.push(resolve);
          stir();
        }),
      onEntry: stir,
    },
    begin() {
      count = 0;
      widest = 0;
    },
    get count() {
      return count;
    },
    get widest() {
      return widest;
    },
  };
}

/** No wait ever ends: whoever needs one to go on stands still for good. */
export function frozenClock(): Clock {
  const sleep = (_milliseconds: number, signal: AbortSignal): Promise<void> =>
    new Promise((_resolve, reject) => {
      if (signal.aborted) reject(signal.reason);
      else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  return { ...SYSTEM_CLOCK, sleep };
}

/**
 * Most requests of which each begins after the one before has ended. Interval scheduling: taking what ends first leaves
 * most room for the rest, so the greedy choice is the longest.
 */
export function depthOf(journal: readonly JournalEntry[]): number {
  let depth = 0;
  let free = 0;
  const ended = journal.flatMap(({ start, end }) => (end === undefined ? [] : [{ start, end }]));
  for (const { start, end } of ended.sort((a, b) => a.end - b.end)) {
    if (start < free) continue;
    depth += 1;
    free = end;
  }
  return depth;
}
