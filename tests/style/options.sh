#!/usr/bin/env bash
# The manual says of each command what --help says: in src/manual/commands/COMMAND.md the
# synopsis between "<!-- usage: COMMAND -->" and "<!-- /usage -->" and the table between
# "<!-- options: COMMAND -->" and "<!-- /options -->", and in knobs.md the options of a job
# between "<!-- knobs -->" and "<!-- /knobs -->". README.md and commands/index.md list the
# commands between "<!-- commands -->" and "<!-- /commands -->".
# Usage: options.sh ROOT LOCKSTEP. LS_UPDATE_GOLDEN=1 writes these blocks.
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
awk=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/options.awk
export LC_ALL=C.UTF-8
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
status=0 n=0

# The block of marker $2 ("options: run") of page $1 is the file $3.
hold() {
  local page=$root/$1 name=$2 end="<!-- /${2%%:*} -->"
  n=$((n + 1))
  if [[ ! -e $page ]] || [[ $(grep -cxF -- "<!-- $name -->" "$page") != 1 ]] || ! grep -qxF -- "$end" "$page"; then
    printf '%s: expected "<!-- %s -->" once, and "%s" after it\n' "$1" "$name" "$end"
    status=1
    return
  fi
  awk -v begin="<!-- $name -->" -v end="$end" -v file="$3" '
    $0 == begin { print; while ((getline line < file) > 0) print line; skip = 1; next }
    skip && $0 == end { skip = 0 }
    !skip' "$page" > "$out/new"
  if [[ ${LS_UPDATE_GOLDEN:-} == 1 ]]; then
    cmp -s -- "$out/new" "$page" || cat -- "$out/new" > "$page"
  else
    diff -u --label "$1" --label program "$page" "$out/new" || status=1
  fi
}

# A row for each command, whose page is in folder $1.
commands_table() {
  printf '| Command | What it does |\n|---|---|\n'
  "$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) +(.*)/\1\t\2/p' \
    | while IFS=$'\t' read -r name text; do printf '| [`lockstep %s`](%s%s.md) | %s |\n' "$name" "$1" "$name" "$text"; done
}

for command in $("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  page=src/manual/commands/$command.md
  "$lockstep" "$command" --help all > "$out/help"
  { printf '```\n'; sed -nE '1s/^Usage: //p; 2,/^$/ s/^  (lockstep)/\1/p' "$out/help"; printf '```\n'; } > "$out/usage"
  hold "$page" "usage: $command" "$out/usage"
  awk -v section=options -f "$awk" "$out/help" > "$out/options"
  [[ -s $out/options ]] || { printf 'no options in lockstep %s --help\n' "$command"; status=1; }
  hold "$page" "options: $command" "$out/options"
done
"$lockstep" run --help all | awk -v section=knobs -f "$awk" > "$out/knobs"
hold src/manual/commands/knobs.md knobs "$out/knobs"
commands_table '' > "$out/commands"
hold src/manual/commands/index.md commands "$out/commands"
commands_table src/manual/commands/ > "$out/commands"
hold README.md commands "$out/commands"
printf '%d blocks\n' "$n"
((n > 3)) || status=1
exit "$status"
