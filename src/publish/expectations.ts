import type { PublishPlan } from './plan.ts';
import { type RunMemory, repositoryName } from './run-memory.ts';

/**
 * Tells the shared reads what may have to be streamed into the plan's repository. To be done for all repositories of a
 * list before any of them begins, or the first would not know of the others.
 */
export function expectBlobs({ target, blobs }: PublishPlan, { reads, repository }: RunMemory): void {
  const here = repository(target);
  for (const { digest, present } of blobs) {
    // What another list is bringing or has brought to this repository is told of by that one.
    if (!present && !here.blobs.has(digest)) reads?.expect(digest, repositoryName(target));
  }
}

/** Whatever the plan has not asked for will not be asked for: the list has ended. */
export function expectNothing({ target, blobs }: PublishPlan, { reads, repository }: RunMemory): void {
  const here = repository(target);
  for (const { digest } of blobs) if (!here.blobs.has(digest)) reads?.leave(digest, repositoryName(target));
}
