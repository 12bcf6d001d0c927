import type { Call } from './call.ts';
import { type Answer, refuse } from './reply.ts';
import { rangeHelp, type Session } from './sessions.ts';
import { type RegistryState, scaled } from './state.ts';
import { argumentOf } from './switches.ts';

/** Whether this registry takes a PATCH of this form at all. */
export function checkPatchForm(call: Call, state: RegistryState, session: Session): Answer | undefined {
  const { patch } = state.profile.upload;
  const ranged = call.headers['content-range'] !== undefined;
  if (patch.startsWith('none')) return refuse(argumentOf(patch), 'UNSUPPORTED', 'no chunked uploads');
  if (patch === 'streamOnly' && (ranged || session.chunks.length > 0)) {
    return refuse(400, 'UNSUPPORTED', 'chunked uploads are not supported');
  }
  if (patch === 'firstStreamOnly' && !ranged && session.chunks.length > 0) {
    return refuse(400, 'BLOB_UPLOAD_INVALID', 'a stream can only be the first write');
  }
  return undefined;
}

/** `application/octet-stream` or nothing, where the registry looks at it. */
export function checkType(call: Call, state: RegistryState): Answer | undefined {
  const { contentType } = state.profile.upload;
  const given = call.headers['content-type'];
  if (contentType === 'any' || given === undefined || given === 'application/octet-stream') return undefined;
  return contentType === 'octetOnly415'
    ? refuse(415, 'UNSUPPORTED', 'content type must be application/octet-stream', given)
    : refuse(500, 'UNKNOWN', 'unknown error', `bad Content-Type ${given}`);
}

/** Bodies sent with `Transfer-Encoding: chunked`. */
export function checkLength(call: Call, state: RegistryState): Answer | undefined {
  if (call.body.length !== undefined) return undefined;
  const { noLength } = state.profile.upload;
  if (noLength === '400') return refuse(400, 'CONTENT_LENGTH_INVALID', 'content length is required');
  if (noLength === '500' && call.operation === 'uploadPut')
    return refuse(500, 'INTERNAL_ERROR', 'content length is required');
  return undefined;
}

/**
 * Content-Range is `<start>-<end>`, both inclusive, no unit, and starts where the session stands; else 416 with the
 * place to go on from.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Pushing a blob in chunks"
 */
export async function checkRange(
  call: Call,
  state: RegistryState,
  session: Session,
  closing: boolean,
): Promise<Answer | undefined> {
  const { upload } = state.profile;
  const given = call.headers['content-range'];
  const size = session.sink.size;
  if (given === undefined) {
    if (closing && size > 0 && upload.finalPutBody === 'needsRange416') {
      return outOfOrder(call, state, session, 'the last chunk needs a Content-Range');
    }
    if (size > 0 && upload.sameSessionRestart === '416') {
      return outOfOrder(call, state, session, `first byte of the part is 0 instead of ${size}`);
    }
    return undefined;
  }
  if (upload.rangeCheck === 'none') return undefined;
  const range = /^(\d+)-(\d+)$/.exec(given);
  if (range === null) return refuse(400, 'BLOB_UPLOAD_INVALID', 'content range is not <start>-<end>', given);
  const [start, end] = [Number(range[1]), Number(range[2])];
  if (start !== size) return outOfOrder(call, state, session, `the next byte is ${size}, not ${start}`);
  if (call.body.length !== undefined && call.body.length !== end - start + 1) {
    return refuse(400, 'SIZE_INVALID', 'content length and content range differ', given);
  }
  return undefined;
}

async function outOfOrder(call: Call, state: RegistryState, session: Session, message: string): Promise<Answer> {
  return refuse(416, state.profile.upload.rangeError, message, undefined, await rangeHelp(call, state, session));
}

/**
 * Limits on the size of chunks. A chunk below the minimum can only be told from the last one when another follows,
 * so it is the follower that is refused, as in serverless-registry and ECR. The former takes a follower that is smaller
 * still, and finds out when it commits.
 */
export async function checkChunk(call: Call, state: RegistryState, session: Session): Promise<Answer | undefined> {
  const { chunk } = state.profile.upload;
  const [min, max] = [scaled(state, chunk.min), scaled(state, chunk.max)];
  const length = call.body.length;
  const last = session.chunks.at(-1);
  const before = session.chunks.at(-2);
  const ranged = call.headers['content-range'] !== undefined;
  const smallerLast = chunk.equal && last !== undefined && length !== undefined && length < last;
  const problem =
    (ranged && max > 0 && length !== undefined && length > max && 'chunk too large') ||
    (min > 0 && last !== undefined && last < min && !smallerLast && 'the chunk before is below the minimum') ||
    (chunk.equal && last !== undefined && length !== undefined && length > last && 'larger than the chunk before') ||
    (chunk.equal && last !== undefined && before !== undefined && last < before && 'the last chunk came already') ||
    (!chunk.oneByte && ranged && length === 1 && 'a chunk of one byte');
  if (problem === false) return undefined;
  const code = chunk.equal ? 'RANGE_ERROR' : 'REQUESTED_RANGE_NOT_SATISFIABLE';
  return refuse(chunk.maxStatus, code, problem, undefined, await rangeHelp(call, state, session));
}

/** Chunks of which one that is not the last is below the minimum: the storage behind serverless-registry refuses them. */
export function joinsBadly(state: RegistryState, session: Session): boolean {
  const { chunk } = state.profile.upload;
  return chunk.equal && session.chunks.slice(0, -1).some((size) => size < scaled(state, chunk.min));
}
