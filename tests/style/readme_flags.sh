#!/usr/bin/env bash
# README.md documents exactly the options that each subcommand's --help lists:
# the table between "<!-- flags: COMMAND -->" and "<!-- /flags -->".
# Usage: readme_flags.sh README LOCKSTEP
set -euo pipefail
readme=$1
lockstep=$2
status=0

# Options at the start of a table row: "| `--tp N` | ... |", also "`-j`, `--threads`".
documented() {
  sed -n "/<!-- flags: $1 -->/,/<!-- \/flags -->/p" "$readme" \
    | sed -nE 's/^\| *(`-[^|]*)\|.*/\1/p' | grep -oE -- '--[a-z0-9-]+' | sort -u
}

offered() {
  "$lockstep" "$1" --help | sed -nE 's/^ +((-[a-z], )?--[a-z0-9-]+).*/\1/p' \
    | grep -oE -- '--[a-z0-9-]+' | grep -vx -- --help | sort -u
}

for command in run validate check; do
  if ! diff <(documented "$command") <(offered "$command"); then
    printf 'lockstep %s: README.md (<) and --help (>) differ\n' "$command"
    status=1
  fi
  [[ -n $(offered "$command") ]] || status=1
done
exit "$status"
