import type { Clock } from './clock.ts';
import { canonicalHost } from './endpoint.ts';
import type { CopyPlaces, Limiter, Place } from './message.ts';
import { createPace, type Pace } from './pace.ts';
import { onAbort } from './promises.ts';

/** @see createLimiter */
export type LimiterOptions = {
  readonly clock: Clock;
  /** Copies of blobs over 4 MiB at a time on a host (`--jobs`). Default 4. */
  readonly jobs?: number;
  /** Requests in flight on a host. Default 64. */
  readonly requests?: number;
  /** Requests a second, by host, at most (`--max-rps`). */
  readonly maxRps?: Readonly<Record<string, number>>;
};

/** What the transport, besides taking places, asks of a limiter and tells it. */
export interface HostLimiter extends Limiter {
  /**
   * Resolves when the host may be sent the next request: no wait is on, and its pace allows it. `aside`: a request that
   * keeps to `--max-rps` alone, not to what the host's refusals have taught.
   */
  ready(host: string, signal: AbortSignal, aside?: boolean): Promise<void>;
  /** An answer that shows that the host keeps up. */
  good(host: string): void;
  /**
   * A 429: halves the host's widths, slows its pace and keeps all requests from it for `wait` ms.
   *
   * @param sentAt when the refused request was sent, by the limiter's clock: answers to requests that left before the
   *   widths were last halved say nothing new, or one burst of refusals would take the widths to the bottom
   */
  overrun(host: string, wait: number, sentAt: number): void;
  /** How many bursts of refusals have come since the last good answer. */
  refusals(host: string): number;
  /** When the last good answer came, by the limiter's clock; undefined before the first. */
  lastGood(host: string): number | undefined;
  /** Whether the host has asked to be left alone for now. */
  isPaused(host: string): boolean;
}

/** Blobs up to here, in bytes, are as quickly copied as asked about, and count as no job. */
export const SMALL_COPY: number = 4 * 1024 * 1024;

const REQUESTS = 64;
const JOBS = 4;
const LEAST_REQUESTS = 2;
const LEAST_JOBS = 1;

type HostState = {
  requests: number;
  /** Whether somebody who holds a place elsewhere has one beyond the width. */
  beyond: boolean;
  jobs: number;
  requestWidth: number;
  jobWidth: number;
  /** Good answers since the widths last changed. */
  good: number;
  readonly pace: Pace;
};

/**
 * In what order waiters are served. `first`: whoever goes beside a copy that holds places and waits for it; it passes also
 * those who wait for a job, and nobody starves by that, since the copy had its turn before them. `last`: what nothing but
 * the end of a list waits for; whoever passes it needs no more than the host gives at a time.
 */
type Turn = 'first' | 'in line' | 'last';

type Waiter = {
  /** Places wanted, by host: 2 where both ends of a copy are on one host. */
  readonly wants: ReadonlyMap<string, number>;
  readonly job: boolean;
  readonly turn: Turn;
  readonly grant: () => void;
};

/** Whoever holds a place already; `beyond` the width is what it is given then. */
type Holder = { readonly host: string; readonly grant: (beyond: boolean) => void };

/**
 * One limiter for the process. Places of one waiter are taken together or not at all, so nobody holds one end of a
 * copy while waiting for the other, and of those in line who waits longest is served first: a later waiter passes an earlier
 * one only where that one would have to wait in any case, for a job. Who cannot but hold a place while waiting for another says so,
 * and gets it though there be none. Hence no deadlock and no starvation.
 */
