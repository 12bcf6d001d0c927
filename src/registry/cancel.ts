import { PublishError } from '../errors.ts';
import type { Clock } from '../http/clock.ts';
import type { Place } from '../http/message.ts';
import type { UploadSession } from './client.ts';
import { CANCEL, meaningOf } from './statuses.ts';
import { scopeOf, sendTo, type Wire, writingStep } from './wire.ts';

/** Long enough for a round trip or two, short enough to hold nobody up at the end of a run; in ms. */
export const CANCEL_TIMEOUT: number = 5_000;

/** Cancels a session, best effort: one send, no word about its failure, never rejects. */
export type Canceller = (session: UploadSession, place?: Place) => Promise<void>;

/** What a cancellation tells about the next one. */
type Lesson = 'works' | 'barred' | 'unknown';

/**
 * Cancelling goes through the authorizer, since without a credential no registry that wants one would ever cancel. Its
 * answer to a 401 is a token round, and distribution gives that 401 to every token that lacks the `delete` action: so
 * until one cancellation has been answered the others wait for it, and after a refusal no more are sent. A host costs
 * one token round at most, however many sessions are left.
 *
 * @see distribution-spec main spec.md, end-14
 */
export function createCanceller(wire: Wire, clock: Clock, timeout: number = CANCEL_TIMEOUT): Canceller {
  let lesson: Lesson = 'unknown';
  let scout: Promise<void> | undefined;

  async function send(session: UploadSession, place: Place | undefined, signal: AbortSignal): Promise<void> {
    const learnt = await cancelOnce(wire, session, place, signal);
    if (learnt !== 'unknown') lesson = learnt;
  }

  async function cancel(session: UploadSession, place: Place | undefined, signal: AbortSignal): Promise<void> {
    while (lesson === 'unknown' && scout !== undefined) await scout;
    if (lesson === 'barred' || signal.aborted) return;
    const sending = send(session, place, signal);
    if (lesson === 'unknown') {
      scout = sending.finally(() => {
        scout = undefined;
      });
    }
    await sending;
  }

  return async (session, place) => {
    const { signal, stop } = startDeadline(clock, timeout);
    try {
      await cancel(session, place, signal);
    } finally {
      stop();
    }
  };
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

async function cancelOnce(
  wire: Wire,
  session: UploadSession,
  place: Place | undefined,
  signal: AbortSignal,
): Promise<Lesson> {
  const step = writingStep(wire, 'cancelling an upload to', session.repository, '');
  try {
    const response = await sendTo(
      wire,
      step,
      {
        method: 'DELETE',
        to: { session: new URL(session.url) },
        retries: 0,
        headersTimeout: CANCEL_TIMEOUT,
        scopes: [scopeOf(step)],
      },
      { signal, ...(place === undefined ? {} : { place }) },
    );
    await response.discard();
    return meaningOf(CANCEL, response.status);
  } catch (error) {
    // Sessions end by themselves some day; nobody can do anything about this failure.
    const refused = error instanceof PublishError && (error.code === 'UNAUTHORIZED' || error.code === 'DENIED');
    return refused ? 'barred' : 'unknown';
  }
}
