import type { Digest } from '../model/digest.ts';
import { asDigest, type Call } from './call.ts';
import { answer, type RegistryCode, type Reply, refuse } from './reply.ts';
import { blobLocation } from './sessions.ts';
import { type RegistryState, visibleBlob } from './state.ts';
import { type BlobLink, contentOf, createRepository, isReferenced } from './store.ts';
import { argumentOf, type MountMode } from './switches.ts';

/** `undefined`: the mount is not granted and an ordinary session opens, which the spec answers with 202. */
export type MountReply = Reply | undefined;

/**
 * Decides a POST that carries `mount`, `from` or both.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Mounting a blob from another repository"
 */
export function answerMount(call: Call, state: RegistryState, sourceBarred: boolean): MountReply {
  const { mount } = state.profile;
  const wanted = call.query.get('mount');
  const from = call.query.get('from');
  const digest = asDigest(wanted);
  const mode: MountMode = (wanted === null ? undefined : mount.byDigest[wanted]) ?? mount.mode;
  if (mode === 'ignore') return undefined;
  if (wanted === null) {
    return mount.fromWithoutMount === '405' ? refuse(405, 'UNSUPPORTED', 'from without mount') : undefined;
  }
  if (call.query.getAll('mount').length > 1 && mount.twice !== 'first') {
    return mount.twice === '400' ? refuse(400, 'UNSUPPORTED', 'more than one mount') : undefined;
  }
  if (digest === undefined) {
    return mount.malformed === '202' ? undefined : refuse(400, 'DIGEST_INVALID', 'mount is not a digest', wanted);
  }
  if (mode.startsWith('off')) return refuseMount(argumentOf(mode), digest);
  if (from === null && mode !== 'anywhere') return withoutFrom(call, state, digest);
  if (mount.fromNeedsSlash && from !== null && !from.includes('/')) {
    return refuse(400, 'NAME_INVALID', 'the source repository names no project', from);
  }
  if (sourceBarred) return undefined;
  if (from !== null && mode !== 'anywhere' && !state.store.repositories.has(from)) return noSourceRepo(state, digest);
  return granted(call, state, digest, from ?? '', mode);
}

function granted(call: Call, state: RegistryState, digest: Digest, from: string, mode: MountMode): MountReply {
  const source = state.store.repositories.get(from);
  if (mode === 'anywhere') return linkFrom(call, state, digest, anywhere(state, digest));
  if (mode === 'lie201') return mounted(call, state, digest);
  const link = visibleBlob(state, from, digest);
  if (link === undefined || source === undefined) return undefined;
  if (mode === 'referenced' && !isReferenced(source, digest)) return undefined;
  if (mode === 'symlink') {
    // serverless-registry stores a text that names the repository with the bytes, over whatever the target had.
    const root = link.root ?? from;
    if (root === call.repository || contentOf(state.store, link, digest) === undefined) return undefined;
    const target = createRepository(state.store, call.repository);
    target.blobs.set(digest, { content: link.content, root, at: state.now(), visibleAt: 0 });
    return mounted(call, state, digest);
  }
  return linkFrom(call, state, digest, link);
}

function withoutFrom(call: Call, state: RegistryState, digest: Digest): MountReply {
  switch (state.profile.mount.withoutFrom) {
    case '202':
      return undefined;
    case 'anywhere201':
      return linkFrom(call, state, digest, anywhere(state, digest));
    case 'error400':
      return refuse(400, 'NAME_INVALID', 'from is required');
  }
}

function noSourceRepo(state: RegistryState, digest: Digest): MountReply {
  switch (state.profile.mount.noSourceRepo) {
    case '202':
      return undefined;
    case '401empty':
      return refuse(401, 'UNAUTHORIZED', 'unauthorized to access the source repository');
    case '404':
      return refuse(404, 'NAME_UNKNOWN', 'source repository unknown', digest);
    case '400':
      return refuse(400, 'NAME_INVALID', 'invalid source repository name');
  }
}

const CODES: Readonly<Record<number, RegistryCode>> = {
  400: 'NAME_INVALID',
  401: 'UNAUTHORIZED',
  403: 'DENIED',
  404: 'BLOB_UNKNOWN',
  405: 'UNSUPPORTED',
  429: 'TOOMANYREQUESTS',
  501: 'UNSUPPORTED',
};

function refuseMount(status: number, digest: Digest): Reply {
  return refuse(status, CODES[status] ?? 'UNKNOWN', 'mount refused', digest);
}

function anywhere(state: RegistryState, digest: Digest): BlobLink | undefined {
  for (const name of state.store.repositories.keys()) {
    const link = visibleBlob(state, name, digest);
    if (link !== undefined) return link;
  }
  return undefined;
}

function linkFrom(call: Call, state: RegistryState, digest: Digest, link: BlobLink | undefined): MountReply {
  if (link === undefined) return undefined;
  const target = createRepository(state.store, call.repository);
  if (!target.blobs.has(digest)) target.blobs.set(digest, { ...link, at: state.now(), visibleAt: 0 });
  return mounted(call, state, digest);
}

function mounted(call: Call, state: RegistryState, digest: Digest): Reply {
  return answer(201, {
    ...blobLocation(call, state, call.repository, digest),
    ...(state.profile.mount.digestHeader ? { 'Docker-Content-Digest': digest } : {}),
  });
}
