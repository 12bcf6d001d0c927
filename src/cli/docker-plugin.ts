import { access, constants, lstat, mkdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { PublishError } from '../errors.ts';
import { usage } from './settings.ts';

/** docker runs it for `docker mpublish`; only small letters and digits may follow `docker-`. */
export const PLUGIN_NAME = 'docker-mpublish';

/** What there was to do. */
export type PluginChange = 'installed' | 'unchanged' | 'removed' | 'absent';

/** What stands in the place of the plugin: nothing, a link of ours and whether it is this program, or another's. */
type Present = 'nothing' | 'same' | 'ours' | 'foreign';

const NPX = /[\\/](?:_npx|dlx-[^\\/]*|xfs-[^\\/]*)[\\/]/;

/**
 * Links the program into the folder, under the name that docker looks for. The link is replaced in one step, so that
 * docker never finds half of it.
 *
 * @param program the real path of `bin/run.js`
 * @throws PublishError `FILE_FAILED`, `USAGE_INVALID` where a link cannot last or docker could not run it
 */
export async function installPlugin(
  program: string,
  folder: string,
  options: { readonly platform: string; readonly force: boolean; readonly token: string },
): Promise<PluginChange> {
  if (options.platform === 'win32') {
    throw usage(
      'docker runs only .exe files as plugins on Windows',
      'Call manifest-publish itself: it takes the same words.',
    );
  }
  if (NPX.test(program)) {
    throw usage(
      `a plugin in the cache of npx would vanish with it: ${dirname(dirname(program))}`,
      'Run npm install -g manifest-publish, then manifest-publish docker-plugin install.',
    );
  }
  const path = join(folder, PLUGIN_NAME);
  const temporary = join(folder, `.${PLUGIN_NAME}.${options.token}.tmp`);
  try {
    await access(program, constants.X_OK).catch((error: unknown) => {
      throw new PublishError('FILE_FAILED', `docker could not run ${program}`, `Run chmod +x ${program}.`, {
        cause: error,
      });
    });
    const present = await presentAt(path, program);
    if (present === 'same') return 'unchanged';
    if (present === 'foreign' && !options.force) throw foreign(path, 'Look at it, then write it over with --force.');
    await mkdir(folder, { recursive: true });
    await symlink(program, temporary);
    await rename(temporary, path).catch(async (error: unknown) => {
      await rm(temporary);
      throw error;
    });
    return 'installed';
  } catch (error) {
    throw failed(error, `cannot write ${path}`);
  }
}

/** Takes the link away again. @throws PublishError `FILE_FAILED` */
export async function uninstallPlugin(program: string, folder: string, force: boolean): Promise<PluginChange> {
  const path = join(folder, PLUGIN_NAME);
  try {
    const present = await presentAt(path, program);
    if (present === 'nothing') return 'absent';
    if (present === 'foreign' && !force) throw foreign(path, 'Look at it, then remove it with --force.');
    await rm(path);
    return 'removed';
  } catch (error) {
    throw failed(error, `cannot remove ${path}`);
  }
}

async function presentAt(path: string, program: string): Promise<Present> {
  try {
    if (!(await lstat(path)).isSymbolicLink()) return 'foreign';
    const target = resolve(dirname(path), await readlink(path));
    if (target === program) return 'same';
    return (await isOurs(target)) ? 'ours' : 'foreign';
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'nothing';
    throw error;
  }
}

/** Also where the package has been removed, or moved with its version of Node: the link of it is left behind. */
async function isOurs(target: string): Promise<boolean> {
  const root = dirname(dirname(target));
  try {
    const { name }: { name?: unknown } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    return name === 'manifest-publish';
  } catch (error) {
    if (codeOf(error) === undefined && !(error instanceof SyntaxError)) throw error;
    return target.endsWith(['', 'manifest-publish', 'bin', 'run.js'].join(sep));
  }
}

function foreign(path: string, hint: string): PublishError {
  return new PublishError('FILE_FAILED', `${path} is there already and is not ours`, hint);
}

function failed(error: unknown, what: string): unknown {
  const code = codeOf(error);
  if (error instanceof PublishError || code === undefined) return error;
  const hint = 'Name a folder that you may write to and where docker looks for plugins: --dir DIR.';
  return new PublishError('FILE_FAILED', `${what} (${code})`, hint, { cause: error });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
