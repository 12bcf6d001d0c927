import { type FileHandle, open } from 'node:fs/promises';
import { PublishError } from '../errors.ts';
import type { PublishReport } from '../publish/report.ts';
import { errorDocument, renderAnnotations, renderOutputs, renderStepSummary, renderWarnings } from '../ui/render.ts';
import { OUTPUT, SUMMARY, tellsGithub } from './github-files.ts';
import { githubOutputs } from './github-outputs.ts';
import { stderrTheme } from './report-failure.ts';
import type { Published } from './run-publish.ts';
import type { World } from './runtime.ts';
import { afterPublish, type Standing } from './session.ts';
import { usage } from './settings.ts';

/** The runner takes no summary beyond 1,024 kB, and then none at all. */
const SUMMARY_BYTES = 1_000_000;

/** What a step of GitHub Actions is told. */
export type GithubOptions = {
  /** `--github`; undefined: where GitHub Actions runs the step. */
  readonly wanted: boolean | undefined;
  /** The lists come from spec files. */
  readonly listing: boolean;
  /** Default true. */
  readonly summary?: boolean;
};

/** Puts a failure on the page of the run. */
export function annotateFailure(world: World, error: unknown): void {
  world.note(renderAnnotations(error));
}

/**
 * Publishes, and tells the runner what came of it: outputs and a summary, also of a failure. Whether they can be written is
 * found out before the work begins.
 *
 * @throws PublishError `USAGE_INVALID`, `FILE_FAILED` where it was asked for and cannot be; otherwise a warning says so
 */
export async function withGithub(
  world: World,
  standing: Standing,
  options: GithubOptions,
  work: () => Promise<Published>,
): Promise<Published> {
  if (!tellsGithub(options.wanted, world.env)) return work();
  const files = await openFiles(world, options);
  const warn = (text: string) => world.note(renderWarnings([text], stderrTheme(world, false)));
  const tell = async ({ report, failure }: Told) => {
    const told = failure === undefined ? undefined : errorDocument(failure);
    const values = githubOutputs(report, told, options.listing);
    await append(files.output, OUTPUT, world.conceal(renderOutputs(values, world.token)));
    if (files.summary === undefined) return;
    const room = SUMMARY_BYTES - (await files.summary.stat()).size;
    const text = renderStepSummary(report, told?.error, room);
    await append(files.summary, SUMMARY, world.conceal(text));
  };
  try {
    // Why a run failed counts more than that the runner could not be told.
    const published = await work().catch(async (error: unknown) => {
      await tell({ failure: error }).catch((second: unknown) => warn(messageOf(second)));
      throw error;
    });
    await tell(published).catch((error: unknown) => {
      if (published.failure === undefined) throw afterPublish(error, standing.circumstances.tags ?? []);
      warn(messageOf(error));
    });
    return published;
  } finally {
    await files.output?.close();
    await files.summary?.close();
  }
}

type Told = { readonly report?: PublishReport; readonly failure?: unknown };

type Files = { readonly output: FileHandle | undefined; readonly summary: FileHandle | undefined };

/** Both for appending: earlier commands of the step may have written to them. */
async function openFiles(world: World, { wanted, summary = true }: GithubOptions): Promise<Files> {
  const names = summary ? [OUTPUT, SUMMARY] : [OUTPUT];
  if (wanted === true && names.every((name) => (world.env[name] ?? '') === '')) {
    throw usage(
      `${names.join(' and ')} are not set: this is no step of GitHub Actions`,
      'Leave --github out; outside of GitHub Actions there is --report, --digest-file and --metadata-file.',
    );
  }
  const openOne = async (name: string): Promise<FileHandle | undefined> => {
    const path = world.env[name] ?? '';
    if (path === '') return undefined;
    try {
      // To be read as well: what stands in it may lack the end of its last line.
      return await open(path, 'a+');
    } catch (error) {
      const failure = fileError(name, error);
      if (wanted === true) throw failure;
      // In a container the variables may be those of the machine, whose files are not there.
      world.note(renderWarnings([failure.message], stderrTheme(world, false)));
      return undefined;
    }
  };
  const output = await openOne(OUTPUT);
  try {
    return { output, summary: summary ? await openOne(SUMMARY) : undefined };
  } catch (error) {
    await output?.close();
    throw error;
  }
}

async function append(file: FileHandle | undefined, name: string, text: string): Promise<void> {
  try {
    if (file !== undefined) await file.appendFile(`${await lineEnd(file)}${text}`);
  } catch (error) {
    throw fileError(name, error);
  }
}

/** After `printf x=y >>"$GITHUB_OUTPUT"` our first line would belong to `x`, and the runner would refuse the file. */
async function lineEnd(file: FileHandle): Promise<'' | '\n'> {
  const { size } = await file.stat();
  if (size === 0) return '';
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 && buffer[0] !== 0x0a ? '\n' : '';
}

function fileError(name: string, error: unknown): PublishError {
  return new PublishError(
    'FILE_FAILED',
    `cannot write to the file of ${name} (${reasonOf(error)})`,
    'Let the step write to the file that the runner names there.',
    { cause: error },
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
