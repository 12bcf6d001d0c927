import { type Descriptor, MEDIA_TYPES, type Platform } from '../model/descriptor.ts';
import { type Digest, digestOf } from '../model/digest.ts';
import { generatedDigest } from './content.ts';
import { makeLayer } from './layers.ts';
import type { RunningRegistry } from './server.ts';

/** A blob that can be put: its bytes, or the seed from which they are made at every read. */
export type BuiltBlob = {
  readonly descriptor: Descriptor;
  readonly content: { readonly bytes: Buffer } | { readonly seed: string };
};

/** A manifest or index with everything below it. */
export type BuiltManifest = {
  readonly descriptor: Descriptor;
  readonly bytes: Buffer;
  readonly blobs: readonly BuiltBlob[];
  readonly children: readonly BuiltManifest[];
};

export type ImageOptions = {
  /** What the config says; default linux/amd64. A field that is left out is left out of the config. */
  readonly platform?: Partial<Platform>;
  /** Default 2. */
  readonly layers?: number;
  /** Bytes of each layer; default 2048. From {@link GENERATED_FROM} on they are made at every read. */
  readonly layerBytes?: number;
  /** Docker's media types; default OCI's. */
  readonly docker?: boolean;
  /** Images with the same base share their first layer. */
  readonly base?: string;
  /** Adds a Windows-like first layer that lives at this URL only. */
  readonly foreignUrl?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly subject?: Descriptor;
  /** Spaces of the JSON; default 2. */
  readonly indent?: number | string;
};

/** Past this many bytes a layer is not held in memory, and is no archive either. */
export const GENERATED_FROM = 16 * 1024 * 1024;

const CREATED = '2021-08-16T00:00:00Z';

/** An image whose bytes depend on nothing but the arguments. Layers are real tar.gz archives from 2 KiB on. */
export function makeImage(seed: string, options: ImageOptions = {}): BuiltManifest {
  const { docker = false, indent = 2, annotations, subject } = options;
  const layers = makeLayers(seed, options);
  const config = makeConfig(seed, options, layers);
  const foreign = options.foreignUrl === undefined ? [] : [foreignLayer(seed, options.foreignUrl)];
  const mediaType = docker ? MEDIA_TYPES.dockerManifest : MEDIA_TYPES.ociManifest;
  const document = {
    schemaVersion: 2,
    mediaType,
    config: config.descriptor,
    layers: [...foreign, ...layers.map((layer) => layer.blob.descriptor)],
    ...(subject === undefined ? {} : { subject }),
    ...(annotations === undefined ? {} : { annotations }),
  };
  return built(mediaType, document, indent, [config, ...layers.map((layer) => layer.blob)], []);
}

/** An index over these manifests; each entry may have its platform and annotations. */
export function makeIndex(
  entries: readonly {
    readonly manifest: BuiltManifest;
    readonly platform?: Platform;
    readonly annotations?: Readonly<Record<string, string>>;
  }[],
  options: { readonly docker?: boolean; readonly annotations?: Readonly<Record<string, string>> } = {},
): BuiltManifest {
  const mediaType = options.docker === true ? MEDIA_TYPES.dockerList : MEDIA_TYPES.ociIndex;
  const manifests = entries.map(({ manifest, platform, annotations }) => ({
    ...manifest.descriptor,
    ...(annotations === undefined ? {} : { annotations }),
    ...(platform === undefined ? {} : { platform }),
  }));
  const { annotations } = options;
  const document = { schemaVersion: 2, mediaType, manifests, ...(annotations === undefined ? {} : { annotations }) };
  return built(
    mediaType,
    document,
    2,
    [],
    entries.map((entry) => entry.manifest),
  );
}

/**
 * The index that buildx pushes for one platform: the image, and a manifest of platform unknown/unknown that holds the
 * in-toto statements about it.
 *
 * @see https://github.com/moby/buildkit/blob/master/docs/attestations/attestation-storage.md
 */
export function makeAttestedIndex(image: BuiltManifest, platform: Platform): BuiltManifest {
  const unknown = { architecture: 'unknown', os: 'unknown' };
  const annotations = {
    'vnd.docker.reference.digest': image.descriptor.digest,
    'vnd.docker.reference.type': 'attestation-manifest',
  };
  return makeIndex([
    { manifest: image, platform },
    { manifest: makeAttestation(image), platform: unknown, annotations },
  ]);
}

