import type { Completed, CompletedCommand, CompletedFlag, Value } from './completion.ts';
import { DRAFTS, next } from './completion-tables.ts';

/** For fish 3 and later; it completes `--flag=value` and quotes by itself. */
export function fishCompletion(completed: Completed): string {
  const { commands, topics, valued } = completed;
  const summaryOf = (name: string) => commands.find((each) => each.name === name)?.summary ?? topics.get(name) ?? '';
  const names = next(completed).flatMap(([command, words]) =>
    words.map((word) => {
      const name = command === '' ? word : `${command} ${word}`;
      return `${at(command)} -a ${word} -d '${summaryOf(name)}'`;
    }),
  );
  return `# fish completion of manifest-publish. Load it with: manifest-publish completion fish | source

# The words before the cursor that are neither flags nor their values.
function __manifest_publish_words
    set -l value 0
    set -l ended 0
    for token in (commandline -opc)[2..-1]
        if test $value = 1
            set value 0
        else if test $ended = 1
            printf '%s\\n' $token
        else
            switch $token
                case --
                    set ended 1
                case ${valued.join(' ')}
                    set value 1
                case '-*'
                case '*'
                    printf '%s\\n' $token
            end
        end
    end
end

# Whether the words before the cursor are these and no more.
function __manifest_publish_at
    set -l words (__manifest_publish_words)
    test "$words" = "$argv[1]"
end

# Whether the words before the cursor begin so, and how many more there are.
function __manifest_publish_in -a command more
    set -l words (__manifest_publish_words)
    set -l own (string split ' ' -- $command)
    test (count $words) -ge (count $own)
    and test "$words[1..$(count $own)]" = $command
    and test -z "$more" -o (math (count $words) - (count $own)) = "$more"
end

function __manifest_publish_drafts
    sh -c '${DRAFTS.replaceAll('\\', '\\\\')}'
end

# Further words of a list with commas.
function __manifest_publish_list
    set -l token (string replace -r -- '^--[^=]*=' '' (commandline -ct))
    set -l lead (string match -r -- '.*,' $token)
    printf '%s\\n' "$lead"$argv
end

complete -c manifest-publish -f
${[...names, ...commands.flatMap(flagLines), ...commands.flatMap(argumentLines)].join('\n')}
`;
}

function at(command: string): string {
  return `complete -c manifest-publish -n '__manifest_publish_at "${command}"'`;
}

function flagLines({ name, flags }: CompletedCommand): readonly string[] {
  const head = `complete -c manifest-publish -n '__manifest_publish_in "${name}"'`;
  return flags.map((flag: CompletedFlag) => {
    const short = flag.char === undefined ? '' : ` -s ${flag.char}`;
    const value = flag.value === undefined ? '' : ` ${required(flag.value)}`;
    return `${head} -l ${flag.name}${short}${value} -d '${flag.summary}'`;
  });
}

function argumentLines({ name, args, repeats }: CompletedCommand): readonly string[] {
  return args.flatMap((value, place) => {
    if (value.kind === 'any') return [];
    const count = repeats && place === args.length - 1 ? '' : ` ${place}`;
    const head = `complete -c manifest-publish -n '__manifest_publish_in "${name}"${count}'`;
    return [`${head} ${choices(value)}`];
  });
}

function required(value: Value): string {
  return value.kind === 'file' ? '-r -F' : value.kind === 'any' ? '-x' : `-x ${choices(value)}`;
}

function choices(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `-a '${value.words.join(' ')}'`;
    case 'list':
      return `-a '(__manifest_publish_list ${value.words.join(' ')})'`;
    case 'folder':
      return `-a '(__fish_complete_directories)'`;
    case 'drafts':
      return `-a '(__manifest_publish_drafts)'`;
    case 'file':
      return '-F';
    case 'any':
      return '';
  }
}
