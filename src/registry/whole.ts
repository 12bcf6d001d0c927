import { PublishError } from '../errors.ts';
import { isHangUp } from '../http/failure.ts';
import { hashFor } from '../model/digest.ts';
import type { CheckedBody } from './checked-body.ts';
import type { Interrupted, UploadOptions } from './client.ts';
import { brokenCommit, type Ended, judgeCommit, lookAfter, type Upload } from './commit.ts';
import { commitTimeout, withDigestQuery } from './protocol.ts';
import { COMMIT, meaningOf } from './statuses.ts';
import { scopeOf, sendTo } from './wire.ts';

/**
 * Sends a blob in one PUT with an exact length, the form that nearly every registry takes: Google takes no chunks,
 * others count them differently.
 *
 * @see distribution-spec v1.1.1 spec.md, section "POST then PUT"
 */
export async function sendWhole(
  upload: Upload,
  body: Uint8Array | CheckedBody,
  options: UploadOptions,
): Promise<Ended> {
  const { wire, step, session, blob } = upload;
  const checked = body instanceof Uint8Array ? undefined : body;
  try {
    const response = await sendTo(
      wire,
      step,
      {
        method: 'PUT',
        to: { session: new URL(withDigestQuery(session.url, blob.digest)) },
        headers: { 'content-type': 'application/octet-stream' },
        body:
          body instanceof Uint8Array ? body : { stream: body.stream, length: blob.size, disposable: body.disposable },
        retries: 0,
        headersTimeout: commitTimeout(blob.size),
        scopes: [scopeOf(step)],
      },
      options,
    );
    if (checked === undefined) options.progress?.(blob.size);
    const sent = checked === undefined || checked.complete() ? blob.size : checked.sent();
    const judged = await judgeCommit(upload, response, sent, blob.size, blob.size);
    const ended = await lookAfter(upload, response, judged, options);
    return meaningOf(COMMIT, response.status) === 'failed' && checked !== undefined
      ? resumable(ended, upload, progressOf(checked), false)
      : ended;
  } catch (error) {
    options.signal.throwIfAborted();
    // Only then the receiver: a request whose body fails is told of as a failure of the connection.
    const fault = checked?.fault();
    if (fault?.kind === 'corrupt') return { answer: { kind: 'corrupt', error: fault.error }, cancels: true };
    if (fault !== undefined && checked !== undefined) {
      return resumable(
        { answer: { kind: 'broken', error: fault.error }, cancels: true },
        upload,
        progressOf(checked),
        false,
      );
    }
    if (!(error instanceof PublishError) || error.code !== 'NETWORK_FAILED') throw error;
    if (checked === undefined) {
      // How much of it had left is not known. What cut the connection may let less through.
      const unknown = { sent: blob.size, marks: [{ offset: 0, hash: hashFor(blob.digest) }] };
      return isHangUp(error.cause) ? resumable(brokenCommit(error), upload, unknown, true) : brokenCommit(error);
    }
    const ended = checked.complete()
      ? brokenCommit(error)
      : ({ answer: { kind: 'broken', error }, cancels: true } as const);
    return resumable(ended, upload, progressOf(checked), isHangUp(error.cause));
  }
}

type Progress = Pick<Interrupted, 'sent' | 'marks'>;

function progressOf(checked: CheckedBody): Progress {
  return { sent: checked.sent(), marks: checked.marks() };
}

/**
 * A body that broke leaves a session that may know how far it got, also when all of it had left: what fits into the
 * buffers on the way has left long before it arrives.
 */
function resumable(ended: Ended, { session, blob, lessons }: Upload, progress: Progress, cut: boolean): Ended {
  const { answer } = ended;
  if (answer.kind !== 'broken') return ended;
  const interrupted: Interrupted = {
    session,
    ...progress,
    ...(progress.sent === 0 ? { offset: 0 } : {}),
    ...(cut ? { cut: blob.size } : {}),
  };
  const chunked = answer.alive !== true && lessons.worthChunks(blob.size) ? { chunked: true as const } : {};
  return { answer: { ...answer, interrupted, ...chunked }, cancels: false };
}
