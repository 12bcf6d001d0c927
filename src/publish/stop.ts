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

type Watch = { readonly actions: Set<() => void>; readonly listener: () => void };

const watches = new WeakMap<AbortSignal, Watch>();

/**
 * Calls `action` when the signal is aborted, unless the function is called that this returns. For signals that many
 * wait for: Node compares every new listener with all there are, which for the ten thousand blobs of a list would be a
 * third of the work, so that these share one.
 */
export function onStop(signal: AbortSignal, action: () => void): () => void {
  const watch = watches.get(signal) ?? watchFor(signal);
  const { actions, listener } = watch;
  const own = (): void => action();
  actions.add(own);
  return () => {
    if (!actions.delete(own) || actions.size > 0 || watches.get(signal) !== watch) return;
    watches.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function watchFor(signal: AbortSignal): Watch {
  const actions = new Set<() => void>();
  const listener = (): void => {
    watches.delete(signal);
    // One that is taken away by another's action is not called, as it is with listeners.
    for (const one of actions) one();
  };
  const watch = { actions, listener };
  watches.set(signal, watch);
  signal.addEventListener('abort', listener, { once: true });
  return watch;
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
