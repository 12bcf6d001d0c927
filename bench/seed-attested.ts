import { createHash } from 'node:crypto';
import { formatPlatform } from './job.ts';
import type { Blob, SeededImage } from './seed.ts';

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const IN_TOTO = 'application/vnd.in-toto+json';

/**
 * The same images in repositories of their own, each below an index with an attestation manifest beside it: what
 * `docker buildx build --push` leaves behind since it attests provenance by default.
 * @see BuildKit docs/attestations/attestation-storage.md
 */
export async function seedAttested(
  origin: string,
  images: readonly SeededImage[],
  tag: string,
): Promise<readonly SeededImage[]> {
  return await Promise.all(images.map((image) => attest(origin, image, tag)));
}

async function attest(origin: string, image: SeededImage, tag: string): Promise<SeededImage> {
  const repository = image.repository.replace(/^[^/]+/, 'attested');
  const base = `${origin}/v2/${repository}`;
  for (const { digest } of image.blobs) {
    const query = new URLSearchParams({ mount: digest, from: image.repository });
    await send('POST', `${base}/blobs/uploads/?${query}`, undefined, '');
  }
  const accept = { headers: { accept: MANIFEST } };
  const manifest = await fetch(`${origin}/v2/${image.repository}/manifests/${image.digest}`, accept);
  await send('PUT', `${base}/manifests/${image.digest}`, MANIFEST, await manifest.text());

  const statement = text({
    _type: 'https://in-toto.io/Statement/v0.1',
    predicateType: 'https://slsa.dev/provenance/v0.2',
    subject: [{ name: repository, digest: { sha256: image.digest.replace('sha256:', '') } }],
    predicate: { buildType: 'https://mobyproject.org/buildkit@v1', platform: formatPlatform(image.platform) },
  });
  const layer = await pushBlob(base, statement);
  const rootfs = { type: 'layers', diff_ids: [layer.digest] };
  const config = await pushBlob(base, text({ architecture: 'unknown', os: 'unknown', config: {}, rootfs }));
  const attestation = text({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: { mediaType: CONFIG, ...config },
    layers: [{ mediaType: IN_TOTO, ...layer, annotations: { 'in-toto.io/predicate-type': 'slsa' } }],
  });
  const digest = digestOf(attestation);
  await send('PUT', `${base}/manifests/${digest}`, MANIFEST, attestation);

  const annotations = {
    'vnd.docker.reference.digest': image.digest,
    'vnd.docker.reference.type': 'attestation-manifest',
  };
  const unknown = { architecture: 'unknown', os: 'unknown' };
  const index = text({
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: [
      { mediaType: MANIFEST, digest: image.digest, size: image.size, platform: image.platform },
      { mediaType: MANIFEST, digest, size: attestation.length, annotations, platform: unknown },
    ],
  });
  await send('PUT', `${base}/manifests/${tag}`, INDEX, index);
  return {
    ...image,
    repository,
    attestation: { digest, size: attestation.length, blobs: [layer, config], indexSize: index.length },
  };
}

async function pushBlob(base: string, bytes: string): Promise<Blob> {
  const digest = digestOf(bytes);
  const opened = await fetch(`${base}/blobs/uploads/`, { method: 'POST' });
  const session = new URL(opened.headers.get('location') ?? '', base);
  session.searchParams.set('digest', digest);
  await send('PUT', session.href, 'application/octet-stream', bytes);
  return { digest, size: bytes.length };
}

async function send(method: string, url: string, type: string | undefined, body: string): Promise<void> {
  const headers = type === undefined ? {} : { 'content-type': type };
  const answer = await fetch(url, { method, headers, body });
  const said = await answer.text();
  if (answer.status !== 201) throw new Error(`${method} ${url}: ${answer.status} ${said}`);
}

function text(value: unknown): string {
  return JSON.stringify(value);
}

/** All of it is ASCII. */
function digestOf(bytes: string): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
