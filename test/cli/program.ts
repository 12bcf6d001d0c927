import { mkdtempSync, rmSync } from 'node:fs';
import nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished, TestRunner } from 'vitest';
import type { Finished, Variables } from '../helpers/processes.ts';
import { runProgram } from '../helpers/program.ts';

export { BIN } from '../helpers/program.ts';

/** Where the program has Node 22 and later keep its compiled code, below a home; undefined where Node keeps none. */
export const COMPILED = 'enableCompileCache' in nodeModule ? join('.cache', 'manifest-publish') : undefined;

/** An empty folder that is both home and working folder, gone after the test or, made outside of one, those of the file. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'manifest-publish-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // A hook that a running test adds to its file is never called.
  if (TestRunner.getCurrentTest() === undefined) afterAll(remove);
  else onTestFinished(remove);
  return folder;
}

/** Variables of a user who has configured nothing. */
export function variables(folder: string, more: Variables = {}): Variables {
  return { HOME: folder, XDG_CONFIG_HOME: join(folder, '.config'), ...more };
}

/**
 * Runs the program to its end, away from everything that this machine or repository configures, and judges it by the
 * rules of every run.
 */
export function cli(
  folder: string,
  args: readonly string[],
  options: { readonly env?: Variables; readonly timeout?: number; readonly input?: string } = {},
): Promise<Finished> {
  const { env, ...rest } = options;
  return runProgram(args, { folder, env: variables(folder, env), ...rest });
}

/** What `--json` wrote. */
export function parsed(finished: Finished): Record<string, unknown> {
  const value: unknown = JSON.parse(finished.stdout);
  if (value === null || typeof value !== 'object') throw new Error(`no object on stdout: ${finished.stdout}`);
  return value as Record<string, unknown>;
}
