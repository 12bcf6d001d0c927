import type { Arguments } from './arguments.ts';
import { diffCalls, expectedCalls, secondsAtMost } from './expected.ts';
import { DEBIAN_JOB } from './job.ts';
import { describeMachine, formatMachine, loadNow } from './machine.ts';
import { measureAll, type Results, type Situation } from './measure.ts';
import type { FoundPeer } from './peers.ts';
import { type Surroundings, writeDocument, writeResults } from './results.ts';
import { medians, renderCalls, renderTable } from './table.ts';
import { type StageOptions, withStage } from './world.ts';

/** @see measureTable */
export type TableOptions = Omit<StageOptions, 'job'> & {
  readonly peers: readonly FoundPeer[];
  readonly absent: readonly string[];
  readonly asked: Arguments;
  readonly say: (line: string) => void;
  readonly now: () => Date;
};

/** The main job, all peers side by side. @returns the exit code: 1 when ours fails or asks more or less than it should */
export async function measureTable(options: TableOptions): Promise<number> {
  const { asked, say, peers } = options;
  return await withStage({ ...options, job: DEBIAN_JOB }, async (stage) => {
    const before = loadNow();
    if (stage.gnuTime === undefined) say('GNU time is not installed: no memory and no CPU figures');
    const results = await measureAll(stage, peers, asked.situations, asked.runs, (situation, peer, run) => {
      const outcome = run.outcome.kind === 'right' ? 'right' : `fails, ${run.outcome.why}`;
      say(`${situation.id} ${peer.id}: ${run.seconds.toFixed(2)} s, ${run.traffic.requests} requests, ${outcome}`);
    });
    const surroundings: Surroundings = {
      date: options.now().toISOString(),
      machine: describeMachine(),
      load: [before, loadNow()],
      registry: stage.registry.title,
      separates: stage.registry.separatesRepositories,
      delay: stage.delay,
      runs: asked.runs,
      absent: options.absent,
    };
    const text = report(surroundings, asked.situations, results);
    say(`\n${text}\n`);
    say(`All runs: ${await writeResults(options.root, surroundings, results)}`);
    if (asked.write) await writeDocument(options.root, text);
    return judgeOurs(asked, results, stage.registry.separatesRepositories, say);
  });
}

function report(surroundings: Surroundings, situations: readonly Situation[], results: Results): string {
  const { delay, runs, registry, separates, machine, load, absent, date } = surroundings;
  const head = [
    `${date.slice(0, 10)}, ${registry}, ${delay} ms a request, median of ${runs}, peers taking turns.`,
    `${formatMachine(machine)}; load average ${load[0]} before and ${load[1]} after.`,
    ...(separates ? [] : ['This registry shares blobs between repositories: nothing is mounted and nothing copied.']),
    ...(absent.length === 0 ? [] : [`Not installed, so not measured: ${absent.join(', ')}.`]),
  ];
  const tables = situations.map((situation) => renderTable(situation, results.get(situation.id) ?? []));
  const calls = situations.map((situation) => renderCalls(situation, results.get(situation.id) ?? []));
  const byClass = ['### Requests by class', '', '| peer | situation | requests |', '| --- | --- | --- |', ...calls];
  return [head.join('\n'), ...tables, byClass.join('\n')].join('\n\n');
}

function judgeOurs(asked: Arguments, results: Results, separates: boolean, say: (line: string) => void): number {
  let code = 0;
  for (const [situation, rows] of results) {
    for (const { peer, runs } of rows) {
      const expected = expectedCalls(peer.id, situation);
      if (expected === undefined) continue;
      const failed = runs.find((run) => run.outcome.kind === 'fails');
      const differences = runs.map((run) => diffCalls(expected, run.traffic.calls)).find((lines) => lines.length > 0);
      if (failed !== undefined) {
        say(`${situation} ${peer.id}: FAILS`);
        code = 1;
      } else if (!separates) {
        say(`${situation} ${peer.id}: requests not checked, this registry shares blobs between repositories`);
      } else if (differences !== undefined) {
        say(`${situation} ${peer.id}: ${differences.join('\n    ')}`);
        code = 1;
      } else {
        say(`${situation} ${peer.id}: ${runs[0]?.traffic.requests} requests in every run, as expected`);
      }
      const [seconds, most] = [medians(runs).seconds, secondsAtMost(peer.id, situation)];
      if (asked.delay === 100 && most !== undefined && seconds > most)
        say(`    ${seconds.toFixed(2)} s, more than the ${most} s aimed at`);
    }
  }
  return code;
}
