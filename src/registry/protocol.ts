import type { HttpHeaders } from '../http/message.ts';
import { algorithmOf, type Digest, digestOf, isDigest } from '../model/digest.ts';
import { isTag } from '../model/reference.ts';
import { parseUrl } from '../model/url.ts';

/** Only lower-case names that the reference grammar lets through; the guard keeps `..` and `//` out of URLs for good. */
const REPOSITORY = /^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/;

function repositoryPath(repository: string): string {
  const walks = repository.split('/').some((part) => part === '' || part.includes('..'));
  if (walks || !REPOSITORY.test(repository)) throw new Error(`not a repository name: ${JSON.stringify(repository)}`);
  return `/v2/${repository}`;
}

/** `/v2/<name>/manifests/<reference>`; the reference is a tag or a digest. */
export function manifestPath(repository: string, reference: string): string {
  if (!isTag(reference) && !isDigest(reference)) throw new Error(`not a tag or digest: ${JSON.stringify(reference)}`);
  return `${repositoryPath(repository)}/manifests/${reference}`;
}

/** `/v2/<name>/referrers/<digest>` */
export function referrersPath(repository: string, subject: Digest): string {
  return `${repositoryPath(repository)}/referrers/${subject}`;
}

/**
 * The next page of a list, by `Link: <…>; rel="next"`; undefined when there is none. A list goes on where it began: one
 * that leads to another host is not followed.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Listing Referrers"; RFC 8288 section 3
 */
export function nextPage(headers: HttpHeaders, answeredAt: URL, base: URL): URL | 'elsewhere' | undefined {
  const link = (headers['link'] ?? '').split(/,(?=\s*<)/).find((one) => /;\s*rel="?next"?\s*(?:;|$)/i.test(one));
  if (link === undefined) return undefined;
  const href = resolveLocation(/^\s*<([^>]*)>/.exec(link)?.[1], answeredAt, base);
  const url = href === undefined ? undefined : new URL(href);
  return url !== undefined && [base.origin, answeredAt.origin].includes(url.origin) ? url : 'elsewhere';
}

/** `/v2/<name>/blobs/<digest>` */
export function blobPath(repository: string, digest: Digest): string {
  return `${repositoryPath(repository)}/blobs/${digest}`;
}

/**
 * Where an upload is opened. A digest that is not sha256 is announced, since the session may hash as it receives.
 *
 * @see distribution-spec main spec.md, end-4c (`digest-algorithm`)
 */
export function uploadPath(repository: string, digest: Digest): string {
  const algorithm = algorithmOf(digest);
  return `${repositoryPath(repository)}/blobs/uploads/${algorithm === 'sha256' ? '' : `?digest-algorithm=${algorithm}`}`;
}

/**
 * Where a mount is asked for: always both parameters, since zot answers 405 to `from` alone and old Quay an error to
 * `mount` alone. `from` is the bare repository path; Docker Hub answers 400 to anything with a host in it.
 */
export function mountPath(repository: string, digest: Digest, from: string): string {
  repositoryPath(from);
  const query = `mount=${encodeURIComponent(digest)}&from=${encodeURIComponent(from)}`;
  return `${repositoryPath(repository)}/blobs/uploads/?${query}`;
}

/** A mount that names no source: only a registry with automatic content discovery can grant it. */
export function mountAnyPath(repository: string, digest: Digest): string {
  return `${repositoryPath(repository)}/blobs/uploads/?mount=${encodeURIComponent(digest)}`;
}

/**
 * The session that a Location names, or undefined when it names none: absent, empty or not a URL.
 *
 * The query stays as it came, because it may be signed (distribution's `_state`). Registries behind a proxy that ends
 * TLS build `http:` addresses of themselves; asking those would send the bytes in the clear or into a redirect, so the
 * registry's own host is asked over https when that is how it was reached.
 *
 * @param answeredAt the URL that answered, which a relative Location is relative to
 * @param base how the registry is reached
 * @see distribution-spec v1.1.1 spec.md, section "Pushing blobs"
 */
export function resolveLocation(location: string | undefined, answeredAt: URL, base: URL): string | undefined {
  const resolved = location === undefined || location.trim() === '' ? undefined : parseUrl(location, answeredAt);
  if (resolved === undefined) return undefined;
  if (resolved.protocol === 'http:' && base.protocol === 'https:' && isSamePlace(resolved, base)) {
    // Setting the protocol alone would keep a spelled-out :443 and leave the rest of the text untouched.
    resolved.protocol = 'https:';
  }
  return resolved.href;
}

