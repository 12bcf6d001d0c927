import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { argv, env } from 'node:process';
import { parseArgs } from 'node:util';
import { ROOT } from '../scripts/root.ts';
import { BenchError } from './errors.ts';
import { BASE_JOB, seedLists } from './lists-job.ts';
import { craneLoop, LISTS_SITUATIONS, type ListsRun, measureLists, ours } from './lists-measure.ts';
import { type ListsResult, renderLists, renderListsCalls } from './lists-table.ts';
import { describeMachine, formatMachine, loadNow } from './machine.ts';
import { createFinder } from './tools.ts';
import { withStage } from './world.ts';

// `npm run bench:lists`: hundreds of lists from one spec file, beside a shell loop of crane over some of them.

const USAGE = `npm run bench:lists -- [options]
  --lists N             lists of the spec file (default 300)
  --loop N              lists of the shell loop, and of a second, smaller spec file (default 30)
  --delays MS,MS        wait once a request (default 20,0)
  --situations A,B      fresh, refused, again, same
  --timeout SECONDS     of one run (default 600)`;

const OPTIONS = {
  lists: { type: 'string', default: '300' },
  loop: { type: 'string', default: '30' },
  delays: { type: 'string', default: '20,0' },
  situations: { type: 'string', default: LISTS_SITUATIONS.map(({ id }) => id).join(',') },
  timeout: { type: 'string', default: '600' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const say = (line: string) => void process.stdout.write(`${line}\n`);

/** @returns the exit code: 1 when one of our runs fails */
async function main(): Promise<number> {
  const values = readOptions();
  if (values.help) {
    say(USAGE);
    return 0;
  }
  const lists = count(values.lists);
  const loop = Math.min(count(values.loop), lists);
  const timeoutSeconds = count(values.timeout);
  const delays = values.delays.split(',').map((text) => (text === '0' ? 0 : count(text)));
  const wanted = values.situations.split(',');
  const stranger = wanted.find((name) => !LISTS_SITUATIONS.some(({ id }) => id === name));
  if (stranger !== undefined) throw new BenchError(`--situations: no "${stranger}"\n\n${USAGE}`);
  const situations = LISTS_SITUATIONS.filter(({ id }) => wanted.includes(id));
  const path = env['PATH'] ?? '';
  const find = createFinder(path);
  const node = await find(['node'], ['--version']);
  const crane = await find(['crane'], ['version']);
  if (node === undefined) throw new BenchError('node is not on PATH');
  if (crane === undefined) say('not installed: crane');
  const publishers = [
    ours(ROOT, node, lists),
    ...(loop < lists ? [ours(ROOT, node, loop)] : []),
    ...(crane === undefined ? [] : [craneLoop(crane, loop)]),
  ];

  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => interrupted.abort(new BenchError(`ended by ${name}`)));
  }
  const options = { root: ROOT, path, find, job: BASE_JOB, delay: 0, timeoutSeconds, signal: interrupted.signal };
  return await withStage(options, async (stage) => {
    const seeded = await seedLists(stage.registry.origin, stage.images, lists);
    say(`${lists} times ${stage.images.length} images are in ${stage.registry.title}`);
    const date = new Date().toISOString();
    const before = loadNow();
    const results: ListsResult[] = [];
    for (const delay of delays) {
      for (const situation of situations) {
        const runs: ListsRun[] = [];
        for (const publisher of publishers) {
          const load = loadNow();
          const run = await measureLists({ ...stage, delay }, seeded, publisher, situation);
          runs.push(run);
          const outcome = run.outcome.kind === 'right' ? 'right' : `fails, ${run.outcome.why}`;
          const figures = `${run.seconds.toFixed(2)} s, ${run.traffic.requests} requests, ${outcome}, load ${load}`;
          say(`${delay} ms ${situation.id} ${publisher.id}: ${figures}`);
        }
        results.push({ situation, delay, runs });
      }
    }
    const machine = describeMachine();
    const load = [before, loadNow()];
    const head = [
      `${date.slice(0, 10)}, ${stage.registry.title}, one run each.`,
      `${formatMachine(machine)}; load average ${load[0]} before and ${load[1]} after.`,
    ];
    const calls = ['### Requests by class', '', '| publisher | situation | requests |', '| --- | --- | --- |'];
    const tables = results.map(renderLists);
    const byClass = [...calls, ...results.flatMap(renderListsCalls)].join('\n');
    say(`\n${[head.join('\n'), ...tables, byClass].join('\n\n')}\n`);
    const surroundings = { date, machine, load, registry: stage.registry.title, lists, loop };
    say(`All runs: ${await write(date, { ...surroundings, crane: crane?.version, results })}`);
    const failed = results.flatMap(({ runs }) => runs).filter(({ outcome }) => outcome.kind === 'fails');
    return failed.some(({ publisher }) => publisher.startsWith('ours')) ? 1 : 0;
  });
}

function readOptions() {
  try {
    return parseArgs({ args: argv.slice(2), options: OPTIONS }).values;
  } catch (error) {
    if (error instanceof TypeError) throw new BenchError(`${error.message}\n\n${USAGE}`);
    throw error;
  }
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new BenchError(`not a number from 1: ${text}\n\n${USAGE}`);
  return value;
}

/** Beside the results of the other bench; git ignores them. */
async function write(date: string, results: object): Promise<string> {
  const file = join('bench', 'results', `lists-${date.replaceAll(/[:.]/g, '-')}.json`);
  await mkdir(join(ROOT, 'bench', 'results'), { recursive: true });
  await writeFile(join(ROOT, file), `${JSON.stringify(results, undefined, 2)}\n`);
  return file;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof BenchError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
