import { algorithmOf, type Digest, digestOf, isDigest } from '../model/digest.ts';
import { type Call, isTag } from './call.ts';
import { type Document, type Entry, NO_DOCUMENT, readDocument } from './document.ts';
import { checkShape, checkType, misshapen, typeOf } from './manifest-shape.ts';
import { type Answer, answer, type Problem, plain, type RegistryCode, type Reply, refuse, refuseAll } from './reply.ts';
import { storedLocation } from './sessions.ts';
import { appearsAt, type RegistryState, visibleBlob, visibleManifest } from './state.ts';
import { createRepository, moveTag, type Repository, storeManifest } from './store.ts';

const MIB = 1024 * 1024;

/** @see distribution-spec v1.1.1 spec.md, section "Pushing Manifests" */
export async function putManifest(call: Call, state: RegistryState): Promise<Reply> {
  const { reference } = call;
  const { manifest } = state.profile;
  if (manifest.badTag !== 'taken' && !isDigest(reference) && !isTag(reference)) {
    if (manifest.badTag === '404') return plain(404, '404 page not found\n');
    return reference.includes(':')
      ? refuse(400, 'DIGEST_INVALID', 'digest is not valid', reference)
      : refuse(400, 'TAG_INVALID', 'not a tag', reference);
  }
  if (state.profile.repo.missing !== 'create' && !state.store.repositories.has(call.repository)) {
    return refuse(404, 'NAME_UNKNOWN', 'repository name not known to registry', call.repository);
  }
  const bytes = await readWhole(call, state);
  if (!Buffer.isBuffer(bytes)) return bytes;
  const document = readDocument(bytes) ?? (manifest.bodyCheck ? undefined : NO_DOCUMENT);
  if (document === undefined) return misshapen(state, 'not a JSON object in UTF-8');
  const mediaType = typeOf(call, document);
  const digest = isDigest(reference) ? digestOf(bytes, algorithmOf(reference)) : digestOf(bytes);
  if (manifest.digestCheck && isDigest(reference) && digest !== reference) {
    return refuse(400, 'DIGEST_INVALID', 'provided digest did not match uploaded content', digest);
  }
  const refusal =
    checkType(call, state, document, mediaType) ??
    checkShape(state, document, mediaType) ??
    checkPresence(call, state, document);
  if (refusal !== undefined) return refusal;
  const tags = isDigest(reference) ? (manifest.tagParam ? call.query.getAll('tag') : []) : [reference];
  const badTag = tags.find((tag) => !isTag(tag));
  if (manifest.badTag !== 'taken' && badTag !== undefined) return refuse(400, 'TAG_INVALID', 'not a tag', badTag);
  const repository = createRepository(state.store, call.repository);
  const frozen = tags.map((tag) => checkImmutable(state, repository, tag, digest)).find((found) => found !== undefined);
  if (frozen !== undefined) return frozen;
  const kept = storeManifest(repository, { digest, bytes, mediaType, visibleAt: arrival(state, repository, digest) });
  // Where the digest is not looked at it is one more name.
  if (isDigest(reference) && reference !== digest) repository.manifests.set(reference, kept);
  for (const tag of tags) moveTag(state.store, repository, tag, digest);
  return stored(call, state, document, digest, isDigest(reference) ? tags : []);
}

function arrival(state: RegistryState, repository: Repository, digest: Digest): number {
  return repository.manifests.get(digest)?.visibleAt ?? appearsAt(state);
}

function stored(call: Call, state: RegistryState, document: Document, digest: Digest, tags: readonly string[]): Answer {
  const { digestHeader, referrers } = state.profile.manifest;
  const path = `/v2/${call.repository}/manifests/${digest}`;
  return answer(201, {
    ...storedLocation(call, state, path),
    ...(digestHeader ? { 'Docker-Content-Digest': digest } : {}),
    ...(document.subject !== undefined && referrers === 'api' ? { 'OCI-Subject': document.subject } : {}),
    ...(tags.length > 0 ? { 'OCI-Tag': tags } : {}),
  });
}

