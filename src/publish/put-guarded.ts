import { PublishError } from '../errors.ts';
import { backoff } from '../http/retry.ts';
import type { Digest } from '../model/digest.ts';
import type { Reference } from '../model/reference.ts';
import type { PutAnswer } from '../registry/client.ts';
import type { PublishPorts } from './ports.ts';
import { isUntouched, movedMeanwhile, refuseMove, type TagGuard } from './tag-guard.ts';

/** Longest that a host may answer 429 to the PUT of a tag, in ms; as the connection's own patience with one request. */
const LIMITED_PATIENCE = 300_000;

/** The tag holds the index already, although it did not when the run began. */
export type Held = { readonly kind: 'held' };

/** A PUT that did not succeed and may do so a little later; it may have been carried out all the same. */
export type PassingFailure = {
  readonly kind: 'passing';
  readonly error: PublishError;
  /** In ms, where the registry asked for it. */
  readonly wait?: number;
};

/** One tag under a guard, and what can be done with it. */
export type GuardedTag = {
  readonly reference: Reference;
  readonly guard: TagGuard;
  readonly ours: Digest;
  /** What it holds now; undefined when it is not there. `after` is what the PUT before this look came to. */
  look(after: PublishError | undefined): Promise<Digest | undefined>;
  /** Sends the index once. */
  put(): Promise<PutAnswer | PassingFailure>;
  /** What a PUT came to that is not tried again. @throws PublishError unless the tag holds the index */
  settle(error: PublishError): Promise<PutAnswer>;
  /** After a PUT that was taken; `before` is what the tag held. */
  check(before: Digest | undefined): Promise<void>;
};

/**
 * Looks at the tag before each PUT: the connection may not send it again by itself, since somebody else may have moved
 * the tag while it waited. The spec has no PUT that depends on what a tag holds, so that a move between the look and the
 * PUT goes unseen; one after the PUT is told.
 *
 * @throws PublishError `TAG_EXISTS`, `TAG_CHANGED`, and why the tag could not be read or moved
 */
export async function putGuarded(
  tag: GuardedTag,
  { clock, random, retries }: PublishPorts,
  signal: AbortSignal,
): Promise<PutAnswer | Held> {
  let failed: PublishError | undefined;
  let tries = 0;
  let renewed = false;
  let limitedSince: number | undefined;
  for (let sends = 0; ; sends += 1) {
    const before = await tag.look(failed);
    if (before === tag.ours) return failed === undefined ? { kind: 'held' } : { kind: 'stored' };
    const refusal = refuseMove(tag.guard, tag.reference, before);
    if (refusal !== undefined) throw failed === undefined ? refusal : movedMeanwhile(refusal, tag.reference, failed);
    const answer = await tag.put();
    if (answer.kind !== 'passing') {
      if (answer.kind === 'stored') await tag.check(before);
      return answer;
    }
    failed = answer.error;
    if (failed.status === 401) {
      // A login that ended is renewed once; it costs no try.
      if (renewed) return tag.settle(failed);
      renewed = true;
      continue;
    }
    if (failed.status === 429 && retries > 0) {
      limitedSince ??= clock.now();
      if (clock.now() - limitedSince > LIMITED_PATIENCE) return tag.settle(failed);
    } else {
      tries += 1;
      if (tries > retries) return tag.settle(failed);
    }
    const open = isUntouched(failed) ? undefined : tag.settle;
    try {
      await clock.sleep(answer.wait ?? backoff(sends, random), signal);
    } catch (error) {
      // The run ends in between: what the tag holds is told, where the PUT may have been carried out.
      if (open === undefined || !(error instanceof PublishError)) throw error;
      return open(error);
    }
  }
}
