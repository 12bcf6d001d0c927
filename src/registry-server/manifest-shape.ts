import { MEDIA_TYPES } from '../model/descriptor.ts';
import type { Call } from './call.ts';
import { type Document, type Entry, isDockerType, isIndexType } from './document.ts';
import { type Answer, type Problem, type RegistryCode, refuse, refuseAll } from './reply.ts';
import type { RegistryState } from './state.ts';

/** The type that a manifest is stored with: what the client said, else what the body says. */
export function typeOf(call: Call, document: Document): string {
  return headerType(call) ?? document.mediaType ?? '';
}

function headerType(call: Call): string | undefined {
  const header = call.headers['content-type']?.split(';', 1)[0]?.trim();
  return header === '' ? undefined : header;
}

/** Content-Type, the body's mediaType, and whether the registry takes the two. */
export function checkType(call: Call, state: RegistryState, document: Document, mediaType: string): Answer | undefined {
  const { noType, typeCheck, needMediaType, types } = state.profile.manifest;
  if (noType !== 'body' && headerType(call) === undefined) {
    return refuse(Number(noType), 'MANIFEST_INVALID', 'no Content-Type');
  }
  if (mediaType === '') return invalid('no media type: neither Content-Type nor mediaType');
  if (typeCheck && document.mediaType !== undefined && document.mediaType !== mediaType) {
    return invalid(`mediaType ${document.mediaType} differs from Content-Type ${mediaType}`);
  }
  if (document.mediaType === undefined && needMediaType) return misshapen(state, 'mediaType is required');
  if (types === 'ociOnly415' && isDockerType(mediaType)) {
    return refuse(415, 'MANIFEST_INVALID', 'unsupported manifest media type', mediaType);
  }
  return undefined;
}

/** What the registry wants of the entries themselves, whether or not they are there. */
export function checkShape(state: RegistryState, document: Document, mediaType: string): Answer | undefined {
  const { manifest } = state.profile;
  if (document.faults.length > 0) return invalid(document.faults.join('; '));
  const { children } = document;
  if (!manifest.nested && children.some((child) => isIndexType(child.mediaType)))
    return misshapen(state, 'an index inside an index');
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
  if (strict && bare !== undefined) return misshapen(state, `an entry without platform: ${bare.digest}`);
  return checkForeign(state, document);
}

function checkForeign(state: RegistryState, document: Document): Answer | undefined {
  const { urls } = state.profile.manifest;
  const foreign = document.blobs.find((blob) => blob.foreign);
  if (foreign === undefined) return undefined;
  if (urls === '400') return invalid(`a layer with urls: ${foreign.digest}`);
  if (urls !== '500') return undefined;
  // distribution, for whoever has not set `manifests.urls.allow`, in the words it was heard to say (2026-11-30).
  const unknown: Problem = { code: 'UNKNOWN', message: 'unknown error', detail: {} };
  const absent: Problem = {
    code: 'MANIFEST_BLOB_UNKNOWN',
    message: 'blob unknown to registry',
    detail: foreign.digest,
  };
  return refuseAll(500, [unknown, unknown, absent]);
}

/** The refusal of what is no manifest to this registry. */
export function misshapen(state: RegistryState, message: string): Answer {
  const [status = '', code = ''] = state.profile.manifest.shapeError.split(' ');
  return refuse(Number(status), code as RegistryCode, message);
}

function invalid(message: string): Answer {
  return refuse(400, 'MANIFEST_INVALID', message);
}
