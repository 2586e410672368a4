#!/usr/bin/env bash
# Published runs and what we predict for them: cases.csv has the figures with their
# citations, results.txt the whole table of
#
#     lockstep validate tests/accuracy/cases.csv
#
# A changed prediction shows as a changed line there. This test reruns the rows that
# take seconds, also with the sanitizers on, and requires the same lines.
# LS_UPDATE_GOLDEN=1 reruns everything and rewrites results.txt (minutes).
# Usage: run.sh LOCKSTEP
set -euo pipefail # so that no reader of a pipe may leave early: grep -q would
lockstep=$(realpath -- "$1")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

if [[ ${LS_UPDATE_GOLDEN:-} == 1 ]]; then
  "$lockstep" validate cases.csv > results.txt.new </dev/null
  mv -- results.txt.new results.txt
  exit 0
fi

squeeze() { tr -s ' '; }
n=0
while read -r line; do
  if ! squeeze < results.txt | grep -xF -- "$line" > /dev/null; then
    printf 'not in results.txt: %s\n' "$line"
    exit 1
  fi
  n=$((n + 1))
done < <("$lockstep" validate cases.csv --only '^(sc21-t1-(1.7|7.5)B|korth-t5-(22|175)B|zb|mpt-a100|titan|dgxc-v25.04-llama3.1-(8|70)b|internevo|maxtext|mlperf)' </dev/null | sed -n '2,/^$/p' | sed '/^$/d' | squeeze)
printf '%d rows as in results.txt\n' "$n"
[[ $n == 14 ]]
