import { PublishError } from '../errors.ts';
import { type Descriptor, ENTRIES_MAX, MANIFEST_SIZE_MAX, MEDIA_TYPES } from './descriptor.ts';
import { readDescriptor, readList, readPlatformFields, readStringMap, readText, shown } from './descriptor-json.ts';
import type { Digest } from './digest.ts';
import type { PartialPlatform } from './platform.ts';
import { quoted } from './quoted.ts';
import { foldedKeys, invalidDocument, type JsonObject, readJsonObject, refuseCaseVariants } from './strict-json.ts';

/** Which of the two documents a manifest is. */
export type ManifestKind = 'image' | 'index';

/** A manifest with one config and layers: an image, an attestation or another artifact. `size` in bytes. */
export type ImageManifest = {
  readonly kind: 'image';
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
  readonly subject?: Descriptor;
  readonly artifactType?: string;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** An OCI index or a Docker manifest list. `size` in bytes. */
export type ImageIndex = {
  readonly kind: 'index';
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
  readonly manifests: readonly Descriptor[];
  readonly subject?: Descriptor;
  readonly artifactType?: string;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** @see parseManifest */
export type Manifest = ImageManifest | ImageIndex;

const KEYS = foldedKeys([
  'schemaVersion',
  'mediaType',
  'config',
  'layers',
  'fsLayers',
  'manifests',
  'subject',
  'artifactType',
  'annotations',
]);

const KINDS: ReadonlyMap<string, ManifestKind> = new Map([
  [MEDIA_TYPES.ociManifest, 'image'],
  [MEDIA_TYPES.dockerManifest, 'image'],
  [MEDIA_TYPES.ociIndex, 'index'],
  [MEDIA_TYPES.dockerList, 'index'],
]);

/** Types that name a manifest, also ones we cannot read; any other Content-Type says nothing about the document. */
const MANIFEST_TYPE =
  /^application\/vnd\.(?:docker\.distribution\.manifest|oci\.(?:image\.(?:manifest|index)|artifact\.manifest))\./;
const SCHEMA_1_TYPE = /^application\/vnd\.docker\.distribution\.manifest\.v1\+(?:json|prettyjws)$/;

/** Layers of these types are fetched from elsewhere, and registries need not hold them. */
const FOREIGN_LAYER = /^application\/vnd\.(?:oci\.image\.layer\.nondistributable|docker\.image\.rootfs\.foreign)\./;

/**
 * Reads a manifest or an index so that no other client can take it for something else: the type is that of the body's
 * `mediaType`, else that of the Content-Type, else follows from the fields, and everything that contradicts it is
 * refused. Fields we do not know are kept.
 *
 * @param name the reference, for messages
 * @throws PublishError `MANIFEST_INVALID`, and `MANIFEST_UNSUPPORTED` for Docker's schema 1 and types unknown to us
 * @see image-spec v1.1.1 manifest.md and image-index.md; CVE-2021-41190 for documents that are two things at once
 */
export function parseManifest(
  bytes: Uint8Array,
  digest: Digest,
  contentType: string | undefined,
  name: string,
): Manifest {
  if (bytes.length > MANIFEST_SIZE_MAX) {
    throw invalidDocument(name, `a manifest of ${bytes.length} bytes, the limit is ${MANIFEST_SIZE_MAX}`);
  }
  const document = readJsonObject(bytes, name);
  refuseCaseVariants(document, KEYS, name);
  refuseTwoInOne(document, name);
  const mediaType = typeOf(document, contentType, name);
  const common = { mediaType, digest, size: bytes.length };

  const annotations = readStringMap(document['annotations'], `${name}: annotations`);
  const artifactType = readText(document['artifactType'], `${name}: artifactType`);
  const subject = isAbsent(document['subject']) ? undefined : readDescriptor(document['subject'], `${name}: subject`);
  const optional = {
    ...(subject === undefined ? {} : { subject }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(artifactType === undefined ? {} : { artifactType }),
  };
  if (KINDS.get(mediaType) === 'index') {
    return { kind: 'index', ...common, manifests: readDescriptors(document, 'manifests', name), ...optional };
  }
  if (isAbsent(document['config'])) throw invalidDocument(name, 'a manifest without config');
  return {
    kind: 'image',
    ...common,
    config: readDescriptor(document['config'], `${name}: config`),
    layers: readDescriptors(document, 'layers', name),
    ...optional,
  };
}

/** Whether the registry need not hold this layer: it has `urls`, or a type that may not be distributed. */
export function isForeignLayer(layer: Descriptor): boolean {
  return (layer.urls !== undefined && layer.urls.length > 0) || FOREIGN_LAYER.test(layer.mediaType);
}

/** Whether the type is one of Docker's, not of OCI's. */
export function isDockerType(mediaType: string): boolean {
  return mediaType.startsWith('application/vnd.docker.');
}

/** Whether a blob of this type is an image config, which tells a platform. */
export function isImageConfigType(mediaType: string): boolean {
  return mediaType === MEDIA_TYPES.ociConfig || mediaType === MEDIA_TYPES.dockerConfig;
}

/**
 * What an image config tells of its platform. Empty values count as absent.
 *
 * @throws PublishError `MANIFEST_INVALID`
 * @see image-spec v1.1.1 config.md, section "Properties"
 */
export function parseImageConfig(bytes: Uint8Array, name: string): PartialPlatform {
  return readPlatformFields(readJsonObject(bytes, name), `${name}: image config`);
}

function refuseTwoInOne(document: JsonObject, name: string): void {
  const has = (key: string): boolean => Object.hasOwn(document, key);
  const image = ['config', 'layers', 'fsLayers'].filter(has);
  if (has('manifests') && image.length > 0) {
    throw invalidDocument(name, `index and image at once: it has both manifests and ${image.join(', ')}`);
  }
  if (has('fsLayers') && image.length > 1) {
    throw invalidDocument(name, `schema 1 and a manifest at once: it has ${image.join(', ')}`);
  }
}

function typeOf(document: JsonObject, contentType: string | undefined, name: string): string {
  const header = manifestType(contentType);
  const body = readText(document['mediaType'], `${name}: mediaType`);
  const version = document['schemaVersion'];
  if (version === 1 || (body === undefined && header !== undefined && SCHEMA_1_TYPE.test(header))) throw schema1(name);
  if (body !== undefined && header !== undefined && header !== body) {
    throw invalidDocument(name, `sent as ${quoted(header)}, but calls itself ${quoted(body)}`);
  }
  if (body !== undefined && SCHEMA_1_TYPE.test(body)) throw schema1(name);

  const mediaType = body ?? header ?? inferredType(document, name);
  const kind = KINDS.get(mediaType);
  if (kind === undefined) {
    throw new PublishError(
      'MANIFEST_UNSUPPORTED',
      `${name}: a manifest of type ${quoted(mediaType)}, which is neither an image nor an index`,
      'Leave it out, or push it again as an OCI image manifest.',
    );
  }
  if (version !== 2) throw invalidDocument(name, `schemaVersion is ${shown(version)}, not 2`);
  const needed = kind === 'index' ? 'manifests' : 'layers';
  if (!Object.hasOwn(document, needed)) throw invalidDocument(name, `${quoted(mediaType)} without ${needed}`);
  return mediaType;
}

/** A Content-Type without parameters when it names a manifest; a generic one leaves the word to the body. */
function manifestType(contentType: string | undefined): string | undefined {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  return type !== undefined && MANIFEST_TYPE.test(type) ? type : undefined;
}

function inferredType(document: JsonObject, name: string): string {
  if (Object.hasOwn(document, 'manifests')) return MEDIA_TYPES.ociIndex;
  if (Object.hasOwn(document, 'config') && Object.hasOwn(document, 'layers')) return MEDIA_TYPES.ociManifest;
  throw invalidDocument(name, 'neither an image manifest nor an index');
}

function readDescriptors(document: JsonObject, key: 'layers' | 'manifests', name: string): readonly Descriptor[] {
  const list = readList(document[key], `${name}: ${key}`);
  if (list.length > ENTRIES_MAX) throw invalidDocument(name, `${list.length} ${key}, the limit is ${ENTRIES_MAX}`);
  return list.map((entry, index) => readDescriptor(entry, `${name}: ${key}[${index}]`));
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function schema1(name: string): PublishError {
  return new PublishError(
    'MANIFEST_UNSUPPORTED',
    `${name} is a Docker schema 1 image, which no list can hold`,
    'Rebuild the image, or pull it and push it again with a current Docker, to get a schema 2 or OCI manifest.',
  );
}
