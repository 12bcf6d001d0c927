import { join } from 'node:path';
import { runSteps } from './command.ts';
import type { ListToPublish } from './lists-job.ts';
import type { Run, Stage } from './measure.ts';
import { judge, type Outcome } from './outcome.ts';
import type { Step, Task } from './peers.ts';
import type { ProxySettings } from './proxy.ts';
import type { Tool } from './tools.ts';
import { summarize } from './traffic.ts';

/** A state of the world in which many lists are published. */
export type ListsSituation = {
  readonly id: 'fresh' | 'refused' | 'again' | 'same';
  readonly title: string;
  readonly mounts: ProxySettings['mounts'];
  /** `published`: the same lists have been published to this very target before. */
  readonly target: 'fresh' | 'published';
  /** Whether every list has the images of the first one, under a tag of its own. */
  readonly same: boolean;
};

export const LISTS_SITUATIONS: readonly ListsSituation[] = [
  { id: 'fresh', title: 'Mounts work (201), fresh target', mounts: 'work', target: 'fresh', same: false },
  { id: 'refused', title: 'Mounts refused (202), fresh target', mounts: 'refused', target: 'fresh', same: false },
  { id: 'again', title: 'Again: nothing to do, mounts work', mounts: 'work', target: 'published', same: false },
  { id: 'same', title: 'All lists of the same eight images', mounts: 'work', target: 'fresh', same: true },
];

/** One list to publish; where all share the images of one, `sourceTag` is that one's. */
export type ListTask = Task & { readonly sourceTag: string };

/** Somebody who publishes a number of lists. */
export type Publisher = {
  readonly id: string;
  readonly title: string;
  readonly count: number;
  readonly files: (tasks: readonly ListTask[]) => Readonly<Record<string, string>>;
  readonly steps: (tasks: readonly ListTask[]) => readonly Step[];
};

const target = ({ host, repository, tag }: Task) => `${host}/${repository}:${tag}`;

/** One command that reads one spec file. */
export function ours(root: string, node: Tool, count: number): Publisher {
  const program = join(root, 'bin', 'run.js');
  return {
    id: `ours-${count}`,
    title: 'manifest-publish publish -f, one command',
    count,
    files: (tasks) => ({
      'lists.json': JSON.stringify({
        lists: tasks.map((task) => ({ target: target(task), sources: sourcesOf(task) })),
      }),
    }),
    steps: () => [[[node.path, program, 'publish', '-f', 'lists.json', '--quiet']]],
  };
}

/** What a shell loop does: one command a list, each after the one before it. */
export function craneLoop(crane: Tool, count: number): Publisher {
  return {
    id: `crane-${count}`,
    title: ['crane index append', crane.version, 'in a loop'].filter((part) => part !== undefined).join(' '),
    count,
    files: () => ({}),
    steps: (tasks) =>
      tasks.map((task) => {
        const manifests = sourcesOf(task).flatMap((one) => ['-m', one]);
        return [[crane.path, 'index', 'append', '--insecure', ...manifests, '-t', target(task)]];
      }),
  };
}

/** One run of one publisher: `lists` were published. */
export type ListsRun = Run & { readonly publisher: string; readonly title: string; readonly lists: number };

/** One run into a repository of its own; the preparation of a published target has no delay and is not measured. */
export async function measureLists(
  stage: Stage,
  lists: readonly ListToPublish[],
  publisher: Publisher,
  situation: ListsSituation,
): Promise<ListsRun> {
  const { delay } = stage;
  const [first] = lists;
  const tasks = lists.slice(0, publisher.count).map((list): ListTask => {
    const { tag: sourceTag, images } = situation.same ? (first ?? list) : list;
    const repository = `lists/${situation.id}-${delay}-${publisher.id}`;
    return { host: `127.0.0.1:${stage.proxy.port}`, repository, tag: list.tag, sourceTag, images };
  });
  if (situation.target === 'published') await runOnce(stage, tasks, publisher, { delay: 0, mounts: situation.mounts });
  return await runOnce(stage, tasks, publisher, { delay, mounts: situation.mounts });
}

async function runOnce(
  stage: Stage,
  tasks: readonly ListTask[],
  publisher: Publisher,
  settings: ProxySettings,
): Promise<ListsRun> {
  await stage.proxy.begin(settings);
  const { output, ...command } = await runSteps(publisher.steps(tasks), {
    path: stage.path,
    folder: stage.folder,
    files: publisher.files(tasks),
    timeoutSeconds: stage.timeoutSeconds,
    signal: stage.signal,
    gnuTime: stage.gnuTime,
  });
  stage.signal.throwIfAborted();
  const traffic = summarize(await stage.proxy.end());
  const { id, title } = publisher;
  const outcome = await judgeAll(stage.registry.origin, tasks, { output, ...command });
  return { publisher: id, title, lists: tasks.length, outcome, traffic, ...command };
}

/** Every list is looked at: its children's bytes and its blobs. The first that is wrong speaks for all. */
async function judgeAll(
  origin: string,
  tasks: readonly ListTask[],
  command: Parameters<typeof judge>[2],
): Promise<Outcome> {
  for (const task of tasks) {
    const outcome = await judge(origin, task, command);
    if (outcome.kind === 'fails') return { kind: 'fails', why: `${task.tag}: ${outcome.why}` };
  }
  return { kind: 'right' };
}

function sourcesOf({ host, images, sourceTag }: ListTask): readonly string[] {
  return images.map(({ repository }) => `${host}/${repository}:${sourceTag}`);
}
