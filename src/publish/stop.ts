import { setMaxListeners } from 'node:events';

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
