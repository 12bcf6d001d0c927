import { PublishError } from '../errors.ts';
import type { ListReport, PublishReport, ReportTotals, TargetOutcome } from './report.ts';

/** A report and what to call it in messages. */
export type NamedReport = { readonly name: string; readonly report: PublishReport };

/**
 * Joins the reports of the shards of one run, or of several runs that were not divided. Pure, and the same for every
 * order of the files.
 *
 * Of several reports of one shard one without a failure is taken before one with failures, then the one whose name is
 * last, numbers in it read as numbers. What was added up in the others does not count. Lists are in the order of their
 * references, since where they stood in a spec file only a run of the whole knows.
 *
 * @throws PublishError `REPORT_INVALID` for reports that do not belong together
 */
export function mergeReports(files: readonly NamedReport[]): PublishReport {
  const sorted = [...files].sort((one, other) => byName(one.name, other.name));
  const [first] = sorted;
  if (first === undefined) throw new Error('nothing to merge');
  for (const one of sorted) checkFits(one, first);
  const total = first.report.shard?.total;
  const { taken, warnings } = total === undefined ? { taken: sorted, warnings: [] } : onePerShard(sorted);
  const missing = missingOf(taken, total);
  const { dryRun, stage } = first.report;
  const lists = stage === 'content' ? joinParts(taken) : taken.flatMap(({ report }) => report.lists);
  return {
    schemaVersion: 1,
    merged: { reports: taken.length, ...(total === undefined ? {} : { shards: total, missing }) },
    ...(stage === undefined ? {} : { stage }),
    ...(dryRun === undefined ? {} : { dryRun }),
    lists: [...lists].sort((one, other) => byCodeUnit(nameOf(one), nameOf(other))),
    totals: sum(taken.map(({ report }) => report.totals)),
    warnings: [...new Set([...taken.flatMap(({ report }) => report.warnings), ...warnings, ...toldTwice(taken)])],
  };
}

/** Lists of which a target failed, or was not run. */
export function failedLists(report: PublishReport): readonly ListReport[] {
  return report.lists.filter(hasFailed);
}

function hasFailed({ targets }: ListReport): boolean {
  return targets.some(({ action }) => action === 'failed');
}

/** A reference by which to speak of a list. */
export function nameOf({ targets, content = [] }: ListReport): string {
  return targets[0]?.reference ?? content[0] ?? 'a list';
}

function checkFits({ name, report }: NamedReport, first: NamedReport): void {
  if (report.merged !== undefined) {
    throw invalid(`${name} is made of other reports, which would count twice`, 'Keep it in another folder.');
  }
  const kinds: readonly (readonly [string, (one: PublishReport) => unknown])[] = [
    ['shards', ({ shard }) => (shard === undefined ? 'none' : `of ${shard.total}`)],
    ['stage', ({ stage }) => stage ?? 'whole'],
    ['dry run', ({ dryRun }) => (dryRun === true ? 'yes' : 'no')],
  ];
  if (report.shard?.lists !== first.report.shard?.lists && report.shard?.total === first.report.shard?.total) {
    // A list that each of them took for the other's is in no report at all.
    throw invalid(
      `${name} and ${first.name} are of shards that were given different lists`,
      'Run every shard again with the same spec files, --var and N, with reports in an empty folder.',
    );
  }
  for (const [kind, of] of kinds) {
    const [own, others] = [of(report), of(first.report)];
    if (own === others) continue;
    throw invalid(
      `${name} and ${first.name} are not of one run: ${kind}: ${own}, and ${others}`,
      'Keep the reports of each run, and of each stage, in a folder of their own.',
    );
  }
}

function invalid(message: string, hint: string): PublishError {
  return new PublishError('REPORT_INVALID', message, hint);
}

