import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { argv, env } from 'node:process';
import { parseArgs } from 'node:util';
import { ROOT } from '../scripts/root.ts';
import { copyComplaints, copyFigures, renderCopies } from './copy-table.ts';
import { BenchError } from './errors.ts';
import type { Job } from './job.ts';
import { describeMachine, formatMachine, loadNow } from './machine.ts';
import { measureSituation, SITUATIONS } from './measure.ts';
import { allPeers, findPeers } from './peers.ts';
import { writeDocument, writeRuns } from './results.ts';
import { createFinder } from './tools.ts';
import { withStage } from './world.ts';

// `npm run bench:copy`: one large layer that the registry does not mount, so that it goes through the client.

const MARKS = {
  begin: '<!-- made by npm run bench:copy -- --write; do not edit to the end mark -->',
  end: '<!-- end of bench:copy -->',
};

const USAGE = `npm run bench:copy -- [options]
  --size MIB            of the layer (default 2048)
  --runs N              runs of each, taking turns; medians are shown (default 3)
  --only A,B            peers: ours, crane, regctl, oras, skopeo, buildx
  --timeout SECONDS     of one run (default 600)
  --write               put the table into docs/bench.md`;

const OPTIONS = {
  size: { type: 'string', default: '2048' },
  runs: { type: 'string', default: '3' },
  only: { type: 'string', default: 'ours,crane,regctl,oras,skopeo,buildx' },
  timeout: { type: 'string', default: '600' },
  write: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const MIB = 1024 ** 2;
/** The registry keeps the layer once, and once more while it takes an upload; some peers keep a copy of their own. */
const ROOM = 4;

const say = (line: string) => void process.stdout.write(`${line}\n`);

/** @returns the exit code: 1 when ours fails, is too slow or takes too much memory */
async function main(): Promise<number> {
  const values = readOptions();
  if (values.help) {
    say(USAGE);
    return 0;
  }
  const [size, count, timeoutSeconds] = [positive(values.size) * MIB, positive(values.runs), positive(values.timeout)];
  await checkRoom(size * ROOM);
  const path = env['PATH'] ?? '';
  const find = createFinder(path);
  const names = values.only.split(',');
  const everyone = allPeers(ROOT).filter(({ id }) => OPTIONS.only.default.split(',').includes(id));
  const stranger = names.find((name) => !everyone.some(({ id }) => id === name));
  if (stranger !== undefined) throw new BenchError(`--only: no "${stranger}"\n\n${USAGE}`);
  const { found, absent } = await findPeers(
    everyone.filter(({ id }) => names.includes(id)),
    find,
  );
  if (absent.length > 0) say(`not installed: ${absent.join(', ')}`);
  const refused = SITUATIONS.find(({ id }) => id === 'refused');
  if (refused === undefined) throw new Error('there is no situation in which mounts are refused');
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => interrupted.abort(new BenchError(`ended by ${name}`)));
  }
  const platform = { os: 'linux', architecture: 'amd64' } as const;
  const job: Job = { tag: 'bullseye', images: [{ name: 'huge', platform, layers: [size] }] };
  const options = { root: ROOT, path, find, job, delay: 0, timeoutSeconds, signal: interrupted.signal };
  return await withStage(options, async (stage) => {
    const date = new Date().toISOString();
    const before = loadNow();
    const rows = await measureSituation(
      stage,
      refused,
      found,
      () => count,
      (peer, run) => {
        const outcome = run.outcome.kind === 'right' ? 'right' : `fails, ${run.outcome.why}`;
        say(`${peer.id}: ${run.seconds.toFixed(1)} s, ${run.cpuSeconds?.toFixed(1) ?? '?'} CPU s, ${outcome}`);
      },
    );
    const figures = copyFigures(rows, size);
    const machine = describeMachine();
    const load = [before, loadNow()];
    const runs = count === 1 ? 'one run each' : `median of ${count}, peers taking turns`;
    const text = [
      `${date.slice(0, 10)}, ${stage.registry.title}, one layer of ${size / MIB} MiB, mounts refused, 0 ms a request, ${runs}.`,
      `${formatMachine(machine)}; load average ${load[0]} before and ${load[1]} after.`,
      '',
      renderCopies(figures),
      ...(absent.length === 0 ? [] : ['', `Not installed: ${absent.join(', ')}.`]),
    ].join('\n');
    say(`\n${text}\n`);
    const surroundings = { date, machine, load, registry: stage.registry.title, size, runs: count, absent };
    say(`All runs: ${await writeRuns(ROOT, 'copy-', date, { ...surroundings, figures, rows })}`);
    if (values.write) await writeDocument(ROOT, text, MARKS);
    const complaints = copyComplaints(figures);
    for (const complaint of complaints) say(complaint);
    return complaints.length === 0 ? 0 : 1;
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

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new BenchError(`not a number from 1: ${text}\n\n${USAGE}`);
  return value;
}

async function checkRoom(needed: number): Promise<void> {
  const { bavail, bsize } = await statfs(tmpdir());
  const free = bavail * bsize;
  if (free >= needed) return;
  const gib = (bytes: number) => (bytes / MIB / 1024).toFixed(1);
  throw new BenchError(`${tmpdir()} has ${gib(free)} GiB left, ${gib(needed)} are needed: try a smaller --size`);
}

try {
  process.exitCode = await main();
} catch (error) {
  // A wrong option, no registry, an interruption: one line for a person; the rest of what can go wrong shows its stack.
  if (!(error instanceof BenchError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