export function createLimiter(options: LimiterOptions): HostLimiter {
  const { clock } = options;
  // A copy within one host needs two places at once.
  const mostRequests = Math.max(LEAST_REQUESTS, options.requests ?? REQUESTS);
  const mostJobs = options.jobs ?? JOBS;
  const rates = new Map(Object.entries(options.maxRps ?? {}).map(([host, rate]) => [canonicalHost(host), rate]));
  const hosts = new Map<string, HostState>();
  /** Each in the order in which they came. */
  const queues: Readonly<Record<Turn, Set<Waiter>>> = { first: new Set(), 'in line': new Set(), last: new Set() };
  /** Those who hold a place already and want one more. */
  const holders = new Set<Holder>();
  /** How many of them want something of a host. */
  const waiting = new Map<string, number>();

  function enqueue(waiter: Waiter): void {
    queues[waiter.turn].add(waiter);
    for (const host of waiter.wants.keys()) waiting.set(host, (waiting.get(host) ?? 0) + 1);
  }

  function dequeue(waiter: Waiter): void {
    queues[waiter.turn].delete(waiter);
    for (const host of waiter.wants.keys()) {
      const left = (waiting.get(host) ?? 0) - 1;
      if (left > 0) waiting.set(host, left);
      else waiting.delete(host);
    }
  }

  function stateOf(host: string): HostState {
    let state = hosts.get(host);
    if (state === undefined) {
      state = {
        requests: 0,
        beyond: false,
        jobs: 0,
        requestWidth: mostRequests,
        jobWidth: mostJobs,
        good: 0,
        pace: createPace(clock, rates.get(host)),
      };
      hosts.set(host, state);
    }
    return state;
  }

  function serveHolders(): void {
    for (const holder of holders) {
      const state = stateOf(holder.host);
      const beyond = state.requests >= state.requestWidth;
      if (beyond && state.beyond) continue;
      holders.delete(holder);
      if (beyond) state.beyond = true;
      else state.requests += 1;
      holder.grant(beyond);
    }
  }

  /** Serves whom it can, first come first served. */
  function serve(): void {
    serveHolders();
    const noRequest = new Set<string>();
    const noJob = new Set<string>();
    for (const queue of Object.values(queues)) serveQueue(queue, noRequest, noJob);
  }

  /** Adds the hosts of which nothing must be taken by whoever comes later. */
  function serveQueue(queue: ReadonlySet<Waiter>, noRequest: Set<string>, noJob: Set<string>): void {
    for (const waiter of queue) {
      // With nothing left anywhere the rest need not be looked at; there may be thousands.
      if (noRequest.size >= waiting.size) return;
      const wanted = [...waiter.wants];
      const jobFree = ([host]: readonly [string, number]) =>
        (waiter.turn === 'first' || !noJob.has(host)) && stateOf(host).jobs < stateOf(host).jobWidth;
      if (waiter.job && !wanted.every(jobFree)) {
        // It keeps its turn among the jobs. Plain requests may pass it.
        for (const [host] of wanted) noJob.add(host);
        continue;
      }
      const free = ([host, places]: readonly [string, number]) =>
        !noRequest.has(host) && stateOf(host).requests + places <= stateOf(host).requestWidth;
      if (!wanted.every(free)) {
        // Nobody passes it any more: places that come free are kept for it.
        for (const [host] of wanted) noRequest.add(host);
        continue;
      }
      dequeue(waiter);
      for (const [host, places] of wanted) {
        stateOf(host).requests += places;
        if (waiter.job) stateOf(host).jobs += 1;
      }
      waiter.grant();
    }
  }

  /** Waits for its turn; `make` hands out what was counted for it. */
  async function queued<T>(
    wants: ReadonlyMap<string, number>,
    { job, turn }: Pick<Waiter, 'job' | 'turn'>,
    signal: AbortSignal,
    make: () => T,
  ): Promise<T> {
    signal.throwIfAborted();
    return new Promise<T>((resolve, reject) => {
      const stay = onAbort(signal, () => {
        dequeue(waiter);
        reject(signal.reason);
        // It may have been the one that nobody was allowed to pass.
        serve();
      });
      const grant = () => {
        stay();
        resolve(make());
      };
      const waiter: Waiter = { wants, job, turn, grant };
      enqueue(waiter);
      serve();
    });
  }

  function place(host: string, beyond = false): Place {
    return {
      host,
      release: once(() => {
        if (beyond) stateOf(host).beyond = false;
        else stateOf(host).requests -= 1;
        serve();
      }),
    };
  }

  async function takeHolding(host: string, signal: AbortSignal): Promise<Place> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const stay = onAbort(signal, () => {
        holders.delete(holder);
        reject(signal.reason);
      });
      const grant = (beyond: boolean): void => {
        stay();
        resolve(place(host, beyond));
      };
      const holder = { host, grant };
      holders.add(holder);
      serve();
    });
  }

  return {
    take(host, signal, { holding = false, last = false } = {}) {
      const key = canonicalHost(host);
      if (holding) return takeHolding(key, signal);
      return queued(new Map([[key, 1]]), { job: false, turn: last ? 'last' : 'in line' }, signal, () => place(key));
    },

    takeCopy({ source, target, size, beside = false, signal }) {
      const targetHost = canonicalHost(target);
      const sourceHost = source === undefined ? undefined : canonicalHost(source);
      const ends = sourceHost === undefined ? [targetHost] : [sourceHost, targetHost].sort();
      const wants = new Map<string, number>();
      for (const host of ends) wants.set(host, (wants.get(host) ?? 0) + 1);
      const job = size > SMALL_COPY;
      // What is in memory already takes two short requests; a copy that begins later ends later.
      const turn = beside ? 'first' : sourceHost === undefined && !job ? 'last' : 'in line';
      return queued(wants, { job, turn }, signal, (): CopyPlaces => {
        const places = { source: sourceHost === undefined ? undefined : place(sourceHost), target: place(targetHost) };
        return {
          ...places,
          release: once(() => {
            if (job) for (const host of wants.keys()) stateOf(host).jobs -= 1;
            places.source?.release();
            places.target.release();
            serve();
          }),
        };
      });
    },

    ready: (host, signal, aside) => stateOf(canonicalHost(host)).pace.ready(signal, aside),
    refusals: (host) => stateOf(canonicalHost(host)).pace.refusals(),
    lastGood: (host) => stateOf(canonicalHost(host)).pace.lastGood(),
    isPaused: (host) => stateOf(canonicalHost(host)).pace.isPaused(),

    good(host) {
      const state = stateOf(canonicalHost(host));
      state.pace.good();
      if (state.requestWidth >= mostRequests && state.jobWidth >= mostJobs) return;
      state.good += 1;
      // A window is as many answers as may be in flight at a time.
      if (state.good < state.requestWidth) return;
      state.good = 0;
      state.requestWidth = Math.min(mostRequests, state.requestWidth + 1);
      state.jobWidth = Math.min(mostJobs, state.jobWidth + 1);
      serve();
    },

    overrun(host, wait, sentAt) {
      const state = stateOf(canonicalHost(host));
      state.good = 0;
      if (!state.pace.overrun(wait, sentAt)) return;
      state.requestWidth = Math.min(state.requestWidth, Math.max(LEAST_REQUESTS, Math.floor(state.requestWidth / 2)));
      state.jobWidth = Math.max(LEAST_JOBS, Math.floor(state.jobWidth / 2));
    },
  };
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
