import { relative } from 'node:path';
import type { Secrets } from '../auth/secrets.ts';
import type { Config as Configuration } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { PublishError } from '../errors.ts';
import type { PublishPorts } from '../publish/ports.ts';
import { createProgress, type ProgressMode } from '../ui/progress.ts';
import { type Circumstances, page, renderPlan, renderSummary, type TagEvent, type Theme } from '../ui/render.ts';
import type { FileWorld } from './files.ts';
import { stderrTheme } from './report-failure.ts';
import type { Published } from './run-publish.ts';
import { createRuntime, every, SYSTEM_CLOCK, type World } from './runtime.ts';
import { type CommonFlags, type NetworkFlags, networkSettings, progressMode, sharedRates } from './settings.ts';

/** What a command works with. */
export type Session = {
  readonly ports: PublishPorts;
  /** Aborted by a signal or by `--timeout`. */
  readonly signal: AbortSignal;
  /** Defaults for the command's own flags. */
  readonly config: Configuration;
  /** For files that the command writes. */
  readonly files: FileWorld;
  /** What registries have said so far, for the report; it was told as warnings. */
  readonly notes: () => readonly string[];
};

/** What is known of a run for whoever tells of its end; filled in while it is under way. */
export type Standing = {
  circumstances: Circumstances;
  progressMode: ProgressMode;
};

/** Of a run that has not begun. */
export function newStanding(): Standing {
  return { circumstances: {}, progressMode: 'auto' };
}

/** @see withSession */
export type SessionOptions = {
  /** Without configuration, environment and credentials of the user. */
  readonly isolated?: boolean;
  /** How many workers divide a run among them, and with it what a registry may be sent. */
  readonly workers?: number;
  /** Is told every login and token besides. */
  readonly watchSecrets?: (own: Secrets) => Secrets;
};

const NO_NETWORK_FLAGS: NetworkFlags = { insecure: false, 'plain-http': false };

/**
 * Runs the work with ports that live as long as it does. Progress has ended and connections are closed before this
 * resolves or throws.
 *
 * @param firstHost the registry the user named first: `--insecure` and `--plain-http` are meant for it alone
 */
export async function withSession<T>(
  world: World,
  standing: Standing,
  flags: CommonFlags & Partial<NetworkFlags>,
  firstHost: string,
  work: (session: Session) => Promise<T>,
  { isolated = false, workers = 1, watchSecrets }: SessionOptions = {},
): Promise<T> {
  const env = isolated ? {} : world.env;
  const named = flags.config;
  const namedByEnvironment = env['MANIFEST_PUBLISH_CONFIG'] || undefined;
  const { config, file } = isolated
    ? { config: {}, file: undefined }
    : await loadConfig({ named, namedByEnvironment, folder: world.folder() });
  const network = sharedRates(networkSettings({ ...NO_NETWORK_FLAGS, ...flags }, env, config, firstHost), workers);
  standing.progressMode = progressMode(flags, env, config);
  if (file !== undefined) {
    const text = `config: ${relative(world.folder(), file)}`;
    note(world, standing, flags, (theme) => page([text], theme));
  }
  const errTheme = stderrTheme(world, flags['no-color']);
  const progress = createProgress({
    mode: standing.progressMode,
    stream: world.stderr,
    theme: errTheme,
    ci: isSet(world.env['CI']) || world.env['TERM'] === 'dumb',
    quiet: flags.quiet,
    debug: flags.debug,
    now: SYSTEM_CLOCK.now,
    every,
  });
  const observer = { emit: progress.emit, http: progress.http };
  const watching = watchSecrets === undefined ? {} : { watchSecrets };
  const runtime = await createRuntime({ isolated, network, observer, ...watching });
  const restoreSignals = world.abortOnSignals(runtime.controller);
  try {
    const { signal } = runtime.controller;
    const { print, conceal, writer } = world;
    const files = { print, conceal, pid: writer.pid, sleep: SYSTEM_CLOCK.sleep, signal };
    return await work({ ports: runtime.ports, signal, config, files, notes: runtime.notes });
  } catch (error) {
    if (error instanceof PublishError && error.moved !== undefined) standing.circumstances = { tags: progress.tags() };
    throw afterPublish(error, progress.tags());
  } finally {
    await progress.stop();
    if (progress.tags().length > 0) standing.circumstances = { tags: progress.tags() };
    const placed = progress.placed();
    if (placed !== undefined) standing.circumstances = { ...standing.circumstances, placed };
    await runtime.close();
    restoreSignals();
  }
}

/** Something for people, on stderr. `--progress json` keeps stderr to one event a line. */
export function note(world: World, standing: Standing, flags: CommonFlags, render: (theme: Theme) => string): void {
  if (flags.quiet || standing.progressMode === 'json' || flags.progress === 'json') return;
  world.note(render(stderrTheme(world, flags['no-color'])));
}

/** The summary of a publish, and before it the plans of a dry run; of many lists the summary says enough. */
export function noteOutcome(
  world: World,
  standing: Standing,
  flags: CommonFlags,
  { report, plans }: Pick<Published, 'report' | 'plans'>,
): void {
  if (report.dryRun && report.lists.length === 1) {
    for (const plan of plans) note(world, standing, flags, (theme) => renderPlan(plan, theme));
  }
  note(world, standing, flags, (theme) => {
    standing.circumstances = { ...standing.circumstances, summarised: true };
    return renderSummary(report, theme);
  });
}

/** A result that could not be written does not undo what was published: that is told with it. */
export function afterPublish(error: unknown, tags: readonly TagEvent[]): unknown {
  if (!(error instanceof PublishError) || error.code !== 'FILE_FAILED' || tags.length === 0) return error;
  const moved = tags.filter(({ action }) => action !== 'unchanged').map(({ reference }) => reference);
  const inPlace = tags.map(({ reference, digest }) => `${reference}@${digest}`).join(', ');
  return error.with({ moved, message: `${error.message}; what was asked for is published: ${inPlace}` });
}

/** As CI systems set it: anything but empty and `false`. */
function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== 'false';
}
