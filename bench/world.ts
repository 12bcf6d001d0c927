import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Job } from './job.ts';
import type { Stage } from './measure.ts';
import { startProxy } from './proxy-client.ts';
import { startRegistry } from './registries.ts';
import { seed } from './seed.ts';
import type { Finder } from './tools.ts';

/** @see withStage */
export type StageOptions = {
  readonly root: string;
  /** The PATH of the bench, which the peers get too. */
  readonly path: string;
  readonly find: Finder;
  readonly job: Job;
  readonly delay: number;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
};

/**
 * Registry, proxy and seeded images in a temporary folder, for as long as `use` runs. An abort of the signal
 * ends the command that is measured and then everything else, so that nothing is left running or lying about.
 */
export async function withStage<T>(options: StageOptions, use: (stage: Stage) => Promise<T>): Promise<T> {
  const { root, path, find, job, delay, timeoutSeconds, signal } = options;
  const closers: (() => Promise<void>)[] = [];
  try {
    const folder = await mkdtemp(join(tmpdir(), 'manifest-publish-bench-'));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const registry = await startRegistry(find, folder);
    closers.push(registry.close);
    const proxy = await startProxy(root, registry.port);
    closers.push(proxy.close);
    const images = await seed(registry.origin, job);
    const gnuTime = (await find(['time'], ['--version']))?.path;
    const { tag } = job;
    const stage: Stage = { registry, proxy, images, tag, delay, path, folder, timeoutSeconds, signal, gnuTime };
    signal.throwIfAborted();
    return await use(stage);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}
