import { algorithmOf, type Digest } from '../model/digest.ts';
import { asDigest, type Call } from './call.ts';
import { checkChunk, checkLength, checkPatchForm, checkRange, checkType, joinsBadly } from './chunks.ts';
import { answerMount } from './mounts.ts';
import { type Answer, answer, html, type Reply, type ReplyHeaders, refuse } from './reply.ts';
import {
  afterBadDigest,
  blobLocation,
  checkState,
  dropSession,
  isStateOf,
  openSession,
  type Session,
  sessionHeaders,
} from './sessions.ts';
import { appearsAt, pause, type RegistryState, scaled } from './state.ts';
import { createRepository, keepContent } from './store.ts';
import { argumentOf } from './switches.ts';

/** Opens a session, mounts, or takes a whole blob: the three uses of POST. */
export async function postUpload(call: Call, state: RegistryState, sourceBarred: boolean): Promise<Reply> {
  const { upload, repo } = state.profile;
  if (!state.store.repositories.has(call.repository)) {
    if (repo.missing === 'reset') return { kind: 'cut', how: 'reset' };
    if (repo.missing !== 'create')
      return refuse(404, 'NAME_UNKNOWN', 'repository name not known to registry', call.repository);
  }
  if (upload.postNeedsLength === '411html' && call.body.length === undefined) return html(411, 'Length Required', {});
  const algorithm = call.query.get('digest-algorithm');
  if (algorithm !== null && algorithm !== 'sha256' && algorithm !== 'sha512') {
    return refuse(400, 'DIGEST_INVALID', 'unsupported digest algorithm', algorithm);
  }
  if (call.operation === 'mount') {
    const reply = answerMount(call, state, sourceBarred);
    if (reply !== undefined) return reply;
  }
  const text = call.query.get('digest');
  const digest = asDigest(text);
  if (text !== null && digest === undefined) return refuse(400, 'DIGEST_INVALID', 'digest is not valid', text);
  createRepository(state.store, call.repository);
  const session = await openSession(state, call.repository);
  if (algorithm !== null) session.sink.expect(algorithm);
  if (digest !== undefined && upload.singlePost === '201') return wholeBody(call, state, session, digest);
  return answer(202, await openedHeaders(call, state, session));
}

async function openedHeaders(call: Call, state: RegistryState, session: Session): Promise<ReplyHeaders> {
  const { postRange } = state.profile.upload;
  const { Location = '' } = await sessionHeaders(call, state, session);
  return {
    Location,
    ...(postRange === 'absent' ? {} : { Range: postRange }),
    'Docker-Upload-UUID': session.id,
    ...chunkHeaders(state),
  };
}

function chunkHeaders(state: RegistryState): ReplyHeaders {
  const { chunkHeaders: shown, chunk } = state.profile.upload;
  return {
    ...(shown === 'none' ? {} : { 'OCI-Chunk-Min-Length': String(scaled(state, chunk.min)) }),
    ...(shown === 'min+max' ? { 'OCI-Chunk-Max-Length': String(scaled(state, chunk.max)) } : {}),
  };
}

/** A session that was asked for by PATCH, PUT, GET or DELETE, or the answer that it is not there. */
async function findSession(call: Call, state: RegistryState): Promise<Session | Answer> {
  const session = state.sessions.get(call.reference);
  if (session === undefined || session.repository !== call.repository) return unknownSession(call, state);
  if (session.busy) return refuse(400, 'BLOB_UPLOAD_INVALID', 'another request is writing to this session');
  return (await checkState(call, state, session)) ?? session;
}

async function unknownSession(call: Call, state: RegistryState): Promise<Session | Answer> {
  const { upload } = state.profile;
  const writes = call.operation === 'uploadPut' || call.operation === 'uploadPatch';
  if (writes && upload.unknownSession === 'taken') return openSession(state, call.repository, call.reference);
  if (writes && upload.unknownSession === '500') return refuse(500, 'INTERNAL_ERROR', 'no such upload');
  // distribution looks at the state first: one that was made for another session is not even an unknown session.
  if (upload.state === '_state' && !isStateOf(call, state, call.reference)) {
    return refuse(404, 'BLOB_UPLOAD_INVALID', 'blob upload invalid');
  }
  const code = upload.commit.includes('retry404lost') ? 'BLOB_UNKNOWN' : 'BLOB_UPLOAD_UNKNOWN';
  return refuse(404, code, 'blob upload unknown to registry', call.reference);
}

