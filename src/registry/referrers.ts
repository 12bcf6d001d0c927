import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import { type Descriptor, ENTRIES_MAX, MANIFEST_SIZE_MAX, MEDIA_TYPES } from '../model/descriptor.ts';
import { type Digest, digestOf } from '../model/digest.ts';
import { type ImageIndex, parseManifest } from '../model/manifest.ts';
import { fallbackTag } from '../model/referrers.ts';
import type { ReferrersAnswer, VerbOptions } from './client.ts';
import { failureFor, readRefusal, violated } from './failure.ts';
import { contentType, isHtml, nextPage, referrersPath } from './protocol.ts';
import { done, getManifest, type Read, readAgain, tooLarge, wholeBody } from './read.ts';
import { meaningOf, REFERRERS } from './statuses.ts';
import { readingStep, type Step, scopeOf, sendTo, type Wire, type WireRequest } from './wire.ts';

/** Most pages of one list: as many as there may be referrers. */
const PAGES_MAX: number = ENTRIES_MAX;

/** What one request for a list came to. `none`: this registry has no such API. */
type Page =
  | { readonly kind: 'page'; readonly index: ImageIndex; readonly next: URL | undefined }
  | { readonly kind: 'none'; readonly error: PublishError }
  | { readonly kind: 'unknown'; readonly error: PublishError };

/**
 * One request where there is an API, and one more for each further page; two where there is none.
 *
 * @see RegistryClient.listReferrers
 * @see distribution-spec v1.1.1 spec.md, sections "Listing Referrers" and "Unavailable Referrers API"
 */
export async function listReferrers(
  wire: Wire,
  retries: number,
  repository: string,
  subject: Digest,
  options: VerbOptions,
): Promise<ReferrersAnswer> {
  const step = readingStep(wire, 'listing referrers of', repository, `@${subject}`, 'source');
  const found = new Map<Digest, Descriptor>();
  const asked = new Set<string>();
  let to: WireRequest['to'] = { path: referrersPath(repository, subject) };
  for (let pages = 1; ; pages += 1) {
    const page = await readPage(wire, retries, step, to, options);
    if (page.kind === 'none' && pages === 1) return readTag(wire, retries, step, subject, options);
    // What was listed before shows that there is an API: the rest of the list is missing then, not empty.
    if (page.kind !== 'page') return { kind: 'unknown', error: page.error };
    for (const entry of page.index.manifests) found.set(entry.digest, entry);
    if (found.size > ENTRIES_MAX) throw notAList(step, `more than ${ENTRIES_MAX} referrers`);
    if (page.next === undefined) return { kind: 'listed', via: 'api', referrers: [...found.values()] };
    if (asked.has(page.next.href)) throw notAList(step, 'pages that lead back to themselves');
    if (pages === PAGES_MAX) throw notAList(step, `more than ${PAGES_MAX} pages`);
    asked.add(page.next.href);
    to = { session: page.next };
  }
}

async function readPage(
  wire: Wire,
  retries: number,
  step: Step,
  to: WireRequest['to'],
  options: VerbOptions,
): Promise<Page> {
  return readAgain<Page>(retries, async () => {
    const headers = { accept: MEDIA_TYPES.ociIndex };
    const response = await sendTo(wire, step, { method: 'GET', to, headers, scopes: [scopeOf(step)] }, options);
    if (meaningOf(REFERRERS, response.status) === 'listed') return readList(wire, step, response, options.signal);
    const refusal = await readRefusal(response);
    const meaning = meaningOf(REFERRERS, refusal.status);
    switch (meaning) {
      case 'listed':
        throw new Error('a list is no refusal');
      case 'none':
        return done({ kind: 'none', error: await failureFor('failed', wire, step, refusal) });
      case 'unauthorized':
      case 'limited':
        throw await failureFor(meaning, wire, step, refusal);
      default:
        return done({ kind: 'unknown', error: await failureFor(meaning, wire, step, refusal) });
    }
  });
}

/**
 * Whoever knows no such path may answer it with a page of its own and 200; the type tells. One that is generic leaves
 * the word to the body.
 */
async function readList(wire: Wire, step: Step, response: HttpResponse, signal: AbortSignal): Promise<Read<Page>> {
  if (isHtml(response.headers)) {
    await response.discard();
    return done({ kind: 'none', error: violated(step, response, 'with an HTML page where a list belongs') });
  }
  const body = await wholeBody(step, response, signal, MANIFEST_SIZE_MAX, (cause) => tooLarge(step, cause));
  if (body.kind !== 'done') {
    if (body.kind === 'broken') return body;
    throw body.error;
  }
  const type = contentType(response.headers);
  const index = indexIn(body.value, type, step);
  if (index instanceof PublishError) {
    if (type === MEDIA_TYPES.ociIndex) throw index;
    return done({ kind: 'none', error: index });
  }
  const next = nextPage(response.headers, response.url, wire.transport.baseUrl(wire.host));
  if (next === 'elsewhere') throw violated(step, response, 'with a next page that is not on the same host');
  return done({ kind: 'page', index, next });
}

/** The bytes as an OCI index, or why they are none. */
function indexIn(bytes: Uint8Array, type: string | undefined, step: Step): ImageIndex | PublishError {
  try {
    const manifest = parseManifest(bytes, digestOf(bytes), type, step.doing);
    if (manifest.kind === 'index' && manifest.mediaType === MEDIA_TYPES.ociIndex) return manifest;
    return notAList(step, `${manifest.mediaType}, not an OCI index`);
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    return error.with({ side: step.side, registry: step.host, repository: step.repository });
  }
}

/** What is no index lists nobody: on pushes it is to be told, and left alone. */
async function readTag(
  wire: Wire,
  retries: number,
  step: Step,
  subject: Digest,
  options: VerbOptions,
): Promise<ReferrersAnswer> {
  const tag = fallbackTag(subject);
  const answer = await getManifest(wire, retries, step.repository, tag, options);
  if (answer.kind === 'absent') return { kind: 'listed', via: 'tag', tag, referrers: [] };
  if (answer.kind === 'unknown') return answer;
  const index = indexIn(answer.manifest.bytes, answer.manifest.contentType, step);
  if (index instanceof PublishError) return { kind: 'listed', via: 'tag', tag, referrers: [], odd: index };
  const referrers = new Map(index.manifests.map((entry) => [entry.digest, entry]));
  const annotations = index.annotations === undefined ? {} : { annotations: index.annotations };
  return { kind: 'listed', via: 'tag', tag, referrers: [...referrers.values()], ...annotations };
}

function notAList(step: Step, what: string): PublishError {
  return new PublishError(
    'MANIFEST_INVALID',
    `${step.doing}: ${what}`,
    'Publish without --referrers all, or clean up what refers to that image.',
    { side: step.side, registry: step.host, repository: step.repository },
  );
}
