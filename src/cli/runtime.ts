import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { realpathSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecrets, type Secrets } from '../auth/secrets.ts';
import { PublishError } from '../errors.ts';
import type { Clock, PublishPorts } from '../publish/ports.ts';
import type { Writer } from '../store/owner.ts';
import type { ThemedStream } from '../ui/render.ts';
import { connect, type Observer } from './connect.ts';
import { whenDockerStops } from './docker-plugin-socket.ts';
import type { Environment } from './environment.ts';
import { outputOn } from './output.ts';
import type { NetworkSettings } from './settings.ts';

// The only file of the program that touches `process`; everything else is handed what it needs. It loads no oclif, so
// that the library door and the Action can use it.

/** This process, as the program sees it. */
export type World = {
  readonly env: Environment;
  /** @throws PublishError `FILE_FAILED` where it has been deleted */
  readonly folder: () => string;
  /** @throws Error where this user has no home, as in some containers */
  readonly home: () => string;
  /** The file that was started, `bin/run.js`, by its real path. */
  readonly program: () => string;
  /** What others can tell of this process. */
  readonly writer: Writer;
  /** A text that no other call gives, on any machine. */
  readonly token: () => string;
  readonly platform: string;
  /** Node and machine, for bug reports and `--version`. */
  readonly versions: string;
  readonly stdout: ThemedStream;
  readonly stderr: ThemedStream;
  /** Asked for only by who reads it: that opens it. */
  readonly stdin: () => AsyncIterable<unknown>;
  /**
   * Writes to stdout, or to `stderr`, and waits until it has left; a reader that has gone away is not an error.
   *
   * @throws PublishError `FILE_FAILED`
   */
  print(content: string | Uint8Array, to?: 'stdout' | 'stderr'): Promise<void>;
  /** Takes out of a text what this process has been told and must not repeat; what is printed has gone through it. */
  conceal(text: string): string;
  /** Writes to stderr. Should that fail, the process ends with 8, unless it has a worse thing to say. */
  note(text: string): void;
  /** Writes to stderr as it is, secrets too: for a CI runner, which is told what it must not show. */
  command(text: string): void;
  setExitCode(code: number): void;
  /**
   * From here on the process ends with 1, and what `report` says, unless the function that is returned is called: a
   * command that waits for what never comes ends as soon as nothing is left to wait for, and must not seem done.
   */
  expectEnd(report: (error: unknown) => Promise<void>): () => void;
  /**
   * Aborts the controller on SIGINT and SIGTERM, so that sessions are cancelled; a second signal ends the process at
   * once. Returns what undoes it.
   */
  abortOnSignals(controller: AbortController): () => void;
  /** Called once, with what nobody caught; the process ends with exit code 1 when it is done. */
  onCrash(report: (error: unknown) => Promise<void>): void;
  /** Ends the process should anything still hold it open after `milliseconds`. */
  endWithin(milliseconds: number): void;
};

let world: World | undefined;

/**
 * What this process has been told and must not repeat, however many runs it makes: its output is one for all of them,
 * and so is the report of a crash.
 */
const SECRETS: Secrets = createSecrets();

/** Locks of image layouts that this process holds or waits for, however many runs it makes. */
const LAYOUT_LOCKS = new Set<string>();

/** The stream, for those who draw on it. Bytes pass as they are: they are manifests, which have a digest. */
function withoutSecrets(stream: ThemedStream): ThemedStream {
  const write = (content: unknown, ...rest: unknown[]) =>
    Reflect.apply(stream.write, stream, [typeof content === 'string' ? SECRETS.conceal(content) : content, ...rest]);
  return Object.create(stream, { write: { value: write } });
}

/** The real one; every call gives the same. */
export function processWorld(): World {
  world ??= openWorld();
  return world;
}

/** A report of a crash that takes longer than this (ms) is given up: nobody reads the pipe that it goes to. */
const CRASH_WITHIN = 2000;

function openWorld(): World {
  // Every request listens to the signal of its run; Node takes the eleventh for a leak and writes so on stderr.
  setMaxListeners(0);
  const outputs = { stdout: outputOn(process.stdout, 'stdout'), stderr: outputOn(process.stderr, 'stderr') };
  let exitCode = 0;
  return {
    env: process.env,
    folder: workingFolder,
    home: homedir,
    program: () => realpathSync(process.argv[1] ?? ''),
    writer: thisProcess(),
    token: randomUUID,
    platform: process.platform,
    versions: `${process.platform}-${process.arch} node-${process.version}`,
    stdout: outputs.stdout.stream,
    stderr: withoutSecrets(outputs.stderr.stream),
    stdin: () => process.stdin,
    print: (content, to = 'stdout') =>
      outputs[to].write(typeof content === 'string' ? SECRETS.conceal(content) : content),
    conceal: SECRETS.conceal,
    note: (text) => void outputs.stderr.stream.write(SECRETS.conceal(text)),
    command: (text) => void outputs.stderr.stream.write(text),
    setExitCode: (code) => {
      exitCode = code;
      process.exitCode = code;
    },
    expectEnd: (report) => {
      process.exitCode = 1;
      const drained = () => {
        process.off('beforeExit', drained);
        void report(new Error('internal: ended without a result'));
      };
      process.on('beforeExit', drained);
      return () => {
        process.off('beforeExit', drained);
        process.exitCode = exitCode === 0 ? (outputs.stderr.failure()?.exitCode ?? 0) : exitCode;
      };
    },
    abortOnSignals,
    onCrash: (report) => {
      let crashed = false;
      // Rejections that nobody handles arrive here too.
      process.on('uncaughtException', (error) => {
        if (crashed) process.exit(1);
        crashed = true;
        setTimeout(() => process.exit(1), CRASH_WITHIN);
        void report(error).finally(() => process.exit(1));
      });
    },
    endWithin: (milliseconds) => {
      setTimeout(() => process.exit(), milliseconds).unref();
    },
  };
}

function workingFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    const hint = 'Change to a folder that is there, and run the same command again.';
    throw new PublishError('FILE_FAILED', 'the working folder has been deleted', hint, { cause: error });
  }
}

function thisProcess(): Writer {
  return { pid: process.pid, host: hostname(), isAlive };
}

/** Whether a process of this machine runs; one of another user may not be asked, and runs. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && 'code' in error) return error.code !== 'ESRCH';
    throw error;
  }
}

/** Ends a group of processes of ours that leaves no other choice. */
function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    // ESRCH: all of it has ended; EPERM: macOS says so of a group that is ending.
    if (error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM')) return;
    throw error;
  }
}

const SIGNALS = {
  SIGINT: { code: 'INTERRUPTED', exitCode: 130, what: 'interrupted (SIGINT)' },
  SIGTERM: { code: 'TERMINATED', exitCode: 143, what: 'terminated (SIGTERM)' },
} as const;

function abortOnSignals(controller: AbortController): () => void {
  const names = ['SIGINT', 'SIGTERM'] as const;
  const listener = (name: NodeJS.Signals) => {
    const signal = SIGNALS[name === 'SIGTERM' ? 'SIGTERM' : 'SIGINT'];
    if (controller.signal.aborted) process.exit(signal.exitCode);
    controller.abort(
      new PublishError(
        signal.code,
        signal.what,
        'Run the same command again: what is already in place is not sent twice.',
      ),
    );
  };
  for (const name of names) process.on(name, listener);
  const unwatch = whenDockerStops(process.env, () => controller.signal.aborted || listener('SIGTERM'), every);
  return () => {
    for (const name of names) process.off(name, listener);
    unwatch();
  };
}

/** The clock of this machine. */
export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  async sleep(milliseconds, signal) {
    signal.throwIfAborted();
    await sleep(milliseconds, undefined, { signal }).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : error;
    });
  },
};

/** Calls `tick` every so many milliseconds until the returned function is called; keeps no process alive. */
export function every(milliseconds: number, tick: () => void): () => void {
  const timer = setInterval(tick, milliseconds).unref();
  return () => clearInterval(timer);
}

/** @see createRuntime */
export type RuntimeOptions = {
  /** Without the user's environment and credentials, for a run that must not depend on them. */
  readonly isolated?: boolean;
  readonly network: NetworkSettings;
  readonly observer: Observer;
  /** Stands in front of the register of what this process must not repeat. */
  readonly watchSecrets?: (own: Secrets) => Secrets;
};

/** Everything that lives as long as one run. */
export type Runtime = {
  readonly ports: PublishPorts;
  /** Its signal ends the run; `--timeout` aborts it, and so may whoever made the runtime. */
  readonly controller: AbortController;
  /** What registries had to say, as sentences, in the order in which it came; each was told as a warning. */
  readonly notes: () => readonly string[];
  close(): Promise<void>;
};

/** Puts the rooms together with this process, its clock and chance. */
export async function createRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { network, observer, isolated, watchSecrets = (own) => own } = options;
  const { env, platform } = process;
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  const surroundings = {
    env: isolated === true ? {} : env,
    clock: SYSTEM_CLOCK,
    random: Math.random,
    secrets: watchSecrets(SECRETS),
    signal: controller.signal,
    writer: { ...thisProcess(), own: LAYOUT_LOCKS },
  };
  // Windows has no groups of processes that a signal could be sent to.
  const groups = platform === 'win32' ? {} : { killGroup };
  const login = isolated === true ? undefined : { env, platform, home: homedir, ...groups };
  const answers = new Map<string, number>();
  const http: Observer['http'] = (event) => {
    if (event.kind === 'request' && event.status !== undefined) answers.set(new URL(event.url).host, event.status);
    observer.http(event);
  };
  const { ports, notes, close } = await connect(network, { ...observer, http }, surroundings, login);
  const deadline =
    network.timeout === undefined ? undefined : setTimeout(timeUp, network.timeout, controller, network, answers);
  return {
    ports,
    controller,
    notes,
    async close() {
      clearTimeout(deadline);
      await close();
    },
  };
}

/** @param answers the last status of each host: who answers 429 is what a run waits for, and looks like a slow one */
function timeUp(
  controller: AbortController,
  { timeout = 0 }: NetworkSettings,
  answers: ReadonlyMap<string, number>,
): void {
  const limiting = [...answers].filter(([, status]) => status === 429).map(([host]) => host);
  const why = limiting.length === 0 ? '' : `; ${limiting.join(', ')} answered 429, too many requests`;
  controller.abort(
    new PublishError(
      'TIMED_OUT',
      `not done within ${timeout / 1000} s, the limit of --timeout${why}`,
      'Allow more time, or run the same command again: what is already in place is not sent twice.',
    ),
  );
}
