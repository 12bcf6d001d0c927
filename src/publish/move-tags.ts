import { type ErrorCode, PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { formatReference } from '../model/reference.ts';
import type { PutAnswer, RegistryClient } from '../registry/client.ts';
import type { Composition } from './compose.ts';
import { allOrNone } from './once.ts';
import type { ChildPlacement } from './place-children.ts';
import type { PublishPorts } from './ports.ts';
import { putUntilTaken } from './put.ts';
import { type GuardedTag, type Held, type PassingFailure, putGuarded } from './put-guarded.ts';
import type { TargetOutcome } from './report.ts';
import type { Location, TagState } from './resolved.ts';
import { stoppable } from './stop.ts';
import { guardFor, isUntouched, overtaken, type TagGuard, unreadable } from './tag-guard.ts';

/** How long a look at a tag may take whose PUT was not answered, in ms. */
const LOOK = 5_000;

/** How often a tag is looked at again that does not show yet what was put there: after 1, 2 and 4 s. */
const LATE_LOOKS = 3;

/** What moving tags needs; `placement` puts what the registry says is missing. */
export type TagMove = {
  readonly target: Location;
  readonly registry: RegistryClient;
  readonly composition: Composition;
  readonly placement: ChildPlacement;
  readonly guard: TagGuard | undefined;
  readonly ports: PublishPorts;
  readonly signal: AbortSignal;
  /** Told what became of each tag that was tried, also when the run fails; by the tag's reference. */
  readonly outcomes?: Map<string, TargetOutcome>;
};

/**
 * PUTs the index once per tag, last of all. A tag that holds the digest already is left alone, which is what makes a
 * second run pass on registries with immutable tags. TARGET goes first and alone: when the registry refuses the
 * index, no tag has moved.
 *
 * @throws PublishError `MANIFEST_REFUSED`, `TAG_IMMUTABLE`, `TAG_EXISTS`, `TAG_CHANGED` and others; its `moved` names the tags that moved before
 */
export async function moveTags(tags: readonly TagState[], move: TagMove): Promise<readonly TargetOutcome[]> {
  const moved: string[] = [];
  const told = (outcome: TargetOutcome): void => {
    move.outcomes?.set(outcome.reference, outcome);
  };
  const one = async (tag: TagState): Promise<TargetOutcome> => {
    const outcome = await moveTag(tag, { ...move, guard: guardFor(move.guard, tag.reference) }).catch(
      (error: unknown) => {
        // Of several failures one is thrown; what the others know of their tags must not be lost with them.
        if (!(error instanceof PublishError)) throw error;
        moved.push(...(error.moved ?? []));
        told(failedTarget(tag, error, move.composition.index.digest));
        throw error;
      },
    );
    told(outcome);
    if (outcome.action !== 'unchanged') moved.push(outcome.reference);
    move.ports.emit({ kind: 'tag.done', reference: outcome.reference, digest: outcome.digest, action: outcome.action });
    return outcome;
  };
  try {
    const [first, ...others] = tags;
    if (first === undefined) return [];
    const head = await one(first);
    // Every tag is tried, whatever becomes of the others: what was written is told, a second run writes the rest.
    return [head, ...(await allOrNone(others.map(one), () => undefined))];
  } catch (error) {
    throw error instanceof PublishError ? error.with({ moved }) : error;
  }
}

async function moveTag(tag: TagState, move: TagMove): Promise<TargetOutcome & { action: Done }> {
  const { composition, placement, ports, signal } = move;
  const { index, listed } = composition;
  const reference = formatReference(tag.reference);
  const unchanged = { reference, digest: index.digest, action: 'unchanged' } as const;
  if (tag.kind === 'present' && tag.digest === index.digest) return unchanged;
  const children = [...new Set(listed.map(({ entry }) => entry.digest))];
  const { retries } = ports.traffic();
  const answer = await putUntilTaken(
    () => putAsAllowed(tag, move),
    (round) => placement.repair(children, round),
    ports.clock,
    signal,
  );
  if (answer.kind === 'held') return unchanged;
  if (answer.kind === 'immutable') {
    if ((await read(tag, move)) === index.digest) return unchanged;
    throw answer.error.with({ side: 'target' });
  }
  if (answer.kind === 'refused') {
    const error = refusedIndex(answer.error, composition);
    // What was sent in an earlier round may have been carried out, though its answer never came.
    if (error.moved !== undefined || ports.traffic().retries === retries) throw error;
    await lookInto(error, tag, move);
  }
  return { reference, digest: index.digest, action: tag.kind === 'absent' ? 'created' : 'updated', ...previousOf(tag) };
}

/** With a guard the tag is read just before each PUT and just after. @see putGuarded */
function putAsAllowed(tag: TagState, move: TagMove): Promise<PutAnswer | Held> {
  const { guard, composition, ports, signal } = move;
  if (guard === undefined) return putTag(tag, move);
  const guarded: GuardedTag = {
    reference: tag.reference,
    guard,
    ours: composition.index.digest,
    look: (after) =>
      read(tag, move).catch((error: unknown) => {
        throw after === undefined || isUntouched(after) ? error : perhapsMoved(error, tag);
      }),
    put: () => putOnce(tag, move),
    settle: (error) => lookInto(error, tag, move),
    check: (before) => checkAfter(tag, before, move),
  };
  return putGuarded(guarded, ports, signal);
}

/** What ends a run after a PUT whose fate is not known. */
function perhapsMoved(error: unknown, { reference }: TagState): unknown {
  if (!(error instanceof PublishError) || error.moved !== undefined) return error;
  return error.with({ moved: [`${formatReference(reference)} (perhaps)`] });
}

/** One PUT, of which what may pass is the caller's to try again. */
async function putOnce(tag: TagState, move: TagMove): Promise<PutAnswer | PassingFailure> {
  const { target, registry, composition, signal } = move;
  try {
    const answer = await registry.putManifest(target.repository, tag.tag, composition.index, { signal, once: true });
    if (answer.kind === 'refused' && answer.passing !== undefined) {
      return { kind: 'passing', error: answer.error, ...answer.passing };
    }
    return await resultOf(answer, tag, move, 0);
  } catch (error) {
    if (error instanceof PublishError && error.code === 'NETWORK_FAILED' && error.moved === undefined) {
      return { kind: 'passing', error };
    }
    return afterThrown(error, tag, move, 0);
  }
}

/** Waits for a registry that shows late what it has taken; anything else than the old and the new is somebody's. */
async function checkAfter(tag: TagState, before: Digest | undefined, move: TagMove): Promise<void> {
  const ours = move.composition.index.digest;
  const name = formatReference(tag.reference);
  for (let round = 0; ; round += 1) {
    const held = await read(tag, move).catch((error: unknown) => {
      throw error instanceof PublishError ? error.with({ moved: [name] }) : error;
    });
    if (held === ours) return;
    if (held !== before || round === LATE_LOOKS) throw overtaken(tag.reference, ours, held);
    await move.ports.clock.sleep(1000 * 2 ** round, move.signal);
  }
}

/**
 * PUTs the index to the tag. When no answer came, or one that says little (5xx, a page, a success that is no 201) or
 * that other bytes were stored, the tag may have moved all the same: it is read once, so that nobody is told a guess.
 */
async function putTag(tag: TagState, move: TagMove): Promise<PutAnswer> {
  const { target, registry, composition, signal, ports } = move;
  const { retries } = ports.traffic();
  try {
    const answer = await registry.putManifest(target.repository, tag.tag, composition.index, { signal });
    return await resultOf(answer, tag, move, ports.traffic().retries - retries);
  } catch (error) {
    return afterThrown(error, tag, move, ports.traffic().retries - retries);
  }
}

/** @param resent retries that were sent meanwhile, by anybody */
async function resultOf(answer: PutAnswer, tag: TagState, move: TagMove, resent: number): Promise<PutAnswer> {
  if (answer.kind === 'stored' && answer.doubt !== undefined) return lookInto(answer.doubt, tag, move);
  if (answer.kind !== 'refused') return answer;
  if (answer.error.code !== 'REGISTRY_FAILED' && !leavesOpen(answer.error, resent)) return answer;
  return lookInto(answer.error, tag, move);
}

async function afterThrown(error: unknown, tag: TagState, move: TagMove, resent: number): Promise<PutAnswer> {
  if (error instanceof PublishError && error.moved === undefined && leavesOpen(error, resent)) {
    return lookInto(error, tag, move);
  }
  throw error;
}

/** What was sent before may have been carried out, whatever the last send is answered: a login may have ended since. */
function leavesOpen({ code }: PublishError, resent: number): boolean {
  return LEAVES_OPEN.includes(code) || resent > 0;
}

/** Failures that leave open whether the PUT was carried out. */
const LEAVES_OPEN: readonly ErrorCode[] = [
  'NETWORK_FAILED',
  'TIMED_OUT',
  'INTERRUPTED',
  'TERMINATED',
  'DIGEST_MISMATCH',
  'PROTOCOL_VIOLATED',
];

/**
 * Reads the tag after a PUT that failed or is in doubt.
 *
 * @throws PublishError `error`, with what the tag holds and whether it has moved, unless it holds the index
 */
async function lookInto(error: PublishError, tag: TagState, move: TagMove): Promise<PutAnswer> {
  const { composition, signal, ports } = move;
  const name = formatReference(tag.reference);
  const held = await lookAfter(tag.tag, move);
  if (held === composition.index.digest) {
    if (signal.aborted) throw error.with({ moved: [name] });
    if (error.code === 'DIGEST_MISMATCH') {
      ports.emit({ kind: 'warning', text: `${error.message}; but ${name} holds the right one` });
    }
    return { kind: 'stored' };
  }
  if (held === 'unknown') {
    const message = `${error.message}; whether ${name} has moved could not be seen`;
    throw error.with({ message, moved: [`${name} (perhaps)`] });
  }
  const message = `${error.message}; ${name} ${held === 'nothing' ? 'is not there' : `holds ${held}`} now`;
  if (tag.kind === 'unknown') throw error.with({ message, moved: held === 'nothing' ? [] : [`${name} (perhaps)`] });
  const stayed = held === (tag.kind === 'present' ? tag.digest : 'nothing');
  // Whose doing it is cannot be told; only a registry that says it stored another content has owned up to it.
  throw error.with({ message, moved: stayed ? [] : [error.code === 'DIGEST_MISMATCH' ? name : `${name} (perhaps)`] });
}

/** What the tag holds now; the run may have been stopped, so that this look has a short time of its own. */
async function lookAfter(tag: string, { target, registry, ports }: TagMove): Promise<Digest | 'nothing' | 'unknown'> {
  const look = stoppable(new AbortController().signal);
  const done = stoppable(look.signal);
  ports.clock.sleep(LOOK, done.signal).then(
    () => look.stop(new Error('no answer in time')),
    // The look was over before.
    () => undefined,
  );
  try {
    const answer = await registry.getManifest(target.repository, tag, { signal: look.signal });
    if (answer.kind === 'found') return answer.manifest.digest;
    return answer.kind === 'absent' ? 'nothing' : 'unknown';
  } catch (error) {
    if (error instanceof PublishError || look.signal.aborted) return 'unknown';
    throw error;
  } finally {
    done.stop();
  }
}

/** A target that was not moved, or not seen to be. */
export function failedTarget(
  { reference }: Pick<TagState, 'reference'>,
  { code, message, exitCode }: PublishError,
  digest: Digest | undefined,
): TargetOutcome {
  const index = digest === undefined ? {} : { digest };
  return { reference: formatReference(reference), action: 'failed', ...index, error: { code, message, exitCode } };
}

/** What an update replaces. */
export function previousOf(tag: TagState): { readonly previous?: Digest } {
  return tag.kind === 'present' ? { previous: tag.digest } : {};
}

type Done = 'created' | 'updated' | 'unchanged';

/** What the tag holds now; undefined when it is not there. @throws PublishError why it could not be read */
async function read(tag: TagState, { target, registry, signal, guard }: TagMove): Promise<Digest | undefined> {
  const answer = await registry.getManifest(target.repository, tag.tag, { signal });
  if (answer.kind === 'found') return answer.manifest.digest;
  if (answer.kind === 'unknown' && guard !== undefined) throw unreadable(answer.error);
  return undefined;
}

/** Registries seldom say which child they dislike, so every child is named with its type. */
function refusedIndex(error: PublishError, { index, listed }: Composition): PublishError {
  const children = listed.map(({ child, entry }) => `${child.name} (${entry.mediaType})`);
  const mixed = new Set(listed.map(({ entry }) => entry.mediaType)).size > 1;
  return error.with({
    side: 'target',
    message: `${error.message}; the index is ${index.mediaType} and lists ${children.join(', ')}`,
    ...(mixed
      ? { hint: 'Rebuild the images so that all are Docker or all are OCI: this registry may refuse an index of both.' }
      : {}),
  });
}
