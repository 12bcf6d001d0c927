import type { Arguments } from './arguments.ts';
import { diffCalls, expectedCalls } from './expected.ts';
import { buildFloor } from './floor-build.ts';
import { DEBIAN_JOB } from './job.ts';
import { judgeLimits, type Limit, renderLimits } from './limits.ts';
import { describeMachine, formatMachine, loadNow } from './machine.ts';
import { measureSituation } from './measure.ts';
import type { FoundPeer } from './peers.ts';
import { type Surroundings, writeDocument, writeResults } from './results.ts';
import { runsOf, sectionsOf } from './sections.ts';
import { seedAttested } from './seed-attested.ts';
import { type Measured, renderCalls, renderTable, titleOf } from './table.ts';
import { type StageOptions, withStage } from './world.ts';

/** @see measureTable */
export type TableOptions = Omit<StageOptions, 'job' | 'delay'> & {
  readonly peers: readonly FoundPeer[];
  readonly absent: readonly string[];
  readonly asked: Arguments;
  readonly say: (line: string) => void;
  readonly now: () => Date;
};

/** The main job, all peers side by side. @returns the exit code: 1 when ours fails or asks more or less than it should */
export async function measureTable(options: TableOptions): Promise<number> {
  const { asked, say, peers } = options;
  await buildFloor(options.root);
  return await withStage({ ...options, delay: 0, job: DEBIAN_JOB }, async (stage) => {
    const before = loadNow();
    const started = performance.now();
    if (stage.gnuTime === undefined) say('GNU time is not installed: no memory and no CPU figures');
    const attested = await seedAttested(stage.registry.origin, stage.images, stage.tag);
    const measured: Measured[] = [];
    const sections = sectionsOf(asked);
    for (const [number, section] of sections.entries()) {
      const { situation, delay, auth } = section;
      say(`${number + 1}/${sections.length} ${titleOf(section)}, ${minutesSince(started)} min so far`);
      const here = { ...stage, attested, delay, auth, connectionCost: asked.connectionCost };
      const count = (peer: FoundPeer) => runsOf(asked, section, peer);
      const rows = await measureSituation(here, situation, peers, count, (peer, { outcome, seconds, traffic }) => {
        const end = outcome.kind === 'right' ? 'right' : `fails, ${outcome.why}`;
        say(`  ${peer.id}: ${seconds.toFixed(2)} s, ${traffic.requests} requests, ${end}`);
      });
      measured.push({ ...section, rows });
    }
    const surroundings: Surroundings = {
      date: options.now().toISOString(),
      machine: describeMachine(),
      load: [before, loadNow()],
      registry: stage.registry.title,
      separates: stage.registry.separatesRepositories,
      connectionCost: asked.connectionCost,
      absent: options.absent,
    };
    // They were set without a price for connections.
    const limits = asked.connectionCost === 0 ? judgeLimits(measured) : [];
    const text = report(surroundings, measured, limits, minutesSince(started));
    say(`\n${text}\n`);
    say(`All runs: ${await writeResults(options.root, surroundings, measured, limits)}`);
    if (asked.write) await writeDocument(options.root, text);
    return judgeOurs(measured, stage.registry.separatesRepositories, say);
  });
}

function report(
  around: Surroundings,
  measured: readonly Measured[],
  limits: readonly Limit[],
  minutes: string,
): string {
  const { registry, separates, machine, load, absent, date, connectionCost } = around;
  const cost = connectionCost === 0 ? '' : ` A new connection costs ${connectionCost} ms.`;
  const head = [
    `${date.slice(0, 10)}, ${registry}, medians, peers taking turns, ${minutes} minutes in all.${cost}`,
    `${formatMachine(machine)}; load average ${load[0]} before and ${load[1]} after.`,
    ...(separates ? [] : ['This registry shares blobs between repositories: nothing is mounted and nothing copied.']),
    ...(absent.length === 0 ? [] : [`Not installed, so not measured: ${absent.join(', ')}.`]),
  ];
  // Calls are the same at every delay.
  const longest = Math.max(...measured.map(({ delay }) => delay));
  const calls = measured.filter(({ delay }) => delay === longest).map(renderCalls);
  const headings = '| peer | situation | auth | requests |';
  const byClass = ['### Requests by class', '', headings, '| --- | --- | --- | --- |', ...calls];
  const promised = limits.length === 0 ? [] : [renderLimits(limits)];
  return [head.join('\n'), ...promised, ...measured.map(renderTable), byClass.join('\n')].join('\n\n');
}

function judgeOurs(measured: readonly Measured[], separates: boolean, say: (line: string) => void): number {
  let code = 0;
  for (const section of measured) {
    for (const { peer, runs } of section.rows.filter((row) => row.peer.kind === 'ours')) {
      const where = `${section.situation.id}, ${section.delay} ms, ${section.auth}, ${peer.id}`;
      const expected = expectedCalls(peer.id, section.situation.id, section.auth);
      const failed = runs.find((run) => run.outcome.kind === 'fails');
      const differences = runs.map((run) => diffCalls(expected, run.traffic.calls)).find((lines) => lines.length > 0);
      if (failed !== undefined) {
        say(`${where}: FAILS`);
        code = 1;
      } else if (!separates) {
        say(`${where}: requests not checked, this registry shares blobs between repositories`);
      } else if (differences !== undefined) {
        say(`${where}: ${differences.join('\n    ')}`);
        code = 1;
      }
    }
  }
  if (code === 0) say('Every run of ours is right and asks what it should.');
  return code;
}

function minutesSince(started: number): string {
  return ((performance.now() - started) / 60_000).toFixed(1);
}
