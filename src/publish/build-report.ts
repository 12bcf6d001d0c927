import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { formatReference } from '../model/reference.ts';
import type { Composition, ListedChild } from './compose.ts';
import type { Execution } from './execute.ts';
import { previousOf } from './move-tags.ts';
import type { PlannedChild, PublishPlan } from './plan.ts';
import type { Measured } from './publish.ts';
import type { BlobOutcome, ImageOutcome, ListReport, PublishReport, ReportTotals, TargetOutcome } from './report.ts';
import type { TagState } from './resolved.ts';

/** The report of a finished run. Pure. */
export function buildReport(plan: PublishPlan, execution: Execution, measured: Measured): PublishReport {
  const { composition, manifests, blobOutcome, tags } = execution;
  const children = new Map(plan.children.map((child) => [child.digest, child]));
  const sizes = new Map(plan.blobs.map((blob) => [blob.digest, blob.size]));
  const outcomeOf = (digest: Digest): BlobOutcome =>
    blobOutcome(digest) ?? { digest, size: sizes.get(digest) ?? 0, how: 'present', bytesSent: 0 };
  const repository = `${plan.target.host}/${plan.target.repository}`;
  const images = composition.listed.map((listed): ImageOutcome => {
    const child = children.get(listed.entry.digest);
    const manifest = manifests.get(listed.entry.digest) ?? 'present';
    const blobs = child === undefined ? [] : outcomesOf(child, sizes, outcomeOf);
    return { ...describe(listed), placed: [{ repository, manifest, blobs }] };
  });
  return {
    schemaVersion: 1,
    lists: [{ targets: tags, index: describeIndex(composition), images }],
    totals: sumUp(images, measured),
    warnings: measured.warnings,
  };
}

/** The report of a run that only looked: actions as they would be, nothing placed. Pure. */
export function dryReport(composition: Composition, tags: readonly TagState[], measured: Measured): PublishReport {
  const { index, listed } = composition;
  const targets = tags.map((tag): TargetOutcome => {
    const same = tag.kind === 'present' && tag.digest === index.digest;
    const action = same ? 'unchanged' : tag.kind === 'absent' ? 'created' : 'updated';
    const previous = same ? {} : previousOf(tag);
    return { reference: formatReference(tag.reference), digest: index.digest, action, ...previous };
  });
  const images = listed.map((child): ImageOutcome => ({ ...describe(child), placed: [] }));
  return {
    schemaVersion: 1,
    dryRun: true,
    lists: [{ targets, index: describeIndex(composition), images }],
    totals: sumUp([], measured),
    warnings: measured.warnings,
  };
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

function describeIndex({ index }: Composition): ListReport['index'] {
  const manifests: readonly Descriptor[] = index.manifests;
  return { mediaType: index.mediaType, digest: index.digest, size: index.bytes.byteLength, manifests };
}

function outcomesOf(
  child: PlannedChild,
  planned: ReadonlyMap<Digest, number>,
  outcomeOf: (digest: Digest) => BlobOutcome,
): readonly BlobOutcome[] {
  const skipped = child.skipped.map(
    ({ digest, size }): BlobOutcome =>
      // Another image may name the same bytes as a layer of its own, and then they are there.
      planned.has(digest) ? outcomeOf(digest) : { digest, size, how: 'skipped', bytesSent: 0, why: 'foreign layer' },
  );
  return [...child.blobs.map(outcomeOf), ...skipped];
}

/** A (repository, digest) counts once, however many images share it. */
function sumUp(images: readonly ImageOutcome[], measured: Measured): ReportTotals {
  const blobs = { present: 0, mounted: 0, copied: 0, skipped: 0 };
  const seen = new Set<string>();
  let bytesSent = 0;
  let bytesSaved = 0;
  for (const { repository, blobs: outcomes } of images.flatMap((image) => image.placed)) {
    for (const outcome of outcomes) {
      const key = `${repository} ${outcome.digest}`;
      if (seen.has(key)) continue;
      seen.add(key);
      blobs[outcome.how] += 1;
      bytesSent += outcome.bytesSent;
      if (outcome.how === 'present' || outcome.how === 'mounted') bytesSaved += outcome.size;
    }
  }
  const { requests, retries, seconds } = measured;
  return { blobs, bytesSent, bytesSaved, requests, retries, seconds: Math.round(seconds * 1000) / 1000 };
}
