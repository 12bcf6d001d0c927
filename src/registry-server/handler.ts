import { authorize } from './auth.ts';
import { deleteBlob, readBlob, readStorage } from './blobs.ts';
import { type Call, isKnownPath, isRepositoryName, type Operation } from './call.ts';
import { checkLimits } from './limits.ts';
import { listReferrers, listTags } from './listings.ts';
import { putManifest } from './manifest-put.ts';
import { deleteManifest, readManifest } from './manifests.ts';
import { json, plain, type Reply, refuse } from './reply.ts';
import { sign } from './sessions.ts';
import type { RegistryState } from './state.ts';
import { answerToken } from './token.ts';
import { deleteUpload, getUpload, patchUpload, postUpload, putUpload } from './uploads.ts';

/** Answers one call of the registry: limits, rights, then the noun's own file. */
export async function handle(call: Call, state: RegistryState): Promise<Reply> {
  const limited = checkLimits(call, state);
  if (limited !== undefined) return limited;
  const { badName } = state.profile.repo;
  if (badName !== 'taken' && call.repository !== '' && !isRepositoryName(call.repository)) {
    if (badName === '404') return plain(404, '404 page not found\n');
    return refuse(400, 'NAME_INVALID', 'invalid repository name', call.repository);
  }
  const permission = authorize(call, state);
  if (permission.kind === 'refused') return permission.reply;
  return barredPush(call, state) ?? route(call, state, permission.sourceBarred);
}

const WRITES: readonly Operation[] = ['mount', 'uploadPost', 'uploadPatch', 'uploadPut', 'manifestPut'];

function barredPush(call: Call, state: RegistryState): Reply | undefined {
  const { push } = state.profile.repo;
  if (push === 'taken' || !WRITES.includes(call.operation)) return undefined;
  return push === '403'
    ? refuse(403, 'DENIED', 'can not push artifact to a proxy project', call.repository)
    : refuse(405, 'UNSUPPORTED', 'the operation is unsupported');
}

/** Answers one call at the second listener: only signed upload sessions and signed blobs are there, for anybody. */
export async function handleStorage(call: Call, state: RegistryState): Promise<Reply> {
  switch (call.operation) {
    case 'storage':
      return readStorage(call, state);
    case 'uploadPatch':
    case 'uploadPut':
    case 'uploadGet':
    case 'uploadDelete':
      if (call.query.get('X-Signature') === sign(state, call.reference)) return route(call, state, false);
      return refuse(403, 'DENIED', 'signature does not match');
    default:
      return plain(404, '404 page not found\n');
  }
}

async function route(call: Call, state: RegistryState, sourceBarred: boolean): Promise<Reply> {
  switch (call.operation) {
    case 'ping':
      return json(200, {});
    case 'token':
      return answerToken(call, state);
    case 'blobHead':
    case 'blobGet':
      return readBlob(call, state);
    case 'blobDelete':
      return deleteBlob(call, state);
    case 'mount':
    case 'uploadPost':
      return postUpload(call, state, sourceBarred);
    case 'uploadPatch':
      return patchUpload(call, state);
    case 'uploadPut':
      return putUpload(call, state);
    case 'uploadGet':
      return getUpload(call, state);
    case 'uploadDelete':
      return deleteUpload(call, state);
    case 'manifestHead':
    case 'manifestGet':
      return readManifest(call, state);
    case 'manifestPut':
      return putManifest(call, state);
    case 'manifestDelete':
      return deleteManifest(call, state);
    case 'tagsList':
      return listTags(call, state);
    case 'referrers':
      return listReferrers(call, state);
    case 'storage':
    case 'unknown':
      return isKnownPath(call.path)
        ? refuse(405, 'UNSUPPORTED', 'method not allowed')
        : plain(404, '404 page not found\n');
    default:
      return call.operation satisfies never;
  }
}
