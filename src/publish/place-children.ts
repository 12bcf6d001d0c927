import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import type { PutAnswer } from '../registry/client.ts';
import { allOrNone, oncePerKey } from './once.ts';
import type { PlannedChild, PublishPlan } from './plan.ts';
import { putUntilTaken, type Repair } from './put.ts';
import type { BlobOutcome } from './report.ts';
import type { ManifestBytes } from './resolved.ts';
import { placeBlob, replaceBlob, type TransferRun } from './transfer.ts';

/** How a child manifest came to be in the target. */
export type ManifestOutcome = 'present' | 'pushed';

/** Puts children with all they name into the target, each once, however often it is asked for. */
export interface ChildPlacement {
  /** Resolves when the child and everything below it is there, as far as the registry answers. */
  child(digest: Digest): Promise<ManifestOutcome>;
  /** What became of each child so far. */
  readonly manifests: ReadonlyMap<Digest, ManifestOutcome>;
  /** What became of a blob so far; undefined for blobs of children that were there already. */
  outcome(digest: Digest): BlobOutcome | undefined;
  /** After the index was refused: puts the children that the target lacks. `round` counts from 0. */
  repair(children: readonly Digest[], round: number): Promise<Repair>;
}

/**
 * The order of things below the index: a child waits for its blobs and for its subjects; blobs that were mounted are
 * looked at while the child goes up, since a 201 is a claim (go-containerregistry trusts it, docker looks).
 */
