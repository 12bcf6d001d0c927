import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import type { BuiltIndex } from '../model/image-index.ts';
import { formatReference } from '../model/reference.ts';
import type { PutAnswer, RegistryClient } from '../registry/client.ts';
import type { Composition } from './compose.ts';
import { allOrNone } from './once.ts';
import type { ChildPlacement } from './place-children.ts';
import type { PublishPorts } from './ports.ts';
import { putUntilTaken } from './put.ts';
import type { TargetOutcome } from './report.ts';
import type { Location, TagState } from './resolved.ts';
import { stoppable } from './stop.ts';

/** How long a look at a tag may take whose PUT was not answered, in ms. */
const LOOK = 5_000;

/** What moving tags needs; `placement` puts what the registry says is missing. */
export type TagMove = {
  readonly target: Location;
  readonly registry: RegistryClient;
  readonly composition: Composition;
  readonly placement: ChildPlacement;
  readonly ports: PublishPorts;
  readonly signal: AbortSignal;
};

/**
 * PUTs the index once per tag, last of all. A tag that holds the digest already is left alone, which is what makes a
 * second run pass on registries with immutable tags. TARGET goes first and alone: when the registry refuses the
 * index, no tag has moved.
 *
 * @throws PublishError `MANIFEST_REFUSED`, `TAG_IMMUTABLE` and others; its `moved` names the tags that moved before
 */
export async function moveTags(tags: readonly TagState[], move: TagMove): Promise<readonly TargetOutcome[]> {
  const moved: string[] = [];
  const one = async (tag: TagState): Promise<TargetOutcome> => {
    const outcome = await moveTag(tag, move);
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
    throw error instanceof PublishError ? error.with({ moved: [...moved, ...(error.moved ?? [])] }) : error;
  }
}

async function moveTag(tag: TagState, move: TagMove): Promise<TargetOutcome & { action: Done }> {
  const { composition, placement, ports, signal } = move;
  const { index, listed } = composition;
  const reference = formatReference(tag.reference);
  if (tag.kind === 'present' && tag.digest === index.digest)
    return { reference, digest: index.digest, action: 'unchanged' };
  const children = [...new Set(listed.map(({ entry }) => entry.digest))];
  const answer = await putUntilTaken(
    () => putTag(tag, move),
    (round) => placement.repair(children, round),
    ports.clock,
    signal,
  );
  if (answer.kind === 'immutable') {
    if (await holds(tag.tag, index, move)) return { reference, digest: index.digest, action: 'unchanged' };
    throw answer.error.with({ side: 'target' });
  }
  if (answer.kind === 'refused') throw refusedIndex(answer.error, composition);
  return { reference, digest: index.digest, action: tag.kind === 'absent' ? 'created' : 'updated', ...previousOf(tag) };
}

/**
 * PUTs the index to the tag. When no answer came, or one that says nothing (5xx), the tag may have moved all the same:
 * it is read once, so that nobody is told a guess.
 */
async function putTag(tag: TagState, move: TagMove): Promise<PutAnswer> {
  const { target, registry, composition, signal } = move;
  const lost = async (error: PublishError): Promise<PutAnswer> => {
    const reference = formatReference(tag.reference);
    const held = await lookAfter(tag.tag, move);
    if (held === composition.index.digest && !signal.aborted) return { kind: 'stored' };
    if (held === composition.index.digest) throw error.with({ moved: [reference] });
    if (held !== 'unknown') throw error;
    const message = `${error.message}; whether ${reference} has moved could not be seen`;
    throw error.with({ message, moved: [`${reference} (perhaps)`] });
  };
  try {
    const answer = await registry.putManifest(target.repository, tag.tag, composition.index, { signal });
    return answer.kind === 'refused' && answer.error.code === 'REGISTRY_FAILED' ? await lost(answer.error) : answer;
  } catch (error) {
    if (error instanceof PublishError && error.moved === undefined && isSilent(error)) return lost(error);
    throw error;
  }
}

/** Failures that leave open whether the PUT was carried out. */
function isSilent({ code }: PublishError): boolean {
  return ['NETWORK_FAILED', 'TIMED_OUT', 'INTERRUPTED', 'TERMINATED'].includes(code);
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

/** What an update replaces. */
export function previousOf(tag: TagState): Pick<TargetOutcome, 'previous'> {
  return tag.kind === 'present' ? { previous: tag.digest } : {};
}

type Done = 'created' | 'updated' | 'unchanged';

/** Somebody else may have published the same index a moment ago. */
async function holds(tag: string, index: BuiltIndex, { target, registry, signal }: TagMove): Promise<boolean> {
  const answer = await registry.getManifest(target.repository, tag, { signal });
  return answer.kind === 'found' && answer.manifest.digest === index.digest;
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
