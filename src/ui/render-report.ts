import type { PublishEvent } from '../publish/events.ts';
import type {
  BlobHow,
  BlobOutcome,
  ImageOutcome,
  ListReport,
  PublishReport,
  TargetOutcome,
} from '../publish/report.ts';
import { formatBytes, formatDuration, plural } from './format.ts';
import { digestCell, imageLabel } from './labels.ts';
import { type Cell, type Column, tableLines } from './table.ts';
import { untrusted } from './text.ts';
import { flow, page, paint, type Style, type Theme } from './theme.ts';

/** The plan as `publish` announces it. */
export type PlanEvent = Extract<PublishEvent, { kind: 'plan' }>;

const PLAN_COLUMNS: readonly Column[] = [
  { title: 'PLATFORM' },
  { title: 'SOURCE', shrink: 'start' },
  { title: 'DIGEST', drop: 1 },
  { title: 'BLOBS', align: 'right', drop: 2 },
  { title: 'SIZE', align: 'right' },
];

/** What a run is about to do, for stderr; how a mount will be answered is known only by asking. */
export function renderPlan(plan: PlanEvent, theme: Theme): string {
  const rows = plan.images.map((image) => [
    imageLabel(image),
    withoutDigest(image.source),
    digestCell(image.digest),
    String(image.blobs),
    formatBytes(image.bytes),
  ]);
  const size = `${plural(plan.images.length, 'manifest')}, ${plural(plan.blobs, 'blob')}, ${formatBytes(plan.bytes)}`;
  const head = `${paint(theme, 'strong', 'plan')} ${untrusted(plan.target)}   ${size}`;
  return page([head, ...tableLines(PLAN_COLUMNS, rows, theme)], theme);
}

const COUNTS: readonly BlobHow[] = ['mounted', 'copied', 'present', 'skipped'];

const IMAGE_COLUMNS: readonly Column[] = [
  { title: 'PLATFORM' },
  { title: 'DIGEST', drop: 1 },
  { title: 'SIZE', align: 'right' },
  { title: 'BLOBS', align: 'right', drop: 3 },
  ...COUNTS.map((how) => ({ title: how.toUpperCase(), align: 'right' as const, drop: 2 })),
  { title: 'HOW', shrink: true },
];

const LIST_COLUMNS: readonly Column[] = [
  { title: 'RESULT' },
  { title: 'REFERENCE', shrink: 'start' },
  { title: 'DIGEST', drop: 1 },
  { title: 'PLATFORMS', align: 'right', drop: 3 },
  ...COUNTS.map((how) => ({ title: how.toUpperCase(), align: 'right' as const, drop: 2 })),
];

const TARGET_COLUMNS = LIST_COLUMNS.filter(({ title }) => title !== 'DIGEST' && title !== 'PLATFORMS');

/** What a run did, for stderr: one list with its platforms, or a line for each of several lists. */
export function renderSummary(report: PublishReport, theme: Theme): string {
  const [only, ...more] = report.lists;
  const isOne = only !== undefined && more.length === 0 && only.content === undefined;
  const lines = isOne ? oneList(only, report, theme) : manyLists(report, theme);
  const end = report.dryRun ? ['dry run: nothing was mounted, sent or written'] : flow(totals(report), theme, '  ');
  return page([...lines, ...end], theme);
}

function oneList(list: ListReport, report: PublishReport, theme: Theme): string[] {
  const [first, ...others] = list.targets;
  if (first === undefined) return [];
  const repositories = placesOf(list);
  const images = plural(list.images.filter((image) => image.kind === 'image').length, 'platform');
  const time = report.dryRun ? '' : ` in ${formatDuration(report.totals.seconds * 1000)}`;
  const several = repositories.length > 1;
  const head = several
    ? `${images} to ${repositories.length} repositories${time}   ${list.index?.digest ?? ''}`.trimEnd()
    : `${verb(first, report, theme)} ${pinned(first)}   ${images}${time}`;
  const rows = list.images.map((image) => [
    imageLabel(image),
    digestCell(image.digest),
    imageSize(image),
    blank(outcomes(image).length),
    ...COUNTS.map((how) => blank(count(outcomes(image), how))),
    howOf(image),
  ]);
  const tags = others.map((target) => `  ${verb(target, report, theme)} ${untrusted(target.reference)}`);
  const targets = several ? tableLines(TARGET_COLUMNS, targetRows(list, report), theme) : tags;
  // The plan of a dry run has told the images already.
  const table = report.dryRun ? [] : tableLines(IMAGE_COLUMNS, rows, theme);
  return [head, ...table, ...targets, ...failures([list], theme)];
}

