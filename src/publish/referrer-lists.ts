import { PublishError } from '../errors.ts';
import { MEDIA_TYPES } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { type BuiltIndex, buildIndex } from '../model/image-index.ts';
import type { Manifest } from '../model/manifest.ts';
import { describeReferrer } from '../model/referrers.ts';
import type { PutAnswer, ReferrersAnswer } from '../registry/client.ts';
import type { PlacementRun } from './place-children.ts';
import { putUntilTaken, type Repair } from './put.ts';
import { inTurn, type RepositoryMemory, repositoryName } from './run-memory.ts';

/** What a fallback tag lists. */
type TagList = Extract<ReferrersAnswer, { via: 'tag' }>;

/**
 * Sees to it that these are listed as referrers in the target repository. A registry with the API does so itself, which
 * its list shows, or `OCI-Subject` in its answers to the PUTs: a repository that was not there before may have had no
 * list, either. Without the API the fallback tag is read anew, what is lacking is added, and it is put.
 *
 * Somebody else who writes the tag between that GET and the PUT would lose; the spec has no way to hold them off.
 *
 * @param before what the target listed before anything was put
 * @see distribution-spec v1.1.1 spec.md, section "Pushing Manifests with Subject"
 */
export async function listReferred(
  subject: Digest,
  before: Extract<ReferrersAnswer, { kind: 'listed' }>,
  due: readonly Manifest[],
  list: PlacementRun,
  here: RepositoryMemory,
): Promise<void> {
  if (before.via === 'api') return;
  const known = new Set(before.referrers.map(({ digest }) => digest));
  if (due.every(({ digest }) => known.has(digest) || here.noted.has(digest))) return;
  const { registry, target, ports, signal } = list;
  await inTurn(here, before.tag, async () => {
    const now = await registry.listReferrers(target.repository, subject, { signal });
    if (now.kind === 'unknown') throw now.error.with({ side: 'target' });
    if (now.via === 'api') return;
    const problem = now.odd?.message ?? (await putList(now, due, list));
    if (problem === undefined) return;
    const text = `referrers of ${repositoryName(target)}@${subject} are there, but not listed under ${now.tag}: ${problem}`;
    ports.emit({ kind: 'warning', text });
  });
}

/** Why the list had to be left as it is; undefined when it is good. */
async function putList(tag: TagList, due: readonly Manifest[], list: PlacementRun): Promise<string | undefined> {
  const { registry, target, ports, signal } = list;
  const { repository } = target;
  let current = tag;
  const put = async (): Promise<PutAnswer> => {
    const index = listWith(current, due);
    return index === undefined ? { kind: 'stored' } : registry.putManifest(repository, tag.tag, index, { signal });
  };
  /** Of a list that nobody keeps entries may be gone, and some registries take no index with such. */
  const repair = async (): Promise<Repair> => {
    const seen = await Promise.all(
      current.referrers.map(({ digest }) => registry.hasManifest(repository, digest, { signal })),
    );
    const referrers = current.referrers.filter((_, position) => seen[position]?.kind !== 'absent');
    const isSame = referrers.length === current.referrers.length;
    current = { ...current, referrers };
    return isSame ? 'nothing missing' : 'repaired';
  };
  const answer = await putUntilTaken<never>(put, repair, ports.clock, signal);
  if (answer.kind === 'immutable') return answer.error.message;
  if (answer.kind === 'refused') throw answer.error.with({ side: 'target' });
  if (answer.doubt !== undefined) {
    const after = await registry.getManifest(repository, tag.tag, { signal });
    if (after.kind !== 'found' || after.manifest.digest !== listWith(current, due)?.digest) throw answer.doubt;
  }
  return undefined;
}

/**
 * The index that a fallback tag has to hold so that these are listed: what it holds now, every entry as it is, and behind
 * it what is lacking. Undefined when nothing is. Pure.
 *
 * @throws PublishError `INDEX_TOO_LARGE`
 */
export function listWith(
  { tag, referrers, annotations }: Pick<TagList, 'tag' | 'referrers' | 'annotations'>,
  due: readonly Manifest[],
): BuiltIndex | undefined {
  const lacking = due.filter(({ digest }) => !referrers.some((entry) => entry.digest === digest));
  if (lacking.length === 0) return undefined;
  try {
    return buildIndex({
      mediaType: MEDIA_TYPES.ociIndex,
      manifests: [...referrers, ...lacking.map(describeReferrer)],
      ...(annotations === undefined ? {} : { annotations }),
    });
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    const hint = 'Remove referrers that nobody needs any more, or publish without --referrers all.';
    throw error.with({ message: `listing referrers under ${tag}: ${error.message}`, hint, side: 'target' });
  }
}
