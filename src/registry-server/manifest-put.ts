import { MEDIA_TYPES } from '../model/descriptor.ts';
import { algorithmOf, type Digest, digestOf, isDigest } from '../model/digest.ts';
import { type Call, isTag } from './call.ts';
import { type Document, type Entry, isDockerType, isIndexType, readDocument } from './document.ts';
import { type Answer, answer, type Problem, type RegistryCode, type Reply, refuse, refuseAll } from './reply.ts';
import { appearsAt, type RegistryState, visibleBlob, visibleManifest } from './state.ts';
import { createRepository, moveTag, type Repository, storeManifest } from './store.ts';

const MIB = 1024 * 1024;

/** @see distribution-spec v1.1.1 spec.md, section "Pushing Manifests" */
export async function putManifest(call: Call, state: RegistryState): Promise<Reply> {
  const { reference } = call;
  if (!isDigest(reference) && !isTag(reference)) {
    return reference.includes(':')
      ? refuse(400, 'DIGEST_INVALID', 'digest is not valid', reference)
      : refuse(400, 'TAG_INVALID', 'not a tag', reference);
  }
  if (state.profile.repo.missing !== 'create' && !state.store.repositories.has(call.repository)) {
    return refuse(404, 'NAME_UNKNOWN', 'repository name not known to registry', call.repository);
  }
  const bytes = await readWhole(call, state);
  if (!Buffer.isBuffer(bytes)) return bytes;
  const document = readDocument(bytes);
  if (document === undefined) return invalid('not a JSON object in UTF-8');
  const mediaType = typeOf(call, document);
  const digest = isDigest(reference) ? digestOf(bytes, algorithmOf(reference)) : digestOf(bytes);
  if (isDigest(reference) && digest !== reference) {
    return refuse(400, 'DIGEST_INVALID', 'provided digest did not match uploaded content', digest);
  }
  const refusal =
    checkType(state, document, mediaType) ??
    checkShape(state, document, mediaType) ??
    checkPresence(call, state, document);
  if (refusal !== undefined) return refusal;
  const tags = isDigest(reference) ? (state.profile.manifest.tagParam ? call.query.getAll('tag') : []) : [reference];
  const badTag = tags.find((tag) => !isTag(tag));
  if (badTag !== undefined) return refuse(400, 'TAG_INVALID', 'not a tag', badTag);
  const repository = createRepository(state.store, call.repository);
  const frozen = tags.map((tag) => checkImmutable(state, repository, tag, digest)).find((found) => found !== undefined);
  if (frozen !== undefined) return frozen;
  storeManifest(repository, { digest, bytes, mediaType, visibleAt: arrival(state, repository, digest) });
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
    Location: state.profile.upload.location.startsWith('relative') ? path : `${call.origin}${path}`,
    ...(digestHeader ? { 'Docker-Content-Digest': digest } : {}),
    ...(document.subject !== undefined && referrers === 'api' ? { 'OCI-Subject': document.subject } : {}),
    ...(tags.length > 0 ? { 'OCI-Tag': tags } : {}),
  });
}

async function readWhole(call: Call, state: RegistryState): Promise<Buffer | Answer> {
  const [size = '', status = ''] = state.profile.manifest.max.split('/');
  const limit = Number.parseInt(size, 10) * MIB;
  const tooLarge = (): Answer => refuse(Number(status), 'MANIFEST_INVALID', `manifest is larger than ${size}`);
  if ((call.body.length ?? 0) > limit) return tooLarge();
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of call.body.pieces()) {
    length += piece.length;
    if (length > limit) return tooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function typeOf(call: Call, document: Document): string {
  const header = call.headers['content-type']?.split(';', 1)[0]?.trim();
  return header === undefined || header === '' ? (document.mediaType ?? '') : header;
}

function checkType(state: RegistryState, document: Document, mediaType: string): Answer | undefined {
  if (mediaType === '') return invalid('no media type: neither Content-Type nor mediaType');
  if (document.mediaType !== undefined && document.mediaType !== mediaType) {
    return invalid(`mediaType ${document.mediaType} differs from Content-Type ${mediaType}`);
  }
  if (document.mediaType === undefined && state.profile.manifest.needMediaType) return invalid('mediaType is required');
  if (state.profile.manifest.types === 'ociOnly415' && isDockerType(mediaType)) {
    return refuse(415, 'MANIFEST_INVALID', 'unsupported manifest media type', mediaType);
  }
  return undefined;
}

function checkShape(state: RegistryState, document: Document, mediaType: string): Answer | undefined {
  const { manifest } = state.profile;
  if (document.faults.length > 0) return invalid(document.faults.join('; '));
  const { children } = document;
  if (!manifest.nested && children.some((child) => isIndexType(child.mediaType)))
    return invalid('an index inside an index');
  const other = (child: Entry): boolean =>
    mediaType === MEDIA_TYPES.ociIndex ? isDockerType(child.mediaType) : !isDockerType(child.mediaType);
  if (manifest.mixed === '400' && isIndexType(mediaType) && children.some(other)) {
    return invalid(`${mediaType} holds ${children.find(other)?.mediaType}`);
  }
  const strict =
    manifest.needPlatform === 'all' ||
    (manifest.needPlatform === 'dockerLists' && mediaType === MEDIA_TYPES.dockerList);
  const bare = children.find(
    ({ platform }) => typeof platform?.os !== 'string' || typeof platform.architecture !== 'string',
  );
  if (strict && bare !== undefined) return invalid(`an entry without platform: ${bare.digest}`);
  const foreign = document.blobs.find((blob) => blob.foreign);
  if (!manifest.urls && foreign !== undefined) return invalid(`a layer with urls: ${foreign.digest}`);
  return undefined;
}

/** @see distribution-spec v1.1.1 spec.md, section "Push": a registry MAY reject what names absent content, subject aside */
function checkPresence(call: Call, state: RegistryState, document: Document): Answer | undefined {
  const { children, childError, sizeCheck, subjectMustExist } = state.profile.manifest;
  const repository = state.store.repositories.get(call.repository);
  const problems: Problem[] = [];
  const [status = '', code = ''] = childError.split(' ');
  const missing = (kind: 'blob' | 'manifest', digest: Digest): void => {
    const message =
      code === 'MANIFEST_INVALID' ? `unknown ${kind} ${digest}` : `${kind} unknown to registry: ${digest}`;
    problems.push({ code: code as RegistryCode, message, detail: digest });
  };
  for (const blob of children === 'none' ? [] : document.blobs) {
    const link = visibleBlob(state, call.repository, blob.digest);
    if (link === undefined && !blob.foreign) missing('blob', blob.digest);
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
  return problems.length === 0 ? undefined : refuseAll(Number(status), problems);
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

function invalid(message: string): Answer {
  return refuse(400, 'MANIFEST_INVALID', message);
}
