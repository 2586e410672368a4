#!/usr/bin/env bash
# There is a man page lockstep.1, which names each command, and one for each command, with its
# summary and an entry for every option that its --help lists; lockstep-run.1 has those of
# `--help all`. roff finds nothing to complain of.
# Usage: man.sh FOLDER LOCKSTEP
set -euo pipefail # so that no reader of a pipe may leave early: grep -q would
folder=$1
lockstep=$2
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
status=0
n=0

bad() {
  printf '%s\n' "$*"
  status=1
}

# What a reader sees of a page.
render() {
  local complaints
  : > "$out/text"
  [[ -e $folder/$1.1 ]] || { bad "there is no $1.1"; return; }
  complaints=$(groff -K utf8 -man -T utf8 -P -c -ww "$folder/$1.1" 2>&1 > "$out/rendered") || bad "groff fails on $1.1"
  [[ -z $complaints ]] || bad "$1.1: $complaints"
  sed -E 's/.\x08//g' "$out/rendered" > "$out/text"
  grep -E "^ +$1 +- +[^ ]" "$out/text" > /dev/null || bad "$1.1 has no line of NAME"
}

mapfile -t commands < <("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p')
render lockstep
for command in "${commands[@]}"; do
  tr -s ' \n' ' ' < "$out/text" | grep -F "lockstep $command" > /dev/null || bad "lockstep.1 does not name $command"
done
for command in "${commands[@]}"; do
  render "lockstep-$command"
  topic=()
  [[ $command != run ]] || topic=(all)
  while read -r option; do
    n=$((n + 1))
    grep -E -- "^ +(-[a-z], )?$option( |$)" "$out/text" > /dev/null || bad "no entry for $option in lockstep-$command.1"
  done < <("$lockstep" "$command" --help "${topic[@]}" | sed -nE '/^(Results|Options):$/,/^$/ s/^  (-[a-z], )?(--[a-z0-9-]+).*/\2/p' | sort -u)
done
printf '%d options\n' "$n"
((n > 0)) || status=1
exit "$status"
