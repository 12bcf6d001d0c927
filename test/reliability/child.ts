import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const BIN = fileURLToPath(new URL('../../bin/run.js', import.meta.url));

/** How the program ended, and what it wrote. */
export type Ended = { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string };

/** The built program while it runs. */
export type Running = { readonly child: ChildProcess; readonly ended: Promise<Ended> };

/** A test run that is cut off must leave nothing behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Longer than any run here takes, in ms. */
const LIMIT = 60_000;

/** Starts the built program in a home of its own. */
export function startProgram(folder: string, args: readonly string[]): Running {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, DOCKER_CONFIG: `${folder}/.docker` };
  const child = spawn(process.execPath, [BIN, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (piece) => {
    output.stdout += piece;
  });
  child.stderr.on('data', (piece) => {
    output.stderr += piece;
  });
  const timer = setTimeout(() => {
    output.stderr += `\nit did not end within ${LIMIT} ms`;
    child.kill('SIGKILL');
  }, LIMIT);
  running.add(child);
  const ended = once(child, 'close').then(([code]): Ended => {
    clearTimeout(timer);
    running.delete(child);
    return { exitCode: code as number | null, ...output };
  });
  return { child, ended };
}

/** Runs the built program to its end. */
export function runProgram(folder: string, args: readonly string[]): Promise<Ended> {
  return startProgram(folder, args).ended;
}
