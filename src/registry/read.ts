import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import { MANIFEST_ACCEPT, MANIFEST_SIZE_MAX } from '../model/descriptor.ts';
import { algorithmOf, type Digest, digestOf, isDigest } from '../model/digest.ts';
import { checkBytes } from './checked-body.ts';
import type { BlobIdentity, ManifestAnswer, VerbOptions } from './client.ts';
import { detailsOf, failureFor, type Refusal, readRefusal, refusedWith, violated } from './failure.ts';
import {
  blobPath,
  contentLength,
  contentType,
  contradictsBytes,
  digestHeader,
  isHtml,
  manifestPath,
} from './protocol.ts';
import { meaningOf, READ, READ_PART } from './statuses.ts';
import { named, readingStep, type Step, scopeOf, sendTo, type Wire } from './wire.ts';

/** A read whose bytes are wrong is done once more: a proxy or a disk may have garbled one answer. */
const WRONG_READS = 2;

/** @see RegistryClient.getManifest */
export async function getManifest(
  wire: Wire,
  retries: number,
  repository: string,
  reference: string,
  options: VerbOptions,
): Promise<ManifestAnswer> {
  const asked = isDigest(reference) ? reference : undefined;
  const step = readingStep(wire, 'reading', repository, asked === undefined ? `:${reference}` : `@${asked}`, 'source');
  const to = { path: manifestPath(repository, reference) };
  return readAgain<ManifestAnswer>(retries, async () => {
    const response = await sendTo(
      wire,
      step,
      { method: 'GET', to, scopes: [scopeOf(step)], headers: { accept: MANIFEST_ACCEPT } },
      options,
    );
    if (meaningOf(READ, response.status) === 'found') return readManifest(step, response, asked, options.signal);
    const refusal = await readRefusal(response);
    const meaning = meaningOf(READ, refusal.status);
    switch (meaning) {
      case 'found':
        throw new Error('a found manifest is no refusal');
      case 'absent':
        return done({ kind: 'absent', error: notThere('MANIFEST_NOT_FOUND', step, refusal, asked === undefined) });
      case 'unauthorized':
      case 'limited':
        throw await failureFor(meaning, wire, step, refusal);
      default:
        return done({ kind: 'unknown', error: await failureFor(meaning, wire, step, refusal) });
    }
  });
}

async function readManifest(
  step: Step,
  response: HttpResponse,
  asked: Digest | undefined,
  signal: AbortSignal,
): Promise<Read<ManifestAnswer>> {
  await refuseHtml(step, response, 'a manifest');
  const body = await wholeBody(step, response, signal, MANIFEST_SIZE_MAX, (cause) => tooLarge(step, cause));
  if (body.kind !== 'done') {
    if (body.kind === 'broken') return body;
    throw body.error;
  }
  const bytes = body.value;
  const named = asked ?? digestHeader(response.headers);
  const digest = digestOf(bytes, named === undefined ? 'sha256' : algorithmOf(named));
  const expected = asked !== undefined && digest !== asked ? asked : contradictsBytes(response.headers, bytes);
  if (expected !== undefined) return { kind: 'wrong', error: wrongManifest(step, response, bytes, expected) };
  return done({ kind: 'found', manifest: { bytes, digest, contentType: contentType(response.headers) } });
}

/** @see RegistryClient.readBlob */
export async function readBlob(
  wire: Wire,
  retries: number,
  repository: string,
  blob: BlobIdentity,
  options: VerbOptions,
): Promise<Uint8Array> {
  const step = readingStep(wire, 'reading', repository, `@${blob.digest}`, 'source');
  if (blob.size > MANIFEST_SIZE_MAX) throw tooLarge(step, undefined);
  return readAgain<Uint8Array>(retries, async () => {
    const response = await foundBlob(wire, step, blob, options);
    if (response instanceof PublishError) return { kind: 'wrong', error: response };
    const body = await wholeBody(step, response, options.signal, blob.size, (cause) =>
      wrongLength(step, response, blob, cause),
    );
    const error = body.kind === 'done' ? checkBytes(body.value, blob, step.doing) : undefined;
    return error === undefined ? body : { kind: 'wrong', error };
  });
}

/**
 * A blob's 200, its body unread; or the error of one that announces another length than the declared one. Who asks for
 * the bytes `from` some place on may get a 206.
 */
