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

/**
 * Calls `action` when the signal is aborted, unless what is returned has been called before. One signal serves a whole
 * run with hundreds of requests in flight: node would take its listeners for a leak and print a warning.
 */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  setMaxListeners(0, signal);
  signal.addEventListener('abort', action, { once: true });
  return () => signal.removeEventListener('abort', action);
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
