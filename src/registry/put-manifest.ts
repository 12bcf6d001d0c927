import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import { isPassingStatus, retryAfter } from '../http/retry.ts';
import { isIndexType } from '../model/descriptor.ts';
import { type Digest, isDigest } from '../model/digest.ts';
import { isDockerType } from '../model/manifest.ts';
import type { PutAnswer, PutOptions } from './client.ts';
import { detailsOf, failureFor, type Refusal, readRefusal, refusedWith, violated, wordsOf } from './failure.ts';
import { contradictsBytes, digestHeader, isHtml, manifestPath } from './protocol.ts';
import {
  IMMUTABLE_STATUSES,
  IMMUTABLE_WORDS,
  INCOMPLETE_STATUSES,
  meaningOf,
  PUT,
  PUT_INCOMPLETE,
} from './statuses.ts';
import { type Step, scopeOf, sendTo, type Wire, writingStep } from './wire.ts';

/** Registries check every child before they answer; in ms. */
const MANIFEST_TIMEOUT = 120_000;

const CREATED = 201;

/** @see RegistryClient.putManifest */
export async function putManifest(
  wire: Wire,
  repository: string,
  reference: string,
  manifest: { readonly bytes: Uint8Array; readonly digest: Digest; readonly mediaType: string },
  options: PutOptions,
): Promise<PutAnswer> {
  const step = writingStep(wire, 'writing', repository, isDigest(reference) ? `@${reference}` : `:${reference}`);
  const response = await sendTo(
    wire,
    step,
    {
      method: 'PUT',
      to: { path: manifestPath(repository, reference) },
      headers: { 'content-type': manifest.mediaType },
      body: manifest.bytes,
      headersTimeout: MANIFEST_TIMEOUT,
      scopes: [scopeOf(step)],
      ...(options.once === true ? { retries: 0, once: true } : {}),
    },
    options,
  );
  if (meaningOf(PUT, response.status) === 'stored') {
    await response.discard();
    const other = contradictsBytes(response.headers, manifest.bytes);
    if (other !== undefined) throw storedAnother(step, response, manifest.digest, other);
    return storedBy(step, response);
  }
  const refusal = await readRefusal(response);
  if (options.once === true) {
    const passing = await passingRefusal(wire, step, refusal, response);
    if (passing !== undefined) return passing;
  }
  return putRefused(wire, step, refusal, manifest.mediaType);
}

/** A refusal that the next try may not meet: what is asked once is not tried again further down. */
async function passingRefusal(
  wire: Wire,
  step: Step,
  refusal: Refusal,
  { headers }: HttpResponse,
): Promise<PutAnswer | undefined> {
  const meaning = meaningOf(PUT, refusal.status);
  // The login or token has been renewed by now.
  if (meaning !== 'unauthorized' && !isPassingStatus(refusal.status)) return undefined;
  if (meaning !== 'unauthorized' && meaning !== 'limited' && meaning !== 'failed') return undefined;
  // No clock is here: a wait up to a date is told by the answer's own Date, or not at all.
  const wait = retryAfter(headers, Number.NaN);
  const error = await failureFor(meaning, wire, step, refusal);
  return { kind: 'refused', error, passing: wait === undefined ? {} : { wait } };
}

/**
 * A 201 is the spec's word. Other successes are taken from registries that mean the same (old Quay: 202), but also come
 * from what stands between: a captive portal or a login answers everything with 200 and a page. Quay sends its 201 as
 * text/html, which is Flask's type for everything, so that a page beside 201 is no more than a doubt.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Pushing Manifests"
 */
function storedBy(step: Step, response: HttpResponse): PutAnswer {
  const named = digestHeader(response.headers) !== undefined;
  const page = isHtml(response.headers) && !named;
  // The answer to a manifest without subject has none.
  const listed = isDigest(response.headers['oci-subject'] ?? '') ? { listed: true as const } : {};
  if (response.status === CREATED && !page) return { kind: 'stored', ...listed };
  if (response.status !== CREATED && page) throw violated(step, response, 'with an HTML page where a manifest was put');
  return { kind: 'stored', doubt: violated(step, response, 'where 201 belongs'), ...listed };
}

async function putRefused(wire: Wire, step: Step, refusal: Refusal, mediaType: string): Promise<PutAnswer> {
  const { status, codes } = refusal;
  if (IMMUTABLE_STATUSES.includes(status) && IMMUTABLE_WORDS.test(wordsOf(refusal))) {
    const hint = 'Publish under a tag that does not exist yet, or allow this repository to move tags.';
    return {
      kind: 'immutable',
      error: refusedWith('TAG_IMMUTABLE', step, refusal, hint, `${step.doing}: the tag may not be moved`),
    };
  }
  if (INCOMPLETE_STATUSES.includes(status) && codes.some((code) => PUT_INCOMPLETE.includes(code))) {
    const hint = 'Run the same command again; if it repeats, the registry does not take this manifest.';
    return { kind: 'incomplete', error: refusedWith('MANIFEST_REFUSED', step, refusal, hint) };
  }
  const meaning = meaningOf(PUT, status);
  switch (meaning) {
    case 'unauthorized':
    case 'limited':
      throw await failureFor(meaning, wire, step, refusal);
    case 'denied':
    case 'failed':
      return { kind: 'refused', error: await failureFor(meaning, wire, step, refusal) };
    default: {
      const note = `${step.doing} as ${mediaType}`;
      return {
        kind: 'refused',
        error: refusedWith('MANIFEST_REFUSED', step, refusal, refusedHint(status, mediaType), note),
      };
    }
  }
}

function refusedHint(status: number, mediaType: string): string {
  switch (status) {
    case 413:
      return 'Publish fewer images or annotations in one list, or raise the limit of the registry or its proxy.';
    case 415:
      return unsupportedHint(mediaType);
    default:
      return 'Check what the registry says, and that it takes manifests of this media type.';
  }
}

/** What to convert, and how: zot and some namespaces of Quay take OCI types only. */
function unsupportedHint(mediaType: string): string {
  const other = isDockerType(mediaType) ? 'oci' : 'docker';
  const images = `skopeo copy --all --format ${other === 'oci' ? 'oci' : 'v2s2'} docker://SOURCE docker://CONVERTED`;
  if (!isIndexType(mediaType)) return `Convert the image, for example: ${images}; then name CONVERTED as the source.`;
  return `Add --type ${other}; its images must be of that kind too, converted for example by: ${images}`;
}

function storedAnother(step: Step, response: HttpResponse, ours: Digest, theirs: Digest): PublishError {
  return new PublishError(
    'DIGEST_MISMATCH',
    `${step.doing}: ${response.url.host} answered ${response.status} but stored ${theirs}, not ${ours}`,
    'Check what stands between you and the registry: something changes manifests on their way.',
    detailsOf(step, response.status),
  );
}