export async function foundBlob(
  wire: Wire,
  step: Step,
  blob: BlobIdentity,
  options: VerbOptions,
  { from = 0, retries }: { readonly from?: number; readonly retries?: number } = {},
): Promise<HttpResponse | PublishError> {
  const to = { path: blobPath(step.repository, blob.digest) };
  const more = {
    ...(from > 0 ? { headers: { range: `bytes=${from}-` } } : {}),
    ...(retries === undefined ? {} : { retries }),
  };
  const response = await sendTo(wire, step, { method: 'GET', to, scopes: [scopeOf(step)], ...more }, options);
  const part = from > 0 ? meaningOf(READ_PART, response.status) : 'other';
  if (part === 'part') return response;
  if (part === 'none') {
    await response.discard();
    return foundBlob(wire, step, blob, options, retries === undefined ? {} : { retries });
  }
  if (meaningOf(READ, response.status) === 'found') {
    await refuseHtml(step, response, 'a blob');
    const length = contentLength(response.headers);
    if (length === undefined || length === blob.size) return response;
    await response.discard();
    return wrongLength(step, response, blob, undefined);
  }
  const refusal = await readRefusal(response);
  const meaning = meaningOf(READ, refusal.status);
  if (meaning === 'found') throw new Error('a found blob is no refusal');
  throw meaning === 'absent'
    ? notThere('BLOB_NOT_FOUND', step, refusal)
    : await failureFor(meaning, wire, step, refusal);
}

/** What one read came to: `wrong` bytes, or a body that `broke` off. */
export type Read<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'wrong' | 'broken'; readonly error: PublishError };

export function done<T>(value: T): Read<T> {
  return { kind: 'done', value };
}

/** A read that breaks off behind the headers is done again `retries` times; before them the transport sees to it. */
export async function readAgain<T>(retries: number, read: () => Promise<Read<T>>): Promise<T> {
  const left = { wrong: WRONG_READS, broken: 1 + retries };
  for (;;) {
    const outcome = await read();
    if (outcome.kind === 'done') return outcome.value;
    left[outcome.kind] -= 1;
    if (left[outcome.kind] === 0) throw outcome.error;
  }
}

/** The body up to `limit` bytes; one that is longer is `wrong`. What ends the run is thrown. */
export async function wholeBody(
  step: Step,
  response: HttpResponse,
  signal: AbortSignal,
  limit: number,
  tooLong: (cause: PublishError) => PublishError,
): Promise<Read<Uint8Array>> {
  try {
    return done(await response.bytes(limit));
  } catch (error) {
    // The end of a run is no failure of this step, whatever it ended by.
    if (signal.aborted) throw error;
    if (error instanceof PublishError && error.code === 'PROTOCOL_VIOLATED')
      return { kind: 'wrong', error: tooLong(error) };
    if (error instanceof PublishError && error.code === 'NETWORK_FAILED') {
      return { kind: 'broken', error: named(step, error) };
    }
    throw error;
  }
}

/** Captive portals and single sign-on answer everything with a page and 200. */
async function refuseHtml(step: Step, response: HttpResponse, expected: string): Promise<void> {
  if (!isHtml(response.headers)) return;
  await response.discard();
  throw violated(step, response, `with an HTML page where ${expected} belongs`);
}

function notThere(
  code: 'MANIFEST_NOT_FOUND' | 'BLOB_NOT_FOUND',
  step: Step,
  refusal: Refusal,
  isTag = false,
): PublishError {
  const late = isTag ? ' (some registries show a new tag late)' : '';
  const hint =
    code === 'MANIFEST_NOT_FOUND'
      ? `Push it first${late}, or check the name: ${step.name}`
      : `Push the image again: ${step.host}/${step.repository} has a manifest that names a blob it lacks.`;
  return refusedWith(code, step, refusal, hint, `${step.name} is not there`);
}

/** More bytes than a manifest or list may have. */
export function tooLarge(step: Step, cause: PublishError | undefined): PublishError {
  return new PublishError(
    'MANIFEST_INVALID',
    `${step.doing}: more than the ${MANIFEST_SIZE_MAX} bytes that registries take for a manifest or config`,
    'Check the name; rebuild the image with a smaller manifest and config.',
    { side: step.side, registry: step.host, repository: step.repository, ...(cause === undefined ? {} : { cause }) },
  );
}

function wrongManifest(step: Step, response: HttpResponse, bytes: Uint8Array, expected: Digest): PublishError {
  const actual = digestOf(bytes, algorithmOf(expected));
  return new PublishError(
    'DIGEST_MISMATCH',
    `${step.doing}: ${response.url.host} answered with bytes that hash to ${actual}, not to ${expected}`,
    'Run the same command again; if it repeats, the registry or a proxy before it is damaged.',
    detailsOf(step, response.status),
  );
}

function wrongLength(
  step: Step,
  response: HttpResponse,
  blob: BlobIdentity,
  cause: PublishError | undefined,
): PublishError {
  const length = contentLength(response.headers) ?? `more than ${blob.size}`;
  return new PublishError(
    'SIZE_MISMATCH',
    `${step.doing}: ${response.url.host} answered with ${length} bytes where the manifest says ${blob.size}`,
    'Run the same command again; if it repeats, the repository is damaged: push the image again.',
    {
      side: step.side,
      registry: step.host,
      repository: step.repository,
      status: response.status,
      ...(cause === undefined ? {} : { cause }),
    },
  );
}
