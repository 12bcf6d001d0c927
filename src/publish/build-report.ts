import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { formatReference, type Reference } from '../model/reference.ts';
import type { Composition, ListedChild } from './compose.ts';
import { failedTarget, previousOf } from './move-tags.ts';
import type { PlannedChild, PublishPlan } from './plan.ts';
import type { ListResult, RepositoryResult } from './publish-list.ts';
import type { BlobOutcome, ImageOutcome, ListReport, PublishReport, ReportTotals, TargetOutcome } from './report.ts';
import { repositoryName } from './run-memory.ts';

/** Figures of the run that the report adds to what was done. */
export type Measured = {
  readonly requests: number;
  readonly retries: number;
  readonly seconds: number;
  readonly warnings: readonly string[];
};

/** What is kept of a list that has ended: what the report tells of it, and what its totals count. */
export type ReportedList = {
  readonly report: ListReport;
  readonly placed: readonly { readonly repository: string; readonly blobs: readonly BlobOutcome[] }[];
};

/**
 * The report of a run, whether it went well or not, from those of its lists. Pure. `dryRun`: actions as they would be,
 * nothing placed.
 */
export function buildReport(lists: readonly ReportedList[], measured: Measured, dryRun: boolean): PublishReport {
  return {
    schemaVersion: 1,
    ...(dryRun ? { dryRun } : {}),
    lists: lists.map(({ report }) => report),
    totals: sumUp(lists, measured),
    warnings: measured.warnings,
  };
}

/** Turns a list that has ended into its part of the report, so that all it worked with can be let go. Pure. */
export function reportEnded(list: ListResult): ReportedList {
  const placed = list.repositories.flatMap((one) => {
    const { plan, execution, target } = one;
    if (plan === undefined || execution === undefined) return [];
    const taken = [...execution.referrers.values()].flatMap(({ blobs }) => blobs);
    const sizes = sizesOf(plan);
    const blobs = [...plan.children.flatMap((child) => blobsOf(child, one, sizes)), ...taken];
    return [{ repository: repositoryName(target), blobs }];
  });
  return { report: reportList(list), placed };
}

function reportList(list: ListResult): ListReport {
  const { composition, repositories, targets, stage } = list;
  const isContent = stage === 'content';
  // Of a tag that was not to be moved there is nothing to tell but a failure.
  const told = isContent ? repositories.filter(({ error }) => error !== undefined) : repositories;
  const outcomes = new Map(
    told.flatMap((one) =>
      one.references.map((reference) => [formatReference(reference), outcomeOf(reference, one, list)] as const),
    ),
  );
  const places = repositories.map(placesIn);
  return {
    targets: targets.flatMap((reference) => outcomes.get(formatReference(reference)) ?? []),
    ...(isContent ? { content: targets.map(formatReference).filter((name) => !outcomes.has(name)) } : {}),
    ...(composition === undefined || isContent ? {} : { index: describeIndex(composition) }),
    images: [
      ...(composition?.listed ?? []).map((listed): ImageOutcome => {
        return { ...describe(listed), placed: places.flatMap((placedIn) => placedIn(listed.entry.digest)) };
      }),
      ...reportReferrers(list),
    ],
  };
}

/** What was taken along with the children, or would be; each once. */
function reportReferrers({ repositories, referrers = [] }: ListResult): readonly ImageOutcome[] {
  const images = new Map<Digest, ImageOutcome>();
  for (const { name: source, manifest } of referrers) {
    const { digest, size } = manifest;
    images.set(digest, { source, digest, size, kind: 'artifact', placed: [] });
  }
  for (const { target, execution } of repositories) {
    for (const { child, manifest, blobs } of execution?.referrers.values() ?? []) {
      const { name: source, digest, size, kind } = child;
      const before = images.get(digest) ?? { source, digest, size, kind, placed: [] };
      const here = { repository: repositoryName(target), manifest, blobs };
      images.set(digest, { ...before, placed: [...before.placed, here] });
    }
  }
  return [...images.values()];
}

function outcomeOf(reference: Reference, one: RepositoryResult, list: ListResult): TargetOutcome {
  const { composition, notRun, stage } = list;
  const name = formatReference(reference);
  const digest = stage === 'content' ? undefined : composition?.index.digest;
  const done = one.execution?.tags.get(name);
  const failed = one.error === undefined ? undefined : failedTarget({ reference }, one.error, digest);
  const outcome = done ?? failed ?? asItWouldBe(reference, one, digest);
  if (notRun !== true || outcome.action !== 'failed') return outcome;
  return { ...outcome, error: { code: 'NOT_RUN', message: outcome.error.message } };
}

