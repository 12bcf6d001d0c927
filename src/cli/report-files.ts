import type { PublishReport } from '../publish/report.ts';
import { jsonText, reportDocument } from '../ui/render.ts';
import type { WantedFile } from './files.ts';

/** What {@link OUTPUT_FLAGS} and `--dry-run` parse to. */
export type OutputFlags = {
  readonly 'dry-run': boolean;
  readonly 'digest-file'?: string | undefined;
  readonly 'metadata-file'?: string | undefined;
  readonly report?: string | undefined;
};

/** The files that a publish is asked for. What stands in digest and metadata files gets pulled, so a dry run writes only the report. */
export function reportFiles(flags: OutputFlags): readonly WantedFile<PublishReport>[] {
  const published = <T>(path: T) => (flags['dry-run'] ? undefined : path);
  return [
    { flag: '--digest-file', path: published(flags['digest-file']), text: digestLines },
    { flag: '--metadata-file', path: published(flags['metadata-file']), text: metadataText },
    { flag: '--report', path: flags.report, text: (report) => `${jsonText(reportDocument(report), 2)}\n` },
  ];
}

/** The digest of each index, one a line. */
export function digestLines(report: PublishReport): string {
  return report.lists.map((list) => `${list.index.digest}\n`).join('');
}

/** The keys that `docker buildx build` and `imagetools create` write to their `--metadata-file`. */
function metadataText(report: PublishReport): string {
  const [list] = report.lists;
  if (list === undefined) return '{}\n';
  const { mediaType, digest, size } = list.index;
  const metadata = {
    'containerimage.descriptor': { mediaType, digest, size },
    'containerimage.digest': digest,
    'image.name': list.targets.map((target) => target.reference).join(','),
  };
  return `${jsonText(metadata, 2)}\n`;
}
