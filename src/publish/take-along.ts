import type { Digest } from '../model/digest.ts';
import { announcePlan } from './announce.ts';
import type { Composition } from './compose.ts';
import { allOrNone, oncePerKey } from './once.ts';
import type { ChildPlacement, PlacementRun } from './place-children.ts';
import { findReferrers, type PlacedReferrer, placeReferrers, planReferrers } from './place-referrers.ts';
import type { PublishPlan } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { FoundReferrer, Subject } from './referrers.ts';
import type { ResolvedChild, ResolvedSource } from './resolved.ts';
import { type RunMemory, repositoryName } from './run-memory.ts';
import { stoppable } from './stop.ts';

/** Whose referrers a list takes along. */
export type Referring = {
  readonly children: readonly Subject[];
  /** Sources that are indexes; of these only one that is published as it is, if any. */
  readonly indexes: readonly Subject[];
  readonly foreignLayers: boolean;
};

/** The children that the list may have and where they come from, and the indexes that it may be. */
export function referringTo(
  children: readonly ResolvedChild[],
  sources: readonly ResolvedSource[],
  foreignLayers: boolean,
): Referring {
  const indexes = sources.filter(({ root }) => root.kind === 'index');
  return {
    children: eachOnce(children.map(({ manifest, from }) => ({ digest: manifest.digest, from }))),
    indexes: eachOnce(
      indexes.map(({ root, request: { reference } }) => {
        const { host, repository } = reference;
        return { digest: root.digest, from: { host, repository } };
      }),
    ),
    foreignLayers,
  };
}

function eachOnce(subjects: readonly Subject[]): readonly Subject[] {
  return [...new Map(subjects.map((one) => [`${repositoryName(one.from)} ${one.digest}`, one])).values()];
}

/** What {@link takeAlong} shares with the list, in one target repository. */
export type Along = {
  readonly list: PlacementRun;
  readonly plan: PublishPlan;
  readonly composing: Promise<Composition>;
  readonly placement: ChildPlacement;
  readonly memory: RunMemory;
  readonly verify: boolean;
  /** Filled as they are placed. */
  readonly placed: Map<Digest, PlacedReferrer>;
};

/** Places the referrers of all children, and of the index when it is that of a source, before any tag moves. */
export async function takeAlong({ children, indexes, foreignLayers }: Referring, along: Along): Promise<void> {
  const { list, plan, composing, placement, memory, verify, placed } = along;
  const { registry, target, signal, stop } = list;
  const listed = new Set(plan.children.map(({ digest }) => digest));
  const putIndex = oncePerKey(async (digest: Digest): Promise<void> => {
    const { index } = await composing;
    await Promise.all(plan.children.map((child) => placement.child(child.digest)));
    const answer = await registry.putManifest(target.repository, digest, index, { signal });
    if (answer.kind !== 'stored') throw answer.error.with({ side: 'target' });
  });
  const isIndex = (digest: Digest): boolean => indexes.some((one) => one.digest === digest);
  const place = async (subject: Subject): Promise<void> => {
    const outcomes = await placeReferrers(subject, {
      list,
      memory,
      verify,
      foreignLayers,
      own: (digest) => (listed.has(digest) ? placement.child(digest) : isIndex(digest) ? list.gate : undefined),
      putIndex: (digest) => (isIndex(digest) ? putIndex(digest) : undefined),
    });
    for (const outcome of outcomes) if (!placed.has(outcome.child.digest)) placed.set(outcome.child.digest, outcome);
  };
  const ofIndex = composing.then(({ index }) =>
    allOrNone(indexes.filter(({ digest }) => digest === index.digest).map(place), stop),
  );
  await allOrNone<unknown>([...children.map(place), ofIndex], stop);
}

/** Reads what would be taken along, and tells of the plans; nothing is asked of the targets. */
export async function lookAlong(
  { children, indexes, foreignLayers }: Referring,
  plans: readonly PublishPlan[],
  { index }: Composition,
  memory: RunMemory,
  ports: PublishPorts,
  outer: AbortSignal,
): Promise<readonly FoundReferrer[]> {
  const { signal, stop } = stoppable(outer);
  const subjects = [...children, ...indexes.filter(({ digest }) => digest === index.digest)];
  const all = await allOrNone(
    subjects.map(async (subject) => ({ subject, found: await findReferrers(subject, memory, ports, signal) })),
    stop,
  );
  for (const plan of plans) {
    const listed = new Set([index.digest, ...plan.children.map(({ digest }) => digest)]);
    const own = (digest: Digest): Promise<void> | undefined => (listed.has(digest) ? Promise.resolve() : undefined);
    const away = all.filter(({ subject }) => repositoryName(subject.from) !== repositoryName(plan.target));
    const manifests = away.flatMap(({ found }) => found.manifests);
    if (manifests.length === 0) continue;
    const nothing = { lists: new Map(), tags: [] };
    const where = { target: plan.target, verify: true, foreignLayers, own };
    announcePlan(planReferrers(manifests, nothing, where), undefined, memory, ports);
  }
  const found = all.flatMap(({ found: { manifests } }) => manifests);
  return [...new Map(found.map((one) => [one.manifest.digest, one])).values()];
}
