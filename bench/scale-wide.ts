import type { ListTask, Publisher, RunOptions, ScaleRun } from './scale-measure.ts';
import { runOnce } from './scale-measure.ts';
import type { ScaleWorld } from './scale-world.ts';

/** @see measureWide */
export type WideRun = ScaleRun & { readonly title: string };

/** Publishes one index of a thousand children from one repository into another, twice, and again with mounts refused. */
export async function measureWide(
  world: ScaleWorld,
  publisher: Publisher,
  options: RunOptions,
): Promise<readonly WideRun[]> {
  const runs: WideRun[] = [];
  for (const { title, mounts, repository } of [
    { title: 'mounts work', mounts: 'work', repository: 'wide/mounted' },
    { title: 'again', mounts: 'work', repository: 'wide/mounted' },
    { title: 'mounts refused', mounts: 'refused', repository: 'wide/copied' },
  ] as const) {
    const task: ListTask = { target: `${world.host}/${repository}:all`, sources: [`${world.host}/wide/source:all`] };
    const { output, ...figures } = await runOnce(world, publisher, mounts, [task], options);
    const failed =
      figures.exitCode === 0 ? await world.wrong(repository, 1, false) : `exit ${figures.exitCode}: ${output}`;
    const outcome = failed === undefined ? ({ kind: 'right' } as const) : ({ kind: 'fails', why: failed } as const);
    runs.push({ title, publisher: publisher.id, lists: 1, outcome, ...figures });
  }
  return runs;
}
