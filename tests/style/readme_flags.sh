#!/usr/bin/env bash
# README.md documents exactly the options that each subcommand's --help lists:
# the table between "<!-- flags: COMMAND -->" and "<!-- /flags -->". The knobs of a job,
# which come before "Results:", are listed by the program alone.
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
  "$lockstep" "$1" --help | sed -nE '/^(Options|Results):$/,/^$/ s/^  ((-[a-z], )?--[a-z0-9-]+).*/\1/p' \
    | grep -oE -- '--[a-z0-9-]+' | { grep -vxE -- '--(help|set)' || true; } | sort -u
}

n=0
for command in $("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  if ! diff <(documented "$command") <(offered "$command"); then
    printf 'lockstep %s: README.md (<) and --help (>) differ\n' "$command"
    status=1
  fi
  n=$((n + $(offered "$command" | wc -l)))
done
printf '%d flags\n' "$n"
((n > 0)) || status=1
exit "$status"
