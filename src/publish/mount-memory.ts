/**
 * What this run has learnt of mounts into one target repository, by source repository. A 202 says nothing about the
 * next blob (ECR mounts only what a manifest references), a 4xx bars the source for the rest of the run.
 */
export interface MountMemory {
  /** The first candidate that is not barred. */
  choose(candidates: readonly string[]): string | undefined;
  /** Whether the pair has refused twice and never mounted: then the source is read while the mount is asked. */
  looksClosed(from: string): boolean;
  mounted(from: string): void;
  refused(from: string, barred: boolean): void;
}

type Experience = { mounts: number; refusals: number; barred: boolean };

/** An empty memory. */
export function createMountMemory(): MountMemory {
  const pairs = new Map<string, Experience>();
  const of = (from: string): Experience => {
    const known = pairs.get(from) ?? { mounts: 0, refusals: 0, barred: false };
    pairs.set(from, known);
    return known;
  };
  return {
    choose: (candidates) => candidates.find((from) => !of(from).barred),
    looksClosed: (from) => of(from).mounts === 0 && of(from).refusals >= 2,
    mounted: (from) => {
      of(from).mounts += 1;
    },
    refused: (from, barred) => {
      const pair = of(from);
      pair.refusals += 1;
      pair.barred ||= barred;
    },
  };
}
