import { dirname } from 'node:path';
import { Config } from '@oclif/core/config';
import type { PJSON } from '@oclif/core/interfaces';
import { settings } from '@oclif/core/settings';
import packageJson from '../../package.json' with { type: 'json' };
import { reportFailure } from './report-failure.ts';
import { processWorld } from './runtime.ts';
import { unknownCommand } from './usage-error.ts';

/** Flags of every command that may also stand before it, as docker's global flags do; true: a value follows. */
const LEADING_FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['--json', false],
  ['--quiet', false],
  ['-q', false],
  ['--debug', false],
  ['--no-color', false],
  ['--progress', true],
  ['--config', true],
]);

/** A handle that is still open this long after the work is done (ms) is a bug; it must not keep the user waiting. */
const END_WITHIN = 5000;

/**
 * Runs the command that the words name. Help and version were answered by `bin/run.js`.
 *
 * @param lib the folder of the bundle
 */
export async function main(argv: readonly string[], lib: string): Promise<void> {
  const world = processWorld();
  world.onCrash((error) => reportFailure(world, argv, error));
  const ended = world.expectEnd((error) => reportFailure(world, argv, error));
  try {
    // NODE_ENV=development in a user's shell must not make oclif look for a TypeScript compiler.
    settings.enableAutoTranspile = false;
    const config = await Config.load({
      root: dirname(lib),
      pjson: packageJson as unknown as PJSON,
      devPlugins: false,
      // Plugins named in the user's data folder would be code that runs beside the credentials.
      userPlugins: false,
    });
    const { id, rest } = splitCommand(argv, config.commandIDs);
    if (id === undefined) {
      throw unknownCommand(
        rest,
        config.commandIDs.map((known) => known.replaceAll(':', ' ')),
      );
    }
    await config.runCommand(id, [...rest]);
  } catch (error) {
    await reportFailure(world, argv, error);
  }
  ended();
  world.endWithin(END_WITHIN);
}

/** The id of the command (`registry:serve`) and the words that are left for it. */
function splitCommand(
  argv: readonly string[],
  ids: readonly string[],
): { readonly id: string | undefined; readonly rest: readonly string[] } {
  let at = 0;
  for (;;) {
    const [name = '', value] = (argv[at] ?? '').split('=', 2);
    const takesValue = LEADING_FLAGS.get(name);
    if (takesValue === undefined) break;
    at += takesValue && value === undefined ? 2 : 1;
  }
  for (const length of [2, 1]) {
    const id = argv.slice(at, at + length).join(':');
    if (ids.includes(id)) return { id, rest: [...argv.slice(0, at), ...argv.slice(at + length)] };
  }
  return { id: undefined, rest: argv.slice(at) };
}
