import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { layoutPorts } from '../../src/cli/layouts.ts';
import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import { PublishError } from '../../src/errors.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import type { Digest } from '../../src/model/digest.ts';
import { createLayoutClient } from '../../src/oci-layout/client.ts';
import type { Limiter, RegistryClient, UploadAnswer, UploadBody, UploadOptions } from '../../src/registry/client.ts';
import type { BuiltManifest } from '../helpers/images.ts';

/** A signal that nobody aborts. */
export const CALM = { signal: new AbortController().signal };

export const REF_NAME = 'org.opencontainers.image.ref.name';
export const IMAGE_NAME = 'io.containerd.image.name';

export type Entry = {
  readonly manifest: BuiltManifest;
  readonly tag?: string;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Of all clients of this process, as in the program. */
const LOCKS = new Set<string>();

type More = {
  readonly limiter?: Limiter;
  readonly token?: () => string;
  readonly isAlive?: (pid: number) => boolean;
};

/** A limiter of so many places. */
export function placesOf(requests: number): Limiter {
  return createLimiter({ clock: SYSTEM_CLOCK, requests });
}

/** The client that the program would make. */
export function openLayout(folder: string, more: More = {}): RegistryClient {
  const { limiter = placesOf(64), token = randomUUID, isAlive = () => true } = more;
  const ports = layoutPorts(SYSTEM_CLOCK, { pid: process.pid, host: 'here', isAlive, own: LOCKS }, token);
  return createLayoutClient(`oci:${folder}`, ports, limiter);
}

/** Writes a layout without our code, as buildx and others leave it. */
export async function layLayout(
  folder: string,
  entries: readonly Entry[],
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await mkdir(join(folder, 'blobs', 'sha256'), { recursive: true });
  await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion": "1.0.0"}\n');
  for (const { manifest } of entries) await layBlobs(folder, manifest);
  const manifests = entries.map(({ manifest, tag, annotations }) => ({
    ...manifest.descriptor,
    annotations: { ...annotations, ...(tag === undefined ? {} : { [REF_NAME]: tag }) },
  }));
  await writeFile(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests, ...more }, null, 2));
}

export async function layBlobs(folder: string, manifest: BuiltManifest): Promise<void> {
  await writeFile(blobFile(folder, manifest.descriptor.digest), manifest.bytes);
  for (const { descriptor, content } of manifest.blobs) {
    if ('bytes' in content) await writeFile(blobFile(folder, descriptor.digest), content.bytes);
  }
  for (const child of manifest.children) await layBlobs(folder, child);
}

export function blobFile(folder: string, digest: Digest): string {
  return join(folder, 'blobs', ...digest.split(':'));
}

/** index.json, as it stands there. */
export async function indexFile(
  folder: string,
): Promise<{ readonly manifests: readonly Record<string, unknown>[] } & Record<string, unknown>> {
  return JSON.parse(await readFile(join(folder, 'index.json'), 'utf8'));
}

/** Everything below the folder, sorted. */
export async function filesOf(folder: string): Promise<readonly string[]> {
  return (await readdir(folder, { recursive: true })).sort();
}

export async function put(
  client: RegistryClient,
  blob: { readonly digest: Digest; readonly size: number },
  body: UploadBody,
  options: Partial<UploadOptions> = {},
): Promise<UploadAnswer> {
  const session = await client.openUpload('', blob.digest, CALM);
  return client.upload(session, blob, body, { ...CALM, ...options });
}

export function toPut({ descriptor, bytes }: BuiltManifest) {
  return { bytes, digest: descriptor.digest, mediaType: descriptor.mediaType };
}

/** Everything of an image by the verbs, by a tag. */
export async function putImage(client: RegistryClient, image: BuiltManifest, tag: string | undefined): Promise<void> {
  for (const { descriptor, content } of image.blobs) {
    if ('bytes' in content) await put(client, descriptor, content.bytes);
  }
  for (const child of image.children) await putImage(client, child, undefined);
  await client.putManifest('', tag ?? image.descriptor.digest, toPut(image), CALM);
}

/** The PublishError that the work ends in. */
export async function failureOf(work: Promise<unknown>): Promise<PublishError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

export async function bytesOf(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