/** The same host and port, where `http://host` and `http://host:443` both mean the registry at `https://host`. */
function isSamePlace(named: URL, base: URL): boolean {
  if (named.hostname !== base.hostname) return false;
  return named.port === base.port || (base.port === '' && named.port === '443');
}

/** The closing PUT's address: the session's own text with the digest behind it. Never rebuilt, never sorted. */
export function withDigestQuery(session: string, digest: Digest): string {
  const fragment = session.indexOf('#');
  const text = fragment === -1 ? session : session.slice(0, fragment);
  const query = text.indexOf('?');
  // Of several question marks only the first begins the query.
  const joint = query === -1 ? '?' : query === text.length - 1 || text.endsWith('&') ? '' : '&';
  return `${text}${joint}digest=${encodeURIComponent(digest)}`;
}

/** What the answer says its content is; undefined when it says nothing or nothing we can compute. */
export function digestHeader(headers: HttpHeaders): Digest | undefined {
  const text = headers['docker-content-digest'];
  return text !== undefined && isDigest(text) ? text : undefined;
}

/** Whether an answer's digest header speaks against these bytes, in whatever algorithm it uses. */
export function contradictsBytes(headers: HttpHeaders, bytes: Uint8Array): Digest | undefined {
  const said = digestHeader(headers);
  return said !== undefined && said !== digestOf(bytes, algorithmOf(said)) ? said : undefined;
}

/** Whether an answer names another content than `digest`. Another algorithm is allowed by the spec and proves nothing. */
export function contradictsDigest(said: Digest | undefined, digest: Digest): boolean {
  return said !== undefined && algorithmOf(said) === algorithmOf(digest) && said !== digest;
}

/** The digest a Location of a finished blob ends in, if it does. */
export function locationDigest(location: string | undefined): Digest | undefined {
  const last = location?.split(/[?#]/, 1)[0]?.split('/').at(-1)?.replace('%3A', ':');
  return last !== undefined && isDigest(last) ? last : undefined;
}

/** Content-Type without parameters, in lower case. */
export function contentType(headers: HttpHeaders): string | undefined {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return type === '' ? undefined : type;
}

/** A login page or a proxy's page, whatever its status says. */
export function isHtml(headers: HttpHeaders): boolean {
  const type = contentType(headers);
  return type === 'text/html' || type === 'application/xhtml+xml';
}

/** Content-Length in bytes; undefined when absent or not a number. */
export function contentLength(headers: HttpHeaders): number | undefined {
  const text = headers['content-length']?.trim();
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
}

/**
 * How many bytes a session has by the `Range` of its answer; undefined for none or garbage. Quay writes a unit, and
 * `0--1` for none; `0-0` is what most say of an empty session, so that one byte counts as none.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Pushing a blob in chunks"
 */
export function rangeEnd(headers: HttpHeaders): number | undefined {
  const last = /^(?:bytes[= ])?0-(-?\d{1,15})$/.exec(headers['range']?.trim() ?? '')?.[1];
  if (last === undefined) return undefined;
  return Number(last) > 0 ? Number(last) + 1 : 0;
}

/** Whether a 206 brings the bytes from `from` to the end of a blob of this size, exactly. */
export function continues(headers: HttpHeaders, from: number, size: number): boolean {
  return headers['content-range']?.trim().toLowerCase() === `bytes ${from}-${size - 1}/${size}`;
}

/** `OCI-Chunk-Min-Length` and `OCI-Chunk-Max-Length`, in bytes; undefined when the registry sets no limit. */
export function chunkLimits(headers: HttpHeaders): { readonly min?: number; readonly max?: number } | undefined {
  const [min, max] = [headers['oci-chunk-min-length'], headers['oci-chunk-max-length']].map(positive);
  if (min === undefined && max === undefined) return undefined;
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

function positive(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,14}$/.test(text.trim()) ? Number(text) : undefined;
}

const SECOND = 1000;

/**
 * How long the answer to a closing PUT may take once the body is out, in ms: registries hash and move the bytes before
 * they answer (GHCR took 11 s for 700 MB).
 */
export function commitTimeout(size: number): number {
  const grown = 60 * SECOND + Math.ceil(size / 10_000_000) * SECOND;
  return size > 100_000_000 ? Math.max(grown, 300 * SECOND) : grown;
}
