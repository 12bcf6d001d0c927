import type { Digest } from '../model/digest.ts';
import type { PartialPlatform } from '../model/platform.ts';
import { repositoryName as nameOfRepository } from '../model/reference.ts';
import type { ManifestAnswer, VerbOptions } from '../registry/client.ts';
import { createFlights, type Flights } from './flights.ts';
import { createMountMemory, type MountMemory } from './mount-memory.ts';
import type { PlannedBlob } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { FoundReferrers } from './referrers.ts';
import type { BlobOutcome } from './report.ts';
import type { Location, ManifestBytes } from './resolved.ts';
import type { SharedReads } from './shared-reads.ts';
import type { Siblings } from './siblings.ts';

/**
 * How many bytes of configs are kept for when their mount is refused. A single list has a few kB; what does not fit any
 * more is read again at its source, as every layer is.
 */
const CONFIG_BYTES = 32 * 1024 * 1024;

/** What has been done in one target repository, by whichever list of the run. */
export type RepositoryMemory = {
  readonly mounts: MountMemory;
  /** Whether a child was there before this run, by HEAD or since it was read there. */
  readonly there: Flights<Digest, boolean>;
  readonly blobs: Flights<Digest, BlobOutcome>;
  /** For which plan's sources each blob was last tried. */
  readonly leaders: Map<Digest, PlannedBlob>;
  /** Looks at mounted blobs; they tell whether the blob had to be brought after all. */
  readonly looks: Flights<Digest, boolean>;
  readonly replacements: Flights<Digest, void>;
  /** Child manifests that were put. */
  readonly children: Flights<Digest, void>;
  readonly outcomes: Map<Digest, BlobOutcome>;
  readonly pushed: Set<Digest>;
  /** Of these the registry has said that it lists them as referrers of their subjects. */
  readonly noted: Set<Digest>;
  /** Tags that several lists may write; by {@link inTurn} they do so one after the other. */
  readonly turns: Map<string, Promise<unknown>>;
  /** Blobs that a plan of this run has told of. */
  readonly planned: Set<Digest>;
  /** What transfers that have ended leave to be tidied up: it holds nobody up before the end of a list. */
  readonly leftovers: Set<() => Promise<void>>;
};

/** What one run has read and placed; its lists share it, so that nothing is asked or sent twice. */
export type RunMemory = {
  /** Exact bytes of every manifest that was read, by digest. */
  readonly bytes: Map<Digest, Uint8Array>;
  /** Manifests that were read, by repository and tag or digest. */
  readonly manifests: Flights<string, ManifestAnswer>;
  /** Platforms that configs told, by repository and digest. */
  readonly platforms: Flights<string, PartialPlatform>;
  /** What speaks of a manifest, by repository and digest. */
  readonly referrers: Flights<string, FoundReferrers>;
  /** Bytes of configs. */
  readonly configs: ReadonlyMap<Digest, Uint8Array>;
  keepConfig(digest: Digest, bytes: Uint8Array): void;
  /** Reads of sources that several target repositories share. */
  readonly reads: SharedReads | undefined;
  /** Which repositories of a registry have been brought a blob; undefined where there is one alone. */
  readonly siblings: Siblings | undefined;
  repository(target: Location): RepositoryMemory;
};

/**
 * The memory of a run that has done nothing yet. `known`: manifests that need not be read. `reads` and `siblings` are
 * for several target repositories.
 */
export function createRunMemory(
  known: ManifestBytes = new Map(),
  { reads, siblings }: Partial<Pick<RunMemory, 'reads' | 'siblings'>> = {},
): RunMemory {
  const repositories = new Map<string, RepositoryMemory>();
  const configs = new Map<Digest, Uint8Array>();
  let kept = 0;
  return {
    bytes: new Map(known),
    manifests: createFlights(),
    platforms: createFlights(),
    referrers: createFlights(),
    reads,
    siblings,
    configs,
    keepConfig: (digest, bytes) => {
      if (configs.has(digest) || kept + bytes.byteLength > CONFIG_BYTES) return;
      kept += bytes.byteLength;
      configs.set(digest, bytes);
    },
    repository: (target) => {
      const name = repositoryName(target);
      const memory = repositories.get(name) ?? createRepositoryMemory();
      repositories.set(name, memory);
      return memory;
    },
  };
}

/** The memory of one target repository. */
export function createRepositoryMemory(): RepositoryMemory {
  return {
    mounts: createMountMemory(),
    there: createFlights(),
    blobs: createFlights(),
    leaders: new Map(),
    looks: createFlights(),
    replacements: createFlights(),
    children: createFlights(),
    outcomes: new Map(),
    pushed: new Set(),
    noted: new Set(),
    turns: new Map(),
    planned: new Set(),
    leftovers: new Set(),
  };
}

/** `HOST/REPOSITORY`: how events, reports and memories name a target. */
export function repositoryName(location: Location): string {
  return nameOfRepository(location);
}

/** Reads and writes a tag that others of the run may be reading and writing: one after the other, none loses anything. */
export function inTurn<T>({ turns }: RepositoryMemory, tag: string, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(tag) ?? Promise.resolve()).then(work, work);
  turns.set(tag, turn);
  return turn;
}

/** Tidies up what transfers that have ended have left. Never fails. */
export async function tidyUp({ leftovers }: RepositoryMemory): Promise<void> {
  const all = [...leftovers];
  leftovers.clear();
  await Promise.all(all.map((close) => close()));
}

/**
 * Ports whose clients read each manifest once in a run, for whoever reads sources. What is not there is not remembered:
 * it may be waited for. Tags that a run is going to move must not be read through these.
 */
export function readingOnce(ports: PublishPorts, { manifests }: RunMemory): PublishPorts {
  return {
    ...ports,
    registry: (host) => {
      const client = ports.registry(host);
      const getManifest = (repository: string, reference: string, { signal }: VerbOptions): Promise<ManifestAnswer> => {
        const key = (name: string): string => `${repositoryName({ host, repository })} ${name}`;
        return manifests.join(key(reference), { signal }, async (flight) => {
          const answer = await client.getManifest(repository, reference, { signal: flight.signal });
          if (answer.kind === 'absent') manifests.forget(key(reference));
          // Another list may name it by its digest.
          const digest = answer.kind === 'found' ? answer.manifest.digest : reference;
          if (digest !== reference) await manifests.join(key(digest), flight, async () => answer);
          return answer;
        });
      };
      return { ...client, getManifest };
    },
  };
}