/** @see distribution-spec v1.1.1 spec.md, section "Pushing a blob in chunks" */
export async function patchUpload(call: Call, state: RegistryState): Promise<Reply> {
  const session = await findSession(call, state);
  if ('kind' in session) return session;
  const { upload } = state.profile;
  const refusal =
    checkPatchForm(call, state, session) ??
    checkType(call, state) ??
    checkLength(call, state) ??
    (await checkRange(call, state, session, false)) ??
    (await checkChunk(call, state, session));
  if (refusal !== undefined) return refusal;
  const before = session.sink.size;
  await receive(call, session);
  session.chunks.push(session.sink.size - before);
  const { Location = '' } = await sessionHeaders(call, state, session);
  return answer(Number(upload.patchStatus), {
    Location,
    ...patchRange(state, session),
    'Docker-Upload-UUID': session.id,
  });
}

function patchRange(state: RegistryState, session: Session): ReplyHeaders {
  const last = session.sink.size - 1;
  switch (state.profile.upload.patchRange) {
    case 'right':
      return { Range: `0-${Math.max(0, last)}` };
    case 'stuck':
      return { Range: `0-${Math.max(0, (session.chunks[0] ?? 0) - 1)}` };
    case 'absent':
      return {};
    case 'plusOne':
      return { Range: `0-${last + 1}` };
  }
}

/**
 * Writes the request's body into the session. What arrived before a break is kept, and the state moves on, so that a
 * client can ask for the offset and resume.
 */
async function receive(call: Call, session: Session): Promise<void> {
  session.busy = true;
  const before = session.sink.size;
  try {
    for await (const piece of call.body.pieces()) await session.sink.write(piece);
  } finally {
    session.busy = false;
    if (session.sink.size > before) session.serial += 1;
  }
}

/** Takes the rest of the blob, if the body has one, and closes the session. */
export async function putUpload(call: Call, state: RegistryState): Promise<Reply> {
  const session = await findSession(call, state);
  if ('kind' in session) return session;
  const { upload } = state.profile;
  const digest = asDigest(call.query.get('digest'));
  const sha256Only = upload.digestError === '500';
  if (sha256Only && (digest === undefined || algorithmOf(digest) !== 'sha256'))
    return refuse(500, 'INTERNAL_ERROR', 'no sha256 digest');
  if (digest === undefined)
    return refuse(400, 'DIGEST_INVALID', 'digest missing or not valid', call.query.get('digest') ?? '');
  const refusal = checkType(call, state) ?? checkLength(call, state) ?? (await putLimit(call, state, session));
  if (refusal !== undefined) return refusal;
  const chunked = call.body.length === undefined;
  const ignored =
    (upload.finalPutBody === 'ignore' && session.chunks.length > 0) || (upload.noLength === 'ignoreBody' && chunked);
  if (ignored || call.body.length === 0) return commit(call, state, session, digest);
  const unfit = (await checkRange(call, state, session, true)) ?? (await checkChunk(call, state, session));
  return unfit ?? wholeBody(call, state, session, digest);
}

/** Reads the body into the session and commits. */
async function wholeBody(call: Call, state: RegistryState, session: Session, digest: Digest): Promise<Reply> {
  const { upload } = state.profile;
  const key = `${session.repository}@${digest}`;
  if (upload.parallelSameBlob === '500' && state.inFlight.has(key)) {
    return refuse(500, 'UNKNOWN', 'another upload of this blob is under way', digest);
  }
  state.inFlight.add(key);
  try {
    session.sink.expect(algorithmOf(digest));
    const limit = upload.put.startsWith('resetOver') ? scaled(state, argumentOf(upload.put)) : Number.POSITIVE_INFINITY;
    if (await tooLong(call, session, limit)) return { kind: 'cut', how: 'reset' };
    // Long enough that a second upload, sent together with this one, is seen as parallel.
    if (upload.parallelSameBlob === '500') await pause(20);
    return await commit(call, state, session, digest);
  } finally {
    state.inFlight.delete(key);
  }
}