async function readWhole(call: Call, state: RegistryState): Promise<Buffer | Answer> {
  const [size = '', status = ''] = state.profile.manifest.max.split('/');
  const limit = size === 'none' ? Number.POSITIVE_INFINITY : Number.parseInt(size, 10) * MIB;
  const tooLarge = (): Answer => refuse(Number(status), 'MANIFEST_INVALID', `manifest is larger than ${size}`);
  const pieces: Buffer[] = [];
  let length = 0;
  // Read to its end in any case: a refusal that comes earlier is lost to a client that still writes.
  for await (const piece of call.body.pieces()) {
    length += piece.length;
    if (length <= limit) pieces.push(piece);
  }
  return length > limit ? tooLarge() : Buffer.concat(pieces);
}

/** @see distribution-spec v1.1.1 spec.md, section "Push": a registry MAY reject what names absent content, subject aside */
function checkPresence(call: Call, state: RegistryState, document: Document): Answer | undefined {
  const { children, blobs, childError, oneProblem, sizeCheck, subjectMustExist, urls } = state.profile.manifest;
  const repository = state.store.repositories.get(call.repository);
  const problems: Problem[] = [];
  const [status = '', code = ''] = childError.split(' ');
  const missing = (kind: 'blob' | 'manifest', digest: Digest): void => {
    const message =
      code === 'MANIFEST_INVALID' ? `unknown ${kind} ${digest}` : `${kind} unknown to registry: ${digest}`;
    problems.push({ code: code as RegistryCode, message, detail: digest });
  };
  for (const blob of children === 'none' || !blobs ? [] : document.blobs) {
    const link = visibleBlob(state, call.repository, blob.digest);
    if (link === undefined && (!blob.foreign || urls === 'checked')) missing('blob', blob.digest);
    else if (sizeCheck && link !== undefined && blob.size !== link.content.size) {
      return refuse(400, 'SIZE_INVALID', 'provided length did not match content length', blob.digest);
    }
  }
  for (const child of document.children) {
    if (isChecked(children, child) && visibleManifest(state, repository, child.digest) === undefined) {
      missing('manifest', child.digest);
    }
  }
  const { subject } = document;
  if (subjectMustExist && subject !== undefined && visibleManifest(state, repository, subject) === undefined) {
    missing('manifest', subject);
  }
  return problems.length === 0 ? undefined : refuseAll(Number(status), problems.slice(0, oneProblem ? 1 : undefined));
}

function isChecked(rule: 'all' | 'none' | { readonly platforms: readonly string[] }, child: Entry): boolean {
  if (typeof rule === 'string') return rule === 'all';
  return rule.platforms.includes(`${child.platform?.os}/${child.platform?.architecture}`);
}

function checkImmutable(state: RegistryState, repository: Repository, tag: string, digest: Digest): Answer | undefined {
  const at = repository.tags.get(tag);
  switch (state.profile.manifest.immutable) {
    case 'off':
      return undefined;
    case '400evenSame':
      return at === undefined
        ? undefined
        : refuse(
            400,
            'TAG_INVALID',
            `The image tag '${tag}' already exists in the '${repository.name}' repository and cannot be overwritten because the repository is immutable.`,
          );
    case '409':
      return at === undefined || at === digest ? undefined : refuse(409, 'TAG_IMMUTABLE', `tag ${tag} is immutable`);
    case '412':
      return at === undefined || at === digest
        ? undefined
        : refuse(412, 'PRECONDITION', `configured as immutable, ${tag} cannot be updated`);
    case '400redeploy':
      return at === undefined && !repository.manifests.has(digest)
        ? undefined
        : refuse(400, 'BLOB_UPLOAD_INVALID', 'repository does not allow updating assets');
  }
}
