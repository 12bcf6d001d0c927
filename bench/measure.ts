import { type CommandResult, runSteps } from './command.ts';
import { judge, type Outcome } from './outcome.ts';
import type { FoundPeer, Task } from './peers.ts';
import type { ProxySettings } from './proxy.ts';
import type { RunningProxy } from './proxy-client.ts';
import type { RunningRegistry } from './registries.ts';
import type { SeededImage } from './seed.ts';
import type { Situation } from './situations.ts';
import { type Auth, LOGIN } from './token-gate.ts';
import { summarize, type TrafficSummary } from './traffic.ts';

export { MAIN_SITUATIONS, SITUATIONS, type Situation, type SituationId } from './situations.ts';

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
  /** The same images as indexes with attestations, where a situation wants them. */
  readonly attested?: readonly SeededImage[];
  /** Default `none`. */
  readonly auth?: Auth;
  /** @see ProxySettings.connectionCost */
  readonly connectionCost?: number;
};

/** All runs of one peer in one situation. */
export type Row = { readonly peer: FoundPeer; readonly runs: readonly Run[] };

/**
 * Every peer `count(peer)` times. Peers take turns, so that a noisy minute of the machine does not fall on one of them
 * alone.
 */
export async function measureSituation(
  stage: Stage,
  situation: Situation,
  peers: readonly FoundPeer[],
  count: (peer: FoundPeer) => number,
  onRun: (peer: FoundPeer, run: Run) => void,
): Promise<readonly Row[]> {
  const rows = peers.map((peer) => ({ peer, runs: [] as Run[] })).filter(({ peer }) => count(peer) > 0);
  for (let number = 1; rows.some(({ peer }) => number <= count(peer)); number += 1) {
    for (const { peer, runs } of rows) {
      if (number > count(peer)) continue;
      const run = await measureOnce(stage, peer, situation, number);
      runs.push(run);
      onRun(peer, run);
    }
  }
  return rows;
}

/** One run against a target of its own; what happened to the target before has no delay and is not measured. */
export async function measureOnce(stage: Stage, peer: FoundPeer, situation: Situation, number: number): Promise<Run> {
  const { auth = 'none', connectionCost = 0, delay } = stage;
  const { mounts } = situation;
  const images = situation.sources === 'attested' ? (stage.attested ?? []) : stage.images;
  const task: Task = {
    host: `127.0.0.1:${stage.proxy.port}`,
    images,
    tag: stage.tag,
    repository: `debian/debian-${situation.id}-${peer.id}-${auth}-${delay}-${number}`,
  };
  const blobs = new Set(images.flatMap((image) => image.blobs.map(({ digest }) => digest))).size;
  const before: ProxySettings = { delay: 0, mounts, auth };
  if (situation.target === 'published') await runThrough(stage, peer, task, before);
  if (situation.target === 'interrupted') {
    await runThrough(stage, peer, task, { ...before, stopAfter: Math.floor(blobs / 2) });
  }
  return await runThrough(stage, peer, task, { delay, mounts, auth, connectionCost });
}

async function runThrough(stage: Stage, peer: FoundPeer, task: Task, settings: ProxySettings): Promise<Run> {
  const halted = new AbortController();
  await stage.proxy.begin(settings, () => halted.abort());
  const { output, ...command } = await runSteps(peer.steps(peer.tool.path, task), {
    path: stage.path,
    folder: stage.folder,
    files: { ...peer.files?.(task), ...(settings.auth === 'login' ? loginFiles(task) : {}) },
    timeoutSeconds: stage.timeoutSeconds,
    signal: AbortSignal.any([stage.signal, halted.signal]),
    gnuTime: stage.gnuTime,
  });
  stage.signal.throwIfAborted();
  const traffic = summarize(await stage.proxy.end());
  const outcome = await judge(stage.registry.origin, task, { output, ...command }, peer.kind !== 'copies');
  return { outcome, traffic, ...command };
}

/** What `docker login` writes; all of these programs read it. */
function loginFiles({ host }: Task): Readonly<Record<string, string>> {
  const auth = Buffer.from(`${LOGIN.user}:${LOGIN.password}`).toString('base64');
  return { '.docker/config.json': JSON.stringify({ auths: { [host]: { auth } } }) };
}
