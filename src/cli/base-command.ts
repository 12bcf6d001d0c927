import { Command } from '@oclif/core/command';
import { jsonText, type Theme } from '../ui/render.ts';
import { plainBooleans } from './booleans.ts';
import { COMMON_FLAGS } from './flags.ts';
import { tellsGithub } from './github-files.ts';
import { isWritten, reportFailure, stdoutTheme } from './report-failure.ts';
import type { Published } from './run-publish.ts';
import { processWorld, type World } from './runtime.ts';
import { afterPublish, newStanding, note, noteOutcome, type Session, type Standing, withSession } from './session.ts';
import type { CommonFlags, NetworkFlags } from './settings.ts';
import { usageErrorOf } from './usage-error.ts';

/**
 * What every command has: the common flags, a session that ends in time, and errors that teach. oclif's own `--json`
 * is not used: it would print the whole command line and configuration with an error.
 */
export abstract class BaseCommand extends Command {
  static override baseFlags = COMMON_FLAGS;

  protected readonly world: World = processWorld();
  /** What is known when the command fails. */
  protected readonly standing: Standing = newStanding();

  /** Runs it; what fails has been told when this resolves. */
  async start(): Promise<void> {
    await this._run();
  }

  protected override async init(): Promise<void> {
    await super.init();
    this.argv = plainBooleans(this.argv, { ...this.ctor.baseFlags, ...this.ctor.flags });
  }

  /** @see withSession */
  protected withSession<T>(
    flags: CommonFlags & Partial<NetworkFlags>,
    firstHost: string,
    work: (session: Session) => Promise<T>,
    options: { readonly isolated?: boolean; readonly workers?: number } = {},
  ): Promise<T> {
    return withSession(this.world, this.standing, flags, firstHost, work, options);
  }

  /** Publishes, and tells GitHub Actions of it where that runs the command. */
  protected async withGithub(
    flags: { readonly github: boolean | undefined },
    listing: boolean,
    work: () => Promise<Published>,
  ): Promise<Published> {
    if (!tellsGithub(flags.github, this.world.env)) return work();
    const { withGithub } = await import('./github.ts');
    return withGithub(this.world, this.standing, { wanted: flags.github, listing }, work);
  }

  /** The one result of a command: the document with `--json`, else the text. */
  protected async result(flags: CommonFlags, document: unknown, text: string | Uint8Array): Promise<void> {
    try {
      await this.world.print(flags.json ? `${jsonText(document, 2)}\n` : text);
    } catch (error) {
      throw afterPublish(error, this.standing.circumstances.tags ?? []);
    }
  }

  /** @see note */
  protected note(flags: CommonFlags, render: (theme: Theme) => string): void {
    note(this.world, this.standing, flags, render);
  }

  /** @see noteOutcome */
  protected noteOutcome(flags: CommonFlags, published: Published): void {
    noteOutcome(this.world, this.standing, flags, published);
  }

  /** How stdout is written to. */
  protected theme(flags: CommonFlags): Theme {
    return stdoutTheme(this.world, flags['no-color']);
  }

  protected override async catch(error: unknown): Promise<void> {
    const failure = usageErrorOf(error, (this.id ?? '').replaceAll(':', ' ')) ?? error;
    await reportFailure(this.world, this.argv, failure, this.standing.circumstances);
    // The flags may be what is wrong, so they are looked for as they were written.
    const said = isWritten(this.argv, '--no-github') ? false : isWritten(this.argv, '--github') || undefined;
    if (!('github' in (this.ctor.flags ?? {}) && tellsGithub(said, this.world.env))) return;
    const { annotateFailure } = await import('./github.ts');
    annotateFailure(this.world, failure);
  }
}
