import type { ErrorDocument } from '../errors.ts';
import { formatPlatform } from '../model/platform.ts';
import type { ImageOutcome, ListReport, PublishReport } from '../publish/report.ts';
import { jsonText, reportDocument, repositoryOf } from '../ui/render.ts';
import { isDone, metadataOfLists, metadataText } from './report-files.ts';

/** A step's outputs are kept with the run and handed to other jobs, 1 MB in all; the report may have more. */
const DOCUMENT_BYTES = 500_000;

/** Names of the outputs, in the order in which they are written; those of action.yml. */
export const GITHUB_OUTPUTS = ['digest', 'ref', 'json', 'tags', 'digests', 'metadata'] as const;

/** @see GITHUB_OUTPUTS */
export type GithubOutputs = Readonly<Record<(typeof GITHUB_OUTPUTS)[number], string>>;

/**
 * What a step hands on. What others pull by is there for what was done only: of a dry run there is the digest that the
 * index would have, of a run that failed the tags that are in place. An output without a value is empty.
 *
 * @param listing the lists come from spec files, and there may be several: each has a line, or is keyed by its TARGET
 */
export function githubOutputs(
  report: PublishReport | undefined,
  failure: ErrorDocument | undefined,
  listing: boolean,
): GithubOutputs {
  const json = fittingJson(report, failure);
  const lists = report?.lists ?? [];
  const done = report?.dryRun ? [] : lists.filter(({ targets }) => targets.some(isDone));
  const inPlace = done.flatMap(({ targets }) => targets.filter(isDone).map(({ reference }) => reference));
  const tags = (report === undefined ? (failure?.error.moved ?? []) : inPlace).join('\n');
  const none = { digest: '', ref: '', json, tags, digests: '', metadata: '' };
  if (report === undefined || (failure !== undefined && !listing)) return none;
  const told = report.dryRun ? lists : done;
  const [only, ...more] = told;
  return {
    digest: told.flatMap(({ index }) => (index === undefined ? [] : [index.digest])).join('\n'),
    ref: done.flatMap(pinned).join('\n'),
    json,
    tags,
    digests: only === undefined || more.length > 0 ? '' : platformLines(only),
    metadata: done.length === 0 ? '' : fitting((listing ? metadataOfLists(report) : metadataText(report)).trimEnd()),
  };
}

/** Without the tag: not every tool takes a reference that has both. */
function pinned({ index, targets }: ListReport): string[] {
  const first = targets.find(isDone);
  return index === undefined || first === undefined ? [] : [`${repositoryOf(first)}@${index.digest}`];
}

function platformLines({ images }: ListReport): string {
  return images
    .filter(({ kind }) => kind === 'image')
    .map(({ platform, digest }) => `${platform === undefined ? '' : formatPlatform(platform)}=${digest}`)
    .join('\n');
}

/** A part of a document would be taken for the whole. */
function fitting(text: string): string {
  return Buffer.byteLength(text) <= DOCUMENT_BYTES ? text : '';
}

/** With what happened to each blob, and to each image, as far as there is room. */
function fittingJson(report: PublishReport | undefined, failure: ErrorDocument | undefined): string {
  if (report === undefined) return jsonText(failure ?? {});
  const text = (shown: PublishReport) => {
    const document = reportDocument(shown);
    return jsonText(failure === undefined ? document : { ...failure, report: document });
  };
  const tries = [report, without('blobs', report), without('images', report)].map(text);
  return tries.find((one) => fitting(one) !== '') ?? '';
}

function without(what: 'blobs' | 'images', report: PublishReport): PublishReport {
  const bare = (image: ImageOutcome) => ({ ...image, placed: image.placed.map((place) => ({ ...place, blobs: [] })) });
  return {
    ...report,
    lists: report.lists.map((list) => ({ ...list, images: what === 'images' ? [] : list.images.map(bare) })),
    warnings: [...report.warnings, `${what} were left out here: with them the report is too long for an output`],
  };
}
