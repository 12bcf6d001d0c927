import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { PublishError } from '../errors.ts';
import { oneLine } from '../http/error-body.ts';
import type { Credential } from '../http/origin.ts';
import { basic } from './auth-file.ts';

/** What a run of `docker-credential-NAME get` came to. */
export type HelperRun =
  | { readonly kind: 'ended'; readonly code: number; readonly stdout: string; readonly stderr: string }
  /** It could not be run, or had to be ended; `why` is put behind "docker-credential-x". */
  | { readonly kind: 'failed'; readonly why: string };

/** Where it failed because the program is not there. */
const MISSING = 'is not on PATH';

/** Runs `program get` with `input` on its stdin. */
export type RunHelper = (program: string, input: string) => Promise<HelperRun>;

/** In ms; helpers that ask a cloud for a token take seconds. */
const TIME_LIMIT = 30_000;
/** In bytes. */
const OUTPUT_LIMIT = 64 * 1024;

/** Becomes part of a program's name. */
const NAME = /^[A-Za-z0-9._-]+$/;

/** What helpers print when they have no login for the host; the only failure that means "ask anonymously". */
const NOT_FOUND = 'credentials not found in native keychain';

/**
 * The login that a helper has for the server; undefined when it has none.
 *
 * @param server as the helper knows it
 * @throws PublishError `CREDENTIALS_FAILED` for every other failure: a helper that cannot be run must not make the
 *   program go on without a login, or with another one (CVE-2021-41092)
 * @see https://github.com/docker/docker-credential-helpers#development
 */
export async function askHelper(name: string, server: string, runHelper: RunHelper): Promise<Credential | undefined> {
  if (!NAME.test(name)) throw helperFailed(JSON.stringify(name), server, 'is not the name of a credential helper');
  const program = `docker-credential-${name}`;
  if (/[\s\p{Cc}]/u.test(server)) throw helperFailed(program, oneLine(server), 'is not asked about such a host');
  const run = await runHelper(program, server);
  if (run.kind === 'failed') throw helperFailed(program, server, run.why);
  if (run.code !== 0) {
    if (`${run.stdout}\n${run.stderr}`.includes(NOT_FOUND)) return undefined;
    throw helperFailed(program, server, `ended with ${run.code}: ${complaintOf(run)}`);
  }
  const answer = parseAnswer(run.stdout);
  if (answer === undefined) throw helperFailed(program, server, 'printed something that is not a login');
  return basic(answer.username, answer.secret);
}

/**
 * Helpers complain on stdout, where logins belong: what looks like one, or is beyond a sentence, is not repeated, nor is
 * a long word that is no word.
 */
function complaintOf({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): string {
  const text = stderr.trim() === '' && !stdout.includes('{') ? withoutTokens(oneLine(stdout)) : oneLine(stderr);
  return text === '' ? 'it gave no reason' : text;
}

function withoutTokens(sentence: string): string {
  return sentence.replace(/\S{12,}/g, (word) => (/^[A-Za-z'"`.,:;()_/-]+$/.test(word) ? word : '***'));
}

function parseAnswer(stdout: string): { readonly username: string; readonly secret: string } | undefined {
  try {
    const { Username: username, Secret: secret } = Object(JSON.parse(stdout)) as Readonly<Record<string, unknown>>;
    return typeof username === 'string' && typeof secret === 'string' ? { username, secret } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function helperFailed(program: string, server: string, why: string): PublishError {
  const cure = why === MISSING ? `Install ${program},` : `Try it by hand: echo ${server} | ${program} get;`;
  return new PublishError(
    'CREDENTIALS_FAILED',
    `the credential helper ${program} ${why} (asked for ${server})`,
    `${cure} or take it out of docker's config.json and log in again.`,
    { registry: server },
  );
}

/** Where helpers are looked for, and with what they run. */
export type HelperWorld = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `process.platform`. */
  readonly platform: string;
  /** In ms. Default 30,000. */
  readonly timeLimit?: number;
  /** Of the run: no helper outlives it. */
  readonly signal?: AbortSignal;
  /**
   * Kills a group of processes, by its leader; given, each helper leads one. Most helpers are scripts, and what a script
   * waits for does not end with it.
   */
  readonly killGroup?: (leader: number) => void;
};

/** Why a helper had to be ended that nobody waits for any more. */
const ENDED_WITH_RUN = 'was ended with the run';

/** Runs helpers for real: found on PATH, no shell in between, ended after 30 s, 64 KiB or with the run. */
export function createHelperRunner(world: HelperWorld): RunHelper {
  const { env, platform, timeLimit = TIME_LIMIT, signal, killGroup } = world;
  return async (program, input) => {
    const file = await findProgram(program, env['PATH'] ?? env['Path'] ?? '', platform);
    if (file === undefined) return { kind: 'failed', why: MISSING };
    // Loaded here, as it costs 3 ms of CPU, and most runs ask no helper.
    const { spawn } = await import('node:child_process');
    if (signal?.aborted === true) return { kind: 'failed', why: ENDED_WITH_RUN };
    return new Promise((resolve) => {
      const child = spawn(file, ['get'], {
        env: { ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
        windowsHide: true,
        detached: killGroup !== undefined,
        timeout: timeLimit,
        killSignal: 'SIGKILL',
      });
      const output = { stdout: '', stderr: '' };
      let length = 0;
      const end = (run: HelperRun) => {
        signal?.removeEventListener('abort', endWithRun);
        child.kill('SIGKILL');
        // One that ended by itself may have left something running that is meant to stay, such as a key agent.
        if (run.kind === 'failed' && child.pid !== undefined) killGroup?.(child.pid);
        // What the helper itself has started may hold the pipes open, and this process with them.
        for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
        resolve(run);
      };
      const endWithRun = () => end({ kind: 'failed', why: ENDED_WITH_RUN });
      signal?.addEventListener('abort', endWithRun, { once: true });
      for (const name of ['stdout', 'stderr'] as const) {
        child[name].setEncoding('utf8').on('data', (text: string) => {
          length += Buffer.byteLength(text);
          if (length > OUTPUT_LIMIT) end({ kind: 'failed', why: `printed more than ${OUTPUT_LIMIT} bytes` });
          else output[name] += text;
        });
      }
      child.on('error', (error) => end({ kind: 'failed', why: `could not be run (${codeOf(error)})` }));
      child.on('exit', (code) => {
        if (child.killed) end({ kind: 'failed', why: `did not answer within ${timeLimit / 1000} s` });
        else drained().then(() => end({ kind: 'ended', code: code ?? -1, ...output }));
      });
      // A helper that does not read its input has its own way of failing.
      child.stdin.on('error', () => undefined);
      child.stdin.end(`${input}\n`);
    });
  };
}

/**
 * Long enough to read what a helper printed before it ended, 64 KiB at most. Waiting for the end of its output would
 * mean to wait for whatever it left running, such as a key agent.
 */
async function drained(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Never in the current folder, where a checkout may have put anything; only where PATH says. */
async function findProgram(program: string, path: string, platform: string): Promise<string | undefined> {
  const endings = platform === 'win32' ? ['.exe'] : [''];
  for (const folder of path.split(delimiter)) {
    if (folder === '' || folder === '.') continue;
    for (const ending of endings) {
      const file = join(folder, program + ending);
      if (await isExecutable(file)) return file.includes('/') || file.includes('\\') ? file : `./${file}`;
    }
  }
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
