import type { Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { makeAttestedIndex, makeImage, putBuilt } from './images.ts';
import type { RunningRegistry } from './server.ts';

/** Debian's name of an architecture and the platform that Go, and so every registry, calls it by. */
const DEBIAN: readonly (readonly [name: string, platform: Platform])[] = [
  ['amd64', { architecture: 'amd64', os: 'linux' }],
  ['armel', { architecture: 'arm', os: 'linux', variant: 'v5' }],
  ['armhf', { architecture: 'arm', os: 'linux', variant: 'v7' }],
  ['arm64', { architecture: 'arm64', os: 'linux', variant: 'v8' }],
  ['i386', { architecture: '386', os: 'linux' }],
  ['mips64el', { architecture: 'mips64le', os: 'linux' }],
  ['ppc64el', { architecture: 'ppc64le', os: 'linux' }],
  ['s390x', { architecture: 's390x', os: 'linux' }],
];

/** The names alone, in the order of the seeded images. */
export const DEBIAN_NAMES: readonly string[] = DEBIAN.map(([name]) => name);

export type SeedOptions = {
  /** Default 4. */
  readonly layers?: number;
  /** Bytes of each layer; default 4096. */
  readonly layerBytes?: number;
  /** Default `debian`: the repositories are `debian/amd64` and so on. */
  readonly namespace?: string;
  /** Default `bullseye`. */
  readonly tag?: string;
  /** Docker's media types; default OCI's. */
  readonly docker?: boolean;
  /** The tag is an index of the image and its attestation, as buildx makes it. */
  readonly attested?: boolean;
  /** The first layer is the same in all images. */
  readonly sharedBase?: boolean;
};

/** One seeded repository. */
export type SeededImage = {
  readonly repository: string;
  readonly tag: string;
  readonly platform: Platform;
  /** What the tag names: the image, or with `attested` the index. */
  readonly digest: Digest;
  readonly image: Digest;
  readonly config: Digest;
  readonly layers: readonly Digest[];
};

/**
 * The case of aws/containers-roadmap#1459: one image in each of eight per-architecture repositories. The same options
 * give the same bytes.
 */
export function seedDebian(registry: RunningRegistry, options: SeedOptions = {}): readonly SeededImage[] {
  const { namespace = 'debian', tag = 'bullseye', layers = 4, layerBytes = 4096, docker = false } = options;
  // Where repositories are not created by a push (ECR), the target that everybody will try is there already.
  if (registry.profile.repo.missing !== 'create') registry.createRepository(`${namespace}/debian`);
  return DEBIAN.map(([name, platform]) => {
    const repository = `${namespace}/${name}`;
    const base = options.sharedBase === true ? { base: `${namespace} base` } : {};
    const image = makeImage(repository, { platform, layers, layerBytes, docker, ...base });
    const top = options.attested === true ? makeAttestedIndex(image, platform) : image;
    const digest = putBuilt(registry, repository, top, tag);
    const [config = image.descriptor.digest, ...rest] = image.blobs.map((blob) => blob.descriptor.digest);
    return { repository, tag, platform, digest, image: image.descriptor.digest, config, layers: rest };
  });
}
