import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import type { PublishReport } from '../publish/report.ts';
import type { PublishRequest } from '../publish/request.ts';
import type { ManifestBytes } from '../publish/resolved.ts';
import type { PlanEvent } from '../ui/render.ts';
import { withOutputFiles } from './files.ts';
import { type OutputFlags, reportFiles } from './report-files.ts';
import type { Session } from './session.ts';
import type { RunPart } from './shard.ts';

/** What a publish did, and what it had planned; `failure`: what it could not do all the same. */
export type Published = {
  readonly report: PublishReport;
  readonly plans: readonly PlanEvent[];
  readonly failure?: PublishError;
};

/** How to publish, besides what a request says. */
export type RunOptions = {
  /** The manifests that a draft has kept. */
  readonly known?: ManifestBytes;
  /** Lists that fail do not stop the others. */
  readonly keepGoing?: boolean;
  /** The lists come from spec files: each is told with its references. */
  readonly listing?: boolean;
  /** Which part of the whole this is, for the report, and of which lists. */
  readonly part?: RunPart;
  readonly lists?: Digest | undefined;
};

/**
 * Publishes and writes the files that were asked for. Where a part failed and the run tells what was done, that is
 * what comes back; it is up to the caller to fail then.
 */
export async function runPublish(
  requests: readonly PublishRequest[],
  { ports, signal, files, notes }: Session,
  flags: OutputFlags,
  { known, keepGoing = false, listing = false, part = {}, lists }: RunOptions = {},
): Promise<Published> {
  const plans: PlanEvent[] = [];
  const emit: typeof ports.emit = (event) => {
    if (event.kind === 'plan') plans.push(event);
    ports.emit(event);
  };
  const withNotes = ({ schemaVersion, warnings, ...report }: PublishReport): PublishReport => {
    const shard = part.shard === undefined || lists === undefined ? {} : { shard: { ...part.shard, lists } };
    return { schemaVersion, ...part, ...shard, ...report, warnings: [...warnings, ...notes()] };
  };
  const work = async (): Promise<Published> => {
    try {
      const { publishLists } = await import('../publish/publish-lists.ts');
      // Whoever joins the reports of shards is to find each.
      const tells = part.shard !== undefined;
      const options = { keepGoing, tells, ...(known === undefined ? {} : { known }) };
      const report = await publishLists(requests, { ...ports, emit }, signal, options);
      return { report: withNotes(report), plans };
    } catch (error) {
      const done = partialReport(error);
      if (done === undefined || !(error instanceof PublishError)) throw error;
      const report = withNotes(done);
      return { report, plans, failure: error.with({ report }) };
    }
  };
  let published: Published | undefined;
  try {
    return await withOutputFiles(reportFiles(flags, listing, part.shard !== undefined), files, async () => {
      published = await work();
      return published;
    });
  } catch (error) {
    const failure = published?.failure;
    // What could not be published weighs more than a file that tells of it.
    if (published === undefined || failure === undefined || !(error instanceof PublishError)) throw error;
    return { ...published, failure: failure.with({ message: `${failure.message}; and ${error.message}` }) };
  }
}

/** What was done before the run failed, where it tells. */
function partialReport(error: unknown): PublishReport | undefined {
  if (!(error instanceof PublishError) || error.report === undefined) return undefined;
  return error.report as PublishReport;
}
