import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { repositoryName } from '../model/reference.ts';
import type { ChildPlacement, ManifestOutcome, PlacementRun } from './place-children.ts';
import type { PublishPlan } from './plan.ts';
import type { RepositoryMemory } from './run-memory.ts';

/** The plan of a run that places no content: a child that is there vouches for its blobs, of which nothing is asked. */
export function withoutContent(plan: PublishPlan): PublishPlan {
  return { ...plan, blobs: [], children: plan.children.map((child) => ({ ...child, blobs: [], skipped: [] })) };
}

/**
 * In the place of a placement, for a run that puts the index and the tags alone: every child is looked at, all side by
 * side, and none is put. Children that the target repository itself brought were seen there.
 */
export function createChildCheck(plan: PublishPlan, list: PlacementRun, memory: RepositoryMemory): ChildPlacement {
  const { registry, target, ports } = list;
  const manifests = new Map<Digest, ManifestOutcome>();
  let looks: Promise<void> | undefined;

  /** By HEAD, and where that tells nothing (Nexus 3.96 answers 500, nexus-public#1059) by reading it. */
  async function isThere(digest: Digest, signal: AbortSignal): Promise<boolean> {
    const presence = await registry.hasManifest(target.repository, digest, { signal });
    if (presence.kind !== 'unknown') return presence.kind === 'present';
    const answer = await registry.getManifest(target.repository, digest, { signal });
    if (answer.kind === 'unknown') throw answer.error.with({ side: 'target' });
    return answer.kind === 'found';
  }

  async function lookAtAll(): Promise<void> {
    const seen = await Promise.all(
      plan.children.map(async ({ digest, standing }) => {
        if (standing === 'here' || standing === 'trusted') return true;
        return memory.there.join(digest, list, ({ signal }) => isThere(digest, signal));
      }),
    );
    const missing = plan.children.filter((_, at) => seen[at] !== true);
    if (missing.length > 0) throw notPlaced(missing.map(({ name }) => name));
  }

  function notPlaced(lacking: readonly string[]): PublishError {
    return new PublishError(
      'MANIFEST_NOT_FOUND',
      `${repositoryName(target)} lacks ${lacking.length} of the ${plan.children.length} images of the list: ${lacking.join(', ')}`,
      'Run the same command with --stage content first, in every shard; a source whose tag has moved since needs it again.',
      { side: 'target', registry: target.host, repository: target.repository },
    );
  }

  return {
    manifests,
    outcome: () => undefined,
    child: async (digest) => {
      looks ??= lookAtAll();
      await looks;
      await list.gate;
      manifests.set(digest, 'present');
      ports.emit({ kind: 'manifest.done', digest, manifest: 'present' });
      return 'present';
    },
    // The registry says that something is missing. Another machine has put it a moment ago: it may show late.
    repair: async (children, round) => {
      const { signal } = list;
      const seen = await Promise.all(children.map((digest) => isThere(digest, signal)));
      if (seen.every((one) => one)) return 'nothing missing';
      await ports.clock.sleep(1000 * 2 ** round, signal);
      return 'repaired';
    },
  };
}