export function createChildPlacement(
  plan: PublishPlan,
  bytes: ManifestBytes,
  looksAtMounts: boolean,
  run: TransferRun,
): ChildPlacement {
  const { registry, target, ports, signal } = run;
  const children = new Map(plan.children.map((child) => [child.digest, child]));
  const planned = new Map(plan.blobs.map((blob) => [blob.digest, blob]));
  const outcomes = new Map<Digest, BlobOutcome>();
  const manifests = new Map<Digest, ManifestOutcome>();

  const isThere = oncePerKey(async (digest: Digest): Promise<boolean> => {
    const standing = children.get(digest)?.standing;
    if (standing !== 'listed') return standing === 'here' || standing === 'trusted';
    const presence = await registry.hasManifest(target.repository, digest, { signal });
    return presence.kind === 'present';
  });

  const blob = oncePerKey(async (digest: Digest): Promise<BlobOutcome> => {
    const one = mustGet(planned, digest);
    const vouched = one.present || (await Promise.all(one.waitsFor.map(isThere))).includes(true);
    const outcome: BlobOutcome = vouched
      ? { digest, size: one.size, how: 'present', bytesSent: 0 }
      : await placeBlob(one, run);
    outcomes.set(digest, outcome);
    return outcome;
  });

  /** A mounted blob that is not there is streamed; tells whether that was needed. */
  const lookAtMount = oncePerKey(async (digest: Digest): Promise<boolean> => {
    const gone = await registry.hasBlob(target.repository, digest, { signal }).then(
      (presence) => presence.kind === 'absent',
      (error: unknown) => {
        // Only a 404 is news: a look that cannot be had must not end a run whose mounts were confirmed.
        if (error instanceof PublishError && !signal.aborted) return false;
        throw error;
      },
    );
    if (!gone) return false;
    await replace(digest);
    return true;
  });

  /** Once per blob and run, whoever finds it missing first: the second time it is a blob that we wrote. */
  const replace = oncePerKey(async (digest: Digest): Promise<void> => {
    const said = outcomes.get(digest)?.how === 'mounted' ? 'said it was mounted' : 'holds a manifest that names it';
    outcomes.set(digest, await replaceBlob(mustGet(planned, digest), `the registry ${said}, but lacks it`, run));
  });

  /** Everything the child names, looked at again; what is missing is put there, or waited for when we put it. */
  async function repairChild(child: PlannedChild, round: number): Promise<Repair> {
    const missing = await whichAreMissing(child.blobs);
    const late = missing.filter((digest) => outcomes.get(digest)?.how === 'copied');
    const never = missing.filter((digest) => outcomes.get(digest)?.how !== 'copied');
    await allOrNone(never.map(replace), run.stop);
    if (late.length > 0) await ports.clock.sleep(1000 * 2 ** round, signal);
    const subjects = await repair(child.after, round);
    return missing.length > 0 ? 'repaired' : subjects;
  }

  async function whichAreMissing(digests: readonly Digest[]): Promise<readonly Digest[]> {
    const seen = await Promise.all(digests.map((digest) => registry.hasBlob(target.repository, digest, { signal })));
    return digests.filter((_, index) => seen[index]?.kind === 'absent');
  }

  async function put(child: PlannedChild): Promise<void> {
    const answer = await putUntilTaken<never>(
      () => putOnce(child),
      (round) => repairChild(child, round),
      ports.clock,
      signal,
    );
    if (answer.kind !== 'stored') throw refusedChild(child, answer.error);
  }

  /**
   * A success that proves little is looked after, and so is a refusal to write again what is there already (Nexus with
   * redeploy disabled, sonatype/nexus-public#967).
   */
  async function putOnce({ digest, mediaType }: PlannedChild): Promise<PutAnswer> {
    const manifest = { bytes: mustGet(bytes, digest), digest, mediaType };
    const answer = await registry.putManifest(target.repository, digest, manifest, { signal });
    const doubt = answer.kind === 'stored' ? answer.doubt : undefined;
    if (answer.kind !== 'immutable' && doubt === undefined) return answer;
    const stored = await isStored(digest);
    if (answer.kind === 'immutable') return stored === true ? { kind: 'stored' } : { ...answer, kind: 'refused' };
    if (stored !== false || doubt === undefined) return { kind: 'stored' };
    return { kind: 'incomplete', error: doubt.with({ message: `${doubt.message}; but it is not there` }) };
  }

  /** By HEAD, and where that tells nothing (Nexus 3.96 answers 500, nexus-public#1059) by reading it. */
  async function isStored(digest: Digest): Promise<boolean | undefined> {
    const presence = await registry.hasManifest(target.repository, digest, { signal });
    if (presence.kind !== 'unknown') return presence.kind === 'present';
    const answer = await registry.getManifest(target.repository, digest, { signal });
    return answer.kind === 'unknown' ? undefined : answer.kind === 'found';
  }

  async function putChecked(child: PlannedChild): Promise<void> {
    const mounted = looksAtMounts ? child.blobs.filter((digest) => outcomes.get(digest)?.how === 'mounted') : [];
    const [, ...looks] = await allOrNone<unknown>([put(child), ...mounted.map(lookAtMount)], run.stop);
    if (looks.includes(true)) await put(child);
  }

  const child = oncePerKey(async (digest: Digest): Promise<ManifestOutcome> => {
    const one = mustGet(children, digest);
    const there = await isThere(digest);
    if (!there) {
      // The gate goes last in time, not first: mounts are asked for while the configs are being read.
      await allOrNone<unknown>([run.gate, ...one.blobs.map(blob), ...one.after.map(child)], run.stop);
      await putChecked(one);
    }
    const manifest = there ? 'present' : 'pushed';
    await run.gate;
    manifests.set(digest, manifest);
    ports.emit({ kind: 'manifest.done', digest, manifest });
    return manifest;
  });

  async function repair(digests: readonly Digest[], round: number): Promise<Repair> {
    const seen = await Promise.all(
      digests.map((digest) => registry.hasManifest(target.repository, digest, { signal })),
    );
    // A virtual repository answers 403 for what it lacks (Artifactory, go-containerregistry#1691): what this run has not
    // put itself is put then, which costs little and cannot do harm.
    const missing = digests.filter((digest, index) => {
      const kind = seen[index]?.kind;
      return kind === 'absent' || (kind === 'unknown' && manifests.get(digest) !== 'pushed');
    });
    let late = false;
    for (const digest of missing) {
      if ((await child(digest)) === 'pushed') late = true;
      else await put(mustGet(children, digest));
      manifests.set(digest, 'pushed');
    }
    if (late) await ports.clock.sleep(1000 * 2 ** round, signal);
    return missing.length > 0 ? 'repaired' : 'nothing missing';
  }

  return { child, outcome: (digest) => outcomes.get(digest), manifests, repair };
}

function mustGet<V>(map: ReadonlyMap<Digest, V>, digest: Digest): V {
  const value = map.get(digest);
  if (value === undefined) throw new Error(`${digest} is not part of the plan`);
  return value;
}

function refusedChild(child: PlannedChild, error: PublishError): PublishError {
  return error.with({ side: 'target', message: `${error.message} (${child.mediaType} of ${child.name})` });
}
