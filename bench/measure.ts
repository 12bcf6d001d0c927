import { type CommandResult, runSteps } from './command.ts';
import { judge, type Outcome } from './outcome.ts';
import type { FoundPeer, Task } from './peers.ts';
import type { ProxySettings } from './proxy.ts';
import type { RunningProxy } from './proxy-client.ts';
import type { RunningRegistry } from './registries.ts';
import type { SeededImage } from './seed.ts';
import { summarize, type TrafficSummary } from './traffic.ts';

/** A state of the world in which the job is done. */
export type Situation = {
  readonly id: SituationId;
  readonly title: string;
  readonly mounts: ProxySettings['mounts'];
  /** `published`: the same peer has published this very target before. */
  readonly target: 'fresh' | 'published';
};

/** @see Situation */
export type SituationId = 'mounts' | 'refused' | 'again';

export const SITUATIONS: readonly Situation[] = [
  { id: 'mounts', title: 'Mounts work (201), fresh target', mounts: 'work', target: 'fresh' },
  { id: 'refused', title: 'Mounts refused (202), fresh target', mounts: 'refused', target: 'fresh' },
  { id: 'again', title: 'Again: nothing to do, mounts work', mounts: 'work', target: 'published' },
];

/** One run of one peer in one situation. */
export type Run = {
  readonly outcome: Outcome;
  readonly traffic: TrafficSummary;
} & Omit<CommandResult, 'output'>;

/** The running world and how commands are run in it. */
export type Stage = {
  readonly registry: RunningRegistry;
  readonly proxy: RunningProxy;
  readonly images: readonly SeededImage[];
  readonly tag: string;
  readonly delay: number;
  readonly path: string;
  readonly folder: string;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  readonly gnuTime: string | undefined;
};

/** All runs of one peer in one situation. */
export type Row = { readonly peer: FoundPeer; readonly runs: readonly Run[] };

/** @see measureAll */
export type Results = ReadonlyMap<SituationId, readonly Row[]>;

/**
 * Every peer in every situation, `count` times. Peers take turns, so that a noisy minute of the machine does not fall
 * on one of them alone.
 */
export async function measureAll(
  stage: Stage,
  peers: readonly FoundPeer[],
  situations: readonly Situation[],
  count: number,
  onRun: (situation: Situation, peer: FoundPeer, run: Run) => void,
): Promise<Results> {
  const runs = situations.map((situation) => ({
    situation,
    rows: peers.map((peer) => ({ peer, runs: [] as Run[] })),
  }));
  for (let number = 1; number <= count; number += 1) {
    for (const { situation, rows } of runs) {
      for (const row of rows) {
        const run = await measureOnce(stage, row.peer, situation, number);
        row.runs.push(run);
        onRun(situation, row.peer, run);
      }
    }
  }
  return new Map(runs.map(({ situation, rows }) => [situation.id, rows]));
}

/** One run against a target of its own; the preparation of a published target has no delay and is not measured. */
export async function measureOnce(stage: Stage, peer: FoundPeer, situation: Situation, number: number): Promise<Run> {
  const task: Task = {
    host: `127.0.0.1:${stage.proxy.port}`,
    images: stage.images,
    tag: stage.tag,
    repository: `debian/debian-${situation.id}-${peer.id}-${number}`,
  };
  if (situation.target === 'published') await runThrough(stage, peer, task, { delay: 0, mounts: situation.mounts });
  return await runThrough(stage, peer, task, { delay: stage.delay, mounts: situation.mounts });
}

async function runThrough(stage: Stage, peer: FoundPeer, task: Task, settings: ProxySettings): Promise<Run> {
  await stage.proxy.begin(settings);
  const { output, ...command } = await runSteps(peer.steps(peer.tool.path, task), {
    path: stage.path,
    folder: stage.folder,
    files: peer.files?.(task) ?? {},
    timeoutSeconds: stage.timeoutSeconds,
    signal: stage.signal,
    gnuTime: stage.gnuTime,
  });
  stage.signal.throwIfAborted();
  const traffic = summarize(await stage.proxy.end());
  return { outcome: await judge(stage.registry.origin, task, { output, ...command }), traffic, ...command };
}
