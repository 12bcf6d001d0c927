import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import type { Canceller } from './cancel.ts';
import { type CheckedBody, checkBody, checkBytes } from './checked-body.ts';
import type { BlobIdentity, UploadAnswer, UploadBody, UploadOptions, UploadSession } from './client.ts';
import { failureFor, type Refusal, readRefusal, refusedWith, violated, wordsOf } from './failure.ts';
import { commitTimeout, contradictsDigest, digestHeader, withDigestQuery } from './protocol.ts';
import { COMMIT, COMMIT_CURABLE, COMMIT_CURABLE_WORDS, COMMIT_WRONG_BYTES, meaningOf } from './statuses.ts';
import { type Step, scopeOf, sendTo, type Wire, writingStep } from './wire.ts';

/**
 * Sends a blob into a session in one PUT with an exact length, the form that nearly every registry takes: Google takes
 * no chunks, others count them differently.
 *
 * A body is never sent twice into one session: after a break ECR answers 416 and GHCR 404, whatever became of it.
 *
 * @throws what ends a run; the session is still the caller's then
 * @see RegistryClient.upload
 * @see distribution-spec v1.1.1 spec.md, section "POST then PUT"
 */
export async function upload(
  wire: Wire,
  cancel: Canceller,
  session: UploadSession,
  blob: BlobIdentity,
  body: UploadBody,
  options: UploadOptions,
): Promise<UploadAnswer> {
  const step = writingStep(wire, `copying ${blob.digest} to`, session.repository, '');
  if (body instanceof Uint8Array) {
    const error = checkBytes(body, blob, step.doing);
    if (error === undefined)
      return finish(cancel, session, options, await putBlob(wire, session, blob, step, body, options));
    return finish(cancel, session, options, { answer: { kind: 'corrupt', error }, cancels: true });
  }
  const checked = checkBody(body, blob, step.doing, options.progress);
  try {
    return await finish(cancel, session, options, await putBlob(wire, session, blob, step, checked, options));
  } finally {
    checked.close();
  }
}

/** An answer, and whether to cancel the session: it may be open, is not being committed, and nobody else will. */
type Ended = { readonly answer: UploadAnswer; readonly cancels: boolean };

/** A break behind the last byte: cancelling now could hit what the registry is just storing. */
function brokenCommit(error: PublishError): Ended {
  return { answer: { kind: 'broken', error, alive: true }, cancels: false };
}

async function finish(
  cancel: Canceller,
  session: UploadSession,
  options: UploadOptions,
  ended: Ended,
): Promise<UploadAnswer> {
  if (ended.cancels) await cancel(session, options.place);
  return ended.answer;
}

async function putBlob(
  wire: Wire,
  session: UploadSession,
  blob: BlobIdentity,
  step: Step,
  body: Uint8Array | CheckedBody,
  options: UploadOptions,
): Promise<Ended> {
  const checked = body instanceof Uint8Array ? undefined : body;
  try {
    const response = await sendTo(
      wire,
      step,
      {
        method: 'PUT',
        to: { session: new URL(withDigestQuery(session.url, blob.digest)) },
        headers: { 'content-type': 'application/octet-stream' },
        body: body instanceof Uint8Array ? body : { stream: body.stream, length: blob.size },
        retries: 0,
        headersTimeout: commitTimeout(blob.size),
        scopes: [scopeOf(step)],
      },
      options,
    );
    if (checked === undefined) options.progress?.(blob.size);
    return await judge(wire, step, blob, response, checked);
  } catch (error) {
    options.signal.throwIfAborted();
    // Only then the receiver: a request whose body fails is told of as a failure of the connection.
    const fault = checked?.fault();
    if (fault !== undefined) {
      return { answer: { kind: fault.kind === 'corrupt' ? 'corrupt' : 'broken', error: fault.error }, cancels: true };
    }
    if (!(error instanceof PublishError) || error.code !== 'NETWORK_FAILED') throw error;
    if (checked === undefined || checked.complete()) return brokenCommit(error);
    return { answer: { kind: 'broken', error }, cancels: true };
  }
}

async function judge(
  wire: Wire,
  step: Step,
  blob: BlobIdentity,
  response: HttpResponse,
  checked: CheckedBody | undefined,
): Promise<Ended> {
  if (meaningOf(COMMIT, response.status) === 'stored') {
    await response.discard();
    if (contradictsDigest(digestHeader(response.headers), blob.digest)) {
      throw violated(step, response, `for another digest, ${digestHeader(response.headers)}`);
    }
    if (checked === undefined || checked.complete())
      return { answer: { kind: 'stored', bytesSent: blob.size }, cancels: false };
    const early = violated(step, response, `after ${checked.sent()} of ${blob.size} bytes`);
    return { answer: { kind: 'broken', error: early }, cancels: false };
  }
  const refusal = await readRefusal(response);
  return refused(wire, step, blob, refusal, checked?.sent() ?? blob.size);
}

async function refused(wire: Wire, step: Step, blob: BlobIdentity, refusal: Refusal, sent: number): Promise<Ended> {
  const meaning = meaningOf(COMMIT, refusal.status);
  switch (meaning) {
    case 'limited':
      return {
        answer: { kind: 'limited', error: await failureFor(meaning, wire, step, refusal), alive: true },
        cancels: false,
      };
    case 'unauthorized':
      return { answer: { kind: 'broken', error: await failureFor(meaning, wire, step, refusal) }, cancels: true };
    case 'denied':
      return { answer: { kind: 'refused', error: await failureFor(meaning, wire, step, refusal) }, cancels: true };
    case 'failed': {
      const error = await failureFor(meaning, wire, step, refusal);
      return sent < blob.size ? { answer: { kind: 'broken', error }, cancels: true } : brokenCommit(error);
    }
    case 'gone':
      return {
        answer: { kind: 'broken', error: uploadRefused(step, refusal, sent, blob) },
        cancels: refusal.status !== 404,
      };
    case 'unsure':
      return unsure(step, blob, refusal, sent);
    default:
      return { answer: { kind: 'refused', error: uploadRefused(step, refusal, sent, blob) }, cancels: true };
  }
}

/** A 400, which means many things. */
function unsure(step: Step, blob: BlobIdentity, refusal: Refusal, sent: number): Ended {
  if (refusal.codes.some((code) => COMMIT_WRONG_BYTES.includes(code))) {
    const hint = 'Run the same command again; if it repeats, something changes bytes on their way to the registry.';
    const note = `${step.doing}: what was sent hashes to ${blob.digest}, yet`;
    return {
      answer: { kind: 'corrupt', error: refusedWith('DIGEST_MISMATCH', step, refusal, hint, note) },
      cancels: true,
    };
  }
  const error = uploadRefused(step, refusal, sent, blob);
  const curable =
    refusal.codes.some((code) => COMMIT_CURABLE.includes(code)) || COMMIT_CURABLE_WORDS.test(wordsOf(refusal));
  return { answer: { kind: curable ? 'broken' : 'refused', error }, cancels: true };
}

function uploadRefused(step: Step, refusal: Refusal, sent: number, blob: BlobIdentity): PublishError {
  const hint =
    refusal.status === 413
      ? 'Raise the body limit of the proxy in front of the registry (nginx: client_max_body_size, Cloudflare: by plan).'
      : 'Check what the registry says, and that it takes blobs of this size.';
  const note = `${step.doing}: refused after ${sent} of ${blob.size} bytes`;
  return refusedWith('UPLOAD_REFUSED', step, refusal, hint, note);
}
