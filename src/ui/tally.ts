import type { Digest } from '../model/digest.ts';
import type { PublishEvent } from '../publish/events.ts';
import type { BlobHow } from '../publish/report.ts';
import { imageLabel } from './labels.ts';
import type { PaceSample } from './pace.ts';
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
  readonly digest: Digest;
  readonly size: number;
  readonly sent: number;
  readonly since: number | undefined;
  readonly why?: string;
};

/** Where a run stands: sums of the events so far. Sizes in bytes, times in ms. */
export type Tally = {
  target: string;
  readonly sources: { done: number; total: number };
  /** Of a run with several lists; `total` is 0 where there is one. */
  readonly lists: { total: number; done: number; failed: number };
  /** Repositories whose work is known. */
  plans: number;
  /** Names of the planned images by digest. */
  readonly images: Map<Digest, string>;
  /** Images to place, each once in a repository, and those that are placed. */
  readonly planned: Set<string>;
  readonly imagesDone: Set<string>;
  blobs: number;
  readonly done: Record<BlobHow, number>;
  /** How each blob came to be in each repository, as far as known. */
  readonly how: Map<string, BlobHow>;
  bytesSent: number;
  /** What had been sent by when, of the last seconds. */
  readonly pace: PaceSample[];
  readonly running: Map<string, RunningBlob>;
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
    lists: { total: 0, done: 0, failed: 0 },
    plans: 0,
    images: new Map(),
    planned: new Set(),
    imagesDone: new Set(),
    blobs: 0,
    done: { present: 0, mounted: 0, copied: 0, skipped: 0 },
    how: new Map(),
    bytesSent: 0,
    pace: [],
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
    case 'run.start':
      tally.lists.total += event.lists;
      return;
    case 'list.done':
      tally.lists.done += 1;
      if (event.error !== undefined) tally.lists.failed += 1;
      return;
    case 'resolve.start':
      tally.target ||= event.target;
      tally.sources.total += event.sources;
      return;
    case 'resolve.source':
      tally.sources.done += 1;
      return;
    case 'plan':
      tally.target ||= event.target;
      tally.plans += 1;
      tally.blobs += event.blobs;
      for (const image of event.images) {
        tally.images.set(image.digest, imageLabel(image));
        tally.planned.add(`${event.target} ${image.digest}`);
      }
      return;
    case 'index':
      for (const image of event.images) tally.images.set(image.digest, imageLabel(image));
      return;
    case 'blob.start':
      tally.running.set(placeOf(event), { digest: event.digest, size: event.size, sent: 0, since: undefined });
      return;
    case 'blob.refused': {
      const blob = tally.running.get(placeOf(event));
      if (blob !== undefined) tally.running.set(placeOf(event), { ...blob, why: event.why });
      return;
    }
    case 'blob.progress': {
      const { digest, size, sent } = event;
      const blob = tally.running.get(placeOf(event));
      const goesOn = blob?.since !== undefined && sent >= blob.sent;
      const since = goesOn ? blob.since : now;
      tally.running.set(placeOf(event), { ...blob, digest, size, sent, since });
      return;
    }
    case 'blob.done': {
      tally.running.delete(placeOf(event));
      // One that turned out to be missing after all was brought again; it is one blob all the same.
      const before = tally.how.get(placeOf(event));
      if (before !== undefined) tally.done[before] -= 1;
      tally.how.set(placeOf(event), event.how);
      tally.done[event.how] += 1;
      tally.bytesSent += event.bytesSent;
      return;
    }
    case 'manifest.done':
      if (tally.images.has(event.digest)) tally.imagesDone.add(placeOf(event));
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

/** What is placed in several repositories is told apart by them. */
function placeOf({ repository = '', digest }: { readonly repository?: string; readonly digest: Digest }): string {
  return `${repository} ${digest}`;
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
