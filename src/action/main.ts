import { annotateFailure } from '../cli/github.ts';
import { reportFailure } from '../cli/report-failure.ts';
import { processWorld } from '../cli/runtime.ts';
import { runAction } from './run.ts';

/** A handle that is still open this long after the work is done (ms) is a bug; it must not keep the job waiting. */
const END_WITHIN = 5000;

async function main(): Promise<void> {
  const world = processWorld();
  const crashed = async (error: unknown) => {
    await reportFailure(world, [], error);
    annotateFailure(world, error);
  };
  world.onCrash(crashed);
  const ended = world.expectEnd(crashed);
  await runAction(world);
  ended();
  world.endWithin(END_WITHIN);
}

// What it could throw is caught where the process is told of crashes.
void main();