/** A line for each target, the blobs of its repository on its first one. */
function targetRows(list: ListReport, report: PublishReport): Cell[][] {
  const told = new Set<string>();
  return list.targets.map((target) => {
    const place = placeOf(target);
    const blobs = told.has(place)
      ? undefined
      : distinct(list.images.flatMap(({ placed }) => placed.filter(({ repository }) => repository === place)));
    told.add(place);
    return [
      { text: word(target, report), style: styleOf(target) },
      target.reference,
      ...COUNTS.map((how) => (blobs === undefined ? '' : blank(count(blobs, how)))),
    ];
  });
}

/** Repositories of the targets, in their order. */
function placesOf({ targets }: ListReport): readonly string[] {
  return [...new Set(targets.map(placeOf))];
}

/** `HOST/REPOSITORY` of a tag. */
function placeOf({ reference }: TargetOutcome): string {
  const name = reference.replace(/:[^/:]*$/, '');
  // A layout without a tag.
  return name === 'oci' ? reference : name;
}

const NOT_RUN = 'not run';

/** What a tag needs is there; the tag was not touched. */
const PLACED: Cell = { text: 'placed', style: 'good' };

/** The run ended, for something else, before the list was begun or done: nothing is wrong with it. */
function isNotRun(target: TargetOutcome): boolean {
  return target.action === 'failed' && target.error.code === 'NOT_RUN';
}

/** Different failures that are told at most; the table above them has every target. */
const FAILURES = 20;

/** What ended each failed target; what one error says of several targets is said once. */
function failures(lists: readonly ListReport[], theme: Theme): string[] {
  const names = new Map<string, string[]>();
  for (const target of lists.flatMap(({ targets }) => targets)) {
    if (target.action !== 'failed') continue;
    const { code, message } = target.error;
    const text = isNotRun(target) ? NOT_RUN : `${untrusted(message, 1000)} (${code})`;
    names.set(text, [...(names.get(text) ?? []), untrusted(target.reference, 300)]);
  }
  const lines = [...names].map(([text, references]) => {
    const more = references.length > 3 ? ` and ${references.length - 3} more` : '';
    const shown = `${references.slice(0, 3).join(', ')}${more}`;
    if (text === NOT_RUN) return `  ${paint(theme, 'quiet', `${NOT_RUN}:`)} ${shown}`;
    return `  ${paint(theme, 'bad', 'failed:')} ${shown}: ${text}`;
  });
  const rest = lines.length - FAILURES;
  return rest <= 0 ? lines : [...lines.slice(0, FAILURES), `  and ${rest} more, which --report has`];
}

function manyLists(report: PublishReport, theme: Theme): string[] {
  const told = new Set<string>();
  const rows = report.lists.flatMap((list) => {
    // Lists share blobs too: what an earlier one has told of is in place.
    const blobs = distinct(
      list.images.flatMap((image) => image.placed),
      told,
    );
    const placed = (list.content ?? []).map((reference) => ({ reference, digest: undefined, how: PLACED }));
    const tags = list.targets.map((target) => ({
      ...target,
      how: { text: word(target, report), style: styleOf(target) },
    }));
    return [...placed, ...tags].map(({ reference, digest, how: done }, at) => [
      done,
      reference,
      digest === undefined ? '' : digestCell(digest),
      blank(list.images.filter((image) => image.kind === 'image').length),
      // Tags of one list share its blobs; counted once, the columns add up to the totals.
      ...COUNTS.map((how) => (at === 0 ? blank(count(blobs, how)) : '')),
    ]);
  });
  const time = report.dryRun ? '' : ` in ${formatDuration(report.totals.seconds * 1000)}`;
  const failed = report.lists.filter(({ targets }) => targets.some((one) => one.action === 'failed' && !isNotRun(one)));
  const notRun = report.lists.filter(({ targets }) => targets.some(isNotRun)).filter((list) => !failed.includes(list));
  const bad = [
    ...(failed.length > 0 ? [`${failed.length} failed`] : []),
    ...(notRun.length > 0 ? [`${notRun.length} ${NOT_RUN}`] : []),
  ].join(', ');
  const head = `${plural(report.lists.length, 'list')}${time}`;
  return [
    bad === '' ? head : `${head}   ${paint(theme, 'bad', bad)}`,
    ...tableLines(LIST_COLUMNS, rows, theme),
    ...failures(report.lists, theme),
  ];
}

