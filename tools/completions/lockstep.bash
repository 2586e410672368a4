# Completion of lockstep for bash: `source` it, or install it where bash-completion
# looks. Nothing is listed here: commands and flags come from --help, the names of
# models and their like from `lockstep list`, other choices from what a mistake gets.
# Run instead of sourced, `bash lockstep.bash WORD...` prints what may stand for the last of these words: that
# is how zsh and fish ask (_lockstep, lockstep.fish).

# $lockstep below is the program as it was typed, a local of _lockstep().

# All options of a command, those that say which job too.
_lockstep_help() {
  "$lockstep" "$1" --help all 2>/dev/null
}

# The topics of its options, and the keys of --set, which are all knobs.
_lockstep_topics() {
  printf '%s\n' "$(_lockstep_help "$1" | sed -nE 's/^[A-Z].*\(--help ([a-z]+)\):$/\1/p')" all
}
_lockstep_keys() {
  _lockstep_help "$1" | sed -nE 's/^  --set ([a-z0-9_]+)=.*/\1/p'
}

# The long flags of a command, one per line.
_lockstep_flags() {
  _lockstep_help "$1" | sed -nE 's/^  (-[a-z], )?(--[a-z0-9-]+).*/\2/p'
}

_lockstep_commands() {
  "$lockstep" --help 2>/dev/null | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'
}

# Names of a kind: the first word of each indented line.
_lockstep_names() {
  "$lockstep" list "$1" 2>/dev/null | sed -nE 's/^  ([^ ]+).*/\1/p'
}

# The words that may follow a command: "[a|b|c]" or "a" in its usage line, names of schemas.
_lockstep_words() {
  [[ $1 != schema ]] || "$lockstep" schema 2>/dev/null | sed -nE 's/^  ([^ ]+).*/\1/p'
  _lockstep_help "$1" | sed -nE '1 s/^Usage: lockstep [a-z]+ \[?([a-z|]+)\]?( .*)?$/\1/p' | tr '|' '\n'
}

# What --help shows for the value of flag $2 of command $1: "N", "FILE", "auto|off".
# Fails if the flag takes none.
_lockstep_placeholder() {
  _lockstep_help "$1" | sed -nE "s/^  (-[a-z], )?$2=([^ ]+).*/\\2/p" | grep .
}

# The words that the refusal of an empty value lists, as in: expected one of "none",
# "full"; got "". Nothing is simulated: an empty value is refused before that.
_lockstep_choices() {
  "$lockstep" "$1" "$2=" 2>&1 </dev/null | sed -nE '1 s/.*expected one of (.*); got .*/\1/p' | grep -oE '[^", ]+'
}

# Offers those lines of $1 that begin with $2. Not compgen -W, which would expand them:
# some are names of files.
_lockstep_offer() {
  local line
  while read -r line; do
    [[ -z $line || $line != "$2"* ]] || COMPREPLY+=("$(printf "$_lockstep_format" "$line")")
  done <<< "$1"
}

_lockstep_format=%q # as it is typed

_lockstep_files() {
  if [[ $_lockstep_format != %q ]]; then
    COMPREPLY+=(@files)
    return
  fi
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# Completes word $4, the value of flag $2 of command $1, which --help shows as $3.
_lockstep_value() {
  local names=
  [[ $1$2 != schedule--schedule ]] || names=$(_lockstep_choices schedule --schedule) # more than a job can run
  case $2:$3 in
    --model:* | --cluster:* | --trace:* | --gpu:*) names=$(_lockstep_names "${2#--}s") ;;
    --strategy:*) names=$(_lockstep_names strategies) ;;
    --for:* | --software:*) names=$(_lockstep_names software) ;;
    --kernels:*) names=$(_lockstep_names kernels) ;;
    --optimizer:*) names=$(_lockstep_names optimizers)$'\nadam\nadamw' ;;
    --reliability:* | --jitter:*) names=$(_lockstep_names "${2#--}") ;;
    --scaling-law:* | --critical-batch:*) names=$(_lockstep_names scaling) ;;
    --help:*) names=$(_lockstep_topics "$1") ;;
    --set:*) names=$(_lockstep_keys "$1" | sed 's/$/=/') ;;
    --schedule:*) names=${names:-$(_lockstep_names schedules)} ;;
    *:KIND | *:MODE | *:MODEL | *:DTYPE | *:PROGRAM) names=$(_lockstep_choices "$1" "$2") ;;
    *:*[!a-z0-9\|]*) ;;
    *) names=${3//|/$'\n'} ;;
  esac
  _lockstep_offer "$names" "$4"
  [[ $3 != *FILE* ]] || ((${#COMPREPLY[@]})) || _lockstep_files "$4"
}

_lockstep() {
  local lockstep=${COMP_WORDS[0]} command=${COMP_WORDS[1]-} placeholder words
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _lockstep_offer "$(_lockstep_commands)"$'\n--help\n--version' "$word"
    return
  fi

  # "--tp=8" comes as three words
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ $before == --help ]]; then
    _lockstep_value "$command" --help TOPIC "$word"
  elif [[ $before == --?* ]] && placeholder=$(_lockstep_placeholder "$command" "$before"); then
    _lockstep_value "$command" "$before" "$placeholder" "$word"
  elif [[ $word == -* ]]; then
    _lockstep_offer "$(_lockstep_flags "$command")" "$word"
  elif words=$(_lockstep_words "$command"); [[ -n $words ]]; then
    ((COMP_CWORD > 2)) || _lockstep_offer "$words" "$word"
  elif [[ $command != run ]]; then
    _lockstep_files "$word"
  fi
}

# What flags of a command mean, "--tp<tab>tensor-parallel ranks", or what the commands do.
_lockstep_meanings() {
  if [[ $1 ]]; then
    "$lockstep" "$1" --help all 2>/dev/null | sed -nE 's/^  (-[a-z], )?(--[a-z0-9-]+)[^ ]* +(.*)$/\2\t\3/p'
  else
    "$lockstep" --help 2>/dev/null | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) +(.*)$/\1\t\2/p'
  fi
}

# Each word that may stand for the last of $@, as it is, behind a tab its meaning if it has one; "@files": files may.
_lockstep_print() {
  local lockstep=$1 word=${!#} flag= line meanings= command=
  COMP_WORDS=("$@")
  if [[ $word == --*=* ]]; then
    flag=${word%%=*}
    COMP_WORDS=("${@:1:$#-1}" "$flag" = "${word#*=}")
  fi
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  (($# <= 2)) || command=$2
  [[ $command && $word != -* || $flag ]] || meanings=$(_lockstep_meanings "$command")
  _lockstep
  for line in "${COMPREPLY[@]}"; do
    if [[ $flag && $line != @files ]]; then
      printf '%s=%s\n' "$flag" "$line"
    else
      printf '%s\n' "$(grep -m 1 -F -- "$line"$'\t' <<< "$meanings" || printf '%s' "$line")"
    fi
  done
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  _lockstep_format=%s
  _lockstep_print "$@"
else
  complete -F _lockstep lockstep
fi
