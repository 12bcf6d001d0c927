import type { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import { backoff } from '../http/retry.ts';
import type { CopyPlaces, UploadAnswer, UploadBody, UploadSession, VerbOptions } from '../registry/client.ts';
import type { PlannedBlob } from './plan.ts';
import type { Location } from './resolved.ts';
import { stoppable } from './stop.ts';
import type { TransferRun } from './transfer.ts';

/** At most ten progress events a second and blob. */
const PROGRESS_EVERY = 100;

/** How often one blob's upload may be answered 429: with the waits in between that is ten minutes or so. */
const LIMITED_MOST = 30;

/**
 * How a copy begins. `session`: a refused mount opened it. `post`: no session yet. `mount`: ask once more while the
 * source is already being read. `look`: whether the target is asked for the blob before any byte is sent.
 */
export type Opening = { readonly look: boolean } & (
  | { readonly kind: 'session'; readonly session: UploadSession }
  | { readonly kind: 'post' }
  | { readonly kind: 'mount'; readonly from: string }
);

/** What a copy came to; `why` tells why bytes had to be sent. `bytesSent` counts failed tries too. */
export type CopyResult =
  | { readonly kind: 'present' | 'mounted' }
  | { readonly kind: 'copied'; readonly bytesSent: number; readonly why: string };

type Try =
  | { readonly kind: 'present' | 'mounted' }
  /** The source could not be opened; another place may hold the blob. */
  | { readonly kind: 'unreadable'; readonly error: PublishError }
  | UploadAnswer;

/**
 * Streams one blob into the target, whole: the unit of retry is the blob, since a stream cannot be sent twice. After
 * a try that broke, the target is asked first: the commit may have happened though its answer was lost.
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
  let bytesSent = 0;
  let reason = why;
  const failed = { broken: 0, corrupt: 0, unread: 0, limited: 0 };
  const count = (sent: number): void => {
    bytesSent += sent;
  };
  for (let turn = 0; ; turn += 1) {
    const source = blob.sources[turn % Math.max(1, blob.sources.length)];
    const begin: Opening = turn === 0 ? opening : { kind: 'post', look: true };
    const result = await tryCopy(blob, source, begin, count, (text) => (reason = text), run);
    switch (result.kind) {
      case 'present':
        return turn === 0 ? { kind: 'present' } : { kind: 'copied', bytesSent, why: reason };
      case 'mounted':
        return { kind: 'mounted' };
      case 'stored':
        return { kind: 'copied', bytesSent, why: reason };
      case 'refused':
        throw result.error;
      case 'corrupt':
        failed.corrupt += 1;
        if (failed.corrupt > 1) throw result.error;
        break;
      case 'unreadable':
        failed.unread += 1;
        if (failed.unread >= blob.sources.length) throw result.error;
        break;
      case 'limited':
        // The registry wants to be asked more slowly; that says nothing against the copy, so it costs no try.
        failed.limited += 1;
        if (failed.limited > LIMITED_MOST) throw result.error;
        await ports.clock.sleep(backoff(failed.limited, ports.random), signal);
        break;
      case 'broken': {
        failed.broken += 1;
        // A new token helps once.
        const most = result.error.code === 'UNAUTHORIZED' ? 1 : ports.retries;
        if (failed.broken > most) throw result.error;
        await ports.clock.sleep(backoff(failed.broken - 1, ports.random), signal);
      }
    }
  }
}

async function tryCopy(
  blob: PlannedBlob,
  source: Location | undefined,
  opening: Opening,
  count: (sent: number) => void,
  explain: (why: string) => void,
  run: TransferRun,
): Promise<Try> {
  const { ports, signal, target } = run;
  const bytes = run.inMemory.get(blob.digest);
  const from = bytes === undefined ? source : undefined;
  const places = await ports.limiter.takeCopy({
    ...(from === undefined ? {} : { source: from.host }),
    target: target.host,
    size: blob.size,
    signal,
  });
  const reading = stoppable(signal);
  const stream = from === undefined ? undefined : openSource(blob, from, places, reading.signal, run);
  let body: Readable | undefined;
  try {
    const opened = await openTarget(blob, opening, places, explain, run);
    // Nothing to send: whatever the source is doing is not waited for.
    if (opened.kind !== 'session') return opened;
    const read = await stream;
    if (read?.kind === 'failed') {
      run.sessions.cancel(opened.session);
      return unreadable(read.error, signal);
    }
    body = read?.body;
    return await send(blob, opened.session, body ?? bytes ?? new Uint8Array(), places, count, run);
  } finally {
    reading.stop();
    const left = await stream;
    if (left?.kind === 'open') left.body.destroy();
    places.release();
  }
}

async function send(
  blob: PlannedBlob,
  session: UploadSession,
  body: UploadBody,
  places: CopyPlaces,
  count: (sent: number) => void,
  run: TransferRun,
): Promise<Try> {
  let sent = 0;
  const show = progressOf(blob, run);
  const progress = (bytesSoFar: number): void => {
    sent = bytesSoFar;
    show(sent);
  };
  const options = { signal: run.signal, place: places.target, progress };
  const answer = await run.registry.upload(session, blob, body, options);
  // What the registry may still be storing is cancelled at the end of the run, not now.
  if (!('alive' in answer && answer.alive)) run.sessions.used(session);
  count(answer.kind === 'stored' ? answer.bytesSent : sent);
  return answer;
}

type Reading =
  | { readonly kind: 'open'; readonly body: Readable }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Never rejects: the target may turn out to hold the blob, and then it does not matter what the source says. */
async function openSource(
  blob: PlannedBlob,
  source: Location,
  places: CopyPlaces,
  signal: AbortSignal,
  { ports }: TransferRun,
): Promise<Reading> {
  const place = places.source === undefined ? {} : { place: places.source };
  try {
    const body = await ports.registry(source.host).openBlob(source.repository, blob, { signal, ...place });
    // A small blob has been read long before its PUT is answered: others need not wait for that.
    body.once('close', () => places.source?.release());
    return { kind: 'open', body };
  } catch (error) {
    return { kind: 'failed', error };
  }
}

/** What a source that does not open means. It has been asked as often as anything is asked. */
function unreadable(error: unknown, signal: AbortSignal): Try {
  signal.throwIfAborted();
  if (!(error instanceof PublishError)) throw error;
  const corrupt = error.code === 'SIZE_MISMATCH' || error.code === 'DIGEST_MISMATCH';
  return { kind: corrupt ? 'corrupt' : 'unreadable', error: error.with({ side: 'source' }) };
}

type Opened = { readonly kind: 'present' | 'mounted' } | { readonly kind: 'session'; readonly session: UploadSession };

/** Brings the target to an open session, or finds that none is needed. One request after another, on one place. */
async function openTarget(
  blob: PlannedBlob,
  opening: Opening,
  places: CopyPlaces,
  explain: (why: string) => void,
  run: TransferRun,
): Promise<Opened> {
  const { registry, target, sessions } = run;
  const options = { signal: run.signal, place: places.target };
  let session = opening.kind === 'session' ? opening.session : undefined;
  if (opening.kind === 'mount') {
    const { from } = opening;
    const ask = (given: VerbOptions) => registry.mountBlob(target.repository, blob.digest, from, given);
    const answer = await sessions.open(ask, places.target);
    if (answer.kind === 'mounted') {
      run.mounts.mounted(opening.from);
      return answer;
    }
    explain(answer.why);
    run.mounts.refused(opening.from, answer.kind === 'refused' && answer.sourceBarred);
    if (answer.kind === 'session') session = sessions.opened(answer.session);
  }
  if (opening.look) {
    const presence = await registry.hasBlob(target.repository, blob.digest, options);
    if (presence.kind === 'present') {
      if (session !== undefined) sessions.cancel(session);
      return { kind: 'present' };
    }
  }
  const post = (given: VerbOptions) => registry.openUpload(target.repository, blob.digest, given);
  session ??= sessions.opened(await sessions.open(post, places.target));
  return { kind: 'session', session };
}

function progressOf(blob: PlannedBlob, { ports }: TransferRun): (sent: number) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (sent) => {
    const now = ports.clock.now();
    if (now - last < PROGRESS_EVERY && sent < blob.size) return;
    last = now;
    ports.emit({ kind: 'blob.progress', digest: blob.digest, size: blob.size, sent });
  };
}
