import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Image, Source } from './images.ts';

/** An answer of a registry, read whole. */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
};

/**
 * One request with node:http. Tests prepare and judge with this, not with the client under test: what both sides
 * misread together would not be seen.
 */
export async function ask(
  host: string,
  method: string,
  path: string,
  options: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: Buffer | { readonly pieces: Iterable<Buffer>; readonly size: number };
  } = {},
): Promise<Answer> {
  const { body } = options;
  const length = body === undefined ? 0 : Buffer.isBuffer(body) ? body.length : body.size;
  const sending = request(new URL(path, `http://${host}`), {
    method,
    headers: {
      ...(method === 'GET' || method === 'HEAD' || method === 'DELETE' ? {} : { 'content-length': length }),
      ...options.headers,
    },
  });
  const answered = once(sending, 'response');
  await pipeline(Readable.from(body === undefined ? [] : Buffer.isBuffer(body) ? [body] : body.pieces), sending);
  const [response] = await answered;
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces) };
}

/** Puts all of a source into its repository. */
export async function pushSource(host: string, source: Source): Promise<void> {
  for (const image of source.images) {
    for (const { digest, bytes } of image.blobs) await pushBlob(host, source.repository, digest, bytes);
    await pushManifest(host, source.repository, image.manifest.digest, image.entry.mediaType, image.manifest.bytes);
  }
  await pushManifest(host, source.repository, source.tag, source.mediaType, source.document.bytes);
}

/** Opens a session and puts the blob in one piece. */
export async function pushBlob(
  host: string,
  repository: string,
  digest: string,
  body: Buffer | { readonly pieces: Iterable<Buffer>; readonly size: number },
): Promise<void> {
  const opened = await ask(host, 'POST', `/v2/${repository}/blobs/uploads/`);
  const session = new URL(String(opened.headers['location']), `http://${host}`);
  session.searchParams.set('digest', digest);
  const headers = { 'content-type': 'application/octet-stream' };
  const put = await ask(host, 'PUT', session.pathname + session.search, { headers, body });
  if (put.status !== 201) throw new Error(`${host} answered ${put.status} to a blob: ${put.body.toString('utf8')}`);
}

/** `reference` is a tag or a digest. */
export async function pushManifest(
  host: string,
  repository: string,
  reference: string,
  mediaType: string,
  body: Buffer,
): Promise<void> {
  const headers = { 'content-type': mediaType };
  const put = await ask(host, 'PUT', `/v2/${repository}/manifests/${reference}`, { headers, body });
  if (put.status !== 201) throw new Error(`${host} answered ${put.status} to a manifest: ${put.body.toString('utf8')}`);
}

/** What a repository says of a tag: the digest of the very bytes that it serves, or undefined. */
export async function digestOfTag(host: string, repository: string, tag: string): Promise<string | undefined> {
  const answer = await getManifest(host, repository, tag);
  return answer.status === 200 ? sha256(answer.body) : undefined;
}

/** A manifest or index of any type. */
export function getManifest(host: string, repository: string, reference: string): Promise<Answer> {
  const accept = [
    ...['manifest.v1+json', 'index.v1+json'].map((type) => `application/vnd.oci.image.${type}`),
    ...['manifest.v2+json', 'manifest.list.v2+json'].map((type) => `application/vnd.docker.distribution.${type}`),
  ].join(', ');
  return ask(host, 'GET', `/v2/${repository}/manifests/${reference}`, { headers: { accept } });
}

/**
 * What a repository lacks of the images: manifests that it does not serve byte for byte, blobs that it does not serve
 * byte for byte. Empty when all is there. Blobs are downloaded: on some registries a HEAD proves nothing.
 */
export async function missingIn(host: string, repository: string, images: readonly Image[]): Promise<string[]> {
  const missing: string[] = [];
  for (const image of images) {
    const { digest } = image.manifest;
    const manifest = await getManifest(host, repository, digest);
    if (manifest.status !== 200 || sha256(manifest.body) !== digest) missing.push(`manifest ${digest}`);
    for (const { digest: blob } of image.blobs) {
      const answer = await ask(host, 'GET', `/v2/${repository}/blobs/${blob}`);
      if (answer.status !== 200 || sha256(answer.body) !== blob) missing.push(`blob ${blob}`);
    }
  }
  return missing;
}

function sha256(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
