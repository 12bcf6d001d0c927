import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import { type Digest, isDigest } from '../model/digest.ts';
import type { PutAnswer, VerbOptions } from './client.ts';
import { detailsOf, failureFor, type Refusal, readRefusal, refusedWith, wordsOf } from './failure.ts';
import { contradictsBytes, manifestPath } from './protocol.ts';
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

/** @see RegistryClient.putManifest */
export async function putManifest(
  wire: Wire,
  repository: string,
  reference: string,
  manifest: { readonly bytes: Uint8Array; readonly digest: Digest; readonly mediaType: string },
  options: VerbOptions,
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
    },
    options,
  );
  if (meaningOf(PUT, response.status) === 'stored') {
    await response.discard();
    const other = contradictsBytes(response.headers, manifest.bytes);
    if (other !== undefined) throw storedAnother(step, response, manifest.digest, other);
    return { kind: 'stored' };
  }
  return putRefused(wire, step, await readRefusal(response), manifest.mediaType);
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
      return { kind: 'refused', error: refusedWith('MANIFEST_REFUSED', step, refusal, refusedHint(status), note) };
    }
  }
}

function refusedHint(status: number): string {
  switch (status) {
    case 413:
      return 'Publish fewer images or annotations in one list, or raise the limit of the registry or its proxy.';
    case 415:
      return 'Use a media type that this registry takes: --type oci or docker for the list, and images pushed in that format.';
    default:
      return 'Check what the registry says, and that it takes manifests of this media type.';
  }
}

function storedAnother(step: Step, response: HttpResponse, ours: Digest, theirs: Digest): PublishError {
  return new PublishError(
    'DIGEST_MISMATCH',
    `${step.doing}: ${response.url.host} answered ${response.status} but stored ${theirs}, not ${ours}`,
    'Check what stands between you and the registry: something changes manifests on their way.',
    detailsOf(step, response.status),
  );
}