/** The attestation manifest alone. */
export function makeAttestation(image: BuiltManifest): BuiltManifest {
  const predicateType = 'https://slsa.dev/provenance/v1';
  const subject = [{ name: '_', digest: { sha256: image.descriptor.digest.slice('sha256:'.length) } }];
  const statement = jsonBlob('application/vnd.in-toto+json', {
    _type: 'https://in-toto.io/Statement/v0.1',
    predicateType,
    subject,
    predicate: { buildDefinition: { buildType: 'https://mobyproject.org/buildkit@v1' } },
  });
  const config = jsonBlob(MEDIA_TYPES.ociConfig, {
    architecture: 'unknown',
    os: 'unknown',
    config: {},
    rootfs: { type: 'layers', diff_ids: [statement.descriptor.digest] },
  });
  const layer = { ...statement.descriptor, annotations: { 'in-toto.io/predicate-type': predicateType } };
  const mediaType = MEDIA_TYPES.ociManifest;
  return built(
    mediaType,
    { schemaVersion: 2, mediaType, config: config.descriptor, layers: [layer] },
    2,
    [config, statement],
    [],
  );
}

/** Puts a manifest and everything below it into a repository. */
export function putBuilt(registry: RunningRegistry, repository: string, manifest: BuiltManifest, tag?: string): Digest {
  for (const { descriptor, content } of manifest.blobs) {
    if ('bytes' in content) registry.putBlob(repository, content.bytes);
    else registry.putGeneratedBlob(repository, descriptor.size, content.seed);
  }
  for (const child of manifest.children) putBuilt(registry, repository, child);
  return registry.putManifest(repository, manifest.bytes, manifest.descriptor.mediaType, tag);
}

type BuiltLayer = { readonly blob: BuiltBlob; readonly diffId: Digest };

function makeLayers(seed: string, options: ImageOptions): readonly BuiltLayer[] {
  const { layers = 2, layerBytes: size = 2048, docker = false, base } = options;
  const mediaType = docker
    ? 'application/vnd.docker.image.rootfs.diff.tar.gzip'
    : 'application/vnd.oci.image.layer.v1.tar+gzip';
  return Array.from({ length: layers }, (_, index) => {
    const own = base !== undefined && index === 0 ? base : `${seed} layer ${index}`;
    if (size >= GENERATED_FROM) {
      const digest = generatedDigest(own, size);
      return { blob: { descriptor: { mediaType, digest, size }, content: { seed: own } }, diffId: digest };
    }
    const { bytes, diffId } = makeLayer(own, size);
    return { blob: blobOf(mediaType, bytes), diffId };
  });
}

function makeConfig(seed: string, options: ImageOptions, layers: readonly BuiltLayer[]): BuiltBlob {
  return jsonBlob(options.docker === true ? MEDIA_TYPES.dockerConfig : MEDIA_TYPES.ociConfig, {
    ...(options.platform ?? { architecture: 'amd64', os: 'linux' }),
    created: CREATED,
    config: { Cmd: ['bash'], Labels: { seed } },
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.diffId) },
    history: layers.map((_, index) => ({ created: CREATED, created_by: `layer ${index}` })),
  });
}

/** Size and digest of something that no registry here has. */
function foreignLayer(seed: string, url: string): Descriptor {
  return {
    mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
    digest: digestOf(Buffer.from(`foreign ${seed}`)),
    size: 1_500_000_000,
    urls: [url],
  };
}

function jsonBlob(mediaType: string, document: unknown): BuiltBlob {
  return blobOf(mediaType, Buffer.from(JSON.stringify(document)));
}

function blobOf(mediaType: string, bytes: Buffer): BuiltBlob {
  return { descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length }, content: { bytes } };
}

function built(
  mediaType: string,
  document: object,
  indent: number | string,
  blobs: readonly BuiltBlob[],
  children: readonly BuiltManifest[],
): BuiltManifest {
  const bytes = Buffer.from(JSON.stringify(document, null, indent));
  return { descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length }, bytes, blobs, children };
}
