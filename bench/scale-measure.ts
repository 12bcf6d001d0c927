import { join } from 'node:path';
import { type CommandResult, runSteps } from './command.ts';
import { firstErrorLine, type Outcome } from './outcome.ts';
import type { Step } from './peers.ts';
import { type ScaleWorld, SOURCES, tagOf } from './scale-world.ts';
import type { Tool } from './tools.ts';
import type { TrafficSummary } from './traffic.ts';

/** A state of the world in which many lists are published. */
export type ScaleSituation = {
  readonly id: 'fresh' | 'again' | 'refused' | 'same';
  readonly title: string;
  readonly mounts: 'work' | 'refused';
  /** The same lists have been published to this very target before. */
  readonly again: boolean;
  /** Whether every list has the images of the first one, under a tag of its own. */
  readonly same: boolean;
};

export const SCALE_SITUATIONS: readonly ScaleSituation[] = [
  { id: 'fresh', title: 'Mounts work (201), fresh target', mounts: 'work', again: false, same: false },
  { id: 'again', title: 'Again: nothing to do, mounts work', mounts: 'work', again: true, same: false },
  { id: 'refused', title: 'Mounts refused (202), fresh target', mounts: 'refused', again: false, same: false },
  { id: 'same', title: 'All lists of the same eight images', mounts: 'work', again: false, same: true },
];

/** Somebody who publishes a number of lists. */
export type Publisher = {
  readonly id: string;
  readonly title: string;
  readonly lists: number;
  readonly files: (lists: readonly ListTask[]) => Readonly<Record<string, string>>;
  readonly steps: (lists: readonly ListTask[]) => readonly Step[];
};

/** One list, as references. */
export type ListTask = { readonly target: string; readonly sources: readonly string[] };

/** One run of one publisher. */
export type ScaleRun = Omit<CommandResult, 'output'> & {
  readonly publisher: string;
  readonly lists: number;
  readonly outcome: Outcome;
  readonly traffic: TrafficSummary;
};

/** One command that reads one spec file. */
export function ours(root: string, node: Tool, lists: number): Publisher {
  const program = join(root, 'bin', 'run.js');
  return {
    id: `ours-${lists}`,
    title: 'manifest-publish publish -f, one command',
    lists,
    files: (tasks) => ({ 'lists.json': JSON.stringify({ lists: tasks }) }),
    steps: () => [[[node.path, program, 'publish', '-f', 'lists.json', '--quiet']]],
  };
}

/** What a shell loop does: one command a list, each after the one before it. */
export function craneLoop(crane: Tool, lists: number): Publisher {
  return {
    id: `crane-${lists}`,
    title: ['crane index append', crane.version, 'in a loop'].filter((part) => part !== undefined).join(' '),
    lists,
    files: () => ({}),
    steps: (tasks) =>
      tasks.map(({ target, sources }) => {
        const manifests = sources.flatMap((source) => ['-m', source]);
        return [[crane.path, 'index', 'append', '--insecure', ...manifests, '-t', target]];
      }),
  };
}

/** What a run needs besides the world. */
export type RunOptions = { readonly path: string; readonly timeoutSeconds: number; readonly signal: AbortSignal };

/** One run into a repository of its own; the run before it, where the target has been published to, is not measured. */
export async function measureLists(
  world: ScaleWorld,
  publisher: Publisher,
  situation: ScaleSituation,
  number: number,
  options: RunOptions,
): Promise<ScaleRun> {
  const repository = `lists/${situation.id}-${publisher.id}-${number}`;
  const tasks = Array.from({ length: publisher.lists }, (_, at): ListTask => {
    const tag = tagOf(situation.same ? 1 : at + 1);
    return {
      target: `${world.host}/${repository}:${tagOf(at + 1)}`,
      sources: SOURCES.map((source) => `${world.host}/${source}:${tag}`),
    };
  });
  const run = () => runOnce(world, publisher, situation.mounts, tasks, options);
  const first = await run();
  const { output, ...figures } = situation.again ? await run() : first;
  const { id, lists } = publisher;
  const outcome = await judgeRun(world, repository, situation, lists, { ...figures, output });
  return { publisher: id, lists, outcome, ...figures };
}

/** The run and what came of it at the registry. */
export async function runOnce(
  world: ScaleWorld,
  publisher: Publisher,
  mounts: ScaleSituation['mounts'],
  tasks: readonly ListTask[],
  { path, timeoutSeconds, signal }: RunOptions,
): Promise<CommandResult & { readonly traffic: TrafficSummary }> {
  const { folder, gnuTime } = world;
  await world.begin(mounts);
  const files = publisher.files(tasks);
  const done = await runSteps(publisher.steps(tasks), { path, folder, files, timeoutSeconds, signal, gnuTime });
  signal.throwIfAborted();
  return { ...done, traffic: await world.end() };
}

async function judgeRun(
  world: ScaleWorld,
  repository: string,
  { same }: ScaleSituation,
  lists: number,
  { exitCode, output }: CommandResult,
): Promise<Outcome> {
  if (exitCode !== 0) return { kind: 'fails', why: `exit ${exitCode}: ${firstErrorLine(output, world.host)}` };
  const why = await world.wrong(repository, lists, same);
  return why === undefined ? { kind: 'right' } : { kind: 'fails', why };
}
