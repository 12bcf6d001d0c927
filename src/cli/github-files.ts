import type { Environment } from './environment.ts';

/** Variables in which the runner of GitHub Actions names the files of a step. */
export const OUTPUT = 'GITHUB_OUTPUT';
export const SUMMARY = 'GITHUB_STEP_SUMMARY';

/** Whether the runner is to be told of a run: `--github`, or else where it runs us and has named its files. */
export function tellsGithub(wanted: boolean | undefined, env: Environment): boolean {
  return wanted ?? (env['GITHUB_ACTIONS'] === 'true' && [OUTPUT, SUMMARY].every((name) => (env[name] ?? '') !== ''));
}
