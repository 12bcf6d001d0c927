import type { Digest } from '../model/digest.ts';
import type { Composition } from './compose.ts';
import { createMountMemory } from './mount-memory.ts';
import { moveTags } from './move-tags.ts';
import { allOrNone } from './once.ts';
import { type ChildPlacement, createChildPlacement, type ManifestOutcome } from './place-children.ts';
import type { PublishPlan } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { TargetOutcome } from './report.ts';
import type { ManifestBytes, Resolution } from './resolved.ts';
import { trackSessions } from './sessions.ts';
import { stoppable } from './stop.ts';
import type { TagGuard } from './tag-guard.ts';
import type { TransferRun } from './transfer.ts';

/** What a run has done, keyed by digest. */
export type Execution = {
  readonly composition: Composition;
  readonly manifests: ReadonlyMap<Digest, ManifestOutcome>;
  readonly blobOutcome: ChildPlacement['outcome'];
  readonly tags: readonly TargetOutcome[];
};

/** What {@link execute} is given besides the plan. */
export type ExecutionInput = {
  readonly resolution: Resolution;
  readonly bytes: ManifestBytes;
  /** Configs that were read, filled before `composing` resolves. */
  readonly configs: ReadonlyMap<Digest, Uint8Array>;
  /** The index, as soon as the platforms are known. */
  readonly composing: Promise<Composition>;
  /** False: `--no-verify`. */
  readonly verify: boolean;
  readonly guard: TagGuard | undefined;
};

/**
 * Walks the plan: blobs, children, index, tags. All choices were made before or are made in `transfer`; here is only
 * the order, and that nothing of a failed run is left behind: no request in flight, no session open.
 */
export async function execute(
  plan: PublishPlan,
  input: ExecutionInput,
  ports: PublishPorts,
  outer: AbortSignal,
): Promise<Execution> {
  const { resolution, bytes, configs, composing, verify, guard } = input;
  const registry = ports.registry(plan.target.host);
  const { signal, stop } = stoppable(outer);
  const sessions = trackSessions(plan.target, ports, signal);
  const run: TransferRun = {
    target: plan.target,
    registry,
    ports,
    signal,
    mounts: createMountMemory(),
    sessions,
    inMemory: configs,
    gate: composing,
    stop,
  };
  try {
    const placement = createChildPlacement(plan, bytes, verify, run);
    const children = plan.children.map(({ digest }) => digest);
    await allOrNone<unknown>([composing, ...children.map((digest) => placement.child(digest))], stop);
    const composition = await composing;
    const tags = await moveTags(resolution.tags, {
      target: plan.target,
      registry,
      composition,
      placement,
      guard,
      ports,
      signal,
    });
    return {
      composition,
      manifests: placement.manifests,
      blobOutcome: placement.outcome,
      tags,
    };
  } finally {
    await sessions.close();
  }
}
