import { MEMORY_JOB } from './job.ts';
import { loadNow } from './machine.ts';
import type { TableOptions } from './main-table.ts';
import { measureOnce, SITUATIONS } from './measure.ts';
import { medians } from './table.ts';
import { withStage } from './world.ts';

const MIB = 1024 * 1024;
/** Peak resident memory that ours may reach, whatever the size of a blob. */
const OURS_AT_MOST = 180 * MIB;

/** One layer of 1 GiB, mounts refused: it is streamed. @returns the exit code: 1 when ours fails or takes too much memory */
export async function measureMemory(options: TableOptions): Promise<number> {
  const { asked, say, peers } = options;
  const refused = SITUATIONS.find((situation) => situation.id === 'refused');
  if (refused === undefined) throw new Error('there is no situation in which mounts are refused');
  const [delay = 0] = asked.delays;
  const count = asked.runs ?? 1;
  return await withStage({ ...options, delay, job: MEMORY_JOB }, async (stage) => {
    say(`${stage.registry.title}, one layer of 1 GiB, mounts refused, ${stage.delay} ms a request, load ${loadNow()}`);
    let code = 0;
    for (const peer of peers) {
      const runs = [];
      for (let number = 1; number <= count; number += 1) {
        runs.push(await measureOnce(stage, peer, refused, number));
      }
      const { seconds, peakRssBytes, cpuSeconds, bytesUp } = medians(runs);
      const failed = runs.find((run) => run.outcome.kind === 'fails')?.outcome;
      const rss = peakRssBytes === undefined ? 'unknown without GNU time' : `${(peakRssBytes / MIB).toFixed(0)} MiB`;
      const up = `${(bytesUp / MIB).toFixed(0)} MiB up`;
      say(`${peer.title}: peak RSS ${rss}, ${seconds.toFixed(1)} s, ${cpuSeconds ?? '?'} CPU s, ${up}`);
      if (failed?.kind === 'fails') say(`    fails: ${failed.why}`);
      if (!peer.id.startsWith('ours')) continue;
      if (peakRssBytes !== undefined && peakRssBytes > OURS_AT_MOST) {
        say(`    more than the ${OURS_AT_MOST / MIB} MiB that ours may take`);
        code = 1;
      }
      if (failed !== undefined && failed.kind === 'fails') code = 1;
    }
    return code;
  });
}
