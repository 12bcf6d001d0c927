import { isAbsolute, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Where this user's drafts are: beside docker's configuration when its place was chosen, so that a job that brings its
 * own has its own drafts too; else below the XDG data directory. A variable of ours decides over both. Always a folder
 * of its own in there: the variable may name one that holds other things, such as a runner's temporary folder.
 *
 * @see https://specifications.freedesktop.org/basedir-spec/latest/ which has relative paths ignored
 */
export function draftFolder(env: Environment, home: string): string {
  const own = env['MANIFEST_PUBLISH_DATA_DIR'];
  if (own !== undefined && own !== '') return join(own, 'drafts');
  const docker = env['DOCKER_CONFIG'];
  if (docker !== undefined && docker !== '') return join(docker, 'manifest-publish', 'drafts');
  const data = env['XDG_DATA_HOME'];
  const base = data !== undefined && isAbsolute(data) ? data : join(home, '.local', 'share');
  return join(base, 'manifest-publish', 'drafts');
}

/** Docker's configuration folder, which holds its own drafts. */
export function dockerFolder(env: Environment, home: string): string {
  const docker = env['DOCKER_CONFIG'];
  return docker === undefined || docker === '' ? join(home, '.docker') : docker;
}
