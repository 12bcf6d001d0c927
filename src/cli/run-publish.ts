import { PublishError } from '../errors.ts';
import type { PublishReport } from '../publish/report.ts';
import type { PublishRequest } from '../publish/request.ts';
import type { ManifestBytes } from '../publish/resolved.ts';
import type { PlanEvent } from '../ui/render.ts';
import type { Session } from './base-command.ts';
import { withOutputFiles } from './files.ts';
import { type OutputFlags, reportFiles } from './report-files.ts';

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
};

/**
 * Publishes and writes the files that were asked for. Where a part failed and the run tells what was done, that is
 * what comes back; it is up to the caller to fail then.
 */
export async function runPublish(
  requests: readonly PublishRequest[],
  { ports, signal, files, notes }: Session,
  flags: OutputFlags,
  { known, keepGoing = false, listing = false }: RunOptions = {},
): Promise<Published> {
  const plans: PlanEvent[] = [];
  const emit: typeof ports.emit = (event) => {
    if (event.kind === 'plan') plans.push(event);
    ports.emit(event);
  };
  const withNotes = (report: PublishReport) => ({ ...report, warnings: [...report.warnings, ...notes()] });
  const work = async (): Promise<Published> => {
    try {
      const { publishLists } = await import('../publish/publish-lists.ts');
      const options = { keepGoing, ...(known === undefined ? {} : { known }) };
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
    return await withOutputFiles(reportFiles(flags, listing), files, async () => {
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
