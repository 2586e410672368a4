#!/usr/bin/env bash
# README.md shows what the program prints, byte for byte: of each example the command is
# the last indented block before "<!-- example output", what it prints is fenced between
# that line and the next "<!-- /example output -->".
# Usage: readme_example.sh README LOCKSTEP. LS_UPDATE_GOLDEN=1 rewrites the outputs.
set -euo pipefail
readme=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
PATH=$(dirname -- "$lockstep"):$PATH
export LC_ALL=C.UTF-8 # the bars

# The numbers of the lines that begin with $1.
lines_of() {
  grep -n -- "^$1" "$readme" | cut -d: -f1
}
mapfile -t begins < <(lines_of '<!-- example output')
mapfile -t ends < <(lines_of '<!-- /example output -->')
((${#begins[@]} > 0)) || { printf 'expected a line "<!-- example output" in %s\n' "$readme"; exit 1; } >&2
((${#begins[@]} == ${#ends[@]})) || { printf 'expected an end for each example\n'; exit 1; } >&2

out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
mkdir -- "$out/folder"
cd -- "$out/folder"

# Example $1: compares, or writes $out/new, which takes the place of the README. Later
# lines move then: examples are written from the last to the first.
example() {
  local begin=${begins[$1]} end=${ends[$1]} code=0
  head -n "$((begin + 1))" -- "$readme" > "$out/before"
  tail -n "+$((end - 1))" -- "$readme" > "$out/after"
  head -n "$((end - 2))" -- "$readme" | tail -n "+$((begin + 2))" > "$out/shown"
  [[ $(tail -n 1 -- "$out/before") == '```' && $(head -n 1 -- "$out/after") == '```' ]] \
    || { printf 'expected ``` around the output\n'; exit 1; }

  awk '/^    / { command = (in_block ? command : "") substr($0, 5) "\n"; in_block = 1; next } { in_block = 0 }
       END { printf "%s", command }' "$out/before" > "$out/command"
  [[ -s $out/command ]] || { printf 'no command above the output\n'; exit 1; }

  bash -euo pipefail "$out/command" > "$out/printed" 2>&1 </dev/null || code=$?
  if ((code != 0)); then
    printf 'the command fails with %d:\n' "$code"
    cat -- "$out/printed"
    exit 1
  fi
  if [[ ${LS_UPDATE_GOLDEN:-} == 1 ]]; then
    cat -- "$out/before" "$out/printed" "$out/after" > "$out/new"
    cmp -s -- "$out/new" "$readme" || cat -- "$out/new" > "$readme"
  else
    diff -u --label "README.md" --label "printed" "$out/shown" "$out/printed"
  fi
}
for ((i = ${#begins[@]} - 1; i >= 0; i--)); do
  example "$i"
done
