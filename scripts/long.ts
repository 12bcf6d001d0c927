import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env } from 'node:process';
import { ROOT } from './root.ts';

// `npm run ci:long [-- PART...]`: what takes too long for every commit, before a release or at night. One line a part on
// stdout, with its figures and the date; exit code 1 when anything failed. What failed is told on stderr.

type Part = {
  readonly name: string;
  /** The figures, for the line. */
  readonly what: string;
  readonly env?: Readonly<Record<string, string>>;
} & (
  | { readonly kind: 'vitest'; readonly args: readonly string[]; readonly node?: string }
  | { readonly kind: 'npm'; readonly script: string }
);

/** Whole numbers that fast-check takes, with room for as many schedules as follow each other. */
const SEED = String(env['FC_SEED'] === undefined ? Math.floor(Math.random() * 2 ** 30) : env['FC_SEED']);

const FULL = ['--project', 'fast', '--project', 'full', '--project', 'faults'];
const faults = (...files: readonly string[]) => ['--project', 'faults', ...files];
const peers = (...files: readonly string[]) => ['--project', 'peers', ...files];

const PARTS: readonly Part[] = [
  { name: 'tests', what: 'all tests on a fresh seed', kind: 'vitest', args: FULL },
  {
    name: 'schedules',
    what: 'random fault schedules',
    kind: 'vitest',
    args: faults('test/reliability/schedules'),
    env: { MP_SCHEDULES: '50000' },
  },
  {
    name: 'kills',
    what: 'SIGKILL and SIGINT on both sides of every request, embedded registry',
    kind: 'vitest',
    args: faults('test/reliability/kills'),
    env: { MP_KILLS: 'all' },
  },
  {
    name: 'kills-docker-registry',
    what: "SIGKILL and SIGINT on both sides of every request, Debian's docker-registry",
    kind: 'vitest',
    args: peers('test/peers/kills'),
    env: { MP_KILLS: 'all' },
  },
  {
    name: 'races',
    what: 'rounds of 16 racing publishers',
    kind: 'vitest',
    args: [...faults('test/reliability/races'), '--project', 'peers', 'test/peers/races'],
    env: { MP_RACES: '200' },
  },
  {
    name: 'fuzz',
    what: 'inputs for every parser of foreign text',
    kind: 'vitest',
    args: faults('test/fuzz'),
    env: { MP_FUZZ: '1000000', MP_HOSTS: '100000' },
  },
  {
    name: 'copy',
    what: 'a layer that is streamed, and a reset in one of 1 GiB',
    kind: 'vitest',
    args: [...faults('test/reliability/copy'), '--project', 'peers', 'test/peers/memory'],
    env: { MP_COPY_GIB: '10' },
  },
  { name: 'mutation', what: 'mutants of the rooms that decide', kind: 'npm', script: 'mutation' },
  { name: 'node22', what: 'all tests on Node 22', kind: 'vitest', args: FULL, node: '22' },
  { name: 'node24', what: 'all tests on Node 24', kind: 'vitest', args: FULL, node: '24' },
];

const say = (line: string) => void process.stdout.write(`${line}\n`);
const complain = (text: string) => void process.stderr.write(`${text}\n`);

/** @returns the exit code */
async function main(): Promise<number> {
  const wanted = argv.slice(2);
  const unknown = wanted.filter((name) => !PARTS.some((part) => part.name === name));
  if (unknown.length > 0) {
    complain(`no part ${unknown.join(', ')}; there are: ${PARTS.map(({ name }) => name).join(', ')}`);
    return 2;
  }
  const scratch = await mkdtemp(join(tmpdir(), 'manifest-publish-long-'));
  try {
    const built = await run('npm', ['run', '-s', 'build', '--', '--types'], {});
    if (built.exitCode !== 0) {
      complain(`npm run build failed\n${built.output}`);
      return 1;
    }
    let failed = 0;
    for (const part of PARTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
      failed += (await runPart(part, scratch)) ? 0 : 1;
    }
    return failed === 0 ? 0 : 1;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function runPart(part: Part, scratch: string): Promise<boolean> {
  const started = Date.now();
  const date = () => new Date().toISOString().slice(0, 10);
  const seconds = () => Math.round((Date.now() - started) / 1000);
  if (part.kind === 'npm') {
    if (!(await hasScript(part.script))) {
      say(`${date()} ${part.name}: SKIPPED, there is no npm script ${part.script}`);
      return true;
    }
    const { exitCode, output } = await run('npm', ['run', '-s', part.script], part.env ?? {});
    const [last = ''] = output.trimEnd().split('\n').slice(-1);
    say(`${date()} ${part.name}: ${part.what}: ${exitCode === 0 ? 'ok' : `exit ${exitCode}`}, ${seconds()} s; ${last}`);
    if (exitCode !== 0) complain(output.slice(-20_000));
    return exitCode === 0;
  }
  // Who says another figure wants that one, and the line tells it.
  const wanted = Object.fromEntries(Object.entries(part.env ?? {}).map(([name, value]) => [name, env[name] ?? value]));
  const results = join(scratch, `${part.name}.json`);
  const vitest = [join(ROOT, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...part.args];
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`];
  const command = [...vitest, ...reporters];
  const { exitCode, output } =
    part.node === undefined
      ? await run(process.execPath, command, { FC_SEED: SEED, ...wanted })
      : // The package of that name holds the program; npm keeps it in its own cache.
        await run('npm', ['exec', '--yes', `--package=node@${part.node}`, '--', 'node', ...command], { FC_SEED: SEED });
  const figuresOf = Object.entries(wanted).map(([name, value]) => `, ${name}=${value}`);
  const counts = await countTests(results);
  const good = exitCode === 0 && counts !== undefined && counts.failed === 0 && counts.passed > 0;
  const figures =
    counts === undefined
      ? `ended with ${exitCode} before anything was counted`
      : `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
  say(
    `${date()} ${part.name}: ${part.what}: ${figures}, ${seconds()} s, seed ${SEED}${figuresOf.join('')}${good ? '' : ', FAILED'}`,
  );
  if (!good) complain(output.slice(-20_000));
  return good;
}

type Counts = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** Undefined when vitest wrote no results. */
async function countTests(file: string): Promise<Counts | undefined> {
  if (!existsSync(file)) return undefined;
  type Tested = { readonly status: string; readonly assertionResults: readonly { readonly status: string }[] };
  const { testResults } = JSON.parse(await readFile(file, 'utf8')) as { readonly testResults: readonly Tested[] };
  const tests = testResults.flatMap((result) => result.assertionResults);
  const count = (status: string) => tests.filter((test) => test.status === status).length;
  // A file that could not be loaded has no tests to count.
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  );
  const [passed, failed] = [count('passed'), count('failed')];
  return { passed, failed: failed + broken.length, skipped: tests.length - passed - failed };
}

async function hasScript(name: string): Promise<boolean> {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  return scripts[name] !== undefined;
}

type Ended = { readonly exitCode: number; readonly output: string };

/** Runs a program to its end; a signal to this script ends it too. */
function run(program: string, args: readonly string[], more: Readonly<Record<string, string>>): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: ROOT,
      env: { ...env, NO_COLOR: '1', ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const add = (piece: Buffer) => {
      output = `${output}${piece.toString('utf8')}`.slice(-200_000);
    };
    child.stdout.on('data', add);
    child.stderr.on('data', add);
    const end = () => void child.kill('SIGTERM');
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end);
    child.once('error', reject);
    child.once('close', (code) => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, end);
      resolve({ exitCode: code ?? 1, output });
    });
  });
}

process.exitCode = await main();
