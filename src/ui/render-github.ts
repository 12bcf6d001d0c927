import type { BlobOutcome, ImageOutcome, ListReport, PublishReport, TargetOutcome } from '../publish/report.ts';
import { formatBytes, formatDuration, plural, shortDigest } from './format.ts';
import { jsonText } from './json.ts';
import { imageLabel } from './labels.ts';
import { howOf, imageSize } from './render-report.ts';
import { untrusted } from './text.ts';

/** GitHub refuses a step summary above 1,024 kB; in bytes. */
const SUMMARY_LIMIT = 1_000_000;

/**
 * Outputs of a step by name. `digest`, `ref` and `tags` hold a line for each list or tag, `digests` one
 * `platform=sha256:…` for each image, `json` the report, `metadata` what buildx writes with `--metadata-file`.
 */
export function githubOutputs(report: PublishReport): Readonly<Record<string, string>> {
  const targets = report.lists.flatMap((list) => list.targets);
  return {
    digest: lines(report.lists.map((list) => list.index.digest)),
    ref: lines(report.lists.flatMap((list) => list.targets.slice(0, 1)).map(pinned)),
    tags: lines(targets.map((target) => target.reference)),
    digests: lines(
      report.lists.flatMap((list) =>
        list.images.filter(isImage).map((image) => `${imageLabel(image)}=${image.digest}`),
      ),
    ),
    json: jsonText(report),
    metadata: jsonText(buildxMetadata(report)),
  };
}

/**
 * The outputs as `$GITHUB_OUTPUT` takes them. `delimiter` is random: a value cannot close its own block.
 *
 * @see CVE-2022-35954
 */
export function githubOutputFile(outputs: Readonly<Record<string, string>>, delimiter: string): string {
  return Object.entries(outputs)
    .map(([name, value]) => {
      if (value.includes(delimiter)) throw new Error(`the value of ${name} contains the delimiter`);
      return `${name}<<${delimiter}\n${value}\n${delimiter}\n`;
    })
    .join('');
}

/** What buildx writes with `--metadata-file` for one list: builds and imagetools use these three keys between them. */
export function buildxMetadata(report: PublishReport): Readonly<Record<string, unknown>> {
  const [list] = report.lists;
  if (list === undefined) return {};
  const { mediaType, digest, size } = list.index;
  return {
    'containerimage.descriptor': { mediaType, digest, size },
    'containerimage.digest': digest,
    'image.name': list.targets.map((target) => target.reference).join(','),
  };
}

/** A command to the runner, for its own lines; everything in it is escaped as the runner unescapes it. */
export function githubCommand(name: 'error' | 'warning' | 'notice', title: string, text: string): string {
  const data = (value: string) => value.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  const property = data(untrusted(title, 120)).replaceAll(':', '%3A').replaceAll(',', '%2C');
  return `::${name} title=${property}::${data(untrusted(text, 2000))}\n`;
}

/** Markdown for `$GITHUB_STEP_SUMMARY`: digests first, then images; rows of blobs go when it grows too long. */
export function githubSummary(report: PublishReport): string {
  const { blobs, bytesSent, bytesSaved, requests, retries, seconds } = report.totals;
  const end = [
    report.dryRun ? 'Dry run: nothing was mounted, sent or written.' : '',
    `mounted ${blobs.mounted}, copied ${blobs.copied} (${formatBytes(bytesSent)}), present ${blobs.present}, ` +
      `${formatBytes(bytesSaved)} not sent, ${plural(requests, 'request')}, ${retries} retried, ` +
      `in ${formatDuration(seconds * 1000)}`,
    ...report.warnings.map((text) => `> warning: ${code(text)}`),
  ].filter((text) => text !== '');
  for (const depth of ['blobs', 'images', 'targets'] as const) {
    let text = '';
    for (const list of report.lists) {
      text += `${listSection(list, depth)}\n\n`;
      if (text.length > SUMMARY_LIMIT) break;
    }
    text += end.map((part) => `${part}\n\n`).join('');
    if (Buffer.byteLength(text) <= SUMMARY_LIMIT) return text;
  }
  return `${plural(report.lists.length, 'list')}: too many to be shown here; see the report.\n`;
}

function listSection(list: ListReport, depth: 'blobs' | 'images' | 'targets'): string {
  const [first] = list.targets;
  if (first === undefined) return '';
  const heads = [
    `### ${code(first.reference)}`,
    '',
    ...list.targets.map((target) => `${code(pinned(target))} ${target.action}  `),
  ];
  const images = ['', '| platform | digest | size | how |', '| --- | --- | --- | --- |', ...list.images.map(imageRow)];
  const details = ['', '<details><summary>blobs</summary>', '', '| blob | size | how |', '| --- | --- | --- |'];
  const blobs = list.images.flatMap((image) => image.placed.flatMap((place) => place.blobs));
  const rows = [...new Map(blobs.map((blob) => [blob.digest, blob])).values()].map(blobRow);
  return lines([
    ...heads,
    ...(depth === 'targets' || list.images.length === 0 ? [] : images),
    ...(depth === 'blobs' && rows.length > 0 ? [...details, ...rows, '', '</details>'] : []),
  ]);
}

function imageRow(image: ImageOutcome): string {
  return `| ${code(imageLabel(image))} | ${code(image.digest)} | ${imageSize(image)} | ${code(howOf(image))} |`;
}

function blobRow(blob: BlobOutcome): string {
  const how = blob.why === undefined ? blob.how : `${blob.how} (${blob.why})`;
  return `| ${code(shortDigest(blob.digest))} | ${formatBytes(blob.size)} | ${code(how)} |`;
}

/** A code span, in which Markdown and HTML mean nothing; a table still looks for its bars. */
function code(text: string): string {
  const plain = untrusted(text).replaceAll('`', "'").replaceAll('|', '\\|');
  return plain === '' ? '' : `\`${plain}\``;
}

function pinned(target: TargetOutcome): string {
  return `${target.reference}@${target.digest}`;
}

function isImage(image: ImageOutcome): boolean {
  return image.kind === 'image';
}

function lines(texts: readonly string[]): string {
  return texts.join('\n');
}
