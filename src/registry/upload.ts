import { Readable } from 'node:stream';
import { feedBlob } from './blob-feed.ts';
import type { Canceller } from './cancel.ts';
import { checkBody, checkBytes } from './checked-body.ts';
import { sendChunks } from './chunks.ts';
import type { BlobIdentity, UploadAnswer, UploadBody, UploadOptions, UploadSession } from './client.ts';
import type { Ended, Upload } from './commit.ts';
import type { UploadForm, UploadLessons } from './upload-lessons.ts';
import { sendWhole } from './whole.ts';
import { type Wire, writingStep } from './wire.ts';

/**
 * Sends a blob into a session, in the form that the host is known to take: one PUT, unless something spoke against it.
 *
 * Into a session that broke a body is sent only from where the registry says that it stands; ECR answers that with 416
 * and GHCR with 404, which leads to a new session.
 *
 * @throws what ends a run; the session is still the caller's then
 * @see RegistryClient.upload
 */
export async function upload(
  wire: Wire,
  lessons: UploadLessons,
  cancel: Canceller,
  session: UploadSession,
  blob: BlobIdentity,
  body: UploadBody,
  options: UploadOptions,
): Promise<UploadAnswer> {
  const step = writingStep(wire, `copying ${blob.digest} to`, session.repository, '');
  const ended = await send({ wire, step, session, blob, lessons }, body, options);
  if (ended.cancels) await cancel(ended.session ?? session, options.place);
  return ended.answer;
}

async function send(upload: Upload, body: UploadBody, options: UploadOptions): Promise<Ended> {
  const { blob, step } = upload;
  if (body instanceof Uint8Array) {
    const error = checkBytes(body, blob, step.doing);
    if (error !== undefined) return { answer: { kind: 'corrupt', error }, cancels: true };
  }
  const form = formOf(upload, options);
  if (form.kind !== 'whole') {
    const source = body instanceof Uint8Array ? Readable.from([body], { objectMode: false }) : body;
    const { resume, progress } = options;
    const start = resume?.offset ?? 0;
    const feed = feedBlob(source, blob, step.doing, resume?.mark, (read) => progress?.(Math.max(0, read - start)));
    try {
      return await sendChunks(upload, feed, form, start, options);
    } finally {
      feed.close();
    }
  }
  if (body instanceof Uint8Array) return sendWhole(upload, body, options);
  const checked = checkBody(body, blob, step.doing, options.progress);
  try {
    return await sendWhole(upload, checked, options);
  } finally {
    checked.close();
  }
}

function formOf({ lessons, blob, session }: Upload, { resume, chunked = false }: UploadOptions): UploadForm {
  const form = lessons.formOf(blob.size, session, chunked || resume !== undefined);
  // Where a session is gone on with nothing but a range will do.
  if (resume === undefined || form.kind === 'chunks') return form;
  return { kind: 'chunks', size: blob.size, most: blob.size };
}
