import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import type { Secret } from './invariants.ts';
import { type Finished, type RunOptions, run, type Variables } from './processes.ts';
import { secretsOf } from './publishing.ts';
import { type Ending, loginText, startWatching, watchedRegistries } from './watching.ts';

/** The program as it ships. `npm test` builds it first. */
export const BIN: string = fileURLToPath(new URL('../../bin/run.js', import.meta.url));

/** What {@link judged} looks at besides the registries of this file. */
export type Judged = {
  /** The words of the command, or a script of it. */
  readonly words: readonly string[];
  /** Home and working folder: what is written there is looked through. */
  readonly folder: string;
  readonly registries?: readonly RunningRegistry[];
  readonly secrets?: readonly Secret[];
};

/** Where people keep their logins: secrets belong there. */
const LOGINS = /(?:^|\/)(?:\.docker\/config\.json|config\.json|auth\.json|docker-credential-[^/]*)$/;

/** Files beyond this many bytes are blobs and the like, not something that the program says. */
const LARGEST = 1024 * 1024;

/**
 * The door by which tests run the program: afterwards it is judged by the rules of test/helpers/invariants.ts, by what
 * the registries saw and by everything that it wrote, files included.
 */
export async function judged(work: () => Promise<Finished>, options: Judged): Promise<Finished> {
  const { words, folder, secrets = [] } = options;
  const registries = [...new Set([...watchedRegistries(), ...(options.registries ?? [])])];
  const before = new Map(filesIn(folder).map(({ path, time }) => [path, time]));
  const watching = startWatching(registries);
  let finished: Finished;
  try {
    finished = await work();
  } catch (error) {
    // Nothing is known of its end: what the test says of it counts.
    watching.problems({ exitCode: undefined, printed: [], outputs: {} });
    throw error;
  }
  const { exitCode, stdout, stderr, lingered } = finished;
  const outputs = { stdout, stderr, ...writtenSince(folder, before) };
  // What happened at a registry of another process is not seen here.
  const hosts = words.join(' ').match(/(?:127\.0\.0\.1|localhost|\[::1\]):\d+/g) ?? [];
  const seen = hosts.every((host) => registries.some((registry) => registry.host === host));
  const printed = exitCode === 0 && seen ? printedDigests(words.join(' '), stdout) : [];
  watching.check({ exitCode, printed, outputs, secrets: [...secretsOf(), ...secrets], lingered } satisfies Ending);
  return finished;
}

/** Runs the program with these words, away from everything that this machine configures, and judges it. */
export function runProgram(
  words: readonly string[],
  options: Omit<Judged, 'words'> & Omit<RunOptions, 'cwd'>,
): Promise<Finished> {
  const { folder, env = {}, registries = [], secrets = [], ...rest } = options;
  const work = () => run(process.execPath, [BIN, ...words], { ...rest, cwd: folder, env: withStranger(env) });
  return judged(work, { words, folder, registries, secrets });
}

/** The variables, and the login of a host that nobody asks, which no run may show. */
export function withStranger(env: Variables): Variables {
  return { DOCKER_AUTH_CONFIG: loginText(), ...env };
}

/** Digests that a run says its targets hold: lines that are one, or a reference and one. */
function printedDigests(words: string, stdout: string): readonly string[] {
  if (!/\b(?:publish|push)\b/.test(words) || /--dry-run|--stage[= ]content/.test(words)) return [];
  // What a folder on this machine holds is not seen at any registry.
  if (/\b(?:publish|push) oci:/.test(words)) return [];
  const lines = stdout.split('\n').map((line) => /^(?:\S+ )?(sha256:[0-9a-f]{64})$/.exec(line)?.[1]);
  return lines.filter((digest) => digest !== undefined);
}

function writtenSince(folder: string, before: ReadonlyMap<string, number>): Readonly<Record<string, string>> {
  const written = filesIn(folder).filter(({ path, time }) => before.get(path) !== time);
  const texts = written.map(({ path }) => [relative(folder, path), ifThere(() => readFileSync(path, 'utf8'))] as const);
  return Object.fromEntries(texts.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Other runs may be writing beside this one: locks and temporary files come and go. */
function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function filesIn(folder: string): readonly { readonly path: string; readonly time: number }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !LOGINS.test(path))
    .map((path) => ({ path, facts: ifThere(() => statSync(path)) }))
    .flatMap(({ path, facts }) => (facts === undefined || facts.size > LARGEST ? [] : [{ path, time: facts.mtimeMs }]));
}
