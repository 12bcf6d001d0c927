import type { IncomingHttpHeaders } from 'node:http';
import { type Digest, isDigest } from '../model/digest.ts';

/** What a request asks for, in the words of the spec's table of endpoints. */
export type Operation =
  | 'ping'
  | 'token'
  | 'blobHead'
  | 'blobGet'
  | 'blobDelete'
  | 'mount'
  | 'uploadPost'
  | 'uploadPatch'
  | 'uploadPut'
  | 'uploadGet'
  | 'uploadDelete'
  | 'manifestHead'
  | 'manifestGet'
  | 'manifestPut'
  | 'manifestDelete'
  | 'tagsList'
  | 'referrers'
  | 'storage'
  | 'unknown';

/** The client's connection broke while its body was being read: there is nobody left to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** One request, parsed. */
export type Call = {
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** As it was sent, without the question mark. */
  readonly rawQuery: string;
  /** Empty for what concerns no repository. */
  readonly repository: string;
  /** Tag, digest or session id, as written. */
  readonly reference: string;
  readonly headers: IncomingHttpHeaders;
  /** Scheme and authority as the client wrote them. */
  readonly origin: string;
  readonly body: CallBody;
};

export type CallBody = {
  /** Undefined with `Transfer-Encoding: chunked`. */
  readonly length: number | undefined;
  /** @throws ClientGone */
  readonly pieces: () => AsyncIterable<Buffer>;
};

/** @see distribution-spec v1.1.1 spec.md, section "Pulling manifests" */
const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;

export function isRepositoryName(text: string): boolean {
  return text.length <= 255 && NAME.test(text);
}

export function isTag(text: string): boolean {
  return TAG.test(text);
}

export function asDigest(text: string | null): Digest | undefined {
  return text !== null && isDigest(text) ? text : undefined;
}

type Target = { readonly operation: Operation; readonly repository: string; readonly reference: string };

const NOWHERE: Target = { operation: 'unknown', repository: '', reference: '' };

/** `otherPath` sessions live here: Artifact Registry's Location has another path on the same host. */
export const OTHER_UPLOADS = '/artifacts-uploads/namespaces/';

/** Reads method, path and query; a name or method that fits nothing is `unknown`. */
export function readTarget(method: string, path: string, query: URLSearchParams): Target {
  if (path === '/v2/' || path === '/v2')
    return { ...NOWHERE, operation: method === 'GET' || method === 'HEAD' ? 'ping' : 'unknown' };
  if (path === '/token') return { ...NOWHERE, operation: 'token' };
  if (path.startsWith('/storage/'))
    return { operation: 'storage', repository: '', reference: path.slice('/storage/'.length) };
  const route = readRoute(path);
  if (route === undefined) return NOWHERE;
  return {
    operation: operationOf(method, route.kind, query),
    repository: route.repository,
    reference: route.reference,
  };
}

type Route = {
  readonly kind: 'blob' | 'uploads' | 'upload' | 'manifest' | 'tags' | 'referrers';
  readonly repository: string;
  readonly reference: string;
};

function readRoute(path: string): Route | undefined {
  const elsewhere = /^\/artifacts-uploads\/namespaces\/(.+)\/uploads\/([^/]+)$/.exec(path);
  if (elsewhere !== null) return { kind: 'upload', repository: elsewhere[1] ?? '', reference: elsewhere[2] ?? '' };
  const found =
    /^\/v2\/(.+?)\/(?:(blobs\/uploads)(?:\/([^/]*))?|(blobs|manifests|referrers)\/([^/]+)|(tags\/list))$/.exec(path);
  if (found === null) return undefined;
  const [, repository = '', uploads, session = '', noun, reference = ''] = found;
  if (uploads !== undefined) return { kind: session === '' ? 'uploads' : 'upload', repository, reference: session };
  if (noun === 'blobs') return { kind: 'blob', repository, reference };
  if (noun === 'manifests') return { kind: 'manifest', repository, reference };
  if (noun === 'referrers') return { kind: 'referrers', repository, reference };
  return { kind: 'tags', repository, reference: '' };
}

const VERBS: Readonly<Record<Route['kind'], Readonly<Record<string, Operation>>>> = {
  blob: { GET: 'blobGet', HEAD: 'blobHead', DELETE: 'blobDelete' },
  uploads: { POST: 'uploadPost' },
  upload: { GET: 'uploadGet', PATCH: 'uploadPatch', PUT: 'uploadPut', DELETE: 'uploadDelete' },
  manifest: { GET: 'manifestGet', HEAD: 'manifestHead', PUT: 'manifestPut', DELETE: 'manifestDelete' },
  tags: { GET: 'tagsList' },
  referrers: { GET: 'referrers' },
};

function operationOf(method: string, kind: Route['kind'], query: URLSearchParams): Operation {
  const operation = VERBS[kind][method] ?? 'unknown';
  return operation === 'uploadPost' && (query.has('mount') || query.has('from')) ? 'mount' : operation;
}

/** Whether the path is one of the API's: then a method that it does not have is 405, not 404. */
export function isKnownPath(path: string): boolean {
  return readRoute(path) !== undefined;
}
