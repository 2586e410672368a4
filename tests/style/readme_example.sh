#!/usr/bin/env bash
# README.md shows what the program prints, byte for byte: the command is the last
# indented block before "<!-- example output", what it prints is fenced between that
# line and "<!-- /example output -->".
# Usage: readme_example.sh README LOCKSTEP. LS_UPDATE_GOLDEN=1 rewrites the output.
set -euo pipefail
readme=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
PATH=$(dirname -- "$lockstep"):$PATH
export LC_ALL=C.UTF-8 # the bars

# The number of the one line that is or begins with $1.
line_of() {
  local found
  found=$(grep -n -- "^$1" "$readme" | cut -d: -f1)
  [[ $found =~ ^[0-9]+$ ]] || { printf 'expected one line "%s" in %s\n' "$1" "$readme"; exit 1; } >&2
  printf '%d\n' "$found"
}
begin=$(line_of '<!-- example output')
end=$(line_of '<!-- /example output -->')

out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
head -n "$((begin + 1))" -- "$readme" > "$out/before"
tail -n "+$((end - 1))" -- "$readme" > "$out/after"
head -n "$((end - 2))" -- "$readme" | tail -n "+$((begin + 2))" > "$out/shown"
[[ $(tail -n 1 -- "$out/before") == '```' && $(head -n 1 -- "$out/after") == '```' ]] \
  || { printf 'expected ``` around the output\n'; exit 1; }

awk '/^    / { command = (in_block ? command : "") substr($0, 5) "\n"; in_block = 1; next } { in_block = 0 }
     END { printf "%s", command }' "$out/before" > "$out/command"
[[ -s $out/command ]] || { printf 'no command above the output\n'; exit 1; }

mkdir -- "$out/folder"
cd -- "$out/folder"
code=0
bash -euo pipefail "$out/command" > "$out/printed" 2>&1 </dev/null || code=$?
if ((code != 0)); then
  printf 'the command fails with %d:\n' "$code"
  cat -- "$out/printed"
  exit 1
fi

if [[ ${LS_UPDATE_GOLDEN:-} == 1 ]]; then
  cat -- "$out/before" "$out/printed" "$out/after" > "$out/new"
  cmp -s -- "$out/new" "$readme" || cat -- "$out/new" > "$readme"
  exit 0
fi
diff -u --label "README.md" --label "printed" "$out/shown" "$out/printed"
