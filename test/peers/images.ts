import { createCipheriv, createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';

/** Bytes and their address. */
export type Blob = { readonly digest: string; readonly bytes: Buffer };

/** Platform in the order of keys in which an index lists it. */
export type ImagePlatform = { readonly architecture: string; readonly os: string; readonly variant?: string };

/** An entry of an index as `publish` writes it, keys in that order. */
export type Entry = {
  readonly mediaType: string;
  readonly size: number;
  readonly digest: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: ImagePlatform;
};

/** An image as it lies in a registry. */
export type Image = {
  readonly manifest: Blob;
  readonly entry: Entry;
  /** The config first, then the layers. */
  readonly blobs: readonly Blob[];
};

/** What one repository holds under one tag: an image, or an index of images. */
export type Source = {
  readonly repository: string;
  readonly tag: string;
  readonly document: Blob;
  readonly mediaType: string;
  readonly images: readonly Image[];
};

export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const OCI_CONFIG = 'application/vnd.oci.image.config.v1+json';
const OCI_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
const IN_TOTO = 'application/vnd.in-toto+json';

/** The eight release architectures of Debian bullseye, with the repositories that its images have for each. */
const ARCHITECTURES: readonly (readonly [name: string, platform: ImagePlatform])[] = [
  ['amd64', { architecture: 'amd64', os: 'linux' }],
  ['arm32v5', { architecture: 'arm', os: 'linux', variant: 'v5' }],
  ['arm32v7', { architecture: 'arm', os: 'linux', variant: 'v7' }],
  ['arm64v8', { architecture: 'arm64', os: 'linux', variant: 'v8' }],
  ['i386', { architecture: '386', os: 'linux' }],
  ['mips64le', { architecture: 'mips64le', os: 'linux' }],
  ['ppc64le', { architecture: 'ppc64le', os: 'linux' }],
  ['s390x', { architecture: 's390x', os: 'linux' }],
];

const LAYERS = 4;
/** Enough that a layer takes several reads, little enough that eight images cost a moment. */
const LAYER_BYTES = 96 * 1024;

/** The main job: eight repositories, each with an image of four layers; no blob is in two of them. */
export function debianSources(): readonly Source[] {
  return ARCHITECTURES.map(([name, platform]) => {
    const image = makeImage(name, platform);
    return { ...place(name), document: image.manifest, mediaType: OCI_MANIFEST, images: [image] };
  });
}

/** The same, each an index as BuildKit pushes it: the image, and an attestation that speaks of it. */
export function attestedSources(): readonly Source[] {
  return ARCHITECTURES.map(([name, platform]) => {
    const image = makeImage(name, platform);
    const images = [image, makeAttestation(name, image)];
    const document = makeIndex(images.map(({ entry }) => entry));
    return { ...place(`attested-${name}`), document, mediaType: OCI_INDEX, images };
  });
}

/**
 * The index that `publish` is to make of the entries, by its own description in the documentation: two spaces, no
 * final newline. Written here a second time on purpose: a digest proves nothing when one function makes both sides.
 */
export function makeIndex(manifests: readonly Entry[]): Blob {
  return json({ schemaVersion: 2, mediaType: OCI_INDEX, manifests });
}

/** Bytes and their sha256. */
export function blob(bytes: Buffer): Blob {
  return { bytes, digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}` };
}

/** Bytes that do not compress and are the same for the same seed, in pieces of 64 KiB at most. */
export function* noise(seed: string, size: number): Generator<Buffer> {
  const cipher = createCipheriv('aes-256-ctr', createHash('sha256').update(seed).digest(), Buffer.alloc(16));
  const zeros = Buffer.alloc(64 * 1024);
  for (let left = size; left > 0; left -= zeros.length) yield cipher.update(zeros.subarray(0, left));
}

/** An image of one layer whose bytes are somewhere else. */
export function imageAround(platform: ImagePlatform, layer: { readonly digest: string; readonly size: number }): Image {
  const config = configBlob(platform, [layer.digest]);
  return imageOf(platform, config, [{ mediaType: OCI_LAYER, size: layer.size, digest: layer.digest }], [config]);
}

function makeImage(name: string, platform: ImagePlatform): Image {
  const tars = Array.from({ length: LAYERS }, (_, index) => tar(`${name}-${index}`));
  const config = configBlob(
    platform,
    tars.map((bytes) => blob(bytes).digest),
  );
  const layers = tars.map((bytes) => blob(gzipSync(bytes, { level: 1 })));
  const descriptors = layers.map(({ bytes, digest }) => ({ mediaType: OCI_LAYER, size: bytes.length, digest }));
  return imageOf(platform, config, descriptors, [config, ...layers]);
}

function imageOf(
  platform: ImagePlatform,
  config: Blob,
  layers: readonly { readonly mediaType: string; readonly size: number; readonly digest: string }[],
  blobs: readonly Blob[],
): Image {
  const manifest = json({
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: { mediaType: OCI_CONFIG, size: config.bytes.length, digest: config.digest },
    layers,
  });
  const entry = { mediaType: OCI_MANIFEST, size: manifest.bytes.length, digest: manifest.digest, platform };
  return { manifest, entry, blobs };
}

/** @see BuildKit docs/attestations/attestation-storage.md */
function makeAttestation(name: string, subject: Image): Image {
  const config = configBlob({ architecture: 'unknown', os: 'unknown' }, []);
  const statement = json({ _type: 'https://in-toto.io/Statement/v0.1', subject: [{ name }], predicate: {} });
  const manifest = json({
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: { mediaType: OCI_CONFIG, size: config.bytes.length, digest: config.digest },
    layers: [
      {
        mediaType: IN_TOTO,
        size: statement.bytes.length,
        digest: statement.digest,
        annotations: { 'in-toto.io/predicate-type': 'https://slsa.dev/provenance/v0.2' },
      },
    ],
  });
  const annotations = {
    'vnd.docker.reference.digest': subject.manifest.digest,
    'vnd.docker.reference.type': 'attestation-manifest',
  };
  const platform = { architecture: 'unknown', os: 'unknown' };
  const { digest, bytes } = manifest;
  const entry = { mediaType: OCI_MANIFEST, size: bytes.length, digest, annotations, platform };
  return { manifest, entry, blobs: [config, statement] };
}

function configBlob(platform: ImagePlatform, diffIds: readonly string[]): Blob {
  const created = '2021-08-14T00:00:00Z';
  return json({
    ...platform,
    created,
    config: { Cmd: ['bash'] },
    rootfs: { type: 'layers', diff_ids: diffIds },
    history: diffIds.map(() => ({ created, created_by: 'debuerreotype' })),
  });
}

/** A tar archive of one file, for readers that look into layers. */
function tar(name: string): Buffer {
  const header = Buffer.alloc(512);
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`;
  header.write(name, 0);
  header.write(octal(0o644, 8) + octal(0, 8) + octal(0, 8) + octal(LAYER_BYTES, 12) + octal(0, 12), 100);
  // The sum is taken with the field of the sum itself full of spaces.
  header.write('        0', 148);
  header.write('ustar\x0000', 257, 'latin1');
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  );
  return Buffer.concat([header, ...noise(name, LAYER_BYTES), Buffer.alloc(1024)]);
}

function place(name: string): { readonly repository: string; readonly tag: string } {
  return { repository: `debian/${name}`, tag: 'bullseye' };
}

function json(value: object): Blob {
  return blob(Buffer.from(JSON.stringify(value, undefined, 2)));
}
