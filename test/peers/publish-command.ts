import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PublishReport } from '../../src/publish/report.ts';
import type { Finished, RunOptions } from '../helpers/processes.ts';
import { runProgram } from '../helpers/program.ts';

export { BIN as PROGRAM } from '../helpers/program.ts';

/** What `docker login` left behind for one registry. */
export type Login = { readonly host: string; readonly name: string; readonly password: string };

/** A run of the built program, and the report that it wrote. */
export type Published = Finished & {
  /** Undefined when it failed before there was one. */
  readonly report: PublishReport | undefined;
};

/**
 * Runs `manifest-publish publish` as a user would, in a home of its own with these logins.
 *
 * @throws Error when a password shows in anything that the program wrote
 */
export async function publish(
  folder: string,
  args: readonly string[],
  options: { readonly logins?: readonly Login[] } & Pick<RunOptions, 'timeout' | 'signal' | 'kill'> = {},
): Promise<Published> {
  const { logins = [], ...limits } = options;
  const home = await makeHome(folder, logins);
  const file = join(home, 'report.json');
  const finished = await runAtHome(home, ['publish', ...args, '--report', file], limits);
  const written = await readIfThere(file);
  for (const secret of logins.flatMap(({ name, password }) => [password, encoded(name, password)])) {
    if (`${finished.stdout}${finished.stderr}${written ?? ''}`.includes(secret)) throw new Error('a password shows');
  }
  return { ...finished, report: written === undefined ? undefined : (JSON.parse(written) as PublishReport) };
}

/** Runs any command of the program in a home that {@link makeHome} made. */
export function runAtHome(home: string, args: readonly string[], limits: RunOptions = {}): Promise<Finished> {
  const env = { HOME: home, DOCKER_CONFIG: join(home, '.docker') };
  return runProgram(args, { ...limits, folder: home, env });
}

/** The end of what it wrote, for the message of a failed expectation: a crash quotes whole bundled files. */
export function lastWords({ exitCode, stderr }: Finished): string {
  const lines = stderr.split('\n').map((line) => line.slice(0, 300).trimEnd());
  return [`exit ${exitCode}`, ...lines.filter((line) => line !== '').slice(-15)].join('\n');
}

/** An empty home, but for a docker configuration with these logins. */
export async function makeHome(folder: string, logins: readonly Login[] = []): Promise<string> {
  const home = await mkdtemp(join(folder, 'home-'));
  await mkdir(join(home, '.docker'));
  const auths = logins.map(({ host, name, password }) => [host, { auth: encoded(name, password) }]);
  await writeFile(join(home, '.docker', 'config.json'), JSON.stringify({ auths: Object.fromEntries(auths) }));
  return home;
}

function encoded(name: string, password: string): string {
  return Buffer.from(`${name}:${password}`).toString('base64');
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
