/** One per-architecture image of the job, as Debian names its architectures. */
export type SourceImage = {
  /** Name of the repository below `debian/`. */
  readonly name: string;
  readonly platform: Platform;
  /** Bytes of each layer's file. */
  readonly layers: readonly number[];
};

/** Fields of an OCI platform that occur in this job. */
export type Platform = { readonly os: 'linux'; readonly architecture: string; readonly variant?: string };

/** What is published: some images into one list. */
export type Job = { readonly images: readonly SourceImage[]; readonly tag: string };

const MIB = 1024 * 1024;

const DEBIAN: readonly (readonly [name: string, architecture: string, variant?: string])[] = [
  ['amd64', 'amd64'],
  ['arm64', 'arm64', 'v8'],
  ['armel', 'arm', 'v5'],
  ['armhf', 'arm', 'v7'],
  ['i386', '386'],
  ['mips64el', 'mips64le'],
  ['ppc64el', 'ppc64le'],
  ['s390x', 's390x'],
];

/** The eight architectures of aws/containers-roadmap#1459; 4 layers of 1 MiB and a config each: 40 unique blobs. */
export const DEBIAN_JOB: Job = {
  tag: 'bullseye',
  images: DEBIAN.map(([name, architecture, variant]) => ({
    name,
    platform: { os: 'linux', architecture, ...(variant === undefined ? {} : { variant }) },
    layers: [MIB, MIB, MIB, MIB],
  })),
};

/** One image with one layer of 1 GiB: does memory grow with a blob that is streamed? */
export const MEMORY_JOB: Job = {
  tag: 'bullseye',
  images: [{ name: 'huge', platform: { os: 'linux', architecture: 'amd64' }, layers: [1024 * MIB] }],
};

/** `debian/amd64` */
export function sourceRepository(image: SourceImage): string {
  return `debian/${image.name}`;
}

/** `linux/arm/v7` */
export function formatPlatform(platform: Platform): string {
  return [platform.os, platform.architecture, platform.variant].filter((part) => part !== undefined).join('/');
}
