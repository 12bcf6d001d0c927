import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import type { Composition } from './compose.ts';
import type { PublishEvent } from './events.ts';
import { expectNothing } from './expectations.ts';
import { moveTags } from './move-tags.ts';
import { allOrNone } from './once.ts';
import {
  type ChildPlacement,
  createChildPlacement,
  type ManifestOutcome,
  type PlacementRun,
} from './place-children.ts';
import type { PlacedReferrer } from './place-referrers.ts';
import type { PublishPlan } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { TargetOutcome } from './report.ts';
import type { PublishRequest } from './request.ts';
import type { Resolution } from './resolved.ts';
import { type RunMemory, repositoryName, tidyUp } from './run-memory.ts';
import { createChildCheck } from './stage-index.ts';
import { stoppable } from './stop.ts';
import type { TagGuard } from './tag-guard.ts';
import { type Referring, takeAlong } from './take-along.ts';

/** What was done in one repository, keyed by digest; of the tags, by reference, those that were tried. */
export type Execution = {
  readonly manifests: ReadonlyMap<Digest, ManifestOutcome>;
  readonly blobOutcome: ChildPlacement['outcome'];
  readonly tags: ReadonlyMap<string, TargetOutcome>;
  /** What was taken along with the children, each once. */
  readonly referrers: ReadonlyMap<Digest, PlacedReferrer>;
  /** What ended it. */
  readonly error?: PublishError;
};

/** What {@link execute} is given besides the plan. */
export type ExecutionInput = {
  readonly resolution: Resolution;
  readonly memory: RunMemory;
  /** The index, as soon as the platforms are known; the configs that were read are in the memory by then. */
  readonly composing: Promise<Composition>;
  /** False: `--no-verify`. */
  readonly verify: boolean;
  readonly guard: TagGuard | undefined;
  /** The only stage that is to be done; undefined: all. */
  readonly stage?: PublishRequest['stage'];
  /** Whose referrers are taken along; undefined: nobody's. */
  readonly referring?: Referring | undefined;
  /** Events tell which repository they are about. */
  readonly several: boolean;
};

/**
 * Walks the plan of one repository: blobs, children, index, tags. All choices were made before or are made in
 * `transfer`; here is only the order, and that nothing of a failed list is left behind: no request in flight, no session
 * open. What another list of the run is doing at the same time goes on.
 */
export async function execute(
  plan: PublishPlan,
  input: ExecutionInput,
  outerPorts: PublishPorts,
  outer: AbortSignal,
): Promise<Execution> {
  const { resolution, memory, composing, verify, guard } = input;
  const { target } = plan;
  const ports = input.several ? naming(repositoryName(target), outerPorts) : outerPorts;
  const registry = ports.registry(target.host);
  const { signal, stop } = stoppable(outer);
  const here = memory.repository(target);
  const run: PlacementRun = {
    target,
    registry,
    ports,
    signal,
    mounts: here.mounts,
    inMemory: memory.configs,
    gate: composing,
    stop,
    ...(memory.reads === undefined ? {} : { reads: memory.reads }),
    member: repositoryName(target),
    ...(memory.siblings === undefined ? {} : { siblings: memory.siblings }),
  };
  const placement =
    input.stage === 'index'
      ? createChildCheck(plan, run, here)
      : createChildPlacement(plan, memory.bytes, verify, run, here);
  const outcomes = new Map<string, TargetOutcome>();
  const referrers = new Map<Digest, PlacedReferrer>();
  const done = { manifests: placement.manifests, blobOutcome: placement.outcome, tags: outcomes, referrers };
  try {
    const children = plan.children.map(({ digest }) => placement.child(digest));
    const { referring } = input;
    const along = { list: run, plan, composing, placement, memory, verify, placed: referrers };
    const taken = referring === undefined ? [] : [takeAlong(referring, along)];
    await allOrNone<unknown>([composing, ...children, ...taken], stop);
    if (input.stage === 'content') return done;
    const composition = await composing;
    await moveTags(resolution.tags, { target, registry, composition, placement, guard, ports, signal, outcomes });
    return done;
  } catch (error) {
    if (error instanceof PublishError) return { ...done, error };
    throw error;
  } finally {
    expectNothing(plan, memory);
    await tidyUp(here);
  }
}

/** Events of blobs and manifests with the name of the repository. */
function naming(repository: string, ports: PublishPorts): PublishPorts {
  const emit = (event: PublishEvent): void => {
    switch (event.kind) {
      case 'blob.start':
      case 'blob.refused':
      case 'blob.progress':
      case 'blob.done':
      case 'manifest.done':
        ports.emit({ ...event, repository });
        return;
      default:
        ports.emit(event);
    }
  };
  return { ...ports, emit };
}
