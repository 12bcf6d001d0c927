import { PublishError } from '../errors.ts';
import type { Clock } from '../http/clock.ts';
import type { Place } from '../http/message.ts';
import type { UploadSession } from './client.ts';
import { readRefusal } from './failure.ts';
import { CANCEL, meaningOf } from './statuses.ts';
import { scopeOf, sendTo, type Wire, writingStep } from './wire.ts';

/** Long enough for a round trip or two, short enough to hold nobody up at the end of a run; in ms. */
export const CANCEL_TIMEOUT: number = 5_000;

/** Cancellations at a time, beside the 64 requests of the limiter; a hundred are done within the time even at 300 ms each. */
const LANES = 8;

/** How long a host that wants to be left alone is left alone before it is asked again, in ms. */
const REST = 500;

/**
 * Cancels a session, best effort: no word about its failure, never rejects. Who holds a place hands it in and is not
 * held up: the promise is fulfilled at once, and the transport's end waits for the cancellation.
 */
export type Canceller = (session: UploadSession, place?: Place) => Promise<void>;

/** What a cancellation tells about the next one. */
type Lesson = 'works' | 'barred' | 'unknown';

/**
 * Cancelling goes through the authorizer, since without a credential no registry that wants one would ever cancel. Its
 * answer to a 401 is a token round, and distribution gives that 401 to every token that lacks the `delete` action: so
 * until one cancellation has been answered the others wait for it, and after a refusal no more are sent. A host costs
 * one token round at most, however many sessions are left.
 *
 * Cancellations take no places of the limiter and wait for nobody who does: when many uploads fail together, those that
 * wait here would otherwise keep the place that the one ahead of them needs.
 *
 * @see distribution-spec main spec.md, end-14
 */
export function createCanceller(wire: Wire, clock: Clock, timeout: number = CANCEL_TIMEOUT): Canceller {
  let lesson: Lesson = 'unknown';
  let scout: Promise<void> | undefined;
  let lanes = LANES;
  const queue: (() => void)[] = [];

  async function send(session: UploadSession, signal: AbortSignal): Promise<void> {
    let learnt = await cancelOnce(wire, session, signal);
    while (learnt === 'busy' && (await rested(clock, signal))) learnt = await cancelOnce(wire, session, signal);
    if (learnt !== 'unknown' && learnt !== 'busy') lesson = learnt;
  }

  async function cancel(session: UploadSession, signal: AbortSignal): Promise<void> {
    while (lesson === 'unknown' && scout !== undefined) await scout;
    if (lesson === 'barred' || signal.aborted) return;
    if (lesson === 'unknown') {
      scout = send(session, signal).finally(() => {
        scout = undefined;
      });
      return scout;
    }
    if (lanes === 0) await new Promise<void>((resolve) => queue.push(resolve));
    else lanes -= 1;
    try {
      if (!signal.aborted) await send(session, signal);
    } finally {
      const next = queue.shift();
      if (next === undefined) lanes += 1;
      else next();
    }
  }

  return async (session, place) => {
    const { signal, stop } = startDeadline(clock, timeout);
    const work = cancel(session, signal).finally(stop);
    wire.transport.outlive?.(work);
    if (place === undefined) await work;
  };
}

/** Waits a little; whether there is time left to go on. */
async function rested(clock: Clock, signal: AbortSignal): Promise<boolean> {
  return clock.sleep(REST, signal).then(
    () => !signal.aborted,
    // The signal's end is the only way in which a sleep fails.
    () => false,
  );
}

/** Aborts its signal when the time is over, unless stopped before. */
function startDeadline(clock: Clock, milliseconds: number): { signal: AbortSignal; stop: () => void } {
  const over = new AbortController();
  const stopped = new AbortController();
  clock.sleep(milliseconds, stopped.signal).then(
    () => over.abort(new Error('no answer in time')),
    // Stopping is the only way in which a sleep fails.
    () => undefined,
  );
  return { signal: over.signal, stop: () => stopped.abort() };
}

/** `busy`: the host wants to be left alone for now. */
async function cancelOnce(wire: Wire, session: UploadSession, signal: AbortSignal): Promise<Lesson | 'busy'> {
  const step = writingStep(wire, 'cancelling an upload to', session.repository, '');
  try {
    const response = await sendTo(
      wire,
      step,
      {
        method: 'DELETE',
        to: { session: new URL(session.url) },
        retries: 0,
        aside: true,
        headersTimeout: CANCEL_TIMEOUT,
        scopes: [scopeOf(step)],
      },
      { signal, place: { host: wire.host, release: () => undefined } },
    );
    const { status, codes } = await readRefusal(response);
    // A body that was cut off may still be on its way into the session.
    const writing = status === 400 && codes.includes('BLOB_UPLOAD_INVALID');
    return status === 429 || writing ? 'busy' : meaningOf(CANCEL, status);
  } catch (error) {
    if (!(error instanceof PublishError)) return 'unknown';
    if (error.code === 'RATE_LIMITED') return 'busy';
    // Sessions end by themselves some day; nobody can do anything about this failure.
    return error.code === 'UNAUTHORIZED' || error.code === 'DENIED' ? 'barred' : 'unknown';
  }
}
