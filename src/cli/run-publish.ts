import type { PublishReport } from '../publish/report.ts';
import type { PublishRequest } from '../publish/request.ts';
import type { ManifestBytes } from '../publish/resolved.ts';
import type { PlanEvent } from '../ui/render.ts';
import type { Session } from './base-command.ts';
import { withOutputFiles } from './files.ts';
import { type OutputFlags, reportFiles } from './report-files.ts';

/** What a publish did, and what it had planned. */
export type Published = { readonly report: PublishReport; readonly plan: PlanEvent | undefined };

/** Publishes and writes the files that were asked for; `known` are the manifests that a draft has kept. */
export async function runPublish(
  request: PublishRequest,
  { ports, signal, files, notes }: Session,
  flags: OutputFlags,
  known?: ManifestBytes,
): Promise<Published> {
  const plans: PlanEvent[] = [];
  const report = await withOutputFiles(reportFiles(flags), files, async () => {
    const { publish } = await import('../publish/publish.ts');
    const emit: typeof ports.emit = (event) => {
      if (event.kind === 'plan') plans.push(event);
      ports.emit(event);
    };
    const done = await publish(request, { ...ports, emit }, signal, known);
    return { ...done, warnings: [...done.warnings, ...notes()] };
  });
  return { report, plan: plans[0] };
}