export function totals({ totals: { blobs, bytesSent, bytesSaved, requests, retries } }: PublishReport): string[] {
  const saved = bytesSaved > 0 ? [`${formatBytes(bytesSaved)} not sent`] : [];
  const copied = blobs.copied > 0 ? [`copied ${blobs.copied} (${formatBytes(bytesSent)})`] : [];
  const counts = (['mounted', 'present', 'skipped'] as const).filter((how) => blobs[how] > 0);
  return [
    ...copied,
    ...counts.map((how) => `${how} ${blobs[how]}`),
    ...saved,
    plural(requests, 'request'),
    ...(retries > 0 ? [retries === 1 ? '1 retry' : `${retries} retries`] : []),
  ];
}

const STYLES: Record<TargetOutcome['action'], Style> = {
  created: 'good',
  updated: 'good',
  unchanged: 'quiet',
  failed: 'bad',
};

function styleOf(target: TargetOutcome): Style {
  return isNotRun(target) ? 'quiet' : STYLES[target.action];
}

/** `created` of a dry run is what it would be. */
export function word(target: TargetOutcome, report: PublishReport): string {
  if (isNotRun(target)) return NOT_RUN;
  const would = { created: 'would create', updated: 'would update', unchanged: 'unchanged', failed: 'would fail' };
  return report.dryRun ? would[target.action] : target.action;
}

function verb(target: TargetOutcome, report: PublishReport, theme: Theme): string {
  return paint(theme, styleOf(target), word(target, report));
}

function pinned(target: TargetOutcome): string {
  return `${untrusted(target.reference)}${target.digest === undefined ? '' : `@${target.digest}`}`;
}

function withoutDigest(reference: string): string {
  const at = reference.indexOf('@');
  return at < 0 ? reference : reference.slice(0, at);
}

function outcomes(image: ImageOutcome): readonly BlobOutcome[] {
  return image.placed.flatMap((place) => place.blobs);
}

/** Blobs of a list; one that images share counts once in a repository, and none that was told of before. */
function distinct(placed: ImageOutcome['placed'], told = new Set<string>()): readonly BlobOutcome[] {
  return placed.flatMap(({ repository, blobs }) =>
    blobs.filter(({ digest }) => {
      const key = `${repository} ${digest}`;
      return !told.has(key) && told.add(key);
    }),
  );
}

function count(blobs: readonly BlobOutcome[], how: BlobHow): number {
  return blobs.filter((blob) => blob.how === how).length;
}

function blank(value: number): string {
  return value === 0 ? '' : String(value);
}

/** Sum of the blobs of an image; nothing when none was looked at, as for a child that was there before. */
export function imageSize(image: ImageOutcome): string {
  const sizes = new Map(outcomes(image).map((blob) => [blob.digest, blob.size]));
  return sizes.size === 0 ? '' : formatBytes([...sizes.values()].reduce((sum, size) => sum + size, 0));
}

/** In a word how an image came there, with what the registry answered where bytes had to be sent. */
export function howOf(image: ImageOutcome): string {
  const blobs = outcomes(image);
  if (blobs.length === 0) return [...new Set(image.placed.map((place) => place.manifest))].join(', ');
  const reasons = [...new Set(blobs.flatMap((blob) => (blob.why === undefined ? [] : [blob.why])))];
  const ways = COUNTS.filter((how) => count(blobs, how) > 0);
  return ways
    .map((how) => (how === 'copied' && reasons.length > 0 ? `copied (${reasons.join('; ')})` : how))
    .join(', ');
}
