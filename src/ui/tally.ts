import type { Digest } from '../model/digest.ts';
import type { PublishEvent } from '../publish/events.ts';
import type { BlobHow } from '../publish/report.ts';
import { imageLabel } from './labels.ts';
import type { TagEvent } from './render-error.ts';

/** What the transport tells of its requests; the same shape as its own event. Nothing in it is secret. */
export type TrafficEvent =
  | {
      readonly kind: 'request';
      readonly method: string;
      readonly url: string;
      readonly status: number | undefined;
      readonly failure: string | undefined;
      readonly milliseconds: number;
      readonly bytesSent: number;
      readonly send: number;
    }
  | { readonly kind: 'retry'; readonly host: string; readonly reason: string; readonly waitMilliseconds: number };

/** A blob on its way. `since` is when the current try began to send, on the clock of the run. */
export type RunningBlob = {
  readonly size: number;
  readonly sent: number;
  readonly since: number | undefined;
  readonly why?: string;
};

/** Where a run stands: sums of the events so far. Sizes in bytes, times in ms. */
export type Tally = {
  target: string;
  readonly sources: { done: number; total: number };
  lists: number;
  /** Names of the planned images by digest. */
  readonly images: Map<Digest, string>;
  readonly imagesDone: Set<Digest>;
  blobs: number;
  readonly done: Record<BlobHow, number>;
  /** How each blob came to be there, as far as known. */
  readonly how: Map<Digest, BlobHow>;
  bytesSent: number;
  readonly running: Map<Digest, RunningBlob>;
  readonly tags: TagEvent[];
  readonly warnings: string[];
  requests: number;
  retries: number;
  wait: { readonly host: string; readonly reason: string; readonly until: number } | undefined;
};

/** The tally of a run that has not begun. */
export function newTally(): Tally {
  return {
    target: '',
    sources: { done: 0, total: 0 },
    lists: 0,
    images: new Map(),
    imagesDone: new Set(),
    blobs: 0,
    done: { present: 0, mounted: 0, copied: 0, skipped: 0 },
    how: new Map(),
    bytesSent: 0,
    running: new Map(),
    tags: [],
    warnings: [],
    requests: 0,
    retries: 0,
    wait: undefined,
  };
}

/** Adds an event. */
export function count(tally: Tally, event: PublishEvent, now: number): void {
  switch (event.kind) {
    case 'resolve.start':
      tally.target ||= event.target;
      tally.sources.total += event.sources;
      return;
    case 'resolve.source':
      tally.sources.done += 1;
      return;
    case 'plan':
      tally.target ||= event.target;
      tally.lists += 1;
      tally.blobs += event.blobs;
      for (const image of event.images) tally.images.set(image.digest, imageLabel(image));
      return;
    case 'index':
      for (const image of event.images) tally.images.set(image.digest, imageLabel(image));
      return;
    case 'blob.start':
      tally.running.set(event.digest, { size: event.size, sent: 0, since: undefined });
      return;
    case 'blob.refused': {
      const blob = tally.running.get(event.digest);
      if (blob !== undefined) tally.running.set(event.digest, { ...blob, why: event.why });
      return;
    }
    case 'blob.progress': {
      const blob = tally.running.get(event.digest);
      const goesOn = blob?.since !== undefined && event.sent >= blob.sent;
      const since = goesOn ? blob.since : now;
      tally.running.set(event.digest, { ...blob, size: event.size, sent: event.sent, since });
      return;
    }
    case 'blob.done': {
      tally.running.delete(event.digest);
      // One that turned out to be missing after all was brought again; it is one blob all the same.
      const before = tally.how.get(event.digest);
      if (before !== undefined) tally.done[before] -= 1;
      tally.how.set(event.digest, event.how);
      tally.done[event.how] += 1;
      tally.bytesSent += event.bytesSent;
      return;
    }
    case 'manifest.done':
      if (tally.images.has(event.digest)) tally.imagesDone.add(event.digest);
      return;
    case 'tag.done':
      tally.tags.push(event);
      return;
    case 'warning':
      tally.warnings.push(event.text);
      return;
    default:
      event satisfies never;
  }
}

/** Adds what the transport tells. */
export function countTraffic(tally: Tally, event: TrafficEvent, now: number): void {
  if (event.kind === 'request') {
    tally.requests += 1;
    return;
  }
  tally.retries += 1;
  tally.wait = { host: event.host, reason: event.reason, until: now + event.waitMilliseconds };
}
