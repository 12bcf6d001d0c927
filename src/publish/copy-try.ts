import { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import type {
  BlobReads,
  CopyPlaces,
  Interrupted,
  ResumePoint,
  UploadAnswer,
  UploadBody,
  UploadSession,
  VerbOptions,
} from '../registry/client.ts';
import { joinReaders, openSource, takePlaces } from './copy-source.ts';
import type { PlannedBlob } from './plan.ts';
import type { Location } from './resolved.ts';
import type { Seat } from './shared-read.ts';
import { stoppable } from './stop.ts';
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

/**
 * How a try begins: as the copy does, or with what an upload that broke has `left`. `alive`: the registry may be storing
 * it at this moment.
 */
export type Beginning =
  | Opening
  | {
      readonly kind: 'resume';
      readonly look: true;
      readonly left: Interrupted;
      readonly alive?: true;
      /** The tries are used up: it goes on only if the break has taught to send less at a time. */
      readonly last?: PublishError;
    };

/** What the tries of one copy share. */
export type Flight = {
  /** By all tries. */
  bytesSent: number;
  why: string;
  /** The blob broke before, and had better go in chunks. */
  chunked: boolean;
  /** Whether sessions may be gone on with. */
  resumes: boolean;
  /** Where in the blob the last try began. */
  resumedAt: number;
  /** The break before this try has taught to send less at a time. */
  learnt: boolean;
  /** A source has answered that it lacks the blob. */
  sourceGone: boolean;
  readonly reads: BlobReads;
};

/** What one try came to. */
export type Try =
  | { readonly kind: 'present' | 'mounted' }
  /** The source could not be opened; another place may hold the blob. */
  | { readonly kind: 'unreadable'; readonly error: PublishError }
  | UploadAnswer;

/**
 * One try of a copy, on places of its own. Others who need the same blob and its turn are waited for before they are
 * taken, so that none lies idle.
 */
export async function tryCopy(
  blob: PlannedBlob,
  source: Location | undefined,
  beginning: Beginning,
  flight: Flight,
  run: TransferRun,
): Promise<Try> {
  for (let begin = beginning; ; ) {
    // A try that nobody else shares asks for its turn at once: whoever has learnt something for all goes first.
    const joining = begin.kind === 'resume' ? undefined : joinReaders(blob, source, run);
    const seat = joining === undefined ? undefined : await joining;
    try {
      const turn = await run.registry.uploadTurn(blob.size, run.signal, seat?.readerFound);
      try {
        const result = await tryInTurn(blob, source, begin, flight, seat, run);
        if (result.kind !== 'missed') return result;
        begin = result.begin;
      } finally {
        turn.release();
      }
    } finally {
      seat?.leave();
    }
  }
}

/** It has missed the read it had a seat in, and joins anew: nothing has been sent. */
type Missed = { readonly kind: 'missed'; readonly begin: Beginning };

async function tryInTurn(
  blob: PlannedBlob,
  source: Location | undefined,
  begin: Beginning,
  flight: Flight,
  seat: Seat | undefined,
  run: TransferRun,
): Promise<Try | Missed> {
  const { signal } = run;
  const bytes = run.inMemory.get(blob.digest);
  const from = bytes === undefined && source !== undefined ? { from: source, seat } : undefined;
  const places = await takePlaces(blob, from, run);
  if (places === 'missed') return { kind: 'missed', begin };
  const reading = stoppable(signal);
  const open = (at: number) =>
    from === undefined ? undefined : openSource(blob, from, at, places, flight.reads, reading.signal, run);
  // Where a broken upload goes on is not known before the target has told.
  let stream = begin.kind === 'resume' ? undefined : open(0);
  const sourceGone = async (): Promise<boolean> => {
    const read = await stream;
    flight.sourceGone ||= read?.kind === 'failed' && isGone(read.error);
    return flight.sourceGone;
  };
  try {
    const opened = await openTarget(blob, begin, { places, sourceGone }, flight, run);
    // Nothing to send: whatever the source is doing is not waited for.
    if (opened.kind !== 'session') return opened;
    stream ??= open(opened.resume?.mark.offset ?? 0);
    const read = await stream;
    if (read?.kind === 'failed') {
      run.sessions.cancel(opened.session);
      flight.sourceGone ||= isGone(read.error);
      return unreadable(read.error, signal);
    }
    if (read?.kind === 'missed' || seat?.begin() === false) {
      return { kind: 'missed', begin: { kind: 'session', session: opened.session, look: false } };
    }
    const body = read?.body ?? restOf(bytes ?? new Uint8Array(), opened.resume);
    return await send(blob, opened, body, places, flight, run);
  } finally {
    reading.stop();
    const left = await stream;
    if (left?.kind === 'open') left.body.destroy();
    if (seat === undefined) places.release();
    else seat.giveBack(places);
  }
}

function restOf(bytes: Uint8Array, resume: ResumePoint | undefined): UploadBody {
  if (resume === undefined) return bytes;
  return Readable.from([bytes.subarray(resume.mark.offset)], { objectMode: false });
}

async function send(
  blob: PlannedBlob,
  { session, resume }: OpenedSession,
  body: UploadBody,
  places: CopyPlaces,
  flight: Flight,
  run: TransferRun,
): Promise<Try> {
  const { sessions } = run;
  let current = session;
  const moved = (next: UploadSession): void => {
    sessions.moved(current, next);
    current = next;
  };
  let sent = 0;
  const show = progressOf(blob, run);
  const start = resume?.offset ?? 0;
  const progress = (bytesSoFar: number): void => {
    sent = bytesSoFar;
    show(start + sent);
  };
  const answer = await run.registry.upload(session, blob, body, {
    signal: run.signal,
    place: places.target,
    progress,
    moved,
    ...(resume === undefined ? {} : { resume }),
    ...(flight.chunked ? { chunked: true } : {}),
  });
  const interrupted = 'interrupted' in answer ? answer.interrupted : undefined;
  if (interrupted !== undefined) moved(interrupted.session);
  // What the registry may still be storing is cancelled at the end of the run, not now.
  else if (!('alive' in answer && answer.alive)) sessions.used(current);
  flight.bytesSent += answer.kind === 'stored' ? answer.bytesSent : sent;
  return answer;
}

function isGone(error: unknown): boolean {
  return error instanceof PublishError && error.code === 'BLOB_NOT_FOUND';
}

/** What a source that does not open means. It has been asked as often as anything is asked. */
function unreadable(error: unknown, signal: AbortSignal): Try {
  signal.throwIfAborted();
  if (!(error instanceof PublishError)) throw error;
  const corrupt = error.code === 'SIZE_MISMATCH' || error.code === 'DIGEST_MISMATCH';
  return { kind: corrupt ? 'corrupt' : 'unreadable', error: error.with({ side: 'source' }) };
}

type OpenedSession = { readonly kind: 'session'; readonly session: UploadSession; readonly resume?: ResumePoint };
type Opened = { readonly kind: 'present' | 'mounted' } | OpenedSession;

/** Brings the target to an open session, or finds that none is needed. One request after another, on one place. */
async function openTarget(
  blob: PlannedBlob,
  begin: Beginning,
  { places, sourceGone }: { readonly places: CopyPlaces; readonly sourceGone: () => Promise<boolean> },
  flight: Flight,
  run: TransferRun,
): Promise<Opened> {
  const { registry, target, sessions } = run;
  const options = { signal: run.signal, place: places.target };
  let session = begin.kind === 'session' ? begin.session : begin.kind === 'resume' ? begin.left.session : undefined;
  if (begin.kind === 'mount') {
    const { from } = begin;
    const ask = (given: VerbOptions) => registry.mountBlob(target.repository, blob.digest, from, given);
    const answer = await sessions.open(ask, places.target);
    if (answer.kind === 'mounted') {
      run.mounts.mounted(from);
      return answer;
    }
    flight.why = answer.why;
    run.mounts.refused(from, answer.kind === 'refused' && answer.sourceBarred);
    if (answer.kind === 'session') session = sessions.opened(answer.session);
  }
  if (begin.look) {
    const presence = await registry.hasBlob(target.repository, blob.digest, options);
    // Where mounts are links a HEAD tells the link's length, also when what it leads to is gone (serverless-registry).
    const linked = presence.kind === 'present' && presence.size !== undefined && presence.size !== blob.size;
    if (presence.kind === 'present' && !(linked && (await sourceGone()))) {
      if (session !== undefined) sessions.cancel(session);
      return { kind: 'present' };
    }
  }
  if (begin.kind === 'resume') {
    const resume = await takeUp(begin.left, flight, options, run);
    if (begin.last !== undefined && !flight.learnt) throw begin.last;
    if (resume !== undefined) return { kind: 'session', session: resume.session, resume };
    // The registry may be storing it all the same: then it is cancelled at the end of the run, not now.
    if (session !== undefined && begin.alive !== true) sessions.cancel(session);
    session = undefined;
  }
  flight.resumedAt = 0;
  const post = (given: VerbOptions) => registry.openUpload(target.repository, blob.digest, given);
  session ??= sessions.opened(await sessions.open(post, places.target));
  return { kind: 'session', session };
}

/** Where a broken upload goes on. A place in dispute that is no further than the last one will not be agreed on. */
async function takeUp(
  left: Interrupted,
  flight: Flight,
  options: VerbOptions,
  { registry, sessions }: TransferRun,
): Promise<ResumePoint | undefined> {
  const point = flight.resumes ? await registry.resumeUpload(left, options) : undefined;
  if (point === 'smaller') {
    flight.learnt = true;
    return undefined;
  }
  if (point === undefined || (left.disputed === true && point.offset <= flight.resumedAt)) return undefined;
  sessions.moved(left.session, point.session);
  flight.resumedAt = point.offset;
  return point;
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
