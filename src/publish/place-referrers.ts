import type { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import type { Manifest } from '../model/manifest.ts';
import type { ReferrersAnswer } from '../registry/client.ts';
import { announcePlan } from './announce.ts';
import { expectBlobs, expectNothing } from './expectations.ts';
import { allOrNone } from './once.ts';
import { createChildPlacement, type ManifestOutcome, type PlacementRun } from './place-children.ts';
import { type PlannedChild, type PublishPlan, planPublish } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import { listReferred } from './referrer-lists.ts';
import { createTagWriter, type DueTag, lookAtTags } from './referrer-tags.ts';
import { type FoundReferrer, type FoundReferrers, readReferrers, type Subject } from './referrers.ts';
import type { BlobOutcome } from './report.ts';
import type { Location } from './resolved.ts';
import { type RunMemory, readingOnce, repositoryName } from './run-memory.ts';

/** What became of one referrer in the target repository. */
export type PlacedReferrer = {
  readonly child: PlannedChild;
  readonly manifest: ManifestOutcome;
  readonly blobs: readonly BlobOutcome[];
};

/** Everything that the placing of referrers needs of a list, in one target repository. */
export type ReferrerRun = {
  readonly list: PlacementRun;
  readonly memory: RunMemory;
  readonly verify: boolean;
  readonly foreignLayers: boolean;
  /** Resolves when what the list itself puts there, a child or the index, may be referred to; undefined for all else. */
  readonly own: (digest: Digest) => Promise<unknown> | undefined;
  /** Puts the index by its digest, for registries that want a subject to be there first; undefined for all else. */
  readonly putIndex: (digest: Digest) => Promise<void> | undefined;
};

type PlanningRun = Pick<ReferrerRun, 'verify' | 'foreignLayers' | 'own'> & { readonly target: Location };

/** What the target repository says it holds. */
type TargetState = {
  /** By what is referred to. */
  readonly lists: ReadonlyMap<Digest, ListedReferrers>;
  readonly tags: readonly DueTag[];
};

type ListedReferrers = Extract<ReferrersAnswer, { kind: 'listed' }>;

/** What speaks of a subject, read once in a run; what is left out is told then. */
export function findReferrers(
  subject: Subject,
  memory: RunMemory,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<FoundReferrers> {
  const key = `${repositoryName(subject.from)} ${subject.digest}`;
  return memory.referrers.join(key, { signal }, async (flight) => {
    const found = await readReferrers(subject, memory.bytes, readingOnce(ports, memory), flight.signal);
    for (const text of found.warnings) ports.emit({ kind: 'warning', text });
    return found;
  });
}

/**
 * Takes everything along that speaks of a subject: blobs and manifests, each after what it speaks of, cosign's by their
 * tags, then the fallback tags where the target has no API for referrers. Nothing is asked of the target for a subject
 * without referrers, or for one that the target repository itself holds.
 *
 * Requests at the target, beside those of {@link createChildPlacement}: one list for each manifest that is referred to
 * (two without an API, and two more and a PUT when its tag has to be written), and one GET for each of cosign's tags that
 * the source has, and one more before its PUT. The first of these are sent side by side, before the blobs are mounted: a
 * round trip, which children and their blobs mostly cover.
 *
 * @throws as {@link readReferrers}, and whatever keeps a referrer from being placed or listed
 */
export async function placeReferrers(subject: Subject, run: ReferrerRun): Promise<readonly PlacedReferrer[]> {
  const { list, memory, own } = run;
  const { target, ports, signal } = list;
  if (repositoryName(subject.from) === repositoryName(target)) return [];
  const found = await findReferrers(subject, memory, ports, signal);
  if (found.manifests.length === 0) return [];
  const state = await readTarget(found, list);
  const wanted = wantedReferrers(found, state.tags);
  const plan = planReferrers(wanted, state, { ...run, target });
  const here = memory.repository(target);
  announcePlan(plan, undefined, memory, ports);
  // Another target whose plan is ready by then shares the reads; nobody waits for one whose plan is not.
  expectBlobs(plan, memory);

  const tags = createTagWriter(state.tags, wanted, run);
  const placing: PlacementRun = { ...list, elsewhere: async (digest) => own(digest), putAs: tags.putAs };
  const placement = createChildPlacement(plan, memory.bytes, run.verify, placing, here);
  const placed = plan.children.map(({ digest }) => placement.child(digest));
  const others = wanted.map(async ({ manifest }) => own(manifest.digest));
  await allOrNone<unknown>([...placed, ...others], list.stop).finally(() => expectNothing(plan, memory));
  const lists = [...state.lists].map(([digest, before]) => {
    const due = wanted.filter(({ refersTo }) => refersTo === digest).map(({ manifest }) => manifest);
    return listReferred(digest, before, due, list, here);
  });
  await allOrNone([tags.finish(), ...lists], list.stop);

  const sizes = new Map(plan.blobs.map(({ digest, size }) => [digest, size]));
  const blobOf = (digest: Digest): BlobOutcome =>
    placement.outcome(digest) ?? { digest, size: sizes.get(digest) ?? 0, how: 'present', bytesSent: 0 };
  return plan.children.map((child) => ({
    child,
    manifest: placement.manifests.get(child.digest) ?? 'present',
    blobs: [...child.blobs.map(blobOf), ...child.skipped.map(skippedBlob)],
  }));
}

function skippedBlob({ digest, size }: PlannedChild['skipped'][number]): BlobOutcome {
  return { digest, size, how: 'skipped', bytesSent: 0, why: 'foreign layer' };
}

async function readTarget(found: FoundReferrers, list: PlacementRun): Promise<TargetState> {
  const { registry, target, signal, stop } = list;
  const referredTo = [...new Set(found.manifests.flatMap(({ refersTo }) => refersTo ?? []))];
  const reads = referredTo.map(async (digest): Promise<readonly [Digest, ListedReferrers]> => {
    const answer = await registry.listReferrers(target.repository, digest, { signal });
    if (answer.kind === 'unknown') throw atTarget(answer.error);
    return [digest, answer];
  });
  const [lists, tags] = [allOrNone(reads, stop), lookAtTags(found, list)];
  await allOrNone<unknown>([lists, tags], stop);
  return { lists: new Map(await lists), tags: await tags };
}

/** All but what is found only by tags that are left as they are, or speaks of such. Pure. */
function wantedReferrers(
  { manifests, tags: named }: FoundReferrers,
  tags: readonly DueTag[],
): readonly FoundReferrer[] {
  const left = new Set(tags.filter(({ state }) => state === 'left').map(({ tag }) => tag));
  const tagged = new Set(named.filter(({ tag }) => !left.has(tag)).map(({ digest }) => digest));
  const found = new Set(manifests.map(({ manifest }) => manifest.digest));
  const wanted = new Set<FoundReferrer>();
  const held = new Set<Digest>();
  const isWanted = ({ manifest: { digest }, refersTo }: FoundReferrer): boolean => {
    if (tagged.has(digest) || held.has(digest)) return true;
    return (
      refersTo !== undefined && (!found.has(refersTo) || [...wanted].some((one) => one.manifest.digest === refersTo))
    );
  };
  // One that is found in two ways may come before the way by which it is wanted.
  for (let before = -1; before < wanted.size; ) {
    before = wanted.size;
    for (const one of manifests) {
      if (wanted.has(one) || !isWanted(one)) continue;
      wanted.add(one);
      for (const digest of heldBy(one.manifest)) held.add(digest);
    }
  }
  return manifests.filter((one) => wanted.has(one));
}

function heldBy(manifest: Manifest): readonly Digest[] {
  return manifest.kind === 'index' ? manifest.manifests.map(({ digest }) => digest) : [];
}

/** What is to be placed: all but what the list itself puts there. Pure. */
export function planReferrers(
  wanted: readonly FoundReferrer[],
  { lists, tags }: TargetState,
  run: PlanningRun,
): PublishPlan {
  const listed = [...lists.values()].flatMap(({ referrers }) => referrers.map(({ digest }) => digest));
  const claimed = new Set([...listed, ...tags.filter(({ state }) => state === 'same').map(({ digest }) => digest)]);
  // What an index holds is there when the index is; it stands behind its index.
  for (const { manifest } of wanted)
    if (claimed.has(manifest.digest)) for (const one of heldBy(manifest)) claimed.add(one);
  const children = wanted.filter(({ manifest }) => run.own(manifest.digest) === undefined);
  const subjectsOf = ({ manifest, refersTo }: FoundReferrer): readonly Digest[] => [
    ...heldBy(manifest),
    ...(refersTo === undefined ? [] : [refersTo]),
  ];
  const plan = planPublish(
    run,
    { target: run.target, tags: [{ kind: 'present', children: [...claimed] }] },
    children.map((one) => ({ ...one, kind: 'artifact', subjects: subjectsOf(one) })),
  );
  const own = new Map(
    children.map((one) => [one.manifest.digest, subjectsOf(one).filter((digest) => run.own(digest) !== undefined)]),
  );
  return {
    ...plan,
    children: plan.children.map((one) => ({ ...one, after: [...one.after, ...(own.get(one.digest) ?? [])] })),
  };
}

function atTarget(error: PublishError): PublishError {
  return error.with({ side: 'target' });
}
