import { MEDIA_TYPES } from '../model/descriptor.ts';
import { isDigest } from '../model/digest.ts';
import { type Call, isTag } from './call.ts';
import { type Answer, answer, bytesBody, type Reply, refuse } from './reply.ts';
import { type RegistryState, visibleManifest } from './state.ts';
import { dropManifest, dropTag, type Repository, type StoredManifest } from './store.ts';

/** @see distribution-spec v1.1.1 spec.md, sections "Pulling manifests" and "Checking if content exists in the registry" */
export function readManifest(call: Call, state: RegistryState): Reply {
  const repository = state.store.repositories.get(call.repository);
  const manifest = visibleManifest(state, repository, call.reference);
  if (manifest === undefined) return notThere(call, state, repository);
  const { accept } = state.profile.manifest;
  const types = acceptedTypes(call);
  const bare = isBareList(call, types, manifest) && state.profile.manifest.bareList === '400';
  if (bare && amd64Child(state, repository, manifest) !== undefined) {
    return refuse(400, 'MANIFEST_INVALID', 'schema 2 manifest not supported by client', call.reference);
  }
  if (accept === 'lenient' || accepts(types, manifest.mediaType, accept === 'explicit404'))
    return found(state, manifest);
  if (accept === 'swapAmd64' && manifest.mediaType === MEDIA_TYPES.dockerList && !isDigest(call.reference)) {
    // distribution: a client that cannot read lists gets the image of linux/amd64 instead.
    const child = amd64Child(state, repository, manifest);
    if (child !== undefined) return found(state, child);
  }
  return refuse(404, 'MANIFEST_UNKNOWN', `${manifest.mediaType} found, but Accept does not support it`, call.reference);
}

function found(state: RegistryState, manifest: StoredManifest): Answer {
  const headers = {
    'Content-Type': manifest.mediaType,
    ...(state.profile.manifest.digestHeader ? { 'Docker-Content-Digest': manifest.digest } : {}),
  };
  return answer(200, headers, bytesBody(manifest.bytes));
}

function notThere(call: Call, state: RegistryState, repository: Repository | undefined): Answer {
  const { headMissing } = state.profile.manifest;
  if (call.method === 'HEAD' && headMissing === '403') return refuse(403, 'DENIED', 'requested access is denied');
  if (call.method === 'HEAD' && headMissing === '500') return refuse(500, 'UNKNOWN', 'unknown error');
  if (repository === undefined && state.profile.repo.manifestCode === 'NAME_UNKNOWN')
    return refuse(404, 'NAME_UNKNOWN', 'repository name not known to registry', call.repository);
  return refuse(404, 'MANIFEST_UNKNOWN', 'manifest unknown to registry', call.reference);
}

/** distribution converts a list for old clients, which then have to read the image at least. */
function isBareList(call: Call, types: readonly string[], { mediaType }: StoredManifest): boolean {
  if (mediaType !== MEDIA_TYPES.dockerList || isDigest(call.reference)) return false;
  return !types.includes(MEDIA_TYPES.dockerList) && !types.includes(MEDIA_TYPES.dockerManifest);
}

/**
 * Media types of the Accept header, without parameters; a quality of zero excludes. No field accepts anything.
 *
 * @see RFC 9110 section 12.5.1
 */
function acceptedTypes(call: Call): readonly string[] {
  return (call.headers.accept ?? '*/*')
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== '' && !/;\s*q=0(?:\.0*)?\s*(?:;|$)/.test(part))
    .map((part) => (part.split(';', 1)[0] ?? '').trim());
}

function accepts(types: readonly string[], mediaType: string, explicit: boolean): boolean {
  if (types.includes(mediaType.toLowerCase())) return true;
  if (explicit) return false;
  return types.includes('*/*') || types.includes('application/*');
}

function amd64Child(
  state: RegistryState,
  repository: Repository | undefined,
  list: StoredManifest,
): StoredManifest | undefined {
  const entry = list.document?.children.find(
    ({ platform }) => platform?.os === 'linux' && platform.architecture === 'amd64',
  );
  return entry === undefined ? undefined : visibleManifest(state, repository, entry.digest);
}

/** @see distribution-spec v1.1.1 spec.md, sections "Deleting tags" and "Deleting Manifests" */
export function deleteManifest(call: Call, state: RegistryState): Reply {
  const repository = state.store.repositories.get(call.repository);
  if (repository === undefined)
    return refuse(404, 'NAME_UNKNOWN', 'repository name not known to registry', call.repository);
  if (isDigest(call.reference)) {
    const rule = state.profile.delete.manifest;
    if (rule === '405') return refuse(405, 'UNSUPPORTED', 'deletion is disabled');
    if (rule === 'indexed405' && isIndexed(repository, call.reference)) {
      return refuse(405, 'DENIED', 'the manifest is named by an index', call.reference);
    }
    return dropManifest(state.store, repository, call.reference) ? answer(202) : unknown(call);
  }
  const status = state.profile.delete.tag;
  if (status !== '202') return refuse(Number(status), 'UNSUPPORTED', 'tags cannot be deleted');
  return isTag(call.reference) && dropTag(state.store, repository, call.reference) ? answer(202) : unknown(call);
}

function isIndexed(repository: Repository, digest: string): boolean {
  const all = [...repository.manifests.values()];
  return all.some(({ document }) => document?.children.some((child) => child.digest === digest));
}

function unknown(call: Call): Answer {
  return refuse(404, 'MANIFEST_UNKNOWN', 'manifest unknown to registry', call.reference);
}
