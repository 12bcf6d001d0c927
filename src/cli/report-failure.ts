import packageJson from '../../package.json' with { type: 'json' };
import { PublishError } from '../errors.ts';
import {
  type Circumstances,
  errorDocument,
  jsonText,
  page,
  renderError,
  showsUnicode,
  type Theme,
  themeFor,
} from '../ui/render.ts';
import type { World } from './runtime.ts';

/** Whether the flag was written, before a `--`: asked when the command line itself may be what is wrong. */
export function isWritten(argv: readonly string[], flag: string): boolean {
  const end = argv.indexOf('--');
  return (end < 0 ? argv : argv.slice(0, end)).includes(flag);
}

/** How stderr is written to. */
export function stderrTheme(world: World, noColor: boolean): Theme {
  return themeFor(world.stderr, { noColor, unicode: showsUnicode(world.env, world.platform) });
}

/** How stdout is written to. */
export function stdoutTheme(world: World, noColor: boolean): Theme {
  return themeFor(world.stdout, { noColor, unicode: showsUnicode(world.env, world.platform) });
}

/**
 * Says what went wrong, once: for people on stderr, or with `--json` as a document on stdout, and sets the exit code,
 * which is the same for both. A bug of ours adds what a bug report needs.
 */
export async function reportFailure(
  world: World,
  argv: readonly string[],
  failure: unknown,
  circumstances: Circumstances = {},
): Promise<void> {
  const error = asTyped(failure, world);
  const document = errorDocument(error);
  world.setExitCode(document.error.exitCode);
  const debug = isWritten(argv, '--debug');
  if (isWritten(argv, '--json')) {
    const printed = await world.print(`${jsonText(document, 2)}\n`).then(
      () => true,
      (unprinted: unknown) => {
        if (unprinted instanceof PublishError) return false;
        throw unprinted;
      },
    );
    // Where the document cannot be written, stderr is the only one left to tell.
    if (printed && !debug) return;
  }
  const theme = stderrTheme(world, isWritten(argv, '--no-color'));
  // The stack says nothing to a user who can act on the error; for a bug of ours it is asked for with --debug.
  world.note(renderError(error, theme, { ...circumstances, debug: debug && !(error instanceof PublishError) }));
  if (!(error instanceof PublishError)) {
    world.note(page([`${packageJson.name}/${packageJson.version} ${world.versions}`], theme));
  }
}

/** Hints can be pasted: docker, which calls us as its plugin, names us otherwise. */
function asTyped(error: unknown, { env }: World): unknown {
  if (!(error instanceof PublishError) || env['DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND'] === undefined) return error;
  return error.with({ hint: error.hint.replace(/(?<=^|\s)manifest-publish (?=[a-z-])/g, 'docker mpublish ') });
}
