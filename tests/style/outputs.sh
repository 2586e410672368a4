#!/usr/bin/env bash
# The manual documents exactly the columns of the CSV that commands print, and the variables of the environment
# that the program reads: the terms of the lists between "<!-- NAME -->" and "<!-- /... -->".
# Usage: outputs.sh ROOT LOCKSTEP
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
export LS_DATA_DIR=$root/tests/golden/data
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
status=0
find "$root/src/manual" -name '*.md' -exec cat -- {} + > "$out/manual"

# The words in the terms of a list. One that begins with a dot lies beside the
# one before it: "`a.b`, `.c`" are a.b and a.c.
documented() {
  sed -n "/<!-- $1 -->/,/<!-- \//p" "$out/manual" | sed -nE 's/^- (`[^:]*`):.*/\1/p' | { grep -oE '`[^`]+`' || true; } | tr -d '`' \
    | awk '/^\./ { sub(/\.[^.]*$/, "", before); $0 = before $0 } { print; before = $0 }' | sort -u
}

compare() {
  local n
  n=$(documented "$1" | wc -l)
  if ! diff <(documented "$1") "$2"; then
    printf '%s: the manual (<) and the program (>) differ\n' "$1"
    status=1
  fi
  printf '%s: %d documented\n' "$1" "$n"
  ((n > 0)) || status=1
}
cd -- "$out"
"$lockstep" run --model tiny --cluster pair --gpus 4 --csv spans.csv --links links.csv > text
"$lockstep" whatif --model tiny --cluster pair --gpus 2 --global-batch 8 --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: whatif' columns
"$lockstep" place --model tiny --cluster pair --gpus 2 --global-batch 8 --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: place' columns
printf '{"schema": "lockstep.jobs/1", "cluster": "pair:fabric.nodes_per_leaf=2", "jobs": [{"name": "a", "nodes": "0,2", "options": {"model": "tiny"}}]}\n' > jobs.json
"$lockstep" share jobs.json --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: share' columns
"$lockstep" train --model tiny --cluster pair --gpus 2 --train-steps 10 --reliability lab --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: train' columns
"$lockstep" memory --model tiny --cluster pair --gpus 2 --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: memory' columns
head -n 1 links.csv | tr ',' '\n' | sort > columns
compare 'csv: links' columns
head -n 1 spans.csv | tr ',' '\n' | sort > columns
compare 'csv: run' columns
"$lockstep" collective --compare "$LS_DATA_DIR/collectives.csv" --csv > rows.csv 2> notes
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: collective' columns
grep -rhoE 'getenv \("[A-Z_]+"\)' "$root/src" --include='*.c' --exclude-dir=capture | grep -oE '[A-Z_]+' | sort -u > variables
compare environment variables
exit "$status"
