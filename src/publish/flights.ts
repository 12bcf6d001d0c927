import { setMaxListeners } from 'node:events';

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
  const flights = new Map<K, Shared<V>>();
  return {
    join: (key, participant, work) => {
      const known = flights.get(key);
      if (known !== undefined) return known.join(participant);
      const flight = createShared(work, () => {
        if (flights.get(key) === flight) flights.delete(key);
      });
      flights.set(key, flight);
      return flight.join(participant);
    },
    has: (key) => flights.has(key),
    forget: (key) => {
      flights.delete(key);
    },
  };
}

type Shared<V> = { readonly join: (participant: Participant) => Promise<V> };

const OPEN: Promise<void> = Promise.resolve();

/** One flight; it begins with the first who joins. */
function createShared<V>(work: (flight: Flight) => Promise<V>, abandoned: () => void): Shared<V> {
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
        participant.signal.removeEventListener('abort', stopped);
        if (aboard > 0) {
          reject(reason);
          return;
        }
        abandoned();
        controller.abort(reason);
      };
      const stopped = (): void => leave(participant.signal.reason);
      aboard += 1;
      participant.signal.addEventListener('abort', stopped, { once: true });
      (participant.gate ?? OPEN).then(() => {
        if (!left) open();
      }, leave);
      done ??= begin();
      done.finally(() => participant.signal.removeEventListener('abort', stopped)).then(resolve, reject);
    });
  };
  return { join };
}
