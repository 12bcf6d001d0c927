import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { formatReference, type Reference } from '../model/reference.ts';
import type { PublishRequest } from './request.ts';
import type { TagState } from './resolved.ts';

/** What a tag must hold so that it may be moved. */
export type TagGuard = Pick<PublishRequest, 'noClobber' | 'expectDigest'> & {
  /** TARGET, where it is amended, and what was read there; undefined as `held` is a tag that was not there. */
  readonly amended?: { readonly target: string; readonly held: Digest | undefined };
};

/**
 * The request's guard; undefined when its tags may be moved whatever they hold.
 *
 * @param target TARGET's tag, as it was read
 */
export function guardOf(request: PublishRequest, target?: TagState): TagGuard | undefined {
  const { noClobber, expectDigest, amend } = request;
  const amends = amend === true && target !== undefined;
  if (noClobber !== true && expectDigest === undefined && !amends) return undefined;
  return {
    ...(noClobber === true ? { noClobber } : {}),
    ...(expectDigest === undefined ? {} : { expectDigest }),
    ...(amends ? { amended: { target: formatReference(target.reference), held: heldBy(target) } } : {}),
  };
}

/** The guard as far as it concerns one tag: only TARGET is amended, the others get what it gets. */
export function guardFor(guard: TagGuard | undefined, reference: Reference): TagGuard | undefined {
  if (guard?.amended === undefined || guard.amended.target === formatReference(reference)) return guard;
  const { amended: _, ...others } = guard;
  return Object.keys(others).length === 0 ? undefined : others;
}

/**
 * Whether the tags, as they were read first, may be moved: `in doubt` when one of them may not unless it holds the new
 * index already.
 *
 * @throws PublishError `TAG_CHANGED` for a tag that is not there and was expected, and why a tag could not be read
 */
export function checkFirst(whole: TagGuard, tags: readonly TagState[]): 'free' | 'in doubt' {
  const refusals = tags.map((tag) => {
    const guard = guardFor(whole, tag.reference);
    if (guard === undefined) return undefined;
    if (tag.kind === 'unknown') throw unreadable(tag.error);
    const refusal = refuseMove(guard, tag.reference, heldBy(tag));
    if (refusal !== undefined && tag.kind === 'absent') throw refusal;
    return refusal;
  });
  return refusals.some((refusal) => refusal !== undefined) ? 'in doubt' : 'free';
}

/**
 * The same when the index is known.
 *
 * @throws PublishError `TAG_EXISTS`, `TAG_CHANGED`
 */
export function checkTags(guard: TagGuard, tags: readonly TagState[], index: Digest): void {
  for (const tag of tags) {
    const held = heldBy(tag);
    const own = guardFor(guard, tag.reference);
    const refusal = held === index || own === undefined ? undefined : refuseMove(own, tag.reference, held);
    if (refusal !== undefined) throw refusal;
  }
}

/** Why a tag that holds `held` may not be moved; `undefined` as `held` is a tag that is not there. Pure. */
export function refuseMove(
  { noClobber, expectDigest, amended }: TagGuard,
  reference: Reference,
  held: Digest | undefined,
): PublishError | undefined {
  const name = formatReference(reference);
  const details = { side: 'target', registry: reference.host, repository: reference.repository } as const;
  if (noClobber === true && held !== undefined) {
    return new PublishError(
      'TAG_EXISTS',
      `${name} exists: it holds ${held}, and --no-clobber leaves it alone`,
      'Publish under a tag that does not exist yet, or leave out --no-clobber.',
      details,
    );
  }
  if (amended !== undefined && held !== amended.held) {
    return new PublishError(
      'TAG_CHANGED',
      `${name} ${amended.held === undefined ? 'was not there' : `held ${amended.held}`} when it was read to be amended, and ${held === undefined ? 'is not there' : `holds ${held}`} now: somebody else has changed it`,
      'Run the same command again: it amends what is there then.',
      details,
    );
  }
  if (expectDigest === undefined || held === expectDigest) return undefined;
  return new PublishError(
    'TAG_CHANGED',
    `${name} ${held === undefined ? 'is not there' : `holds ${held}`}, not the expected ${expectDigest}`,
    `See what it holds now: manifest-publish inspect ${name}; then say that digest with --expect-digest.`,
    details,
  );
}

/** The tag may no longer be moved after a PUT of ours that failed and may have been carried out; `failed` says how. */
export function movedMeanwhile(refusal: PublishError, reference: Reference, failed: PublishError): PublishError {
  const message = `${refusal.message}; our own PUT before this look was not answered well (${failed.message}), and is not sent again over what somebody else has put there`;
  return refusal.with({ message, moved: isUntouched(failed) ? [] : [`${formatReference(reference)} (perhaps)`] });
}

/** Whether the PUT that failed so was turned away at the door, and moved nothing. */
export function isUntouched({ status }: PublishError): boolean {
  return status === 401 || status === 429;
}

/** What stands between a guard and a tag that cannot be read; the error says why, and which side it is on. */
export function unreadable(error: PublishError): PublishError {
  return error.with({
    side: 'target',
    message: `${error.message}; with --no-clobber, --expect-digest or --amend the tag must be read`,
  });
}

/** The registry took our index, but the tag holds something else a moment later. */
export function overtaken(reference: Reference, ours: Digest, held: Digest | undefined): PublishError {
  const name = formatReference(reference);
  return new PublishError(
    'TAG_CHANGED',
    `${name} was moved to ${ours}, and now ${held === undefined ? 'is not there' : `holds ${held}`}: somebody else changed it`,
    'Find out who else publishes this tag, then run the same command again.',
    { side: 'target', registry: reference.host, repository: reference.repository, moved: [name] },
  );
}

function heldBy(tag: TagState): Digest | undefined {
  return tag.kind === 'present' ? tag.digest : undefined;
}
