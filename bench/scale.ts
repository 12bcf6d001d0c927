import { argv, env } from 'node:process';
import { parseArgs } from 'node:util';
import { ROOT } from '../scripts/root.ts';
import { BenchError } from './errors.ts';
import { describeMachine, formatMachine, loadNow } from './machine.ts';
import { writeDocument, writeRuns } from './results.ts';
import { craneLoop, measureLists, ours, SCALE_SITUATIONS, type ScaleRun } from './scale-measure.ts';
import { faults, renderScale, renderWide, type ScaleResult } from './scale-table.ts';
import { measureWide, type WideRun } from './scale-wide.ts';
import { type ScaleWorld, withDockerRegistry, withEmbedded } from './scale-world.ts';
import { createFinder } from './tools.ts';

// `npm run bench:scale`: one list, ten, hundreds, from one spec file: what does a further list cost?

const MARKS = {
  begin: '<!-- made by npm run bench:scale -- --write; do not edit to the end mark -->',
  end: '<!-- end of scale -->',
};

const USAGE = `npm run bench:scale -- [options]
  --lists N,N           lists of the spec files (default 1,10,100,1000)
  --situations A,B      fresh, again, refused, same (default all)
  --registry NAME       embedded, or docker-registry behind a counting proxy (default embedded)
  --runs N              of spec files up to 100 lists, the median counts (default 3); larger ones run once
  --wide N              children of one index, 10 blobs each, embedded only (default 1000; 0: not measured)
  --loop N              lists of a shell loop of crane beside it (default none)
  --timeout SECONDS     of one run (default 600)
  --write               put the tables into docs/bench.md`;

const OPTIONS = {
  lists: { type: 'string', default: '1,10,100,1000' },
  situations: { type: 'string', default: SCALE_SITUATIONS.map(({ id }) => id).join(',') },
  registry: { type: 'string', default: 'embedded' },
  runs: { type: 'string', default: '3' },
  wide: { type: 'string', default: '1000' },
  loop: { type: 'string' },
  timeout: { type: 'string', default: '600' },
  write: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** Spec files of up to so many lists are run several times: what is short is what noise spoils. */
const SHORT = 100;

const say = (line: string) => void process.stdout.write(`${line}\n`);

/** @returns the exit code: 1 when a run of ours fails, or requests or CPU a list grow */
async function main(): Promise<number> {
  const values = readOptions();
  if (values.help) {
    say(USAGE);
    return 0;
  }
  const sizes = [...new Set(values.lists.split(',').map(count))].sort((one, other) => one - other);
  const wanted = values.situations.split(',');
  const stranger = wanted.find((name) => !SCALE_SITUATIONS.some(({ id }) => id === name));
  if (stranger !== undefined) throw new BenchError(`--situations: no "${stranger}"\n\n${USAGE}`);
  const situations = SCALE_SITUATIONS.filter(({ id }) => wanted.includes(id));
  const within = { embedded: withEmbedded, 'docker-registry': withDockerRegistry }[values.registry];
  if (within === undefined) throw new BenchError(`--registry: no "${values.registry}"\n\n${USAGE}`);
  const path = env['PATH'] ?? '';
  const find = createFinder(path);
  const node = await find(['node'], ['--version']);
  const loop = values.loop === undefined ? undefined : count(values.loop);
  const crane = loop === undefined ? undefined : await find(['crane'], ['version']);
  if (node === undefined) throw new BenchError('node is not on PATH');
  if (loop !== undefined && crane === undefined) say('not installed: crane');
  const publishers = [
    ...sizes.map((size) => ours(ROOT, node, size)),
    ...(crane === undefined || loop === undefined ? [] : [craneLoop(crane, loop)]),
  ];
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => interrupted.abort(new BenchError(`ended by ${name}`)));
  }
  const options = { path, timeoutSeconds: count(values.timeout), signal: interrupted.signal };
  const children = values.registry === 'embedded' && values.wide !== '0' ? count(values.wide) : 0;
  const wide = { children, blobs: 10 };
  const lists = Math.max(...publishers.map((publisher) => publisher.lists));
  const measure = async (world: ScaleWorld): Promise<number> => {
    const date = new Date().toISOString();
    const before = loadNow();
    if (world.gnuTime === undefined) say('GNU time is not installed: no memory and no CPU figures');
    const results: ScaleResult[] = [];
    for (const situation of situations) {
      const rows = publishers.map((publisher) => ({ publisher, runs: [] as ScaleRun[] }));
      for (let number = 1; number <= count(values.runs); number += 1) {
        for (const { publisher, runs } of rows) {
          if (number > 1 && publisher.lists > SHORT) continue;
          const run = await measureLists(world, publisher, situation, number, options);
          runs.push(run);
          say(`${situation.id} ${describe(run)}`);
        }
      }
      results.push({ situation, rows });
    }
    const wideRuns: readonly WideRun[] = children > 0 ? await measureWide(world, ours(ROOT, node, 1), options) : [];
    for (const run of wideRuns) say(`wide, ${run.title} ${describe(run)}`);
    const load: readonly [number, number] = [before, loadNow()];
    const machine = describeMachine();
    const head = [
      `${date.slice(0, 10)}, ${world.title}, no delay; spec files of up to ${SHORT} lists: median of ${values.runs}, larger ones once.`,
      `${formatMachine(machine)}; load average ${load[0]} before and ${load[1]} after.`,
    ];
    const tables = [...results.map(renderScale), ...(wideRuns.length > 0 ? [renderWide(wide, wideRuns)] : [])];
    const text = [head.join('\n'), ...tables].join('\n\n');
    say(`\n${text}\n`);
    const surroundings = { schemaVersion: 1, date, machine, load, registry: world.title, crane: crane?.version };
    say(`All runs: ${await writeRuns(ROOT, 'scale-', date, { ...surroundings, results, wide: wideRuns })}`);
    if (values.write) await writeDocument(ROOT, text, MARKS);
    const found = [...results.flatMap(faults), ...wideRuns.flatMap(fault)];
    for (const line of found) say(`FAILS ${line}`);
    return found.length === 0 ? 0 : 1;
  };
  return await within({ ...options, root: ROOT, find, lists, wide }, measure);
}

function fault({ title, outcome }: WideRun): readonly string[] {
  return outcome.kind === 'fails' ? [`one wide index, ${title}: ${outcome.why}`] : [];
}

function describe({ publisher, seconds, traffic, cpuSeconds, outcome }: ScaleRun): string {
  const result = outcome.kind === 'right' ? 'right' : `fails, ${outcome.why}`;
  const figures = [
    `${seconds.toFixed(2)} s`,
    `${cpuSeconds?.toFixed(2) ?? '?'} CPU s`,
    `${traffic.requests} requests`,
    result,
  ];
  return `${publisher}: ${figures.join(', ')}, load ${loadNow()}`;
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

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof BenchError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
