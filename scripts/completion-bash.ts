import type { Completed } from './completion.ts';
import { DRAFTS, tables } from './completion-tables.ts';

/** For bash 3.2 (macOS) and later, without the package bash-completion. */
export function bashCompletion(completed: Completed): string {
  return `# bash completion of manifest-publish. Load it with: source <(manifest-publish completion bash)

${tables(completed)}
_manifest_publish_drafts() {
  sh -c '${DRAFTS}'
}

# Prints the choices that are of this kind, one a line.
_manifest_publish_choices() {
  local word start=''
  case $kind in
    drafts) _manifest_publish_drafts ;;
    file) compgen -f -- "$1" ;;
    folder) compgen -d -- "$1" ;;
    list)
      case $1 in *,*) start=\${1%,*}, ;; esac
      for word in $choices; do printf '%s\\n' "$start$word"; done
      ;;
    *) for word in $choices; do printf '%s\\n' "$word"; done ;;
  esac
}

_manifest_publish() {
  local IFS=$' \\t\\n'
  local rest=$COMP_LINE part at words=()
  # bash parts words at : and =, which references and flags are full of.
  for ((at = 0; at <= COMP_CWORD; at++)); do
    part=\${COMP_WORDS[at]}
    if [[ at -gt 0 && $rest != [[:space:]]* ]]; then
      words[\${#words[@]} - 1]+=$part
    else
      rest=\${rest#"\${rest%%[![:space:]]*}"}
      words[\${#words[@]}]=$part
    fi
    rest=\${rest#"$part"}
  done
  local last=$((\${#words[@]} - 1))
  local whole=\${words[last]} after=\${COMP_LINE:COMP_POINT} quote=''
  after=\${after%%[[:space:]]*}
  whole=\${whole%"$after"}
  case $whole in
    \\"* | \\'*)
      quote=yes
      whole=\${whole#?}
      ;;
  esac

  local command='' flag='' ended='' count=0 kind='' choices='' found='' cur=$whole lead=''
  for ((at = 1; at < last; at++)); do
    part=\${words[at]}
    part=\${part//[\\"\\']/}
    if [[ -n $flag ]]; then
      flag=''
    elif [[ -n $ended ]]; then
      count=$((count + 1))
    elif [[ $part == -- ]]; then
      ended=yes
    elif _manifest_publish_takes_value "$part"; then
      flag=$part
    elif [[ $part != -* ]]; then
      if _manifest_publish_next; then
        command=\${command:+$command }$part
      else
        count=$((count + 1))
      fi
    fi
  done

  if [[ -n $flag ]]; then
    kind='' choices=''
    _manifest_publish_value "$flag"
  elif [[ -z $ended && $cur == --*=* ]]; then
    choices=''
    lead=\${cur%%=*}=
    cur=\${cur#*=}
    _manifest_publish_value "\${lead%=}"
  elif [[ -z $ended && $cur == -* ]]; then
    _manifest_publish_flags
  elif ! _manifest_publish_next; then
    choices=''
    _manifest_publish_argument
  fi
  case $kind in
    file | folder) compopt -o filenames 2>/dev/null ;;
    list) compopt -o nospace 2>/dev/null ;;
  esac

  # What stands before the last : or = is kept by bash, unless the word is quoted.
  local skip='' mark
  if [[ -z $quote ]]; then
    for mark in : =; do
      if [[ $COMP_WORDBREAKS == *"$mark"* && $whole == *"$mark"* ]]; then
        part=\${whole%"\${whole##*"$mark"}"}
        if ((\${#part} > \${#skip})); then skip=$part; fi
      fi
    done
  fi
  COMPREPLY=()
  while IFS= read -r found; do
    found=$lead$found
    if [[ $found == "$lead$cur"* ]]; then COMPREPLY[\${#COMPREPLY[@]}]=\${found#"$skip"}; fi
  done < <(_manifest_publish_choices "$cur")
}

complete -F _manifest_publish manifest-publish
`;
}
