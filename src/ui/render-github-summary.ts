import type { ErrorDocument } from '../errors.ts';
import type { ImageOutcome, ListReport, PublishReport, TargetOutcome } from '../publish/report.ts';
import { formatBytes, formatDuration, plural } from './format.ts';
import { imageLabel } from './labels.ts';
import { type Block, code, fitted, html, plain, tableRow } from './markdown.ts';
import { howOf, imageSize, totals, word } from './render-report.ts';
import { untrusted } from './text.ts';

/** What went wrong, as {@link errorDocument} tells it. */
export type ToldError = ErrorDocument['error'];

/**
 * A run for the summary page of a job, in GitHub's Markdown: what to copy first, then the images by platform, then blob by
 * blob. Nothing in it but the headings is taken for Markdown, whoever wrote it.
 *
 * @param limit bytes that it may have; rows of blobs are left out first, then those of images, then those of lists
 */
export function renderStepSummary(
  report: PublishReport | undefined,
  error: ToldError | undefined,
  limit: number,
): string {
  const lists = report?.lists ?? [];
  const [only, ...more] = lists;
  const failed = error === undefined ? [] : [errorBlock(error)];
  if (report === undefined || only === undefined)
    return fitted([title(error === undefined ? 'Nothing to publish' : 'Not published'), ...failed], limit);
  const one = more.length === 0 ? oneList(only, report) : [...manyLists(report), ...lists.flatMap(foldedImages)];
  const end = [...footer(report), ...lists.flatMap((list) => foldedBlobs(list, more.length > 0))];
  return fitted([...one, ...failed, ...end], limit);
}

function title(text: string): Block {
  return { rank: 0, head: [`### ${text}`, ''], rows: [], tail: [] };
}

/** A fence that no line of these can end, as each begins with a word of ours. */
function errorBlock({ code: name, exitCode, message, hint, moved }: ToldError): Block {
  const names = (moved ?? []).map((reference) => untrusted(reference, 300)).join(', ');
  const tags = moved === undefined ? [] : [names === '' ? 'no tag was moved' : `moved before this: ${names}`];
  const rows = [
    `error: ${message}`,
    [`${name} (exit ${exitCode})`, ...tags].join(' · '),
    ...(hint === '' ? [] : [`hint: ${hint}`]),
  ];
  return { rank: 0, head: ['~~~text'], rows, tail: ['~~~', ''] };
}

function oneList(list: ListReport, report: PublishReport): Block[] {
  const name = code(list.targets[0]?.reference ?? list.content?.[0] ?? '');
  return [
    title(report.dryRun ? `${name} (dry run)` : name),
    { rank: 0, head: [], rows: pinned(list, report), tail: [] },
    images(list, 0, []),
    targets([list], report),
  ];
}

/** The one line that is taken along to other places; GitHub shows a button that copies it. */
function pinned({ index, targets: [first] }: ListReport, { dryRun }: PublishReport): string[] {
  if (index === undefined || first === undefined || first.action === 'failed') return [];
  const name = dryRun ? '' : `${repositoryOf(first)}@`;
  return ['~~~text', `${name}${index.digest}`, '~~~', ''];
}

/** `HOST/REPOSITORY` of a tag. */
export function repositoryOf({ reference }: TargetOutcome): string {
  const name = reference.replace(/:[^/:]*$/, '');
  // A layout without a tag.
  return untrusted(name === 'oci' ? reference : name, 500);
}

function manyLists(report: PublishReport): Block[] {
  const failed = report.lists.filter((list) => list.targets.some(({ action }) => action === 'failed')).length;
  const head = `${plural(report.lists.length, 'list')}${failed === 0 ? '' : `, ${failed} not done`}`;
  return [title(report.dryRun ? `${head} (dry run)` : head), targets(report.lists, report)];
}

function targets(lists: readonly ListReport[], report: PublishReport): Block {
  const rows = lists.flatMap((list) => [
    ...(list.content ?? []).map((reference) => tableRow(['placed', code(reference), '', ''])),
    ...list.targets.map((target) =>
      tableRow([
        word(target, report),
        code(target.reference),
        target.digest === undefined ? '' : code(target.digest),
        target.action === 'failed' ? plain(target.error.message, 300) : '',
      ]),
    ),
  ]);
  return table(0, ['result', 'tag', 'digest', ''], rows);
}

const IMAGES = ['platform', 'digest', 'size', 'how'] as const;

function images(list: ListReport, rank: number, head: readonly string[], tail: readonly string[] = []): Block {
  const rows = list.images.map((image) =>
    tableRow([code(imageLabel(image)), code(image.digest), imageSize(image), plain(howOf(image), 300)]),
  );
  const block = table(rank, IMAGES, rows);
  return { ...block, head: [...head, ...block.head], tail: [...block.tail, ...tail] };
}

function foldedImages(list: ListReport): Block[] {
  return list.images.length === 0 ? [] : [images(list, 1, fold(nameOf(list)), FOLD_END)];
}

function foldedBlobs(list: ListReport, named: boolean): Block[] {
  const rows = list.images.flatMap(blobRows);
  if (rows.length === 0) return [];
  const block = table(2, ['image', 'repository', 'blob', 'size', 'how', ''], rows);
  const head = fold(named ? `Blobs of ${nameOf(list)}` : 'Blobs');
  return [{ ...block, head: [...head, ...block.head], tail: [...block.tail, ...FOLD_END] }];
}

function blobRows(image: ImageOutcome): string[] {
  return image.placed.flatMap(({ repository, blobs }) =>
    blobs.map(({ digest, size, how, why }) =>
      tableRow([
        code(imageLabel(image)),
        code(repository),
        code(digest),
        formatBytes(size),
        how,
        plain(why ?? '', 200),
      ]),
    ),
  );
}

function footer(report: PublishReport): Block[] {
  const time = report.dryRun ? [] : [formatDuration(report.totals.seconds * 1000)];
  const facts = report.dryRun ? ['nothing was mounted, sent or written'] : [...totals(report), ...time];
  const warnings = report.warnings.map((text) => `- ${plain(text, 600)}`);
  return [
    { rank: 0, head: [], rows: [facts.join(' · ')], tail: [''] },
    ...(warnings.length === 0 ? [] : [{ rank: 0, head: ['Warnings:', ''], rows: warnings, tail: [''] }]),
  ];
}

function nameOf({ targets, content }: ListReport): string {
  return html(targets[0]?.reference ?? content?.[0] ?? '');
}

/** @param summary HTML: within the tag Markdown is not read */
function fold(summary: string): string[] {
  return [`<details><summary>${summary}</summary>`, ''];
}

const FOLD_END = ['</details>', ''];

function table(rank: number, columns: readonly string[], rows: readonly string[]): Block {
  const head = rows.length === 0 ? [] : [tableRow(columns), tableRow(columns.map(() => '---'))];
  return { rank, head, rows, tail: rows.length === 0 ? [] : [''] };
}
