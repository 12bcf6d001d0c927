import type { Digest } from './digest.ts';

/** Media types of manifests and indexes; everything else a registry serves is a blob to us. */
export const MEDIA_TYPES = {
  ociManifest: 'application/vnd.oci.image.manifest.v1+json',
  ociIndex: 'application/vnd.oci.image.index.v1+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerList: 'application/vnd.docker.distribution.manifest.list.v2+json',
  ociConfig: 'application/vnd.oci.image.config.v1+json',
  dockerConfig: 'application/vnd.docker.container.image.v1+json',
} as const;

/** Largest manifest or index in bytes: what clients read and registries take. @see distribution-spec v1.1.1, "Push" */
export const MANIFEST_SIZE_MAX: number = 4 * 1024 * 1024;

/** Most entries of an index, and most layers of an image, that are taken in. */
export const ENTRIES_MAX = 1000;

/**
 * Sent with every manifest GET and HEAD: registries answer 404 or another document when one of the four is missing
 * (eclipse-che/che-plugin-registry#2082). Schema 1 comes last and is never taken in; without it a registry that heeds
 * Accept calls such an image absent, and the user is sent to look for what is there.
 */
export const MANIFEST_ACCEPT: string = [
  MEDIA_TYPES.ociIndex,
  MEDIA_TYPES.ociManifest,
  MEDIA_TYPES.dockerList,
  MEDIA_TYPES.dockerManifest,
  'application/vnd.docker.distribution.manifest.v1+prettyjws',
].join(', ');

/** The OCI platform object, with the key names and order it has in an index. */
export type Platform = {
  readonly architecture: string;
  readonly os: string;
  readonly 'os.version'?: string;
  readonly 'os.features'?: readonly string[];
  readonly variant?: string;
};

/**
 * A pointer to content: media type, digest and size in bytes, as the document that names it declares them.
 *
 * @see image-spec v1.1.1 descriptor.md
 */
export type Descriptor = {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
  readonly urls?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: Platform;
  readonly artifactType?: string;
  /** Fields of the document that we do not interpret, kept as they were. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** The same of its `platform`, for example the CPU `features` of Docker's lists. */
  readonly platformExtra?: Readonly<Record<string, unknown>>;
};

const INDEX_TYPES: ReadonlySet<string> = new Set([MEDIA_TYPES.ociIndex, MEDIA_TYPES.dockerList]);
const IMAGE_TYPES: ReadonlySet<string> = new Set([MEDIA_TYPES.ociManifest, MEDIA_TYPES.dockerManifest]);

/** Whether a document of this type lists manifests. */
export function isIndexType(mediaType: string): boolean {
  return INDEX_TYPES.has(mediaType);
}

/** Whether a document of this type is a manifest or an index, as opposed to a blob. */
export function isManifestType(mediaType: string): boolean {
  return IMAGE_TYPES.has(mediaType) || INDEX_TYPES.has(mediaType);
}
