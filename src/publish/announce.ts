import type { Composition } from './compose.ts';
import type { PublishPlan } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import { type RunMemory, repositoryName } from './run-memory.ts';

/** Tells of a plan. `blobs` and `bytes` are those that no plan of the run has told of: sums over the plans are right. */
export function announcePlan(
  plan: PublishPlan,
  composition: Composition | undefined,
  memory: RunMemory,
  ports: PublishPorts,
): void {
  const platforms = new Map(composition?.listed.map(({ entry }) => [entry.digest, entry.platform]));
  const sizes = new Map(plan.blobs.map((blob) => [blob.digest, blob.size]));
  const { planned } = memory.repository(plan.target);
  const added = plan.blobs.filter(({ digest }) => !planned.has(digest));
  for (const { digest } of added) planned.add(digest);
  ports.emit({
    kind: 'plan',
    target: repositoryName(plan.target),
    images: plan.children.map((child) => ({
      source: child.name,
      digest: child.digest,
      platform: platforms.get(child.digest),
      kind: child.kind,
      blobs: child.blobs.length,
      bytes: child.blobs.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0),
    })),
    blobs: added.length,
    bytes: added.reduce((sum, blob) => sum + blob.size, 0),
  });
}
