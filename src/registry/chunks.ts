import type { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import { isHangUp } from '../http/failure.ts';
import type { HttpResponse } from '../http/message.ts';
import type { BlobFeed } from './blob-feed.ts';
import type { Interrupted, UploadOptions, UploadSession } from './client.ts';
import { type Ended, judgeCommit, lookAfter, type Upload, uploadRefused } from './commit.ts';
import { failureFor, type Refusal, readRefusal, violated, wordsOf } from './failure.ts';
import { commitTimeout, isHtml, rangeEnd, withDigestQuery } from './protocol.ts';
import { CHUNK, CHUNK_TOO_LARGE, meaningOf } from './statuses.ts';
import type { UploadForm } from './upload-lessons.ts';
import { movedTo } from './upload-status.ts';
import { scopeOf, sendTo } from './wire.ts';

const EMPTY = new Uint8Array(0);

/**
 * Sends a blob by PATCH and closes the session with an empty PUT, the one form in which all registries that take chunks
 * agree. Where the session stands is counted here: what they tell is stuck (ECR) or one too many (Quay, Gitea).
 *
 * @param start how many bytes of the blob the session has
 */
export async function sendChunks(
  upload: Upload,
  feed: BlobFeed,
  form: Exclude<UploadForm, { kind: 'whole' }>,
  start: number,
  options: UploadOptions,
): Promise<Ended> {
  const { wire, blob, lessons } = upload;
  const ranged = form.kind === 'chunks';
  const chunks = ranged ? cut(start, blob.size, form) : [{ from: 0, to: blob.size }];
  let { session } = upload;
  let body = 0;
  const ended = async (): Promise<Ended> => {
    await feed.skipTo(start);
    for (const { from, to } of chunks) {
      body = to - from;
      const current = { ...upload, session };
      const { disposable } = feed;
      const bytes = { stream: feed.next(body), length: body, disposable };
      const response = await patch(current, bytes, from, to, ranged, options);
      if (meaningOf(CHUNK, response.status) !== 'taken') {
        const state = { started: from > 0, resumed: start > 0, ranged };
        return chunkRefused(current, feed, { from, to }, state, response);
      }
      await response.discard();
      if (response.status === 200 && isHtml(response.headers)) {
        throw violated(upload.step, response, 'with an HTML page where a chunk was to be taken');
      }
      session = movedTo(wire, session, response);
      options.moved?.(session);
      lessons.taken(body);
    }
    await feed.finish();
    return close({ ...upload, session }, feed, blob.size - start, options);
  };
  try {
    const done = await ended();
    // Only now: each chunk has moved the session on.
    return { session, ...done };
  } catch (error) {
    options.signal.throwIfAborted();
    const fault = feed.fault();
    if (fault?.kind === 'corrupt') return { answer: { kind: 'corrupt', error: fault.error }, cancels: true, session };
    if (fault !== undefined) return interrupted(fault.error, session, feed);
    if (!(error instanceof PublishError) || error.code !== 'NETWORK_FAILED') throw error;
    return interrupted(error, session, feed, isHangUp(error.cause) ? { cut: body } : {});
  }
}

/** Bytes `from` up to but not including `to` of the blob. */
type Chunk = { readonly from: number; readonly to: number };

/**
 * Chunks of one size, the last smaller but never a single byte, which serverless-registry refuses. One byte more in
 * each of the others, or one less where there is a limit, leaves them equal, as that registry wants them. One after the
 * other: nobody keeps a list of them.
 */
export function* cut(
  start: number,
  size: number,
  { size: wanted, most }: { readonly size: number; readonly most: number },
): Generator<Chunk> {
  const left = size - start;
  const single = left > wanted && left % wanted === 1;
  const chunk = !single ? wanted : wanted < most ? wanted + 1 : Math.max(2, wanted - 1);
  for (let from = start; from < size; from += chunk) yield { from, to: Math.min(size, from + chunk) };
}

/** @see distribution-spec v1.1.1 spec.md, section "Pushing a blob in chunks": a range without a unit */
function patch(
  { wire, step, session }: Upload,
  body: { readonly stream: Readable; readonly length: number; readonly disposable: boolean },
  from: number,
  to: number,
  ranged: boolean,
  options: UploadOptions,
): Promise<HttpResponse> {
  return sendTo(
    wire,
    step,
    {
      method: 'PATCH',
      to: { session: new URL(session.url) },
      headers: {
        'content-type': 'application/octet-stream',
        ...(ranged ? { 'content-range': `${from}-${to - 1}` } : {}),
      },
      body,
      retries: 0,
      headersTimeout: commitTimeout(to - from),
      scopes: [scopeOf(step)],
    },
    options,
  );
}

/** The PUT that closes the session brings nothing: after chunks serverless-registry ignores its body. */
async function close(upload: Upload, feed: BlobFeed, bytesSent: number, options: UploadOptions): Promise<Ended> {
  const { wire, step, session, blob } = upload;
  const to = { session: new URL(withDigestQuery(session.url, blob.digest)) };
  const headers = { 'content-type': 'application/octet-stream' };
  const headersTimeout = commitTimeout(blob.size);
  const request = { to, headers, body: EMPTY, retries: 0, headersTimeout, scopes: [scopeOf(step)] };
  try {
    const response = await sendTo(wire, step, { method: 'PUT', ...request }, options);
    const ended = await judgeCommit(upload, response, blob.size, 0, bytesSent);
    return withInterruption(await lookAfter(upload, response, ended, options), session, feed);
  } catch (error) {
    options.signal.throwIfAborted();
    if (!(error instanceof PublishError) || error.code !== 'NETWORK_FAILED') throw error;
    return withInterruption({ answer: { kind: 'broken', error, alive: true }, cancels: false }, session, feed);
  }
}

/** A session that has all the bytes needs only its closing PUT once more, if the commit has not happened. */
function withInterruption(ended: Ended, session: UploadSession, feed: BlobFeed): Ended {
  const { answer } = ended;
  if (answer.kind !== 'limited' && !(answer.kind === 'broken' && answer.alive === true)) return ended;
  return { ...ended, answer: { ...answer, interrupted: interruptionOf(session, feed) } };
}

function interruptionOf(session: UploadSession, feed: BlobFeed, more: Partial<Interrupted> = {}): Interrupted {
  return { session, sent: feed.offset(), marks: feed.marks(), ...more };
}

function interrupted(
  error: PublishError,
  session: UploadSession,
  feed: BlobFeed,
  more: Partial<Interrupted> = {},
): Ended {
  const answer = { kind: 'broken', error, chunked: true, interrupted: interruptionOf(session, feed, more) } as const;
  return { answer, cancels: false };
}

/** `started`: the session has bytes already; `resumed`: from an upload that broke. */
type State = { readonly started: boolean; readonly resumed: boolean; readonly ranged: boolean };

async function chunkRefused(
  upload: Upload,
  feed: BlobFeed,
  { from, to }: Chunk,
  state: State,
  response: HttpResponse,
): Promise<Ended> {
  const { wire, step, session, blob, lessons } = upload;
  const refusal = await readRefusal(response);
  const meaning = meaningOf(CHUNK, refusal.status);
  const last = (): PublishError => uploadRefused(step, refusal, from, blob);
  const otherwise = (is: boolean): Ended => ({
    answer: { kind: is ? 'otherwise' : 'refused', error: last() },
    cancels: true,
  });
  switch (meaning) {
    case 'taken':
      throw new Error('a chunk that was taken is no refusal');
    case 'limited': {
      const error = await failureFor(meaning, wire, step, refusal);
      return {
        answer: { kind: 'limited', error, alive: true, interrupted: interruptionOf(session, feed, { offset: from }) },
        cancels: false,
      };
    }
    case 'unauthorized':
      return interrupted(await failureFor(meaning, wire, step, refusal), session, feed);
    case 'failed':
      return interrupted(await failureFor(meaning, wire, step, refusal), session, feed);
    case 'denied':
      return { answer: { kind: 'refused', error: await failureFor(meaning, wire, step, refusal) }, cancels: true };
    case 'large':
      return otherwise(state.ranged && lessons.tooLarge(to - from, session));
    case 'range':
      return outOfRange(upload, feed, { from, to }, state, response, refusal);
    case 'formless':
      if (state.started) return lost(last(), refusal);
      if (state.ranged) lessons.noChunks();
      return otherwise(state.ranged);
    case 'gone':
      return lost(last(), refusal);
    default:
      return otherwise(false);
  }
}

/** A 416 says that the chunk is too large, or that it begins where the session does not stand. */
function outOfRange(
  upload: Upload,
  feed: BlobFeed,
  { from, to }: Chunk,
  state: State,
  response: HttpResponse,
  refusal: Refusal,
): Ended {
  const { wire, step, session, blob, lessons } = upload;
  const error = uploadRefused(step, refusal, from, blob);
  const large = !state.resumed && (!state.started || CHUNK_TOO_LARGE.test(wordsOf(refusal)));
  if (large) {
    const otherwise = state.ranged && lessons.chunkTooLarge(to - from, session);
    return { answer: { kind: otherwise ? 'otherwise' : 'refused', error }, cancels: true };
  }
  const said = rangeEnd(response.headers);
  const moved = movedTo(wire, session, response);
  // Where it stands already is no news; and what it has not been sent it cannot have.
  if (said !== undefined && said !== from && said > 0 && said <= from)
    return interrupted(error, moved, feed, { offset: said, disputed: true });
  return said === undefined ? interrupted(error, moved, feed, { disputed: true }) : lost(error, refusal);
}

/** A new session, from the first byte. */
function lost(error: PublishError, { status }: Refusal): Ended {
  return { answer: { kind: 'broken', error, chunked: true }, cancels: status !== 404 };
}