/** @param sorted by their names */
function onePerShard(sorted: readonly NamedReport[]) {
  const byShard = new Map<number, NamedReport[]>();
  for (const one of sorted) {
    const index = one.report.shard?.index ?? 0;
    byShard.set(index, [...(byShard.get(index) ?? []), one]);
  }
  const warnings: string[] = [];
  const indexes = [...byShard.keys()].sort((one, other) => one - other);
  const taken = indexes.flatMap((index) => {
    const all = byShard.get(index) ?? [];
    const complete = all.filter(({ report }) => !report.lists.some(hasFailed));
    const best = complete.at(-1) ?? all.at(-1);
    if (best === undefined) return [];
    // The same file in two places, as artifacts of two attempts may hold it, is no news.
    const others = all.filter(({ report }) => JSON.stringify(report) !== JSON.stringify(best.report));
    if (others.length > 0) {
      const names = others.map(({ name }) => name).join(', ');
      const why = complete.length === 0 || complete.length === all.length ? 'the last of them' : 'without failures';
      warnings.push(`shard ${index} has ${all.length} reports: ${best.name} is taken, ${why}, and not ${names}`);
    }
    return [best];
  });
  return { taken, warnings };
}

function missingOf(taken: readonly NamedReport[], total = 0): readonly number[] {
  const there = new Set(taken.map(({ report }) => report.shard?.index));
  return Array.from({ length: total }, (_, at) => at + 1).filter((index) => !there.has(index));
}

/** Workers that divide a list by its sources report a part of it each. */
function joinParts(taken: readonly NamedReport[]): readonly ListReport[] {
  const joined = new Map<string, ListReport>();
  for (const list of taken.flatMap(({ report }) => report.lists)) {
    const references = [...list.targets.map(({ reference }) => reference), ...(list.content ?? [])];
    const key = references.sort(byCodeUnit).join(' ');
    const before = joined.get(key);
    joined.set(key, before === undefined ? list : joinTwo(before, list));
  }
  return [...joined.values()];
}

function joinTwo(one: ListReport, other: ListReport): ListReport {
  const failed = new Map<string, TargetOutcome>();
  for (const target of [...one.targets, ...other.targets]) {
    const before = failed.get(target.reference);
    // What failed says more than what was not run.
    const isNews = before === undefined || (before.action === 'failed' && before.error.code === 'NOT_RUN');
    if (isNews) failed.set(target.reference, target);
  }
  const content = [...new Set([...(one.content ?? []), ...(other.content ?? [])])].filter((name) => !failed.has(name));
  const images = [...one.images, ...other.images];
  return {
    targets: [...failed.values()],
    content,
    images: [...new Map(images.map((image) => [`${image.source} ${image.digest}`, image])).values()],
  };
}

/** Shards of one run have no reference in common: whoever has one was told another list of lists. */
function toldTwice(taken: readonly NamedReport[]): readonly string[] {
  const owners = new Map<string, string>();
  const warnings: string[] = [];
  for (const { name, report } of taken) {
    for (const { reference } of report.lists.flatMap(({ targets }) => (report.stage === 'content' ? [] : targets))) {
      const owner = owners.get(reference);
      if (owner !== undefined && owner !== name) {
        warnings.push(`${reference} is in ${owner} and in ${name}: these runs were given different lists`);
      }
      owners.set(reference, name);
    }
  }
  return warnings;
}

/** Workers work side by side: the time is that of the slowest. */
function sum(all: readonly ReportTotals[]): ReportTotals {
  const add = (of: (totals: ReportTotals) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    blobs: {
      present: add(({ blobs }) => blobs.present),
      mounted: add(({ blobs }) => blobs.mounted),
      copied: add(({ blobs }) => blobs.copied),
      skipped: add(({ blobs }) => blobs.skipped),
    },
    bytesSent: add(({ bytesSent }) => bytesSent),
    bytesSaved: add(({ bytesSaved }) => bytesSaved),
    requests: add(({ requests }) => requests),
    retries: add(({ retries }) => retries),
    seconds: all.reduce((most, { seconds }) => Math.max(most, seconds), 0),
  };
}

/** `shard-10` after `shard-9`; no locale decides. */
function byName(one: string, other: string): number {
  const [parts, others] = [one, other].map((name) => name.match(/\d+|\D+/g) ?? []);
  for (let at = 0; at < Math.max(parts?.length ?? 0, others?.length ?? 0); at += 1) {
    const [left = '', right = ''] = [parts?.[at], others?.[at]];
    const areNumbers = /^\d/.test(left) && /^\d/.test(right);
    const order = areNumbers ? Number(left) - Number(right) : byCodeUnit(left, right);
    if (order !== 0) return order;
  }
  return byCodeUnit(one, other);
}

function byCodeUnit(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
