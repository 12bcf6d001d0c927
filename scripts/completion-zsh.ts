import type { Completed } from './completion.ts';
import { DRAFTS, next, tables } from './completion-tables.ts';

/** Loaded with `source`, or as a file `_manifest-publish` of a folder in `fpath`. */
export function zshCompletion(completed: Completed): string {
  return `#compdef manifest-publish
# zsh completion of manifest-publish. Load it with: source <(manifest-publish completion zsh)

${tables(completed)}
_manifest_publish_described() {
  case $command in
${next(completed)
  .map(([command, words]) => {
    const lines = words.map((word) => `'${word}:${summaryOf(completed, command, word)}'`);
    return `    '${command}') described=(\n      ${lines.join('\n      ')}\n    ) ;;`;
  })
  .join('\n')}
  esac
}

_manifest-publish() {
  local part command='' flag='' ended='' kind='' choices=''
  local -i at count=0
  local -a described
  for ((at = 2; at < CURRENT; at++)); do
    part=\${(Q)words[at]}
    if [[ -n $flag ]]; then
      flag=''
    elif [[ -n $ended ]]; then
      count+=1
    elif [[ $part == -- ]]; then
      ended=yes
    elif _manifest_publish_takes_value "$part"; then
      flag=$part
    elif [[ $part != -* ]]; then
      if _manifest_publish_next; then
        command=\${command:+$command }$part
      else
        count+=1
      fi
    fi
  done

  choices=''
  if [[ -n $flag ]]; then
    _manifest_publish_value "$flag"
  elif [[ -z $ended && $PREFIX == --*=* ]]; then
    flag=\${PREFIX%%=*}
    compset -P '*='
    _manifest_publish_value "$flag"
  elif [[ -z $ended && $PREFIX == -* ]]; then
    _manifest_publish_flags
  elif _manifest_publish_next; then
    _manifest_publish_described
    _describe -t commands command described
    return
  else
    _manifest_publish_argument
  fi
  case $kind in
    file) _files ;;
    folder) _files -/ ;;
    drafts) compadd -- \${(f)"$(sh -c '${DRAFTS}')"} ;;
    list)
      compset -P '*,'
      compadd -S '' -- \${=choices}
      ;;
    *) compadd -- \${=choices} ;;
  esac
}

if [[ $funcstack[1] == _manifest-publish ]]; then
  _manifest-publish "$@"
else
  compdef _manifest-publish manifest-publish
fi
`;
}

function summaryOf({ commands, topics }: Completed, command: string, word: string): string {
  const name = command === '' ? word : `${command} ${word}`;
  const found = commands.find((each) => each.name === name)?.summary ?? topics.get(name) ?? '';
  return found.replaceAll(':', '\\:');
}
