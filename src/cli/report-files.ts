import type { PublishReport, TargetOutcome } from '../publish/report.ts';
import { jsonText, reportDocument } from '../ui/render.ts';
import type { WantedFile } from './files.ts';
import type { Published } from './run-publish.ts';

/** What {@link OUTPUT_FLAGS} and `--dry-run` parse to. */
export type OutputFlags = {
  readonly 'dry-run': boolean;
  readonly 'digest-file'?: string | undefined;
  readonly 'metadata-file'?: string | undefined;
  readonly report?: string | undefined;
};

/**
 * The files that a publish is asked for. What stands in digest and metadata files gets pulled, so a dry run writes only
 * the report, and of a run that failed they hold what was done, or nothing where that is not the one list.
 *
 * @param listing the lists come from spec files: each is told with its references
 * @param isShard the report will be joined with others, which must not find that of an earlier run in its place
 */
export function reportFiles(flags: OutputFlags, listing: boolean, isShard: boolean): readonly WantedFile<Published>[] {
  const published = <T>(path: T) => (flags['dry-run'] ? undefined : path);
  const whole = (text: (report: PublishReport) => string) => (done: Published) =>
    done.failure === undefined || listing ? text(done.report) : undefined;
  return [
    {
      flag: '--digest-file',
      path: published(flags['digest-file']),
      text: whole(listing ? referenceLines : digestLines),
    },
    {
      flag: '--metadata-file',
      path: published(flags['metadata-file']),
      text: whole(listing ? metadataOfLists : metadataText),
    },
    {
      flag: '--report',
      path: flags.report,
      text: ({ report }) => `${jsonText(reportDocument(report), 2)}\n`,
      outdated: isShard,
    },
  ];
}

/** The digest of each index, one a line. */
export function digestLines(report: PublishReport): string {
  return report.lists.flatMap(({ index }) => (index === undefined ? [] : [`${index.digest}\n`])).join('');
}

/** `REFERENCE DIGEST` for every tag that is at its place, in the order in which they were asked for. */
export function referenceLines(report: PublishReport): string {
  return report.lists
    .flatMap(({ targets }) => targets.filter(isDone))
    .map(({ reference, digest }) => `${reference} ${digest}\n`)
    .join('');
}

type Done = Exclude<TargetOutcome, { action: 'failed' }>;

export function isDone(target: TargetOutcome): target is Done {
  return target.action !== 'failed';
}

/** The keys that `docker buildx build` and `imagetools create` write to their `--metadata-file`. */
export function metadataText(report: PublishReport): string {
  return `${jsonText(metadataOf(report.lists[0]) ?? {}, 2)}\n`;
}

/** The same for each list, keyed by its TARGET as `docker buildx bake` keys its builds. */
export function metadataOfLists(report: PublishReport): string {
  const pairs = report.lists.flatMap((list) => {
    const metadata = metadataOf(list);
    return metadata === undefined ? [] : [[list.targets[0]?.reference ?? '', metadata] as const];
  });
  return `${jsonText(Object.fromEntries(pairs), 2)}\n`;
}

function metadataOf(list: PublishReport['lists'][number] | undefined): object | undefined {
  const done = list?.targets.filter(isDone) ?? [];
  if (list?.index === undefined || done.length === 0) return undefined;
  const { mediaType, digest, size } = list.index;
  return {
    'containerimage.descriptor': { mediaType, digest, size },
    'containerimage.digest': digest,
    'image.name': done.map(({ reference }) => reference).join(','),
  };
}
