import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { PublishError } from '../errors.ts';
import { isDigest } from '../model/digest.ts';
import type { NamedReport } from '../publish/merge-reports.ts';
import type { PublishReport } from '../publish/report.ts';
import { readJson } from '../spec/json-tree.ts';
import { nodeAt, type SpecFile, shownName } from '../spec/tree.ts';
import { SHARDS_MAX } from './shard.ts';

/** Larger than the report of ten thousand lists, in bytes. */
const LONGEST = 256 * 1024 * 1024;

const HINT = 'It must be a file that publish --report has written; remove it, or run that shard again.';

/**
 * The reports in a folder and in the folders in it, which is how artifacts that were uploaded one by one are unpacked:
 * every file whose name ends in `.json`.
 *
 * @throws PublishError `REPORT_INVALID` with file, line and column, `FILE_FAILED`
 */
export async function readReports(folder: string): Promise<readonly NamedReport[]> {
  const reports: NamedReport[] = [];
  // One after the other: there may be more than can be open at once.
  for (const path of await reportsIn(folder)) reports.push(await readReport(path));
  return reports;
}

async function reportsIn(folder: string, depth = 0): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(cannotRead(folder));
  const paths: string[] = [];
  for (const { name } of entries) {
    if (name.startsWith('.')) continue;
    const path = join(folder, name);
    const stats = await stat(path).catch(cannotRead(path));
    if (stats.isDirectory() && depth === 0) paths.push(...(await reportsIn(path, depth + 1)));
    else if (stats.isFile() && name.endsWith('.json')) {
      if (stats.size > LONGEST) throw invalid(`${shownName(path)}: longer than ${LONGEST / 1024 / 1024} MiB`);
      paths.push(path);
    }
  }
  return paths;
}

async function readReport(path: string): Promise<NamedReport> {
  const file = { name: path, text: await readFile(path, 'utf8').catch(cannotRead(path)) };
  const result = v.safeParse(REPORT, parse(file));
  // What the schema leaves out of a report is not looked at, and handed on as it is.
  if (result.success) return { name: shownName(path), report: result.output as unknown as PublishReport };
  const [issue] = result.issues;
  const keys = (issue.path ?? []).map((item) => item.key as PropertyKey);
  throw invalid(`${placeOf(file, keys)}: not a report: ${keys.join('.')} ${issue.message}`.replace(':  ', ': '));
}

function parse(file: SpecFile): unknown {
  try {
    return JSON.parse(file.text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // The other reader knows the place.
    return located(() => readJson(file));
  }
}

function placeOf(file: SpecFile, keys: readonly PropertyKey[]): string {
  return located(() => nodeAt(readJson(file), keys).at);
}

function located<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof PublishError ? error.with({ code: 'REPORT_INVALID', hint: HINT }) : error;
  }
}

function invalid(message: string): PublishError {
  return new PublishError('REPORT_INVALID', message, HINT);
}

function cannotRead(path: string): (error: unknown) => never {
  return (error) => {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new PublishError(
      'FILE_FAILED',
      `cannot read ${shownName(path)} (${reason})`,
      'Name a folder with the reports of the shards: report merge DIR.',
      { cause: error },
    );
  };
}

const NUMBER = v.pipe(v.number('must be a number'), v.minValue(0, 'must not be below 0'));
const COUNT = v.pipe(NUMBER, v.integer('must be a whole number'));
const TEXT = v.string('must be a text');
const DIGEST = v.pipe(TEXT, v.check(isDigest, 'must be a digest'));

function object<const Entries extends v.ObjectEntries>(entries: Entries) {
  return v.looseObject(entries, (issue) => (issue.received === 'undefined' ? 'is missing' : 'must be an object'));
}

function list<const Item extends v.GenericSchema>(item: Item) {
  return v.array(item, 'must be a list');
}

function oneOf<const Values extends readonly string[]>(values: Values) {
  return v.picklist(values, `must be one of ${values.join(', ')}`);
}

const SHARD = v.pipe(
  object({ index: v.pipe(COUNT, v.minValue(1, 'must not be below 1')), total: COUNT, lists: v.optional(DIGEST) }),
  v.check(({ index, total }) => index <= total && total <= SHARDS_MAX, 'names no shard'),
);

const DONE = object({ reference: TEXT, action: oneOf(['created', 'updated', 'unchanged']), digest: DIGEST });
const FAILED = object({
  reference: TEXT,
  action: v.literal('failed'),
  digest: v.optional(DIGEST),
  error: object({ code: TEXT, message: TEXT }),
});

const IMAGE = object({
  source: TEXT,
  digest: DIGEST,
  size: COUNT,
  kind: oneOf(['image', 'attestation', 'artifact']),
  platform: v.optional(object({ os: TEXT, architecture: TEXT })),
  placed: list(
    object({
      repository: TEXT,
      manifest: oneOf(['present', 'pushed']),
      blobs: list(
        object({
          digest: DIGEST,
          size: COUNT,
          how: oneOf(['present', 'mounted', 'copied', 'skipped']),
          bytesSent: COUNT,
          why: v.optional(TEXT),
        }),
      ),
    }),
  ),
});

const INDEX = object({ mediaType: TEXT, digest: DIGEST, size: COUNT, manifests: list(object({ digest: DIGEST })) });

/** What a report must have so that it can be joined and shown. @see PublishReport */
const REPORT = object({
  schemaVersion: v.literal(1, 'must be 1'),
  shard: v.optional(SHARD),
  merged: v.optional(object({})),
  stage: v.optional(oneOf(['content', 'index'])),
  dryRun: v.optional(v.literal(true)),
  lists: list(
    object({
      targets: list(v.variant('action', [DONE, FAILED])),
      content: v.optional(list(TEXT)),
      index: v.optional(INDEX),
      images: list(IMAGE),
    }),
  ),
  totals: object({
    blobs: object({ present: COUNT, mounted: COUNT, copied: COUNT, skipped: COUNT }),
    bytesSent: COUNT,
    bytesSaved: COUNT,
    requests: COUNT,
    retries: COUNT,
    seconds: NUMBER,
  }),
  warnings: list(TEXT),
});
