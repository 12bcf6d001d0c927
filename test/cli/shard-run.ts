import { type Finished, type RunOptions, run } from '../helpers/processes.ts';
import { judged, withStranger } from '../helpers/program.ts';
import { variables } from './program.ts';

/** A program with its words, and what it is run with. */
export type Process = { readonly program: string; readonly words: readonly string[]; readonly env?: RunOptions['env'] };

/**
 * Runs processes side by side in a folder and judges them as one run: what the registries saw meanwhile can be of any
 * of them, and all that they print together must vouch for it.
 */
export async function together(folder: string, processes: readonly Process[]): Promise<readonly Finished[]> {
  let finished: readonly Finished[] = [];
  const all = async (): Promise<Finished> => {
    finished = await Promise.all(
      processes.map(({ program, words, env = {} }) =>
        run(program, words, { cwd: folder, env: withStranger(variables(folder, env)), timeout: 120_000 }),
      ),
    );
    const failed = finished.find(({ exitCode }) => exitCode !== 0);
    return {
      exitCode: failed === undefined ? 0 : failed.exitCode,
      stdout: finished.map(({ stdout }) => stdout).join(''),
      stderr: finished.map(({ stderr }) => stderr).join(''),
      peakMemory: Math.max(...finished.map(({ peakMemory }) => peakMemory)),
      lingered: Math.max(...finished.map(({ lingered }) => lingered)),
    };
  };
  await judged(all, { words: processes.flatMap(({ words }) => words), folder });
  return finished;
}
