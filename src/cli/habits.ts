/**
 * Words of docker, buildx, crane and manifest-tool that have no place here, and what stands for each: the nearest name
 * would not help.
 */
const LOGIN = 'There is no flag for a login: run docker login HOST, or podman login HOST, and leave it out.';
const TARGET = 'TARGET is the first argument: manifest-publish publish TARGET SOURCE...';
const SOURCE = 'Sources are arguments after TARGET: manifest-publish publish TARGET SOURCE...';

const FLAGS: ReadonlyMap<string, string> = new Map([
  ...['--username', '--user', '-u', '--password', '--password-stdin', '--creds'].map((flag) => [flag, LOGIN] as const),
]);

const PUBLISH_FLAGS: ReadonlyMap<string, string> = new Map([
  ...['--target', '--dest', '--destination'].map((flag) => [flag, TARGET] as const),
  ...['--source', '--sources', '--src', '--image', '--manifest', '-m'].map((flag) => [flag, SOURCE] as const),
]);

const COMMANDS: ReadonlyMap<string, string> = new Map([
  ...['login', 'logout'].map(
    (word) => [word, `The logins of docker and podman are used: run docker ${word} HOST.`] as const,
  ),
  ['version', 'Write manifest-publish --version.'],
  ['manifest', 'Leave "manifest" out: manifest-publish create, annotate, push, inspect, rm.'],
  ...['buildx', 'imagetools', 'index'].map(
    (word) => [word, 'Write manifest-publish publish TARGET SOURCE...'] as const,
  ),
]);

/** What to write for a flag of another tool. */
export function flagOfOthers(flag: string, command: string): string | undefined {
  return FLAGS.get(flag) ?? (command === 'publish' ? PUBLISH_FLAGS.get(flag) : undefined);
}

/** What to write for a command of another tool. */
export function commandOfOthers(word: string): string | undefined {
  return COMMANDS.get(word);
}
