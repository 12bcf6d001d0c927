import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import type { PutAnswer } from '../registry/client.ts';
import type { Flight, Participant } from './flights.ts';
import { isMissing } from './mount-look.ts';
import { allOrNone, oncePerKey } from './once.ts';
import { isSamePlace, type PlannedBlob, type PlannedChild, type PublishPlan } from './plan.ts';
import { putUntilTaken, type Repair } from './put.ts';
import type { BlobOutcome } from './report.ts';
import type { ManifestBytes } from './resolved.ts';
import { createRepositoryMemory, type RepositoryMemory } from './run-memory.ts';
import { trackSessions } from './sessions.ts';
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

/** What a placement needs of a run; every transfer gets sessions of its own. */
export type PlacementRun = Omit<TransferRun, 'sessions'> & {
  /** Places what a child comes after and the plan does not have: what a referrer speaks of. */
  readonly elsewhere?: (digest: Digest) => Promise<unknown>;
  /** Decides under which reference a child is put; default: its digest. Nothing is sent but by `put`. */
  readonly putAs?: (
    digest: Digest,
    put: (reference: string) => Promise<PutAnswer>,
    signal: AbortSignal,
  ) => Promise<PutAnswer>;
};

/**
 * The order of things below the index: a child waits for its blobs and for its subjects; blobs that were mounted are
 * looked at when all of its blobs are there, while it goes up or has to wait for configs and subjects, since a 201 is a
 * claim (go-containerregistry trusts it, docker looks).
 *
 * Every list walks through its own children, and shares each step by way of `memory`: what another list has placed costs
 * nothing, what it is placing is waited for, and if that list stops, it goes on for those that are left.
 */
