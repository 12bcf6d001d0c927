import type { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import { backoff } from '../http/retry.ts';
import type { CopyPlaces, UploadAnswer, UploadSession, VerbOptions } from '../registry/client.ts';
import type { PlannedBlob } from './plan.ts';
import type { Location } from './resolved.ts';
import type { TransferRun } from './transfer.ts';

/** At most ten progress events a second and blob. */
const PROGRESS_EVERY = 100;

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

type Try = { readonly kind: 'present' | 'mounted' } | UploadAnswer;

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
  let corrupt = 0;
  const count = (sent: number): void => {
    bytesSent += sent;
  };
  for (let attempt = 0; ; attempt += 1) {
    const source = blob.sources[attempt % Math.max(1, blob.sources.length)];
    const begin: Opening = attempt === 0 ? opening : { kind: 'post', look: true };
    const result = await tryCopy(blob, source, begin, count, (text) => (reason = text), run);
    switch (result.kind) {
      case 'present':
        return attempt === 0 ? { kind: 'present' } : { kind: 'copied', bytesSent, why: reason };
      case 'mounted':
        return { kind: 'mounted' };
      case 'stored':
        return { kind: 'copied', bytesSent, why: reason };
      case 'refused':
        throw result.error;
      case 'corrupt':
        corrupt += 1;
        if (corrupt > 1) throw result.error;
        break;
      case 'broken':
        if (attempt >= ports.retries || isFinal(result.error, blob, attempt)) throw result.error;
        await ports.clock.sleep(backoff(attempt, ports.random), signal);
    }
  }
}

/** Asking the same place again would give the same answer. */
function isFinal(error: PublishError, blob: PlannedBlob, attempt: number): boolean {
  if (error.code === 'BLOB_NOT_FOUND') return attempt + 1 >= blob.sources.length;
  return error.code === 'UNAUTHORIZED' && attempt > 0;
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
  const reads = bytes === undefined && source !== undefined;
  const places = await ports.limiter.takeCopy({
    ...(reads ? { source: source.host } : {}),
    target: target.host,
    size: blob.size,
    signal,
  });
  try {
    const reading = reads ? readSource(blob, source, places, run) : undefined;
    const opened = await settle(openTarget(blob, opening, places, explain, run), reading);
    if (opened.kind !== 'session') {
      const stream = await reading;
      if (stream?.kind === 'open') stream.body.destroy();
      return opened;
    }
    const stream = await reading;
    if (stream?.kind === 'failed') {
      run.sessions.cancel(opened.session);
      return { kind: 'broken', error: stream.error };
    }
    const body = stream?.body ?? bytes ?? new Uint8Array();
    let sent = 0;
    const show = progressOf(blob, run);
    const progress = (bytesSoFar: number): void => {
      sent = bytesSoFar;
      show(sent);
    };
    const answer = await run.registry.upload(opened.session, blob, body, { signal, place: places.target, progress });
    run.sessions.used(opened.session);
    count(answer.kind === 'stored' ? answer.bytesSent : sent);
    return answer;
  } finally {
    places.release();
  }
}

type Reading =
  | { readonly kind: 'open'; readonly body: Readable }
  | { readonly kind: 'failed'; readonly error: PublishError };

/** A source that cannot be read is an answer here: the target may turn out to hold the blob. */
async function readSource(
  blob: PlannedBlob,
  source: Location,
  places: CopyPlaces,
  { ports, signal }: TransferRun,
): Promise<Reading> {
  const place = places.source === undefined ? {} : { place: places.source };
  try {
    const body = await ports.registry(source.host).openBlob(source.repository, blob, { signal, ...place });
    // A small blob has been read long before its PUT is answered: others need not wait for that.
    body.once('close', () => places.source?.release());
    return { kind: 'open', body };
  } catch (error) {
    if (error instanceof PublishError && !signal.aborted)
      return { kind: 'failed', error: error.with({ side: 'source' }) };
    throw error;
  }
}

/** Waits for the target; when it fails, the source's stream is not left behind. */
async function settle<T>(work: Promise<T>, reading: Promise<Reading> | undefined): Promise<T> {
  const [done, read] = await Promise.allSettled([work, reading]);
  if (done.status === 'rejected') {
    if (read.status === 'fulfilled' && read.value?.kind === 'open') read.value.body.destroy();
    throw done.reason;
  }
  return done.value;
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