async function tooLong(call: Call, session: Session, limit: number): Promise<boolean> {
  if (limit === Number.POSITIVE_INFINITY) {
    await receive(call, session);
    return false;
  }
  let read = 0;
  for await (const piece of call.body.pieces()) {
    read += piece.length;
    if (read > limit) return true;
    await session.sink.write(piece);
  }
  return false;
}

async function putLimit(call: Call, state: RegistryState, session: Session): Promise<Answer | undefined> {
  const { put } = state.profile.upload;
  if (put === '404blobUnknown' && session.chunks.length === 0 && call.body.length !== 0) {
    await dropSession(state, session);
    return refuse(404, 'BLOB_UNKNOWN', 'blob unknown to registry');
  }
  if (put.startsWith('413over') && (call.body.length ?? 0) > scaled(state, argumentOf(put))) {
    return html(413, 'Request Entity Too Large');
  }
  return undefined;
}

async function commit(call: Call, state: RegistryState, session: Session, digest: Digest): Promise<Reply> {
  const { upload } = state.profile;
  if (session.sink.size === 0 && upload.emptyBlob === '500') return refuse(500, 'INTERNAL_ERROR', 'no body');
  const repository = createRepository(state.store, session.repository);
  if (joinsBadly(state, session)) {
    await dropSession(state, session);
    return refuse(500, 'INTERNAL_ERROR', 'a part is too small');
  }
  if ((await session.sink.digest(algorithmOf(digest))) !== digest) {
    await afterBadDigest(state, session);
    return upload.digestError === '500'
      ? refuse(500, 'INTERNAL_ERROR', 'digest mismatch')
      : refuse(400, 'DIGEST_INVALID', 'provided digest did not match uploaded content', digest);
  }
  if (upload.commit === 'dup400' && repository.blobs.has(digest)) {
    await dropSession(state, session);
    return refuse(400, 'BLOB_UPLOAD_INVALID', 'blob exists and cannot be updated', digest);
  }
  // From here on a repeated PUT finds no session, as on GHCR, whether or not this one has been answered.
  state.sessions.delete(session.id);
  if (upload.commit.startsWith('slow')) await pause(argumentOf(upload.commit));
  if (upload.commit.includes('retry404lost') && !state.lost.has(digest)) {
    state.lost.add(digest);
    await dropSession(state, session);
    return { kind: 'cut', how: 'close' };
  }
  const content = keepContent(state.store, digest, await session.sink.finish(digest));
  repository.blobs.set(digest, { content, at: state.now(), visibleAt: appearsAt(state) });
  if (upload.commit === 'loseAnswer' || upload.commit.includes('retry404present')) return { kind: 'cut', how: 'close' };
  return answer(upload.put === '204' ? 204 : 201, {
    ...blobLocation(call, state, session.repository, digest),
    'Docker-Content-Digest': digest,
  });
}

/** @see distribution-spec v1.1.1 spec.md, end-13 */
export async function getUpload(call: Call, state: RegistryState): Promise<Reply> {
  const session = await findSession(call, state);
  if ('kind' in session) return session;
  const { status } = state.profile.upload;
  if (status === '405') return refuse(405, 'UNSUPPORTED', 'no status of uploads');
  if (status === '400') return refuse(400, 'NAME_INVALID', 'no status of uploads');
  const { Location = '', Range = '' } = await sessionHeaders(call, state, session);
  if (status === 'right') return answer(204, { Location, Range, ...chunkHeaders(state) });
  const plusOne = { Range: `0-${session.sink.size}` };
  return answer(204, status === 'plusOne' ? { Location, ...plusOne } : { Range: `bytes=${plusOne.Range}` });
}

/** @see distribution-spec main of 2026-07-16, section "Cancel a blob upload" */
export async function deleteUpload(call: Call, state: RegistryState): Promise<Reply> {
  const session = await findSession(call, state);
  if ('kind' in session) return session;
  const { cancel } = state.profile.upload;
  if (cancel === '405') return refuse(405, 'UNSUPPORTED', 'the operation is unsupported');
  if (cancel === '400') return refuse(400, 'NAME_INVALID', 'the operation is unsupported');
  if (cancel === '401') return refuse(401, 'UNAUTHORIZED', 'the delete action is required');
  await dropSession(state, session);
  return answer(204);
}
