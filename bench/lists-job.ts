import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { DEBIAN_JOB, formatPlatform, type Job } from './job.ts';
import { layerStream } from './layers.ts';
import type { Blob, SeededImage } from './seed.ts';

const KIB = 1024;
const BASE_BYTES = 64 * KIB;
const OWN_BYTES = 4 * KIB;
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

/** The eight images whose first layer is the base of all others of that architecture. */
export const BASE_JOB: Job = {
  tag: 'base',
  images: DEBIAN_JOB.images.map((image) => ({ ...image, layers: [BASE_BYTES] })),
};

/** What one list shall hold: eight images under one tag of their repositories. */
export type ListToPublish = { readonly tag: string; readonly images: readonly SeededImage[] };

/**
 * Pushes `count` times eight images, straight, by the registry's own API: each is the base layer of its architecture,
 * which all lists share, a layer of its own and a config of its own. So are applications built on one base image.
 */
export async function seedLists(
  origin: string,
  bases: readonly SeededImage[],
  count: number,
): Promise<readonly ListToPublish[]> {
  const tags = Array.from({ length: count }, (_, number) => `v${number + 1}`);
  // Repositories side by side, tags of one after another: eight pushes at a time.
  const columns = await Promise.all(
    bases.map(async (base) => {
      const images: SeededImage[] = [];
      for (const tag of tags) images.push(await pushImage(origin, base, tag));
      return images;
    }),
  );
  return tags.map((tag, row) => ({ tag, images: columns.flatMap((images) => images[row] ?? []) }));
}

async function pushImage(origin: string, base: SeededImage, tag: string): Promise<SeededImage> {
  const { repository, platform } = base;
  const [shared] = base.blobs;
  if (shared === undefined) throw new Error(`${repository} has no base layer`);
  const own = await pushBlob(origin, repository, await buffer(layerStream(`${repository} ${tag}`, OWN_BYTES)));
  const layers = [shared, own];
  const config = json({
    ...platform,
    config: { Cmd: ['/bin/true'], Labels: { platform: formatPlatform(platform), tag } },
    // Not the hashes of the plain tars: nothing that publishes an index unpacks a layer.
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
  });
  const pushed = await pushBlob(origin, repository, config);
  const manifest = json({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: { mediaType: CONFIG, ...pushed },
    layers: layers.map((layer) => ({ mediaType: LAYER, ...layer })),
  });
  await put(`${origin}/v2/${repository}/manifests/${tag}`, MANIFEST, manifest);
  return { repository, platform, digest: digestOf(manifest), size: manifest.length, blobs: [...layers, pushed] };
}

async function pushBlob(origin: string, repository: string, bytes: Buffer): Promise<Blob> {
  const digest = digestOf(bytes);
  const opened = await fetch(`${origin}/v2/${repository}/blobs/uploads/`, { method: 'POST' });
  const session = new URL(opened.headers.get('location') ?? '', origin);
  session.searchParams.set('digest', digest);
  await put(session, 'application/octet-stream', bytes);
  return { digest, size: bytes.length };
}

async function put(url: string | URL, type: string, body: Buffer): Promise<void> {
  const answer = await fetch(url, { method: 'PUT', headers: { 'content-type': type }, body: new Uint8Array(body) });
  const text = await answer.text();
  if (answer.status !== 201) throw new Error(`${url}: ${answer.status} ${text}`);
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
