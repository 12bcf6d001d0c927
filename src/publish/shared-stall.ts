import type { Clock } from './ports.ts';
import type { SharedBody } from './shared-body.ts';
import { later } from './stop.ts';

/** A member that has held up the others for so much longer than it has not is left to itself, in ms. */
const STALLED = 5000;

/** How somebody keeps up with the others. */
export type Pace = {
  body?: Pick<SharedBody, 'asking' | 'full'>;
  /** How much longer, in ms, it has held up the others than it has not. */
  debt: number;
};

/** Who of those that get the same bytes holds up the others. */
export interface Stall {
  /** To be told of every change. `blocked`: nothing more is read, since somebody has no room. */
  update(blocked: boolean): void;
  end(): void;
}

/** Calls `drop` with the one that has no room for too long while others are about to run dry. */
export function createStall<M extends Pace>(members: ReadonlySet<M>, clock: Clock, drop: (member: M) => void): Stall {
  let since = clock.now();
  /** Those that hold up the others since then. */
  let culprits: ReadonlySet<M> = new Set();
  let watched: { readonly member: M; readonly stop: () => void } | undefined;

  function unwatch(): void {
    watched?.stop();
    watched = undefined;
  }

  function account(): void {
    const now = clock.now();
    for (const member of members) {
      const passed = culprits.has(member) ? now - since : since - now;
      member.debt = Math.max(0, member.debt + passed);
    }
    since = now;
  }

  return {
    update: (blocked: boolean): void => {
      account();
      const inNeed = blocked && [...members].some(({ body }) => body?.asking === true);
      const full = inNeed ? [...members].filter(({ body }) => body?.full === true) : [];
      culprits = new Set(full);
      const [worst] = full.sort((one, other) => other.debt - one.debt);
      if (watched?.member === worst) return;
      unwatch();
      if (worst === undefined) return;
      const stop = later(clock, Math.max(0, STALLED - worst.debt), () => {
        watched = undefined;
        drop(worst);
      });
      watched = { member: worst, stop };
    },
    end: unwatch,
  };
}
