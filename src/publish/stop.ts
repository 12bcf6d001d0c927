import { setMaxListeners } from 'node:events';
import type { Clock } from './ports.ts';

/** A part of a run that can be stopped from within as well as from outside. */
export type Stoppable = {
  /** Aborted by `outer`, or by {@link Stoppable.stop}. */
  readonly signal: AbortSignal;
  readonly stop: (reason?: unknown) => void;
};

/** Every request of the part listens to its signal, so that Node's warning about many listeners does not apply. */
export function stoppable(outer: AbortSignal): Stoppable {
  const controller = new AbortController();
  const signal = AbortSignal.any([outer, controller.signal]);
  setMaxListeners(0, signal);
  return { signal, stop: (reason) => controller.abort(reason) };
}

/** The promise's outcome, or the signal's reason if that comes first. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Calls `action` after so many ms, unless the function is called that this returns. */
export function later(clock: Clock, milliseconds: number, action: () => void): () => void {
  const stopped = new AbortController();
  clock.sleep(milliseconds, stopped.signal).then(
    () => {
      if (!stopped.signal.aborted) action();
    },
    // Stopping is the only way in which this sleep fails.
    () => undefined,
  );
  return () => stopped.abort();
}
