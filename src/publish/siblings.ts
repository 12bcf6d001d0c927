import type { Digest } from '../model/digest.ts';
import type { BlobOutcome } from './report.ts';
import type { Location } from './resolved.ts';
import { orAborted } from './stop.ts';

/** A repository that was brought a blob, or is being brought it. */
export type Sibling = {
  readonly repository: string;
  /** Whether the blob is there by now. */
  isPlaced(): boolean;
  /** Settles when its transfer has ended: whether the blob is there then. Never rejects. */
  readonly placed: Promise<boolean>;
};

/** Which repositories of each registry a run brings which blobs, so that one can be offered to the others by a mount. */
export interface Siblings {
  /** Does `work`, which is told who began before it: nobody waits for a later one, so that no two wait for each other. */
  beside(
    target: Location,
    digest: Digest,
    work: (earlier: readonly Sibling[]) => Promise<BlobOutcome>,
  ): Promise<BlobOutcome>;
}

const THERE: Promise<boolean> = Promise.resolve(true);

/** One for a run. */
export function createSiblings(): Siblings {
  const registries = new Map<string, Map<Digest, readonly Sibling[]>>();
  /** The same one for every blob that a repository holds: a run of many lists keeps hundreds of thousands of them. */
  const holders = new Map<string, Sibling>();
  const holder = (repository: string): Sibling => {
    const known = holders.get(repository) ?? { repository, placed: THERE, isPlaced: () => true };
    holders.set(repository, known);
    return known;
  };
  return {
    beside: ({ host, repository }, digest, work) => {
      const placements = registries.get(host) ?? new Map<Digest, readonly Sibling[]>();
      registries.set(host, placements);
      const others = (placements.get(digest) ?? []).filter((one) => one.repository !== repository);
      const placement = work(others);
      /** What is known by now, in the place of what was. */
      const settle = (becomes: readonly Sibling[]): void => {
        const all = placements.get(digest) ?? [];
        if (!all.includes(sibling)) return;
        placements.set(
          digest,
          all.flatMap((one) => (one === sibling ? becomes : [one])),
        );
      };
      let isPlaced = false;
      const placed = placement.then(
        () => {
          isPlaced = true;
          settle([holder(repository)]);
          return true;
        },
        // Whoever asked for it is told; to the others it only means that there is nothing to mount.
        () => {
          settle([]);
          return false;
        },
      );
      const sibling: Sibling = { repository, placed, isPlaced: () => isPlaced };
      placements.set(digest, [...others, sibling]);
      return placement;
    },
  };
}

/** The first of them that comes to hold the blob, in the order in which they began; undefined when none does. */
export async function firstPlaced(siblings: readonly Sibling[], signal: AbortSignal): Promise<Sibling | undefined> {
  const there = siblings.find((sibling) => sibling.isPlaced());
  if (there !== undefined) return there;
  for (const sibling of siblings) if (await orAborted(sibling.placed, signal)) return sibling;
  return undefined;
}
