import { PublishError } from '../errors.ts';
import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { type Manifest, parseManifest } from '../model/manifest.ts';
import type { PutAnswer } from '../registry/client.ts';
import { allOrNone } from './once.ts';
import type { PlacementRun } from './place-children.ts';
import type { ReferrerRun } from './place-referrers.ts';
import type { FoundReferrer, FoundReferrers, FoundTag } from './referrers.ts';
import { inTurn, repositoryName } from './run-memory.ts';

/**
 * A tag of cosign's with what it is at the target. `due`: it is not there, or may be moved. `same`: it holds what the
 * source's holds. `left`: it is left as it is, and what the source's holds is not taken along by it.
 */
export type DueTag = FoundTag & { readonly state: 'due' | 'same' | 'left' };

/** What becomes of a tag of cosign's that exists at the target. */
export type TagVerdict = 'same' | 'keep' | 'move' | 'differs';

/**
 * Such a tag is a list that grows: each signature is a layer of its manifest, with what signs it in the annotations. It
 * may hold what the source lacks, and then it must not be moved. Of two lists the one that holds everything of the other
 * wins, which loses nothing: `keep` when that is the target's, `move` when that is the source's, since it was signed once
 * more after it had been published.
 *
 * Otherwise it `differs` and is left alone. The two could be merged, as `cosign sign` does for one signature more, but
 * the result would be a manifest that neither side has made: an attestation or signature that was replaced or withdrawn
 * at one side (`cosign attest --replace`, `cosign clean`) would come back from the other, and nobody could tell. What to
 * trust is for those to say who hold the keys; a warning tells them. Pure.
 */
export function judgeTag(target: Manifest, source: Manifest): TagVerdict {
  if (target.digest === source.digest) return 'same';
  if (target.kind !== source.kind) return 'differs';
  const [there, ours] = [partsOf(target), partsOf(source)];
  if (ours.every((part) => there.includes(part))) return 'keep';
  return there.every((part) => ours.includes(part)) ? 'move' : 'differs';
}

function partsOf(manifest: Manifest): readonly string[] {
  return (manifest.kind === 'image' ? manifest.layers : manifest.manifests).map(spell);
}

/** Two signatures may share their payload, and differ in an annotation alone. */
function spell({ digest, mediaType, annotations = {} }: Descriptor): string {
  const sorted = Object.entries(annotations).sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([digest, mediaType, sorted]);
}

/** What the tags are at the target now, before anything is placed for them. What differs is told. */
export function lookAtTags(found: FoundReferrers, list: PlacementRun): Promise<readonly DueTag[]> {
  const manifests = new Map(found.manifests.map(({ manifest }) => [manifest.digest, manifest]));
  const looks = found.tags.map(async (one): Promise<DueTag> => {
    const verdict = await look(one.tag, manifests.get(one.digest), list, list.signal);
    if (verdict === 'same') return { ...one, state: 'same' };
    return { ...one, state: verdict === 'absent' || verdict === 'move' ? 'due' : 'left' };
  });
  return allOrNone(looks, list.stop);
}

async function look(
  tag: string,
  source: Manifest | undefined,
  { registry, target, ports }: PlacementRun,
  signal: AbortSignal,
): Promise<TagVerdict | 'absent'> {
  if (source === undefined) throw new Error(`${tag} holds what was not found`);
  const answer = await registry.getManifest(target.repository, tag, { signal });
  if (answer.kind === 'unknown') throw answer.error.with({ side: 'target' });
  if (answer.kind === 'absent') return 'absent';
  const { bytes, digest, contentType } = answer.manifest;
  const name = `${repositoryName(target)}:${tag}`;
  let verdict: TagVerdict;
  try {
    verdict = judgeTag(parseManifest(bytes, digest, contentType, name), source);
  } catch (error) {
    // Whatever it is, it is not ours to overwrite.
    if (!(error instanceof PublishError)) throw error;
    verdict = 'differs';
  }
  if (verdict === 'differs') {
    const text = `${name} holds ${digest}, not the source's ${source.digest}, and each has what the other lacks: it is left as it is`;
    ports.emit({ kind: 'warning', text });
  }
  return verdict;
}

/** Writes cosign's tags, each at most once, and never over what it would lose. */
export type TagWriter = {
  /** @see PlacementRun.putAs: a manifest with such a tag is put by it, which saves the PUT by its digest. */
  readonly putAs: NonNullable<PlacementRun['putAs']>;
  /** Writes the tags of what was there already, or has several. */
  finish(): Promise<void>;
};

/** A writer of the tags that are due; the tag is read once more just before its PUT, since signers may be at work. */
export function createTagWriter(
  tags: readonly DueTag[],
  wanted: readonly FoundReferrer[],
  run: ReferrerRun,
): TagWriter {
  const { list, memory } = run;
  const { registry, target, ports } = list;
  const found = new Map(wanted.map((one) => [one.manifest.digest, one]));
  const open = new Set(tags.filter(({ state }) => state === 'due'));

  /** Undefined: the tag is left as it is. */
  function write(
    one: DueTag,
    put: (tag: string) => Promise<PutAnswer>,
    signal: AbortSignal,
  ): Promise<PutAnswer | undefined> {
    return inTurn(memory.repository(target), one.tag, async () => {
      const verdict = await look(one.tag, found.get(one.digest)?.manifest, list, signal);
      if (verdict === 'same') {
        open.delete(one);
        return { kind: 'stored' };
      }
      const answer = verdict === 'absent' || verdict === 'move' ? await put(one.tag) : undefined;
      if (answer?.kind === 'immutable') {
        ports.emit({ kind: 'warning', text: `${answer.error.message}; it is left as it is` });
      }
      if (answer === undefined || answer.kind === 'stored' || answer.kind === 'immutable') open.delete(one);
      return answer?.kind === 'immutable' ? undefined : answer;
    });
  }

  async function putAs(digest: Digest, put: (reference: string) => Promise<PutAnswer>, signal: AbortSignal) {
    const tag = [...open].find((one) => one.digest === digest);
    const send = async (): Promise<PutAnswer> =>
      (tag === undefined ? undefined : await write(tag, put, signal)) ?? put(digest);
    const answer = await send();
    const subject = found.get(digest)?.refersTo;
    if (answer.kind !== 'incomplete' || subject === undefined) return answer;
    // The index comes last, with its tag, and the spec lets referrers come before; serverless-registry does not.
    const index = run.putIndex(subject);
    if (index === undefined) return answer;
    await index;
    return send();
  }

  async function finishOne(one: DueTag): Promise<void> {
    const manifest = found.get(one.digest)?.manifest;
    const bytes = memory.bytes.get(one.digest);
    if (manifest === undefined || bytes === undefined) throw new Error(`${one.tag} holds what was not found`);
    const { mediaType, digest } = manifest;
    const { signal } = list;
    const put = (tag: string): Promise<PutAnswer> =>
      registry.putManifest(target.repository, tag, { bytes, digest, mediaType }, { signal });
    const answer = await write(one, put, signal);
    if (answer !== undefined && answer.kind !== 'stored') throw answer.error.with({ side: 'target' });
  }

  return {
    putAs,
    finish: async () => {
      await allOrNone([...open].map(finishOne), list.stop);
    },
  };
}
