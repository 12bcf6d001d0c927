import { relative } from 'node:path';
import { Command } from '@oclif/core/command';
import type { Config as Configuration } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { PublishError } from '../errors.ts';
import type { PublishPorts } from '../publish/ports.ts';
import { createProgress, type ProgressMode } from '../ui/progress.ts';
import {
  type Circumstances,
  jsonText,
  page,
  renderPlan,
  renderSummary,
  type TagEvent,
  type Theme,
} from '../ui/render.ts';
import { plainBooleans } from './booleans.ts';
import type { FileWorld } from './files.ts';
import { COMMON_FLAGS } from './flags.ts';
import { reportFailure, stderrTheme, stdoutTheme } from './report-failure.ts';
import type { Published } from './run-publish.ts';
import { createRuntime, every, processWorld, SYSTEM_CLOCK, type World } from './runtime.ts';
import { type CommonFlags, type NetworkFlags, networkSettings, progressMode } from './settings.ts';
import { usageErrorOf } from './usage-error.ts';

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

const NO_NETWORK_FLAGS: NetworkFlags = { insecure: false, 'plain-http': false };

/**
 * What every command has: the common flags, a session that ends in time, and errors that teach. oclif's own `--json`
 * is not used: it would print the whole command line and configuration with an error.
 */
export abstract class BaseCommand extends Command {
  static override baseFlags = COMMON_FLAGS;

  protected readonly world: World = processWorld();
  /** What is known when the command fails. */
  private circumstances: Circumstances = {};
  private progressMode: ProgressMode = 'auto';

  protected override async init(): Promise<void> {
    await super.init();
    this.argv = plainBooleans(this.argv, { ...this.ctor.baseFlags, ...this.ctor.flags });
  }

  /**
   * Runs the work with ports that live as long as it does. Progress has ended and connections are closed before this
   * resolves or throws.
   *
   * @param firstHost the registry the user named first: `--insecure` and `--plain-http` are meant for it alone
   * @param options isolated: without configuration, environment and credentials of the user
   */
  protected async withSession<T>(
    flags: CommonFlags & Partial<NetworkFlags>,
    firstHost: string,
    work: (session: Session) => Promise<T>,
    options: { readonly isolated?: boolean } = {},
  ): Promise<T> {
    const { world } = this;
    const isolated = options.isolated === true;
    const env = isolated ? {} : world.env;
    const named = flags.config;
    const namedByEnvironment = env['MANIFEST_PUBLISH_CONFIG'] || undefined;
    const { config, file } = isolated
      ? { config: {}, file: undefined }
      : await loadConfig({ named, namedByEnvironment, folder: world.folder() });
    const network = networkSettings({ ...NO_NETWORK_FLAGS, ...flags }, env, config, firstHost);
    this.progressMode = progressMode(flags, env, config);
    if (file !== undefined) this.note(flags, (theme) => page([`config: ${relative(world.folder(), file)}`], theme));
    const errTheme = stderrTheme(world, flags['no-color']);
    const progress = createProgress({
      mode: this.progressMode,
      stream: world.stderr,
      theme: errTheme,
      ci: isSet(world.env['CI']) || world.env['TERM'] === 'dumb',
      quiet: flags.quiet,
      debug: flags.debug,
      now: SYSTEM_CLOCK.now,
      every,
    });
    const observer = { emit: progress.emit, http: progress.http };
    const runtime = await createRuntime({ isolated, network, observer });
    const restoreSignals = world.abortOnSignals(runtime.controller);
    try {
      const { signal } = runtime.controller;
      const { print, conceal, writer } = world;
      const files = { print, conceal, pid: writer.pid, sleep: SYSTEM_CLOCK.sleep, signal };
      return await work({ ports: runtime.ports, signal, config, files, notes: runtime.notes });
    } catch (error) {
      if (error instanceof PublishError && error.moved !== undefined) this.circumstances = { tags: progress.tags() };
      throw afterPublish(error, progress.tags());
    } finally {
      await progress.stop();
      if (progress.tags().length > 0) this.circumstances = { tags: progress.tags() };
      await runtime.close();
      restoreSignals();
    }
  }

  /** The one result of a command: the document with `--json`, else the text. */
  protected async result(flags: CommonFlags, document: unknown, text: string | Uint8Array): Promise<void> {
    try {
      await this.world.print(flags.json ? `${jsonText(document, 2)}\n` : text);
    } catch (error) {
      throw afterPublish(error, this.circumstances.tags ?? []);
    }
  }

  /** Something for people, on stderr. `--progress json` keeps stderr to one event a line. */
  protected note(flags: CommonFlags, render: (theme: Theme) => string): void {
    if (flags.quiet || this.progressMode === 'json' || flags.progress === 'json') return;
    this.world.note(render(stderrTheme(this.world, flags['no-color'])));
  }

  /** The summary of a publish, and before it the plans of a dry run; of many lists the summary says enough. */
  protected noteOutcome(flags: CommonFlags, { report, plans }: Published): void {
    if (report.dryRun && report.lists.length === 1) {
      for (const plan of plans) this.note(flags, (theme) => renderPlan(plan, theme));
    }
    this.note(flags, (theme) => {
      this.circumstances = { ...this.circumstances, summarised: true };
      return renderSummary(report, theme);
    });
  }

  /** How stdout is written to. */
  protected theme(flags: CommonFlags): Theme {
    return stdoutTheme(this.world, flags['no-color']);
  }

  protected override async catch(error: unknown): Promise<void> {
    const failure = usageErrorOf(error, (this.id ?? '').replaceAll(':', ' ')) ?? error;
    await reportFailure(this.world, this.argv, failure, this.circumstances);
  }
}

/** A result that could not be written does not undo what was published: that is told with it. */
function afterPublish(error: unknown, tags: readonly TagEvent[]): unknown {
  if (!(error instanceof PublishError) || error.code !== 'FILE_FAILED' || tags.length === 0) return error;
  const moved = tags.filter(({ action }) => action !== 'unchanged').map(({ reference }) => reference);
  const inPlace = tags.map(({ reference, digest }) => `${reference}@${digest}`).join(', ');
  return error.with({ moved, message: `${error.message}; what was asked for is published: ${inPlace}` });
}

/** As CI systems set it: anything but empty and `false`. */
function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== 'false';
}
