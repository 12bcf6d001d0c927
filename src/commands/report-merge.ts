import { string as argument } from '@oclif/core/args';
import { string } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { PublishError } from '../errors.ts';
import { failedLists, mergeReports, nameOf } from '../publish/merge-reports.ts';
import type { PublishReport } from '../publish/report.ts';
import { jsonText, page, renderSummary, renderWarnings, reportDocument } from '../ui/render.ts';

/** Joins what the shards of a run have reported. */
export class ReportMerge extends BaseCommand {
  static override usage = '<%= command.id %> DIR [FLAG...]';
  static override summary = 'Join the reports of shards, and say whether all of the run was done.';
  static override description =
    `Reads the files that publish --shard I/N --report FILE has written: all *.json in DIR and in the folders in it. The summary of the whole run goes to stdout, or with --json one report like those of the shards.

A shard without a report ends in exit code 4, a list that failed in exit code 9. Of several reports of one shard one without a failure is taken, else the one whose name is last, so a shard that was repeated counts once.`;
  static override examples = [
    {
      description: 'After: manifest-publish publish -f lists.yaml --shard 1/2 --report reports/1.json, and 2/2.',
      command: '<%= config.bin %> <%= command.id %> reports',
    },
    {
      description: 'With the whole report in a file.',
      command: '<%= config.bin %> <%= command.id %> reports --report all.json',
    },
  ];
  static override args = {
    dir: argument({ required: true, ignoreStdin: true, description: 'Folder with the reports of the shards.' }),
  };
  static override flags = {
    report: string({ helpValue: 'FILE', description: 'Write the joined report to a file, outside of DIR.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ReportMerge);
    const { readReports } = await import('../cli/shard-reports.ts');
    const files = await readReports(args.dir);
    if (files.length === 0) {
      throw new PublishError(
        'REPORT_MISSING',
        `there is no report in ${args.dir}`,
        'Write them there: publish --shard 1/8 --report DIR/1.json',
      );
    }
    const report = mergeReports(files);
    const unwritten = await this.writeFile(flags.report, report);
    const unpublished = failureOf(report);
    // What is not published weighs more than a file that tells of it.
    const also = unwritten === undefined ? '' : `; and ${unwritten.message}`;
    const failure = unpublished?.with({ message: `${unpublished.message}${also}` }) ?? unwritten;
    const theme = this.theme(flags);
    const text = `${page([headOf(report)], theme)}${renderSummary(report, theme)}`;
    this.note(flags, (errTheme) => renderWarnings(report.warnings, errTheme));
    if (failure === undefined) return this.result(flags, reportDocument(report), text);
    if (!flags.json) await this.result(flags, undefined, text);
    throw failure.with({ report });
  }

  /** @returns why it could not be written */
  private async writeFile(path: string | undefined, report: PublishReport): Promise<PublishError | undefined> {
    const { withOutputFiles } = await import('../cli/files.ts');
    const { SYSTEM_CLOCK } = await import('../cli/runtime.ts');
    const { print, conceal, writer } = this.world;
    const world = { print, conceal, pid: writer.pid, sleep: SYSTEM_CLOCK.sleep, signal: new AbortController().signal };
    const text = () => `${jsonText(reportDocument(report), 2)}\n`;
    try {
      return await withOutputFiles([{ flag: '--report', path, text }], world, async () => undefined);
    } catch (error) {
      if (error instanceof PublishError && error.code === 'FILE_FAILED') return error;
      throw error;
    }
  }
}

function headOf({ merged }: PublishReport): string {
  const reports = merged?.reports === 1 ? '1 report' : `${merged?.reports} reports`;
  if (merged?.shards === undefined) return reports;
  const missing = merged.missing ?? [];
  return `${reports} of ${merged.shards} shards${missing.length > 0 ? `; missing: ${namesOf(missing.map(String))}` : ''}`;
}

/** A shard that is missing weighs more than a list that failed: what became of its lists is not known at all. */
function failureOf(report: PublishReport): PublishError | undefined {
  const missing = report.merged?.missing ?? [];
  const failed = failedLists(report);
  const lists = `${failed.length} of ${report.lists.length} lists failed: ${namesOf(failed.map(nameOf))}`;
  const [shard] = missing;
  if (shard !== undefined) {
    const shards = `there is no report of shard ${namesOf(missing.map(String))}`;
    const total = report.merged?.shards;
    return new PublishError(
      'REPORT_MISSING',
      `${shards} of ${total}${failed.length > 0 ? `; and ${lists}` : ''}`,
      `Run it again with the same arguments and --shard ${shard}/${total} --report FILE, and merge again.`,
    );
  }
  if (failed.length === 0) return undefined;
  return new PublishError('LISTS_FAILED', lists, 'Run the shards of these lists again, and merge again.', {
    side: 'target',
  });
}

/** Names that a message has at most. */
const NAMES = 10;

function namesOf(names: readonly string[]): string {
  const more = names.length > NAMES ? ` and ${names.length - NAMES} more` : '';
  return `${names.slice(0, NAMES).join(', ')}${more}`;
}
