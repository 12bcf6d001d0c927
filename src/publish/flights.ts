import { setMaxListeners } from 'node:events';
import { onStop } from './stop.ts';

/** Whoever wants something done that others may want as well. */
export type Participant = {
  /** Stopped when its own part of the run ends early: it then leaves what it has joined. */
  readonly signal: AbortSignal;
  /** Settles when it is known that what it wants is right; a participant whose gate rejects leaves. Default: open. */
  readonly gate?: Promise<unknown>;
};

/** What the work of a flight goes by. It is itself a participant in what it joins. */
export type Flight = {
  /** Aborted when all who joined have left, or by {@link Flight.stop}. */
  readonly signal: AbortSignal;
  /** Opens with the first gate of a participant that opens; rejects when the flight is aborted before. */
  readonly gate: Promise<void>;
  readonly stop: (reason: unknown) => void;
};

/** Work that is done once per key in a run, however many parts of the run ask for it. */
export interface Flights<K, V> {
  /**
   * Does `work`, or joins whoever does or has done it. A participant that is stopped leaves: it rejects at once while
   * others remain, and as the last one when the work has ended, so that nothing goes on behind its back.
   *
   * Work that fails by itself has failed for all who share it, now and later: one broken layer below 300 lists is tried
   * as often as one below one list. Work that was aborted, since nobody was left to want it, is forgotten.
   */
  join(key: K, participant: Participant, work: (flight: Flight) => Promise<V>): Promise<V>;
  /** Whether anybody has asked for it; work that was aborted does not count. */
  has(key: K): boolean;
  /** The next one who asks does it anew. */
  forget(key: K): void;
}

/** No flights yet. */
export function createFlights<K, V>(): Flights<K, V> {
  const flying = new Map<K, Shared<V>>();
  /** Outcomes alone: a run makes a hundred flights a list, and each would hold all it worked with to the run's end. */
  const landed = new Map<K, Promise<V>>();
  return {
    join: (key, participant, work) => {
      const outcome = landed.get(key);
      if (outcome !== undefined) return outcome;
      const known = flying.get(key);
      if (known !== undefined) return known.join(participant);
      const leave = (): boolean => flying.get(key) === flight && flying.delete(key);
      const flight = createShared(work, leave, (done) => {
        if (leave()) landed.set(key, done);
      });
      flying.set(key, flight);
      return flight.join(participant);
    },
    has: (key) => landed.has(key) || flying.has(key),
    forget: (key) => {
      landed.delete(key);
      flying.delete(key);
    },
  };
}

type Shared<V> = { readonly join: (participant: Participant) => Promise<V> };

const OPEN: Promise<void> = Promise.resolve();

/** One flight; it begins with the first who joins. */
function createShared<V>(
  work: (flight: Flight) => Promise<V>,
  abandoned: () => void,
  ended: (done: Promise<V>) => void,
): Shared<V> {
  const controller = new AbortController();
  const { signal } = controller;
  setMaxListeners(0, signal);
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve, reject) => {
    open = resolve;
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  // Work that does not wait for the gate does not care that it never opened.
  gate.catch(() => undefined);
  let aboard = 0;
  let landed = false;
  let done: Promise<V> | undefined;

  const begin = (): Promise<V> => {
    const flight = work({ signal, gate, stop: (reason) => controller.abort(reason) });
    const land = (): void => {
      landed = true;
      ended(flight);
    };
    flight.then(land, land);
    return flight;
  };

  const join = (participant: Participant): Promise<V> => {
    if (landed && done !== undefined) return done;
    if (participant.signal.aborted) {
      if (done === undefined) abandoned();
      return Promise.reject(participant.signal.reason);
    }
    return new Promise<V>((resolve, reject) => {
      let left = false;
      const leave = (reason: unknown): void => {
        if (left || landed) return;
        left = true;
        aboard -= 1;
        stay();
        if (aboard > 0) {
          reject(reason);
          return;
        }
        abandoned();
        controller.abort(reason);
      };
      aboard += 1;
      const stay = onStop(participant.signal, () => leave(participant.signal.reason));
      (participant.gate ?? OPEN).then(() => {
        if (!left) open();
      }, leave);
      done ??= begin();
      done.finally(stay).then(resolve, reject);
    });
  };
  return { join };
}
