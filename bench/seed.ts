import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { formatPlatform, type Job, type Platform, type SourceImage, sourceRepository } from './job.ts';
import { layerStream } from './layers.ts';

/** An image as it was pushed; the manifest's digest is what a published list must name. */
export type SeededImage = {
  readonly repository: string;
  readonly platform: Platform;
  readonly digest: string;
  readonly size: number;
  readonly blobs: readonly Blob[];
  /** What stands beside the image in the index that the repository's tag names; none: the tag names the image. */
  readonly attestation?: Attestation;
};

/** @see SeededImage */
export type Attestation = Blob & {
  readonly blobs: readonly Blob[];
  /** Bytes of the index that names both. */
  readonly indexSize: number;
};

/** @see SeededImage */
export type Blob = { readonly digest: string; readonly size: number };

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';

/** Pushes the job's images to the registry at `origin`, straight, by the registry's own API. */
export async function seed(origin: string, job: Job): Promise<readonly SeededImage[]> {
  const seeded: SeededImage[] = [];
  for (const image of job.images) seeded.push(await pushImage(origin, image, job.tag));
  return seeded;
}

async function pushImage(origin: string, image: SourceImage, tag: string): Promise<SeededImage> {
  const repository = sourceRepository(image);
  const layers: Blob[] = [];
  for (const [index, size] of image.layers.entries()) {
    layers.push(await pushBlob(origin, repository, layerStream(`${image.name} ${index}`, size)));
  }
  const config = json({
    ...image.platform,
    config: { Cmd: ['/bin/true'], Labels: { platform: formatPlatform(image.platform) } },
    // Not the hash of the plain tar: nothing that publishes an index unpacks a layer.
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
  });
  const pushed = await pushBlob(origin, repository, Readable.from([config]));
  const manifest = json({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: { mediaType: CONFIG, ...pushed },
    layers: layers.map((layer) => ({ mediaType: LAYER, ...layer })),
  });
  const url = `${origin}/v2/${repository}/manifests/${tag}`;
  const answer = await fetch(url, { method: 'PUT', headers: { 'content-type': MANIFEST }, body: manifest });
  if (answer.status !== 201) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  const digest = `sha256:${createHash('sha256').update(manifest).digest('hex')}`;
  return { repository, platform: image.platform, digest, size: manifest.length, blobs: [...layers, pushed] };
}

/** Two steps and a hash on the way, because the digest is known only when the last byte was made. */
async function pushBlob(origin: string, repository: string, bytes: Readable): Promise<Blob> {
  const opened = await fetch(`${origin}/v2/${repository}/blobs/uploads/`, { method: 'POST' });
  const hash = createHash('sha256');
  let size = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  const patched = await patch(locationOf(opened.headers.get('location'), origin), bytes, counted);
  const digest = `sha256:${hash.digest('hex')}`;
  const closing = locationOf(patched, origin);
  closing.searchParams.set('digest', digest);
  const closed = await fetch(closing, { method: 'PUT' });
  if (closed.status !== 201) throw new Error(`${closing}: ${closed.status} ${await closed.text()}`);
  return { digest, size };
}

/** By node:http, since the global `fetch` keeps a whole streamed body in memory. */
async function patch(session: URL, bytes: Readable, counted: Transform): Promise<string | undefined> {
  const sent = request(session, { method: 'PATCH', headers: { 'content-type': 'application/octet-stream' } });
  const answered = new Promise<string | undefined>((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (answer) => {
      answer.resume();
      if (answer.statusCode === 202) answer.on('end', () => resolve(answer.headers.location));
      else reject(new Error(`PATCH ${session}: ${answer.statusCode}`));
    });
  });
  await Promise.all([pipeline(bytes, counted, sent), answered]);
  return await answered;
}

function locationOf(location: string | null | undefined, origin: string): URL {
  if (location === null || location === undefined) throw new Error(`${origin}: an upload without Location`);
  return new URL(location, origin);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
