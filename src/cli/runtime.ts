import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import { homedir, hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import packageJson from '../../package.json' with { type: 'json' };
import type { CredentialSource } from '../auth/credentials.ts';
import { PublishError } from '../errors.ts';
import type { HttpEvent } from '../http/message.ts';
import type { PublishEvent } from '../publish/events.ts';
import type { Clock, PublishPorts } from '../publish/ports.ts';
import type { RegistryClient } from '../registry/client.ts';
import type { Writer } from '../store/owner.ts';
import { readAuthorities } from './authorities.ts';
import type { NetworkSettings } from './settings.ts';

// The only file of the program that touches `process`; everything else is handed what it needs. It loads no oclif, so
// that the library door and the Action can use it.

/** @see World.env */
export type Environment = Readonly<Record<string, string | undefined>>;

/** This process, as the program sees it. */
export type World = {
  readonly env: Environment;
  readonly folder: string;
  /** @throws Error where this user has no home, as in some containers */
  readonly home: () => string;
  /** What others can tell of this process. */
  readonly writer: Writer;
  /** A text that no other call gives, on any machine. */
  readonly token: () => string;
  readonly platform: string;
  /** Node and machine, for bug reports and `--version`. */
  readonly versions: string;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Writes to stdout and waits until it has left; a reader that has gone away is not an error. */
  print(content: string | Uint8Array): Promise<void>;
  note(text: string): void;
  setExitCode(code: number): void;
  /**
   * Aborts the controller on SIGINT and SIGTERM, so that sessions are cancelled; a second signal ends the process at
   * once. Returns what undoes it.
   */
  abortOnSignals(controller: AbortController): () => void;
  /** Called with what nobody caught; the process ends with exit code 1 when it is done. */
  onCrash(report: (error: unknown) => Promise<void>): void;
  /** Ends the process should anything still hold it open after `milliseconds`. */
  endWithin(milliseconds: number): void;
};

/** The real one. */
export function processWorld(): World {
  const { stdout, stderr } = process;
  // Every request listens to the signal of its run; Node takes the eleventh for a leak and writes so on stderr.
  setMaxListeners(0);
  for (const stream of [stdout, stderr]) stream.on('error', ignoreClosedPipe);
  return {
    env: process.env,
    folder: process.cwd(),
    home: homedir,
    writer: { pid: process.pid, host: hostname(), isAlive },
    token: randomUUID,
    platform: process.platform,
    versions: `${process.platform}-${process.arch} node-${process.version}`,
    stdout,
    stderr,
    print: (content) => new Promise((resolve) => stdout.write(content, () => resolve())),
    note: (text) => void stderr.write(text),
    setExitCode: (code) => {
      process.exitCode = code;
    },
    abortOnSignals,
    onCrash: (report) => {
      // Rejections that nobody handles arrive here too.
      process.on('uncaughtException', (error) => void report(error).finally(() => process.exit(1)));
    },
    endWithin: (milliseconds) => {
      setTimeout(() => process.exit(), milliseconds).unref();
    },
  };
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

/** Whoever reads us may stop reading (`| head -1`): the work goes on, its exit code stands. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
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
  return () => {
    for (const name of names) process.off(name, listener);
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

/** What a run is told of while it works. */
export type Observer = {
  readonly emit: (event: PublishEvent) => void;
  readonly http: (event: HttpEvent) => void;
};

/** @see createRuntime */
export type RuntimeOptions = {
  /** Without the user's environment and credentials, for a run that must not depend on them. */
  readonly isolated?: boolean;
  readonly network: NetworkSettings;
  readonly observer: Observer;
};

/** Everything that lives as long as one run. */
export type Runtime = {
  readonly ports: PublishPorts;
  /** Its signal ends the run; `--timeout` aborts it, and so may whoever made the runtime. */
  readonly controller: AbortController;
  close(): Promise<void>;
};

/**
 * Puts the rooms together. The network code is loaded here and not before, as it costs 30 ms of CPU that a wrong
 * command line need not pay.
 */
export async function createRuntime({ network, observer, isolated }: RuntimeOptions): Promise<Runtime> {
  const [{ createTransport }, { createLimiter }, { createProxyRule }, { createAuthorizer }, { createRegistryClient }] =
    await Promise.all([
      import('../http/transport.ts'),
      import('../http/limiter.ts'),
      import('../http/proxy.ts'),
      import('../auth/authorizer.ts'),
      import('../registry/remote.ts'),
    ]);
  const env = isolated === true ? {} : process.env;
  const clock = SYSTEM_CLOCK;
  const random = Math.random;
  const limiter = createLimiter({ clock, jobs: network.jobs, maxRps: ratesOf(network) });
  const traffic = { requests: 0, retries: 0 };
  const transport = createTransport({
    ...(await readAuthorities(network, env)),
    limiter,
    clock,
    random,
    proxy: createProxyRule(env),
    retries: network.retries,
    userAgent: `${packageJson.name}/${packageJson.version}`,
    onEvent(event) {
      if (event.kind === 'request') traffic.requests += 1;
      else traffic.retries += 1;
      observer.http(event);
    },
  });
  const credentials = isolated === true ? NO_CREDENTIALS : await userCredentials();
  const authorizer = createAuthorizer({ transport, credentials, clock });
  const clients = new Map<string, RegistryClient>();
  const registry = (host: string): RegistryClient => {
    const client = clients.get(host) ?? createRegistryClient({ host, transport, authorizer, clock });
    clients.set(host, client);
    return client;
  };

  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  const deadline = network.timeout === undefined ? undefined : setTimeout(timeUp, network.timeout, controller, network);
  return {
    ports: {
      registry,
      limiter,
      clock,
      random,
      emit: observer.emit,
      traffic: () => ({ ...traffic }),
      retries: network.retries,
    },
    controller,
    async close() {
      clearTimeout(deadline);
      await transport.close();
    },
  };
}

const NO_CREDENTIALS: CredentialSource = { lookup: async () => ({ kind: 'none' }) };

/** Logins as docker and podman keep them. */
async function userCredentials(): Promise<CredentialSource> {
  const [{ createCredentialSource }, { createHelperRunner }] = await Promise.all([
    import('../auth/credentials.ts'),
    import('../auth/helper.ts'),
  ]);
  const { env, platform } = process;
  return createCredentialSource({
    env,
    home: homedir(),
    readFile: readIfThere,
    runHelper: createHelperRunner({ env, platform }),
  });
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) {
      return undefined;
    }
    throw error;
  }
}

function ratesOf(network: NetworkSettings): Record<string, number> {
  const rates: Record<string, number> = {};
  for (const [host, { maxRps }] of Object.entries(network.hosts)) {
    if (maxRps !== undefined) rates[host] = maxRps;
  }
  return rates;
}

function timeUp(controller: AbortController, { timeout = 0 }: NetworkSettings): void {
  controller.abort(
    new PublishError(
      'TIMED_OUT',
      `not done within ${timeout / 1000} s, the limit of --timeout`,
      'Allow more time, or run the same command again: what is already in place is not sent twice.',
    ),
  );
}
