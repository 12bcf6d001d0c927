import packageJson from '../../package.json' with { type: 'json' };
import type { BaseCommand } from './base-command.ts';
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

/** A command that oclif's own start would run by its id. */
type CommandClass = { id: string } & (new (argv: string[], config: BaseCommand['config']) => BaseCommand);

/** Loads a command by its id (`registry:serve`), and nothing of the others. */
export type Loaders = Readonly<Record<string, () => Promise<CommandClass>>>;

/**
 * All that oclif's commands ask of its configuration. The real one reads `package.json`, the manifest and files in
 * the user's folders, and costs more than the command line that it serves.
 */
const OCLIF = {
  bin: packageJson.oclif.bin,
  userAgent: `${packageJson.name}/${packageJson.version}`,
  scopedEnvVarKeys: () => [],
  runHook: async () => ({ successes: [], failures: [] }),
} as unknown as BaseCommand['config'];

/** Runs the command that the words name. Help and version were answered by `bin/run.js`. */
export async function main(argv: readonly string[], commands: Loaders): Promise<void> {
  const world = processWorld();
  world.onCrash((error) => reportFailure(world, argv, error));
  const ended = world.expectEnd((error) => reportFailure(world, argv, error));
  try {
    const ids = Object.keys(commands);
    const { id, rest } = splitCommand(argv, ids);
    const load = id === undefined ? undefined : commands[id];
    if (id === undefined || load === undefined) {
      throw unknownCommand(
        rest,
        ids.map((known) => known.replaceAll(':', ' ')),
      );
    }
    const Named = await load();
    Named.id = id;
    await new Named([...rest], OCLIF).start();
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
