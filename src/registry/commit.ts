import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import type { BlobIdentity, Presence, UploadAnswer, UploadSession, VerbOptions } from './client.ts';
import { failureFor, type Refusal, readRefusal, refusedWith, violated, wordsOf } from './failure.ts';
import { isPresent } from './presence.ts';
import { contradictsDigest, digestHeader, isHtml, locationDigest } from './protocol.ts';
import { COMMIT, COMMIT_CURABLE, COMMIT_CURABLE_WORDS, COMMIT_WRONG_BYTES, meaningOf } from './statuses.ts';
import type { UploadLessons } from './upload-lessons.ts';
import { movedTo } from './upload-status.ts';
import type { Step, Wire } from './wire.ts';

/**
 * An answer, and whether to cancel the session: it may be open, is not being committed, and nobody else will. `session`
 * where it has moved on.
 */
export type Ended = { readonly answer: UploadAnswer; readonly cancels: boolean; readonly session?: UploadSession };

/** One upload on its way. `session` with the newest Location. */
export type Upload = {
  readonly wire: Wire;
  readonly step: Step;
  readonly session: UploadSession;
  readonly blob: BlobIdentity;
  readonly lessons: UploadLessons;
};

/** A break behind the last byte: cancelling now could hit what the registry is just storing. */
export function brokenCommit(error: PublishError): Ended {
  return { answer: { kind: 'broken', error, alive: true }, cancels: false };
}

/**
 * What the answer to a closing PUT means.
 *
 * @param sent how many bytes of the blob had left; `body`: how long the PUT's own body was
 * @throws PublishError `PROTOCOL_VIOLATED` when the answer is none of a registry's
 */
export async function judgeCommit(
  upload: Upload,
  response: HttpResponse,
  sent: number,
  body: number,
  bytesSent: number,
): Promise<Ended> {
  const { step, blob } = upload;
  if (meaningOf(COMMIT, response.status) !== 'stored') return refused(upload, await readRefusal(response), sent, body);
  await response.discard();
  if (response.status === 200 && isHtml(response.headers)) {
    throw violated(step, response, 'with an HTML page where the end of an upload belongs');
  }
  if (contradictsDigest(digestHeader(response.headers), blob.digest)) {
    throw violated(step, response, `for another digest, ${digestHeader(response.headers)}`);
  }
  if (sent < blob.size) {
    const early = violated(step, response, `after ${sent} of ${blob.size} bytes`);
    return { answer: { kind: 'broken', error: early }, cancels: false };
  }
  upload.lessons.taken(body);
  return { answer: { kind: 'stored', bytesSent }, cancels: false };
}

/**
 * The end of an upload, looked after once where the answer was a success other than the spec's 201: a 202 is also what
 * says that a session is still open, and what stands before a registry may say 200 to anything.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Pushing blobs"
 */
export async function lookAfter(
  upload: Upload,
  response: HttpResponse,
  ended: Ended,
  options: VerbOptions,
): Promise<Ended> {
  if (ended.answer.kind !== 'stored' || response.status === 201) return ended;
  if ((await look(upload, options)).kind !== 'absent') return ended;
  const error = violated(upload.step, response, 'to the end of an upload, yet the blob is not there');
  return { answer: { kind: 'broken', error }, cancels: true, session: openStill(upload, response) };
}

/** Whether the blob is there; a question that fails tells nothing, and an upload is not undone for it. */
async function look({ wire, session, blob }: Upload, options: VerbOptions): Promise<Presence> {
  const { signal, place } = options;
  try {
    const asked = { signal, ...(place === undefined ? {} : { place }) };
    return await isPresent(wire, 'blob', session.repository, blob.digest, asked);
  } catch (error) {
    if (!(error instanceof PublishError) || signal.aborted) throw error;
    return { kind: 'unknown', error };
  }
}

/** The session that is left open. A Location that ends in a digest is the blob's, which nobody wants deleted. */
function openStill({ wire, session }: Upload, response: HttpResponse): UploadSession {
  return locationDigest(response.headers['location']) === undefined ? movedTo(wire, session, response) : session;
}

async function refused(upload: Upload, refusal: Refusal, sent: number, body: number): Promise<Ended> {
  const { wire, step, blob, lessons, session } = upload;
  const meaning = meaningOf(COMMIT, refusal.status);
  switch (meaning) {
    case 'stored':
      throw new Error('a stored blob is no refusal');
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
    case 'gone': {
      const error = uploadRefused(step, refusal, sent, blob);
      // Artifactory of 2019 answered so to a blob in one PUT, and took it by PATCH.
      const unsaid = refusal.status === 404 && refusal.codes.includes('BLOB_UNKNOWN') && refusal.sends === 1;
      if (body > 0 && unsaid) lessons.noWhole();
      return { answer: { kind: 'broken', error }, cancels: refusal.status !== 404 || unsaid };
    }
    case 'large': {
      const error = uploadRefused(step, refusal, sent, blob);
      const otherwise = body > 0 && lessons.tooLarge(body, session);
      return { answer: { kind: otherwise ? 'otherwise' : 'refused', error }, cancels: true };
    }
    case 'formless': {
      const error = uploadRefused(step, refusal, sent, blob);
      return { answer: { kind: body > 0 && lessons.noWhole() ? 'otherwise' : 'refused', error }, cancels: true };
    }
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

/** The registry's last word on an upload. */
export function uploadRefused(step: Step, refusal: Refusal, sent: number, blob: BlobIdentity): PublishError {
  const hint =
    refusal.status === 413
      ? 'Raise the body limit of the proxy in front of the registry (nginx: client_max_body_size, 1m unless set; Cloudflare: 100 MB on its free plan).'
      : 'Check what the registry says, and that it takes blobs of this size.';
  const note = `${step.doing}: refused after ${sent} of ${blob.size} bytes`;
  return refusedWith('UPLOAD_REFUSED', step, refusal, hint, note);
}
