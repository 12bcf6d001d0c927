import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Step } from './peers.ts';

/** What a command cost and how it ended. */
export type CommandResult = {
  /** Of the first process to the end of the last, as a user waits for it. */
  readonly seconds: number;
  /** User and system time of all its processes; undefined without GNU time. */
  readonly cpuSeconds: number | undefined;
  /** Of the largest of its processes; undefined without GNU time. */
  readonly peakRssBytes: number | undefined;
  readonly exitCode: number | 'timeout' | 'signal';
  readonly output: string;
};

/** @see runSteps */
export type CommandOptions = {
  readonly path: string;
  /** Where an empty HOME may be made. */
  readonly folder: string;
  readonly files: Readonly<Record<string, string>>;
  readonly timeoutSeconds: number;
  /** Ends the command and everything that it started. */
  readonly signal: AbortSignal;
  /** Path of GNU time, which asks the kernel (wait4) instead of guessing by polls. */
  readonly gnuTime: string | undefined;
};

const OUTPUT_LIMIT = 64 * 1024;

/** Runs a peer's steps in an empty HOME and with hardly any environment, so that no setting of this machine helps or hurts. */
export async function runSteps(steps: readonly Step[], options: CommandOptions): Promise<CommandResult> {
  const home = await mkdtemp(join(options.folder, 'home-'));
  for (const [name, text] of Object.entries(options.files)) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), text);
  }
  const figures = join(home, 'time.txt');
  const shell = ['sh', '-ec', toScript(steps)];
  const argv = options.gnuTime === undefined ? shell : [options.gnuTime, '-o', figures, '-f', '%M %U %S', ...shell];
  const env = { PATH: options.path, HOME: home, DOCKER_CONFIG: join(home, '.docker'), TMPDIR: home };
  const ran = await run(argv, home, env, options);
  const measured = await readFigures(figures);
  await rm(home, { recursive: true, force: true });
  return { ...ran, ...measured };
}

/** Quoted for sh; the last command replaces the shell, commands of one step are waited for by id so that one failure fails all. */
export function toScript(steps: readonly Step[]): string {
  const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
  const lines = steps.map((step, index) => {
    const [only = '', ...others] = step.map((argv) => argv.map(quote).join(' '));
    if (others.length === 0) return index === steps.length - 1 ? `exec ${only}` : only;
    const started = [only, ...others].map((command, number) => `${command} & p${number}=$!`);
    return [...started, ...started.map((_, number) => `wait $p${number}`)].join('\n');
  });
  return lines.join('\n');
}

type Ran = Pick<CommandResult, 'seconds' | 'exitCode' | 'output'>;

async function run(
  argv: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  { timeoutSeconds, signal }: Pick<CommandOptions, 'timeoutSeconds' | 'signal'>,
): Promise<Ran> {
  const [command = '', ...args] = argv;
  const started = performance.now();
  // A group of its own, so that a time-out ends all of it.
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk: Buffer) => {
    if (output.length < OUTPUT_LIMIT) output += chunk.toString();
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let late = false;
  const end = () => {
    late = true;
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  const timer = setTimeout(end, timeoutSeconds * 1000);
  signal.addEventListener('abort', end, { once: true });
  return await new Promise((resolve, reject) => {
    let seconds = 0;
    child.once('error', reject);
    child.once('exit', () => {
      seconds = (performance.now() - started) / 1000;
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    });
    child.once('close', (code) => resolve({ seconds, exitCode: late ? 'timeout' : (code ?? 'signal'), output }));
  });
}

async function readFigures(file: string): Promise<Pick<CommandResult, 'cpuSeconds' | 'peakRssBytes'>> {
  const text = await readFile(file, 'utf8').catch(() => ''); // no GNU time, or killed before it could write
  const match = /^(\d+) ([\d.]+) ([\d.]+)$/m.exec(text);
  if (match === null) return { cpuSeconds: undefined, peakRssBytes: undefined };
  const [, kib, user, system] = match;
  return { peakRssBytes: Number(kib) * 1024, cpuSeconds: Number(user) + Number(system) };
}
