import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Variables of the program; nothing else is inherited but PATH. */
export type Variables = Readonly<Record<string, string>>;

/** How a program ended and what it wrote. */
export type Finished = {
  /** Undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** The kernel's high-water mark of resident memory in bytes; 0 when the program was too quick to be seen. */
  readonly peakMemory: number;
  /** From the last that it wrote until it had ended, in ms. */
  readonly lingered: number;
};

/** A program that keeps running until it is stopped. */
export type Server = {
  readonly pid: number;
  /** Everything it wrote so far, both streams together. */
  output(): string;
  /** Asks it to end, then makes it end; resolves when it has ended. Harmless the second time. */
  stop(): Promise<void>;
};

/** Programs that a test of peers may find here though they are not on PATH: `.ci/run` and `go install` put them there. */
function folders(): readonly string[] {
  const { PATH = '', XDG_CACHE_HOME, GOBIN, GOPATH } = process.env;
  const cache = XDG_CACHE_HOME === undefined || XDG_CACHE_HOME === '' ? join(homedir(), '.cache') : XDG_CACHE_HOME;
  const go = (GOPATH ?? join(homedir(), 'go')).split(delimiter).map((path) => join(path, 'bin'));
  const installed = [join(cache, 'manifest-publish-ci', 'bin'), ...(GOBIN === undefined ? [] : [GOBIN]), ...go];
  return [...PATH.split(delimiter), ...installed].filter((folder) => folder !== '');
}

/** Where a program is, or undefined. */
export function findProgram(name: string): string | undefined {
  return folders()
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** Where a program is. @throws Error when it is nowhere: a lane asks {@link findProgram} first and skips aloud */
export function needProgram(name: string): string {
  const path = findProgram(name);
  if (path === undefined) throw new Error(`${name} is not installed`);
  return path;
}

/** How a program is run. `timeout` in ms, default a minute. */
export type RunOptions = {
  readonly env?: Variables;
  readonly cwd?: string;
  readonly timeout?: number;
  /** What the program finds on standard input; without it there is none. */
  readonly input?: string;
  /** Sends `kill` to the program when it is aborted. */
  readonly signal?: AbortSignal;
  readonly kill?: NodeJS.Signals;
};

/** Runs a program to its end. @throws Error when it takes longer than it may */
export async function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = start(program, args, options);
  const closed = once(child, 'close');
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const memory = watchMemory(child);
  let lastWord = performance.now();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', () => {
      lastWord = performance.now();
    });
  }
  const timeout = options.timeout ?? 60_000;
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, timeout);
  const kill = () => child.kill(options.kill);
  options.signal?.addEventListener('abort', kill, { once: true });
  try {
    await closed;
  } finally {
    clearTimeout(timer);
    memory.stop();
    options.signal?.removeEventListener('abort', kill);
  }
  if (late) {
    throw new Error(`${program} ${args.join(' ')} did not end within ${timeout} ms\n${stdout()}${stderr()}`);
  }
  const lingered = performance.now() - lastWord;
  const output = { stdout: stdout(), stderr: stderr() };
  return { exitCode: child.exitCode ?? undefined, ...output, peakMemory: memory.peak(), lingered };
}

/**
 * Starts a program and waits until it has written `ready`; the first group of the match is handed back.
 *
 * @throws Error with what it wrote, when it ends before that or needs more than 20 s
 */
export async function startServer(
  program: string,
  args: readonly string[],
  ready: RegExp,
  options: { readonly env?: Variables; readonly cwd?: string } = {},
): Promise<Server & { readonly found: string }> {
  const child = start(program, args, options);
  let output = '';
  const add = (piece: Buffer) => {
    output += piece.toString('utf8');
  };
  child.stdout?.on('data', add);
  child.stderr?.on('data', add);
  const ended = once(child, 'close');
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
    await ended;
    clearTimeout(timer);
  };
  // A test run that is cut off must not leave servers behind.
  const endNow = () => child.kill('SIGKILL');
  process.once('exit', endNow);
  void ended.then(() => process.removeListener('exit', endNow));

  const deadline = Date.now() + 20_000;
  while (Date.now() < deadline && child.exitCode === null && child.signalCode === null) {
    const [, found] = ready.exec(output) ?? [];
    if (found !== undefined && child.pid !== undefined) return { pid: child.pid, output: () => output, stop, found };
    await sleep(10);
  }
  await stop();
  throw new Error(`${program} ${args.join(' ')} did not start:\n${output}`);
}

function start(
  program: string,
  args: readonly string[],
  options: { readonly env?: Variables; readonly cwd?: string; readonly input?: string },
): ChildProcess {
  const { input } = options;
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'] ?? '', ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  // A program that ends before it has read everything is no failure of the test's.
  child.stdin?.on('error', () => undefined).end(input);
  return child;
}

function collect(stream: ChildProcess['stdout']): () => string {
  const pieces: Buffer[] = [];
  stream?.on('data', (piece: Buffer) => pieces.push(piece));
  return () => Buffer.concat(pieces).toString('utf8');
}

/** Reads the mark every 20 ms; it only grows, so only what happens in the last 20 ms can be missed. */
function watchMemory(child: ChildProcess): { readonly peak: () => number; readonly stop: () => void } {
  let peak = 0;
  const look = () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    peak = Math.max(peak, highWaterMark(child.pid));
  };
  const timer = setInterval(look, 20);
  return { peak: () => peak, stop: () => clearInterval(timer) };
}

function highWaterMark(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
  } catch (error) {
    // Gone between two looks.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return 0;
    throw error;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
