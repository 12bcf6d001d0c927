import type { Platform } from '../../src/model/descriptor.ts';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import {
  type BuiltManifest,
  makeImage,
  putBuilt,
  type RunningRegistry,
  startRegistry,
} from '../../src/registry-server/index.ts';
import { IMAGES, type OldTag, type Schedule } from './schedule.ts';
import type { Traffic } from './schedule-world.ts';

const PLATFORMS: readonly Platform[] = [
  { architecture: 'amd64', os: 'linux' },
  { architecture: 'arm', os: 'linux', variant: 'v5' },
  { architecture: 'arm', os: 'linux', variant: 'v7' },
  { architecture: 'arm64', os: 'linux', variant: 'v8' },
  { architecture: '386', os: 'linux' },
  { architecture: 'mips64le', os: 'linux' },
  { architecture: 'ppc64le', os: 'linux' },
  { architecture: 's390x', os: 'linux' },
  { architecture: 'riscv64', os: 'linux' },
];

export const TARGET = 'list/all';
export const LOGIN = { name: 'robot', password: 'canary-of-the-target-7f3a' };
export const SOURCE_LOGIN = { name: 'reader', password: 'canary-of-the-source-91c4' };

/** Images of a layer; every other one has one more, that they have in common. Bytes: more than one chunk, else few. */
function makeImages(docker: boolean): readonly BuiltManifest[] {
  return PLATFORMS.slice(0, IMAGES).map((platform, index) =>
    makeImage(`image ${index}`, {
      platform,
      docker,
      layers: index % 2 === 0 ? 2 : 1,
      layerBytes: index % 2 === 0 ? 450 : 450 + 30 * index,
      ...(index % 2 === 0 ? { base: 'base' } : {}),
    }),
  );
}

const BUILT = { oci: makeImages(false), docker: makeImages(true) };

export function imagesOf({ docker, images }: Pick<Schedule, 'docker' | 'images'>): readonly BuiltManifest[] {
  const all = docker ? BUILT.docker : BUILT.oci;
  return images.flatMap((number) => all[number] ?? []);
}

/** The list of these images as the documentation describes it; written here a second time, not by the code under test. */
export function listOf(schedule: Pick<Schedule, 'docker' | 'images'>): { bytes: Buffer; type: string; digest: Digest } {
  const type = schedule.docker ? MEDIA_TYPES.dockerList : MEDIA_TYPES.ociIndex;
  const images = imagesOf(schedule);
  const manifests = images.map(({ descriptor }, index) => ({
    mediaType: descriptor.mediaType,
    size: descriptor.size,
    digest: descriptor.digest,
    platform: PLATFORMS[schedule.images[index] ?? 0],
  }));
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: type, manifests }, undefined, 2));
  return { bytes, type, digest: digestOf(bytes) };
}

export const tagsOf = ({ tags }: Pick<Schedule, 'tags'>): readonly string[] =>
  Array.from({ length: tags }, (_, index) => `v${index + 1}`);

/** Registries with the sources in them and the old tags in place. */
export type Stage = {
  readonly target: RunningRegistry;
  readonly second: RunningRegistry | undefined;
  /** As the command line would take them. */
  readonly sources: readonly string[];
  readonly traffic: readonly Traffic[];
  readonly logins: ReadonlyMap<string, { readonly name: string; readonly password: string }>;
  close(): Promise<void>;
};

export async function setStage(schedule: Schedule): Promise<Stage> {
  const auth = { scheme: schedule.auth, anonymousPull: schedule.auth === 'none' } as const;
  const start = async (login: typeof LOGIN) => {
    let left = 0;
    const registry = await startRegistry({
      changes: { ...schedule.profile, auth },
      users: [login],
      onEntry: () => {
        left += 1;
      },
    });
    return { registry, traffic: { entered: () => registry.journal.length, left: () => left } };
  };
  const target = await start(LOGIN);
  const second = schedule.elsewhere > 0 ? await start(SOURCE_LOGIN) : undefined;
  const images = imagesOf(schedule);
  const sources = images.map((image, index) => {
    const far = second !== undefined && index >= images.length - schedule.elsewhere;
    const registry = far ? second.registry : target.registry;
    const repository = `arch/image${schedule.images[index]}`;
    putBuilt(registry, repository, image, 'one');
    return `${registry.host}/${repository}:one`;
  });
  placeOld(target.registry, schedule);
  return {
    target: target.registry,
    second: second?.registry,
    sources,
    traffic: second === undefined ? [target.traffic] : [target.traffic, second.traffic],
    logins:
      schedule.auth === 'none'
        ? new Map()
        : new Map([
            [target.registry.host, LOGIN],
            ...(second === undefined ? [] : ([[second.registry.host, SOURCE_LOGIN]] as const)),
          ]),
    async close() {
      await target.registry.close();
      await second?.registry.close();
    },
  };
}

function placeOld(registry: RunningRegistry, schedule: Schedule): void {
  const held = oldImages(schedule.old, schedule.images);
  if (held.length === 0) return;
  const wanted = { docker: schedule.docker, images: held };
  const built = imagesOf(wanted);
  for (const image of built) putBuilt(registry, TARGET, image);
  const [first] = built;
  const list = listOf(wanted);
  for (const tag of tagsOf(schedule)) {
    if (schedule.old === 'image' && first !== undefined) {
      registry.setTag(TARGET, tag, first.descriptor.digest);
    } else registry.putManifest(TARGET, list.bytes, list.type, tag);
  }
  // As a clean-up of untagged manifests leaves it.
  if (schedule.old === 'broken') for (const { descriptor } of built) registry.deleteManifest(TARGET, descriptor.digest);
}

function oldImages(old: OldTag, images: readonly number[]): readonly number[] {
  const others = Array.from({ length: IMAGES }, (_, index) => index).filter((index) => !images.includes(index));
  switch (old) {
    case 'none':
      return [];
    case 'image':
      return images.slice(0, 1);
    case 'other':
      return others.slice(0, 2);
    case 'overlapping':
    case 'broken':
      return [...images.slice(0, 2), ...others.slice(0, 1)].reverse();
    case 'same':
      return images;
    default:
      return old satisfies never;
  }
}
