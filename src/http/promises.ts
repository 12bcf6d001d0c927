import { setMaxListeners } from 'node:events';

/** A promise and its ends, as `Promise.withResolvers` of newer nodes gives them. */
export type Deferred<T> = {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
};

/** @see Deferred */
export function deferred<T>(): Deferred<T> {
  // Both are set by the time the constructor returns: it runs its executor at once.
  let resolve: Deferred<T>['resolve'] = () => undefined;
  let reject: Deferred<T>['reject'] = () => undefined;
  const promise = new Promise<T>((fulfil, fail) => {
    resolve = fulfil;
    reject = fail;
  });
  return { promise, resolve, reject };
}

/** What is to be done when a signal is aborted. */
type Watch = { readonly actions: Set<() => void>; readonly listener: () => void };

const watches = new WeakMap<AbortSignal, Watch>();

/**
 * Calls `action` when the signal is aborted, unless what is returned has been called before. One signal serves a whole
 * run with thousands of waiters, which share one listener: node would look through all listeners for each new one (0.2 s
 * for the first 10,000), take them for a leak and print a warning. The last to leave takes the listener away, since a
 * signal that is made of others is kept in memory as long as it has one.
 */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  // As with a listener of its own: what comes too late is never called.
  if (signal.aborted) return () => undefined;
  const watch = watches.get(signal) ?? watchFor(signal);
  const own = (): void => action();
  watch.actions.add(own);
  return () => {
    if (!watch.actions.delete(own) || watch.actions.size > 0 || watches.get(signal) !== watch) return;
    watches.delete(signal);
    signal.removeEventListener('abort', watch.listener);
  };
}

function watchFor(signal: AbortSignal): Watch {
  const actions = new Set<() => void>();
  const listener = (): void => {
    watches.delete(signal);
    // One that is taken away by another before its turn is left out.
    for (const action of actions) action();
  };
  const watch = { actions, listener };
  watches.set(signal, watch);
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
  return watch;
}

/**
 * The promise's outcome, or the signal's reason if that comes first. What the promise stands for goes on; a failure
 * of it that comes too late is nobody's any more.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    const done = onAbort(signal, () => reject(signal.reason));
    promise.then(
      (value) => {
        done();
        resolve(value);
      },
      (error: unknown) => {
        done();
        reject(error);
      },
    );
  });
}