function asItWouldBe(reference: Reference, { tags = [] }: RepositoryResult, digest: Digest | undefined): TargetOutcome {
  const name = formatReference(reference);
  const tag = tags.find((state) => formatReference(state.reference) === name);
  if (tag === undefined || digest === undefined) throw new Error(`nothing is known of ${name}`);
  const same = tag.kind === 'present' && tag.digest === digest;
  const action = same ? 'unchanged' : tag.kind === 'absent' ? 'created' : 'updated';
  return { reference: name, digest, action, ...(same ? {} : previousOf(tag)) };
}

/** What a child came to in one repository; nothing, where the list failed before it was seen to be there. */
function placesIn(one: RepositoryResult): (digest: Digest) => ImageOutcome['placed'] {
  const { plan, execution, target, error } = one;
  if (plan === undefined || execution === undefined) return () => [];
  const children = new Map(plan.children.map((child) => [child.digest, child]));
  const sizes = sizesOf(plan);
  const repository = repositoryName(target);
  return (digest) => {
    const known = execution.manifests.get(digest);
    if (known === undefined && error !== undefined) return [];
    const child = children.get(digest);
    const blobs = child === undefined ? [] : blobsOf(child, one, sizes);
    return [{ repository, manifest: known ?? 'present', blobs }];
  };
}

type Sizes = ReadonlyMap<Digest, number>;

function sizesOf({ blobs }: PublishPlan): Sizes {
  return new Map(blobs.map(({ digest, size }) => [digest, size]));
}

/** A child's blobs; of a list that failed those of which something is known. */
function blobsOf(child: PlannedChild, { execution, error }: RepositoryResult, sizes: Sizes): readonly BlobOutcome[] {
  const outcome = (digest: Digest): readonly BlobOutcome[] => {
    const known = execution?.blobOutcome(digest);
    if (known !== undefined) return [known];
    const isThere = error === undefined || execution?.manifests.has(child.digest) === true;
    return isThere ? [{ digest, size: sizes.get(digest) ?? 0, how: 'present', bytesSent: 0 }] : [];
  };
  const skipped = child.skipped.flatMap(({ digest, size }): readonly BlobOutcome[] =>
    // Another image may name the same bytes as a layer of its own, and then they are there.
    sizes.has(digest) ? outcome(digest) : [{ digest, size, how: 'skipped', bytesSent: 0, why: 'foreign layer' }],
  );
  return [...child.blobs.flatMap(outcome), ...skipped];
}

function describe({ child, entry }: ListedChild): Omit<ImageOutcome, 'placed'> {
  return {
    source: child.name,
    digest: entry.digest,
    size: child.manifest.size,
    kind: child.kind,
    ...(entry.platform === undefined ? {} : { platform: entry.platform }),
  };
}

function describeIndex({ index }: Composition): Exclude<ListReport['index'], undefined> {
  const manifests: readonly Descriptor[] = index.manifests;
  return { mediaType: index.mediaType, digest: index.digest, size: index.bytes.byteLength, manifests };
}

/** A (repository, digest) counts once, however many images and lists share it. */
function sumUp(lists: readonly ReportedList[], measured: Measured): ReportTotals {
  const blobs = { present: 0, mounted: 0, copied: 0, skipped: 0 };
  let bytesSent = 0;
  let bytesSaved = 0;
  for (const outcome of eachPlaced(lists)) {
    blobs[outcome.how] += 1;
    bytesSent += outcome.bytesSent;
    if (outcome.how === 'present' || outcome.how === 'mounted') bytesSaved += outcome.size;
  }
  const { requests, retries, seconds } = measured;
  return { blobs, bytesSent, bytesSaved, requests, retries, seconds: Math.round(seconds * 1000) / 1000 };
}

const EFFORT = { skipped: 0, present: 1, mounted: 2, copied: 3 } as const;

/** Of what several lists tell of a blob, that counts for which most was done: one has found there what another brought. */
function eachPlaced(lists: readonly ReportedList[]): readonly BlobOutcome[] {
  const outcomes = new Map<string, Map<Digest, BlobOutcome>>();
  for (const { repository, blobs } of lists.flatMap(({ placed }) => placed)) {
    const here = outcomes.get(repository) ?? new Map<Digest, BlobOutcome>();
    outcomes.set(repository, here);
    for (const blob of blobs) {
      const before = here.get(blob.digest);
      if (before === undefined || EFFORT[before.how] < EFFORT[blob.how]) here.set(blob.digest, blob);
    }
  }
  return [...outcomes.values()].flatMap((here) => [...here.values()]);
}