export function createChildPlacement(
  plan: PublishPlan,
  bytes: ManifestBytes,
  looksAtMounts: boolean,
  list: PlacementRun,
  memory: RepositoryMemory = createRepositoryMemory(),
): ChildPlacement {
  const { registry, target, ports } = list;
  const { outcomes } = memory;
  const children = new Map(plan.children.map((child) => [child.digest, child]));
  const planned = new Map(plan.blobs.map((blob) => [blob.digest, blob]));
  const manifests = new Map<Digest, ManifestOutcome>();
  /** Blobs that this list knows to be there, without a word to the registry. */
  const vouched = new Map<Digest, BlobOutcome>();

  /** Whether the child was there before the run, as far as anybody has been told to look. */
  async function isThere(digest: Digest, by: Participant): Promise<boolean> {
    const standing = children.get(digest)?.standing;
    if (standing === 'trusted') return true;
    if (standing === 'here') {
      // Another list may have the same child from elsewhere.
      if (!memory.there.has(digest)) await memory.there.join(digest, by, async () => true);
      return true;
    }
    if (memory.children.has(digest)) return false;
    if (standing !== 'listed' && !memory.there.has(digest)) return false;
    return memory.there.join(digest, by, async ({ signal }) => {
      const presence = await registry.hasManifest(target.repository, digest, { signal });
      return presence.kind === 'present';
    });
  }

  async function blob(digest: Digest, by: Participant): Promise<void> {
    const one = mustGet(planned, digest);
    const present = { digest, size: one.size, how: 'present', bytesSent: 0 } as const;
    if (one.present) {
      vouched.set(digest, present);
      return;
    }
    await place(one, by).finally(() => needNoRead(digest));
  }

  /** What failed for the sources of another list is tried with those of this one, if it has others. */
  async function place(one: PlannedBlob, by: Participant): Promise<void> {
    const { digest, size } = one;
    for (;;) {
      const flight = memory.blobs.join(digest, by, async (shared) => {
        memory.leaders.set(digest, one);
        const inChild = (await Promise.all(one.waitsFor.map((child) => isThere(child, shared)))).includes(true);
        const outcome: BlobOutcome = inChild
          ? { digest, size, how: 'present', bytesSent: 0 }
          : await inSessions(shared, (run) => placeBlob(one, run));
        outcomes.set(digest, outcome);
        memory.leaders.delete(digest);
        return outcome;
      });
      const leader = memory.leaders.get(digest) ?? one;
      try {
        await flight;
        return;
      } catch (error) {
        const hasOthers = one.sources.some((source) => !leader.sources.some((tried) => isSamePlace(tried, source)));
        const forSources = error instanceof PublishError && error.side === 'source';
        if (!forSources || !hasOthers || by.signal.aborted) throw error;
        if (memory.leaders.get(digest) === leader) memory.blobs.forget(digest);
      }
    }
  }

  /** Nobody who streams the blob elsewhere need wait for this repository. */
  function needNoRead(digest: Digest): void {
    if (list.member !== undefined) list.reads?.leave(digest, list.member);
  }

  function wantsLook(digest: Digest): boolean {
    return looksAtMounts && outcomes.get(digest)?.how === 'mounted';
  }

  /** A mounted blob that is not there is streamed; tells whether that was needed. */
  function lookAtMount(digest: Digest, by: Participant): Promise<boolean> {
    return memory.looks.join(digest, by, async (flight) => {
      const { signal, gate } = flight;
      if (!(await isMissing(registry, target.repository, digest, signal))) return false;
      await gate;
      await replace(digest, flight);
      return true;
    });
  }

  /** Once per blob and run, whoever finds it missing first: the second time it is a blob that we wrote. */
  function replace(digest: Digest, by: Participant): Promise<void> {
    return memory.replacements.join(digest, by, async (flight) => {
      const said = outcomes.get(digest)?.how === 'mounted' ? 'said it was mounted' : 'holds a manifest that names it';
      const why = `the registry ${said}, but lacks it`;
      outcomes.set(digest, await inSessions(flight, (run) => replaceBlob(mustGet(planned, digest), why, run)));
    });
  }

  /** Does a transfer with sessions of its own. None stays open when it fails; when it ends well, that can wait. */
  async function inSessions<T>(flight: Flight, transfer: (run: TransferRun) => Promise<T>): Promise<T> {
    const sessions = trackSessions(target, ports, flight.signal);
    try {
      const done = await transfer({ ...list, ...flight, sessions });
      // What is left need not be waited for now; of most transfers nothing is, and nothing of them is to be kept.
      if (sessions.hasLeft()) memory.leftovers.add(sessions.close);
      else await sessions.close();
      return done;
    } catch (error) {
      await sessions.close();
      throw error;
    }
  }

  /** Everything the child names, looked at again; what is missing is put there, or waited for when we put it. */
  async function repairChild(child: PlannedChild, round: number, scope: Scope): Promise<Repair> {
    const missing = await whichAreMissing(child.blobs, scope);
    const late = missing.filter((digest) => outcomes.get(digest)?.how === 'copied');
    const never = missing.filter((digest) => outcomes.get(digest)?.how !== 'copied');
    await allOrNone(
      never.map((digest) => replace(digest, scope)),
      scope.stop,
    );
    if (late.length > 0) await ports.clock.sleep(1000 * 2 ** round, scope.signal);
    const own = child.after.filter((digest) => children.has(digest));
    const subjects = await repair(own, round, scope);
    return missing.length > 0 ? 'repaired' : subjects;
  }

  async function whichAreMissing(digests: readonly Digest[], { signal }: Scope): Promise<readonly Digest[]> {
    const seen = await Promise.all(digests.map((digest) => registry.hasBlob(target.repository, digest, { signal })));
    return digests.filter((_, index) => seen[index]?.kind === 'absent');
  }

  async function put(child: PlannedChild, scope: Scope): Promise<void> {
    const answer = await putUntilTaken<never>(
      () => putOnce(child, scope),
      (round) => repairChild(child, round, scope),
      ports.clock,
      scope.signal,
    );
    if (answer.kind !== 'stored') throw refusedChild(child, answer.error);
  }

  /**
   * A success that proves little is looked after, and so is a refusal to write again what is there already (Nexus with
   * redeploy disabled, sonatype/nexus-public#967).
   */
  async function putOnce({ digest, mediaType }: PlannedChild, scope: Scope): Promise<PutAnswer> {
    const { signal } = scope;
    const manifest = { bytes: mustGet(bytes, digest), digest, mediaType };
    const send = (reference: string): Promise<PutAnswer> =>
      registry.putManifest(target.repository, reference, manifest, { signal });
    const answer = await (list.putAs === undefined ? send(digest) : list.putAs(digest, send, signal));
    if (answer.kind === 'stored' && answer.listed === true) memory.noted.add(digest);
    const doubt = answer.kind === 'stored' ? answer.doubt : undefined;
    if (answer.kind !== 'immutable' && doubt === undefined) return answer;
    const stored = await isStored(digest, scope);
    if (answer.kind === 'immutable') return stored === true ? { kind: 'stored' } : { ...answer, kind: 'refused' };
    if (stored !== false || doubt === undefined) return { kind: 'stored' };
    return { kind: 'incomplete', error: doubt.with({ message: `${doubt.message}; but it is not there` }) };
  }

  /** By HEAD, and where that tells nothing (Nexus 3.96 answers 500, nexus-public#1059) by reading it. */
  async function isStored(digest: Digest, { signal }: Scope): Promise<boolean | undefined> {
    const presence = await registry.hasManifest(target.repository, digest, { signal });
    if (presence.kind !== 'unknown') return presence.kind === 'present';
    const answer = await registry.getManifest(target.repository, digest, { signal });
    return answer.kind === 'unknown' ? undefined : answer.kind === 'found';
  }

  /** Puts the child, whose blobs and subjects are in place. */
  function putChecked(child: PlannedChild, by: Participant): Promise<void> {
    return memory.children.join(child.digest, by, async (flight) => {
      const mounted = child.blobs.filter(wantsLook).map((digest) => lookAtMount(digest, flight));
      const steps = [put(child, flight), ...mounted];
      const [, ...looks] = await allOrNone<unknown>(steps, flight.stop);
      if (looks.includes(true)) await put(child, flight);
      memory.pushed.add(child.digest);
    });
  }

  function before(digest: Digest): Promise<unknown> {
    return children.has(digest) || list.elsewhere === undefined ? child(digest) : list.elsewhere(digest);
  }

  const child = oncePerKey(async (digest: Digest): Promise<ManifestOutcome> => {
    const one = mustGet(children, digest);
    const there = await isThere(digest, list);
    if (!there) {
      // The gate goes last in time, not first: mounts are asked for while the configs are being read.
      const blobs = one.blobs.map((needed) => blob(needed, list));
      const look = (needed: Digest): Promise<boolean> => lookAtMount(needed, list);
      // Heard from now on, or a stop that ends them first would seem to be heard by nobody; and each of them to its end.
      const looks = Promise.all(blobs).then(() => Promise.allSettled(one.blobs.filter(wantsLook).map(look)));
      const looked = Promise.allSettled([looks]);
      try {
        await allOrNone<unknown>([list.gate, ...blobs, ...one.after.map(before)], list.stop);
        await allOrNone([putChecked(one, list)], list.stop);
      } finally {
        // Whoever puts the child hears what they came to; of a list that failed they end by its stop.
        await looked;
      }
    }
    // Blobs that hang on such children alone are there with them.
    if (there) for (const needed of one.blobs) if (mustGet(planned, needed).waitsFor.length > 0) needNoRead(needed);
    const manifest = there ? 'present' : 'pushed';
    await list.gate;
    manifests.set(digest, manifest);
    ports.emit({ kind: 'manifest.done', digest, manifest });
    return manifest;
  });

  async function repair(digests: readonly Digest[], round: number, scope: Scope): Promise<Repair> {
    const { signal } = scope;
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
      if (memory.pushed.has(digest)) late = true;
      else await put(mustGet(children, digest), scope);
      manifests.set(digest, 'pushed');
    }
    if (late) await ports.clock.sleep(1000 * 2 ** round, signal);
    return missing.length > 0 ? 'repaired' : 'nothing missing';
  }

  const outcome = (digest: Digest): BlobOutcome | undefined => outcomes.get(digest) ?? vouched.get(digest);
  return { child, outcome, manifests, repair: (digests, round) => repair(digests, round, list) };
}

/** The list, or the flight of several lists, for which something is done. */
type Scope = Pick<PlacementRun, 'signal' | 'gate' | 'stop'>;

function mustGet<V>(map: ReadonlyMap<Digest, V>, digest: Digest): V {
  const value = map.get(digest);
  if (value === undefined) throw new Error(`${digest} is not part of the plan`);
  return value;
}

function refusedChild(child: PlannedChild, error: PublishError): PublishError {
  return error.with({ side: 'target', message: `${error.message} (${child.mediaType} of ${child.name})` });
}
