import { backoff } from '../http/retry.ts';
import { type Beginning, type Flight, type Opening, tryCopy } from './copy-try.ts';
import type { PlannedBlob } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { TransferRun } from './transfer.ts';

/** How long one blob's upload may be answered 429 without getting further, in ms; the transport waits as long. */
const LIMITED_PATIENCE = 300_000;

/** How often a registry may want one blob in another form; it runs out of forms before. */
const OTHERWISE_MOST = 32;

/** A try that got this part of the blob further than any before counts as a new beginning. */
const PROGRESS = 1 / 100;

/** What a copy came to; `why` tells why bytes had to be sent. `bytesSent` counts failed tries too. */
export type CopyResult =
  | { readonly kind: 'present' | 'mounted' }
  | { readonly kind: 'copied'; readonly bytesSent: number; readonly why: string };

/**
 * Streams one blob into the target. After a try that broke, the target is asked first: the commit may have happened
 * though its answer was lost. Then the upload goes on where its session stands, if that can be had, or starts anew.
 *
 * @throws PublishError the last try's error; `DIGEST_MISMATCH` or `SIZE_MISMATCH` after two corrupt reads
 */
export async function copyBlob(
  blob: PlannedBlob,
  opening: Opening,
  why: string,
  run: TransferRun,
): Promise<CopyResult> {
  const { ports, signal } = run;
  const flight: Flight = {
    bytesSent: 0,
    why,
    chunked: false,
    resumes: true,
    resumedAt: 0,
    learnt: false,
    sourceGone: false,
    reads: { fruitless: 0 },
  };
  const failed = { broken: 0, corrupt: 0, unread: 0, limited: 0, otherwise: 0 };
  const patience = limitedPatience(ports);
  let furthest = 0;
  let begin: Beginning = opening;
  for (let reads = 0, first = true; ; reads += 1, first = false) {
    const source = blob.sources[reads % Math.max(1, blob.sources.length)];
    const result = await tryCopy(blob, source, begin, flight, run);
    begin = { kind: 'post', look: true };
    if (flight.learnt) {
      // The break before was a refusal of that size, though not in words.
      flight.learnt = false;
      failed.broken = Math.max(0, failed.broken - 1);
      failed.otherwise += 1;
    }
    const further = flight.resumedAt >= furthest + blob.size * PROGRESS && flight.resumedAt > 0;
    if (further) {
      furthest = flight.resumedAt;
      failed.broken = 0;
      failed.limited = 0;
      patience.renew();
    }
    switch (result.kind) {
      case 'present':
        return first ? { kind: 'present' } : { kind: 'copied', bytesSent: flight.bytesSent, why: flight.why };
      case 'mounted':
        return { kind: 'mounted' };
      case 'stored':
        return { kind: 'copied', bytesSent: flight.bytesSent, why: flight.why };
      case 'refused':
        throw result.error;
      case 'otherwise':
        // Nothing can have been committed, and there is nothing wrong with the source.
        failed.otherwise += 1;
        if (failed.otherwise > OTHERWISE_MOST) throw result.error;
        begin = { kind: 'post', look: false };
        reads -= 1;
        break;
      case 'corrupt':
        // Where a session stood was the registry's word, and that may be what is wrong.
        if (flight.resumedAt === 0) failed.corrupt += 1;
        if (failed.corrupt > 1) throw result.error;
        flight.resumes = false;
        break;
      case 'unreadable':
        failed.unread += 1;
        if (failed.unread >= blob.sources.length) throw result.error;
        break;
      case 'limited':
        // The registry wants to be asked more slowly; that says nothing against the copy, so it costs no try.
        failed.limited += 1;
        if (failed.limited > ports.retries && patience.isOver()) throw result.error;
        if (result.interrupted !== undefined) begin = { kind: 'resume', look: true, left: result.interrupted };
        await patience.wait(backoff(failed.limited, ports.random), signal);
        break;
      case 'broken': {
        const { interrupted, alive, error } = result;
        // The reads of a source have tries of their own; those of an upload are not for them.
        const spent = error.side === 'source' && flight.reads.fruitless > ports.retries;
        if (spent) failed.unread += 1;
        if (failed.unread >= Math.max(1, blob.sources.length)) throw error;
        if (!spent) failed.broken += 1;
        // A new token helps once.
        const over = failed.broken > (error.code === 'UNAUTHORIZED' ? 1 : ports.retries);
        const teaches = interrupted?.cut !== undefined && failed.otherwise < OTHERWISE_MOST;
        if (over && !teaches) throw error;
        flight.chunked ||= result.chunked === true;
        if (interrupted !== undefined) {
          const state = { ...(alive === true ? { alive } : {}), ...(over ? { last: error } : {}) };
          begin = { kind: 'resume', look: true, left: interrupted, ...state };
        }
        await ports.clock.sleep(backoff(Math.max(0, failed.broken - 1), ports.random), signal);
      }
    }
  }
}

/** How long policy has been told to slow down; waits count also where the clock does not run with them. */
function limitedPatience({ clock }: PublishPorts) {
  let since: number | undefined;
  let waited = 0;
  return {
    renew: (): void => {
      since = undefined;
      waited = 0;
    },
    isOver: (): boolean => {
      since ??= clock.now();
      return Math.max(waited, clock.now() - since) > LIMITED_PATIENCE;
    },
    wait: (milliseconds: number, signal: AbortSignal): Promise<void> => {
      since ??= clock.now();
      waited += milliseconds;
      return clock.sleep(milliseconds, signal);
    },
  };
}
