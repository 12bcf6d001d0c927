import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEBIAN_JOB, sourceRepository } from './job.ts';
import { BASE_JOB, type ListToPublish, seedLists } from './lists-job.ts';
import { judge } from './outcome.ts';
import type { Order, Reply } from './scale-process.ts';
import type { Finder } from './tools.ts';
import { summarize, type TrafficSummary } from './traffic.ts';
import { withStage } from './world.ts';

/** A registry in a process of its own, with lists to publish, and what commands need. */
export type ScaleWorld = {
  readonly title: string;
  readonly host: string;
  /** Where commands may have their HOME. */
  readonly folder: string;
  readonly gnuTime: string | undefined;
  begin(mounts: 'work' | 'refused'): Promise<void>;
  /** What has come since. */
  end(): Promise<TrafficSummary>;
  /** What is wrong with the first `count` lists of the target repository; undefined: nothing. */
  wrong(repository: string, count: number, same: boolean): Promise<string | undefined>;
};

/** @see withEmbedded */
export type ScaleOptions = {
  readonly root: string;
  readonly path: string;
  readonly find: Finder;
  readonly lists: number;
  /** Also one index of many children. */
  readonly wide: Wide;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
};

/** So many children of one index, with so many blobs each. */
export type Wide = { readonly children: number; readonly blobs: number };

/** Tags of the lists, the same in all repositories. */
export function tagOf(list: number): string {
  return `v${list}`;
}

/** Repositories of the images that make a list. */
export const SOURCES: readonly string[] = DEBIAN_JOB.images.map(sourceRepository);

/** The embedded registry: all of it in memory, so that a thousand lists are seeded in seconds and it is no bottleneck. */
export async function withEmbedded<T>(options: ScaleOptions, use: (world: ScaleWorld) => Promise<T>): Promise<T> {
  const { root, find, lists, wide } = options;
  const folder = await mkdtemp(join(tmpdir(), 'manifest-publish-bench-'));
  const script = join(root, 'scripts', 'run-ts.js');
  const amounts = [lists, wide.children, wide.blobs].map(String);
  const child = fork(script, [join(root, 'bench', 'scale-process.ts'), ...amounts], { cwd: root });
  try {
    const { host } = await next(child, 'ready');
    return await use({
      title: 'embedded registry',
      host,
      folder,
      gnuTime: (await find(['time'], ['--version']))?.path,
      begin: async (mounts) => void (await ask(child, { kind: 'begin', mounts }, 'begun')),
      end: async () => (await ask(child, { kind: 'end' }, 'traffic')).traffic,
      wrong: async (repository, count) => {
        const { tags, missing } = await ask(child, { kind: 'look', repository }, 'looked');
        if (tags !== count) return `${tags} tags instead of ${count}`;
        return missing === 0 ? undefined : `${missing} manifests and blobs are missing`;
      },
    });
  } finally {
    const gone = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
    if (child.connected) child.disconnect();
    await gone;
    await rm(folder, { recursive: true, force: true });
  }
}

/** docker-registry behind the counting proxy, which refuses mounts where that is wanted. Seeding takes it 0.1 s a list. */
export async function withDockerRegistry<T>(options: ScaleOptions, use: (world: ScaleWorld) => Promise<T>): Promise<T> {
  return await withStage({ ...options, job: BASE_JOB, delay: 0 }, async (stage) => {
    const seeded = await seedLists(stage.registry.origin, stage.images, options.lists);
    const host = `127.0.0.1:${stage.proxy.port}`;
    const check = async (repository: string, list: ListToPublish, { images }: ListToPublish) => {
      const done = { exitCode: 0, output: '', seconds: 0, cpuSeconds: undefined, peakRssBytes: undefined };
      const outcome = await judge(stage.registry.origin, { host, repository, tag: list.tag, images }, done);
      return outcome.kind === 'fails' ? `${list.tag}: ${outcome.why}` : undefined;
    };
    return await use({
      title: stage.registry.title,
      host,
      folder: stage.folder,
      gnuTime: stage.gnuTime,
      begin: (mounts) => stage.proxy.begin({ delay: 0, mounts }),
      end: async () => summarize(await stage.proxy.end()),
      wrong: async (repository, count, same) => {
        const [first] = seeded;
        for (const list of seeded.slice(0, count)) {
          const why = await check(repository, list, same ? (first ?? list) : list);
          if (why !== undefined) return why;
        }
        return undefined;
      },
    });
  });
}

async function ask<K extends Reply['kind']>(child: ChildProcess, order: Order, kind: K) {
  const answer = next(child, kind);
  child.send(order);
  return await answer;
}

async function next<K extends Reply['kind']>(child: ChildProcess, kind: K): Promise<Extract<Reply, { kind: K }>> {
  return await new Promise((resolve, reject) => {
    const ended = () => reject(new Error('the registry has ended'));
    child.once('exit', ended);
    child.once('message', (message) => {
      child.off('exit', ended);
      const reply = message as Reply;
      if (reply.kind === kind) resolve(reply as Extract<Reply, { kind: K }>);
      else reject(new Error(`the registry answered ${reply.kind} instead of ${kind}`));
    });
  });
}
