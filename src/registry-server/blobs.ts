import { type Digest, digestOf } from '../model/digest.ts';
import { asDigest, type Call } from './call.ts';
import { type BlobContent, readContent } from './content.ts';
import { type Answer, answer, type Reply, type ReplyBody, refuse } from './reply.ts';
import { sign } from './sessions.ts';
import { type RegistryState, visibleBlob } from './state.ts';
import { type BlobLink, contentOf } from './store.ts';

/** @see distribution-spec v1.1.1 spec.md, sections "Pulling blobs" and "Checking if content exists in the registry" */
export async function readBlob(call: Call, state: RegistryState): Promise<Reply> {
  const digest = asDigest(call.reference);
  if (digest === undefined) return refuse(400, 'DIGEST_INVALID', 'digest is not valid', call.reference);
  const link = visibleBlob(state, call.repository, digest);
  if (link === undefined) return refuse(404, 'BLOB_UNKNOWN', 'blob unknown to registry', digest);
  if (state.profile.blob.redirect !== 'none') {
    const path = `${call.repository}/${digest}`;
    return answer(307, { Location: `${await state.storageOrigin()}/storage/${path}?X-Signature=${sign(state, path)}` });
  }
  if (call.method === 'HEAD' && link.root !== undefined) {
    // A mount of serverless-registry is an object with this text, and HEAD tells that object's size and digest.
    const text = Buffer.from(`${link.root}/blobs/${digest}`);
    const body = { length: text.length, pieces: () => [] };
    return answer(200, { ...OCTETS, 'Docker-Content-Digest': digestOf(text) }, body);
  }
  return content(call, state, link, digest);
}

/** Blobs at the second listener, reached by a signed URL only. */
export function readStorage(call: Call, state: RegistryState): Reply {
  const slash = call.reference.lastIndexOf('/');
  const digest = asDigest(call.reference.slice(slash + 1));
  // Object storage treats a foreign Authorization as a second, conflicting signature.
  if (call.headers.authorization !== undefined && state.profile.blob.redirect === '307rejectsAuth400') {
    return refuse(400, 'UNKNOWN', 'only one auth mechanism allowed');
  }
  if (call.query.get('X-Signature') !== sign(state, call.reference))
    return refuse(403, 'DENIED', 'signature does not match');
  const link = digest === undefined ? undefined : visibleBlob(state, call.reference.slice(0, slash), digest);
  return link === undefined || digest === undefined
    ? refuse(404, 'UNKNOWN', 'no such key')
    : content(call, state, link, digest);
}

const OCTETS = { 'Content-Type': 'application/octet-stream', 'Accept-Ranges': 'bytes' };

function content(call: Call, state: RegistryState, link: BlobLink, digest: Digest): Answer {
  const found = contentOf(state.store, link, digest);
  if (found === undefined) return refuse(404, 'BLOB_UNKNOWN', 'blob unknown to registry', digest);
  const { size } = found;
  if (call.method === 'GET' && found.kind === 'forgotten') {
    return refuse(500, 'UNKNOWN', 'the bytes of this blob were hashed and counted, not kept', digest);
  }
  const headers = { ...OCTETS, 'Docker-Content-Digest': digest };
  const asked = call.method === 'GET' && state.profile.blob.range;
  const range = asked ? readRange(call.headers.range, size) : undefined;
  if (range === 'unsatisfiable') {
    return refuse(416, 'UNKNOWN', 'range not satisfiable', undefined, { 'Content-Range': `bytes */${size}` });
  }
  if (range === undefined) return answer(200, headers, slice(found, 0, size));
  const { start, end } = range;
  return answer(206, { ...headers, 'Content-Range': `bytes ${start}-${end - 1}/${size}` }, slice(found, start, end));
}

function slice(content: BlobContent, start: number, end: number): ReplyBody {
  return { length: end - start, pieces: () => readContent(content, start, end) };
}

/**
 * One byte range; several ranges, other units and malformed ones are ignored, as RFC 9110 section 14.2 allows.
 */
function readRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const range = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (range === null) return undefined;
  const [, first = '', last = ''] = range;
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const count = Math.min(Number(last), size);
    return count === 0 ? 'unsatisfiable' : { start: size - count, end: size };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) };
}

/** @see distribution-spec v1.1.1 spec.md, section "Deleting Blobs" */
export function deleteBlob(call: Call, state: RegistryState): Reply {
  const digest = asDigest(call.reference);
  if (digest === undefined) return refuse(400, 'DIGEST_INVALID', 'digest is not valid', call.reference);
  if (state.profile.delete.blob === '405') return refuse(405, 'UNSUPPORTED', 'deletion is disabled');
  const { repositories } = state.store;
  const home = repositories.get(call.repository);
  const homes = state.profile.delete.blob === 'everywhere202' ? [...repositories.values()] : home ? [home] : [];
  const deleted = homes.filter(({ blobs }) => blobs.delete(digest)).length > 0;
  return deleted ? answer(202) : refuse(404, 'BLOB_UNKNOWN', 'blob unknown to registry', digest);
}
