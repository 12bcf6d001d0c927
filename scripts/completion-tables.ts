import type { Completed, CompletedCommand, Value } from './completion.ts';

// What bash and zsh share: functions in the language of both, which answer in the variables of their caller.

/**
 * Prints the references of the drafts of this machine: one POSIX text for every shell, without starting Node. Keeps to
 * the rules of src/store/folder.ts and to the beginning of a file as src/store/codec.ts writes it; it holds no single
 * quote, so that it can stand between two.
 */
export const DRAFTS: string = [
  'if [ -n "$MANIFEST_PUBLISH_DATA_DIR" ]; then folder=$MANIFEST_PUBLISH_DATA_DIR/drafts',
  'elif [ -n "$DOCKER_CONFIG" ]; then folder=$DOCKER_CONFIG/manifest-publish/drafts',
  'else case $XDG_DATA_HOME in /*) folder=$XDG_DATA_HOME ;; *) folder=$HOME/.local/share ;; esac',
  'folder=$folder/manifest-publish/drafts; fi',
  // Docker Hub's may be typed without its name.
  'sed -n -e "s|^{\\"schemaVersion\\":1,\\"reference\\":\\"\\([A-Za-z0-9._:/@-]*\\)\\".*|\\1|" -e "t is" -e d -e ":is" -e p \\',
  '  -e "s|^docker.io/library/||p" -e t -e "s|^docker.io/||p" "$folder"/*.json 2>/dev/null',
].join('\n');

/** `_manifest_publish_*`: what stands where. They answer in `kind` and `choices`. */
export function tables(completed: Completed): string {
  return `_manifest_publish_next() {
  case $command in
${next(completed)
  .map(([command, words]) => `    ${quoted(command)}) choices='${words.join(' ')}' ;;`)
  .join('\n')}
    *) return 1 ;;
  esac
}

_manifest_publish_takes_value() {
  case $1 in
    ${completed.valued.join(' | ')}) return 0 ;;
  esac
  return 1
}

_manifest_publish_flags() {
  case $command in
${completed.commands
  .map(({ name, flags }) => `    ${quoted(name)}) choices='${flags.map((flag) => `--${flag.name}`).join(' ')}' ;;`)
  .join('\n')}
    *) choices='--help --version' ;;
  esac
}

_manifest_publish_value() {
  case "$command $1" in
${flagCases(completed).join('\n')}
  esac
}

_manifest_publish_argument() {
  case "$command $count" in
${completed.commands.flatMap(argumentCases).join('\n')}
  esac
}
`;
}

/** What can follow the words so far, for the beginning and for topics. */
export function next({ commands, topics }: Completed): readonly (readonly [string, readonly string[]])[] {
  const first = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
  const below = [...topics.keys()].map((topic): readonly [string, readonly string[]] => [
    topic,
    commands.flatMap(({ name }) => (name.startsWith(`${topic} `) ? [name.slice(topic.length + 1)] : [])),
  ]);
  return [['', first], ...below];
}

function flagCases({ commands }: Completed): readonly string[] {
  const cases = new Map<string, Set<string>>();
  for (const { name: command, flags } of commands) {
    for (const { name, char, value } of flags) {
      if (value === undefined || value.kind === 'any') continue;
      const set = setting(value);
      const patterns = cases.get(set) ?? new Set();
      cases.set(set, patterns);
      const common = commands.every((other) => {
        const flag = other.flags.find((each) => each.name === name);
        return flag?.value === undefined || setting(flag.value) === set;
      });
      for (const spelling of [`--${name}`, ...(char === undefined ? [] : [`-${char}`])]) {
        patterns.add(common ? `*' ${spelling}'` : quoted(`${command} ${spelling}`));
      }
    }
  }
  return [...cases].map(([set, patterns]) => `    ${[...patterns].join(' | ')}) ${set} ;;`);
}

function argumentCases({ name, args, repeats }: CompletedCommand): readonly string[] {
  return args.flatMap((value, at) => {
    if (value.kind === 'any') return [];
    const any = repeats && at === args.length - 1;
    return [`    ${any ? `'${name} '*` : quoted(`${name} ${at}`)}) ${setting(value)} ;;`];
  });
}

function setting(value: Value): string {
  return 'words' in value ? `kind=${value.kind} choices='${value.words.join(' ')}'` : `kind=${value.kind}`;
}

function quoted(text: string): string {
  return `'${text}'`;
}
