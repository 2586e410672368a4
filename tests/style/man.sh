#!/usr/bin/env bash
# The manual page has an entry for every flag that a command's --help lists, in the
# section of that command, and for every command; and roff finds nothing to complain of.
# Usage: man.sh PAGE LOCKSTEP
set -euo pipefail # so that no reader of a pipe may leave early: grep -q would
page=$1
lockstep=$2
status=0
n=0

# The tags of a section, such as "--tp N", one per line.
entries() {
  awk -v name="$1" '/^\.S[HS] / { in_section = (tolower($0) ~ "^.s[hs] " name "$") }
                    in_section && is_tag; { is_tag = /^\.TP/ }' "$page" | sed -E 's/\\f[BR]//g; s/\\-/-/g'
}

for command in $("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  if ! entries commands | grep -E "^lockstep $command( |$)" > /dev/null; then
    printf 'no entry for the command %s\n' "$command"
    status=1
  fi
  for flag in $("$lockstep" "$command" --help | sed -nE 's/^  (-[a-z], )?(--[a-z0-9-]+).*/\2/p' | grep -vxE -- '--(help|set)' | sort -u); do
    n=$((n + 1))
    if ! entries "lockstep $command" | grep -E -- "(^|, )$flag( |,|$)" > /dev/null; then
      printf 'no entry for %s of lockstep %s\n' "$flag" "$command"
      status=1
    fi
  done
done
((n > 0)) || status=1

complaints=$(groff -K utf8 -man -T utf8 -ww -z "$page" 2>&1) || status=1
if [[ -n $complaints ]]; then
  printf '%s\n' "$complaints"
  status=1
fi
printf '%d flags\n' "$n"
exit "$status"
