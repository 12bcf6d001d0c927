import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env, execPath } from 'node:process';
import { parseArgs, promisify } from 'node:util';
import { ROOT } from '../scripts/root.ts';
import { BenchError } from './errors.ts';
import { describeMachine, formatMachine, loadNow } from './machine.ts';
import { measureStarts, type Starter } from './start-measure.ts';
import { NODE, renderStarts, startFigures } from './start-table.ts';
import { createFinder } from './tools.ts';

// `npm run bench:start`: how long the program takes before it does what it was called for.

const USAGE = `npm run bench:start -- [options]
  --runs N    runs of each, one after the other in turn; medians are shown (default 20)`;

/** In an empty HOME npm asks its registry for news of itself, which is not our start. */
const NPM = { npm_config_update_notifier: 'false' };
const NPX_RUNS = 5;

/** Ends the program when it is about to send its first request: by then it has done all that a start is. */
const FIRST_REQUEST = `require('node:diagnostics_channel').subscribe('undici:client:sendHeaders', () => {
  process.kill(process.pid, 'SIGKILL');
});
`;

const say = (line: string) => void process.stdout.write(`${line}\n`);

/** @returns the exit code: 1 when a limit is passed */
async function main(): Promise<number> {
  const runs = askedRuns(argv.slice(2));
  if (runs === 'help') {
    say(USAGE);
    return 0;
  }
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => interrupted.abort(new BenchError(`ended by ${name}`)));
  }
  const folder = await mkdtemp(join(tmpdir(), 'manifest-publish-start-'));
  const registry = createServer(() => undefined);
  try {
    const home = join(folder, 'home');
    await mkdir(home);
    const host = await listen(registry);
    const starters = [...(await ours(folder, host)), ...(await peers())];
    const machine = describeMachine();
    const load = loadNow();
    const path = env['PATH'] ?? '';
    const starts = await measureStarts(starters, runs, { PATH: path, HOME: home }, interrupted.signal);
    const figures = startFigures(starts);
    say(`${renderStarts(figures)}\n\n${formatMachine(machine)}; load before ${load}, after ${loadNow()}`);
    const date = new Date().toISOString();
    const file = join('bench', 'results', `start-${date.replaceAll(/[:.]/g, '-')}.json`);
    await mkdir(join(ROOT, 'bench', 'results'), { recursive: true });
    const document = { schemaVersion: 1, date, machine, load, figures, starts: Object.fromEntries(starts) };
    await writeFile(join(ROOT, file), `${JSON.stringify(document, undefined, 2)}\n`);
    say(file);
    return figures.every(({ met }) => met) ? 0 : 1;
  } finally {
    registry.closeAllConnections();
    registry.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** @throws BenchError that says which option is wrong */
function askedRuns(words: readonly string[]): number | 'help' {
  const options = { runs: { type: 'string', default: '20' }, help: { type: 'boolean', short: 'h' } } as const;
  let values: { readonly runs: string; readonly help?: boolean };
  try {
    values = parseArgs({ args: [...words], options }).values;
  } catch (error) {
    if (error instanceof TypeError) throw new BenchError(`${error.message}\n\n${USAGE}`);
    throw error;
  }
  if (values.help === true) return 'help';
  const runs = Number(values.runs);
  if (!Number.isSafeInteger(runs) || runs < 1) throw new BenchError(`--runs: not a number from 1: ${values.runs}`);
  return runs;
}

/** A registry that takes connections and never answers. */
async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new BenchError('the registry has no port');
  return `127.0.0.1:${address.port}`;
}

async function ours(folder: string, host: string): Promise<readonly Starter[]> {
  const program = join(ROOT, 'bin', 'run.js');
  const hook = join(folder, 'first-request.cjs');
  await writeFile(hook, FIRST_REQUEST);
  const words = ['publish', `${host}/debian/debian:1`, `${host}/debian/amd64:1`, `${host}/debian/arm64:1`];
  await promisify(execFile)('npm', ['pack', '--pack-destination', folder], { cwd: ROOT, env: { ...env, ...NPM } });
  const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  const npx = ['npx', '--yes', `--package=${join(folder, tarball)}`, 'manifest-publish', '--version'];
  const [cold, warm] = [join(folder, 'cold'), join(folder, 'warm')];
  return [
    { id: NODE, argv: [execPath, '-e', '0'] },
    ...['--version', '--help', 'completion bash', 'docker-cli-plugin-metadata', 'publish --help'].map((id) => ({
      id,
      argv: [execPath, program, ...id.split(' ')],
    })),
    { id: 'publish, to its first request', argv: [execPath, '--require', hook, program, ...words], killed: true },
    {
      id: 'npx --version, cold cache',
      argv: npx,
      env: { ...NPM, npm_config_cache: cold },
      runs: NPX_RUNS,
      prepare: () => rm(cold, { recursive: true, force: true }),
    },
    { id: 'npx --version, warm cache', argv: npx, env: { ...NPM, npm_config_cache: warm }, runs: NPX_RUNS + 1 },
  ];
}

/** What others need to say their version, where they are found. */
async function peers(): Promise<readonly Starter[]> {
  const find = createFinder(env['PATH'] ?? '');
  const found = await Promise.all(
    ['docker', 'crane', 'regctl', 'oras', 'skopeo'].map(async (name) => {
      const word = name === 'docker' || name === 'skopeo' ? '--version' : 'version';
      const tool = await find([name], [word]);
      return tool === undefined ? [] : [{ id: `${name} ${word}`, argv: [tool.path, word] }];
    }),
  );
  return found.flat();
}

try {
  process.exitCode = await main();
} catch (error) {
  // A wrong option, an interruption: one line for a person; the rest of what can go wrong shows its stack.
  if (!(error instanceof BenchError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
