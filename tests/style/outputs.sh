#!/usr/bin/env bash
# The manual documents exactly the keys that `--json` of each command prints, the columns of
# their CSV, and the variables of the environment that the program reads: the first cells of
# the tables between "<!-- NAME -->" and "<!-- /... -->".
# Usage: outputs.sh ROOT LOCKSTEP
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
export LS_DATA_DIR=$root/tests/golden/data
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
status=0
find "$root/src/manual" -name '*.md' -exec cat -- {} + > "$out/manual"

# The words in the first cells of a table. One that begins with a dot lies beside the
# one before it: "`a.b`, `.c`" are a.b and a.c.
documented() {
  sed -n "/<!-- $1 -->/,/<!-- \//p" "$out/manual" | sed -nE 's/^\| *(`[^|]*)\|.*/\1/p' | { grep -oE '`[^`]+`' || true; } | tr -d '`' \
    | awk '/^\./ { sub(/\.[^.]*$/, "", before); $0 = before $0 } { print; before = $0 }' | sort -u
}

# The paths of all values of our own JSON, which has a key per line and two blanks per
# level: a.b, and c[].d for what is in an array.
paths() {
  awk '
    function path(depth,   i, out) {
      for (i = 1; i <= depth; i++)
        out = out (key[i] == "" || out == "" ? "" : ".") key[i]
      return out
    }
    {
      match($0, /^ */)
      depth = RLENGTH / 2
      text = substr($0, RLENGTH + 1)
    }
    text ~ /^[]}]/ || depth == 0 { next }
    text ~ /^\{/ { key[depth] = ""; next }
    text ~ /^"[^"]*": / {
      key[depth] = substr(text, 2, index(text, "\": ") - 2)
      if (text ~ /\[$/)
        key[depth] = key[depth] "[]"
      else if (text !~ /\{$/)
        print path(depth)
      next
    }
    { print path(depth - 1) }' "$1" | sort -u
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

# Runs that print all there is: with a strategy file, of a trace, a refused case, an assumption, mechanisms off, at the limit of memory.
printf '{"schema": "lockstep.strategy/1", "name": "s", "source": "made up", "tp": 2}\n' > "$out/s.json"
cd -- "$out"
"$lockstep" run --model tiny --cluster pair --gpus 4 --strategy ./s.json --network all --software old --sensitivity --faults each:link --ecmp-seeds 2 --jitter mlperf-5.1 --measured 1s,tflops=1 --json --csv spans.csv --links links.csv > run.json
"$lockstep" validate "$LS_DATA_DIR/cases-refused.csv" --assume dtype=bf16 --ablate --json > validate.json 2> notes || [[ $? == 4 ]] # all are refused
"$lockstep" validate "$LS_DATA_DIR/cases.csv" --coverage --json > coverage.json
sed '/^e-/s/bf16,bf16/fp16,fp16/' "$LS_DATA_DIR/cases-coverage.csv" > mixed.csv # runs that have something in common
"$lockstep" validate mixed.csv --coverage --json > mixed.json

"$lockstep" run --trace "$root/traces/two-ranks.json" --cluster pair --json > trace.json
"$lockstep" run --model tiny --cluster pair --gpus 2 --pp 2 --lora-rank 8 --critical-path --json > path.json
"$lockstep" run --model tiny --cluster pair:gpu.reserved=14540MiB --gpus 2 --dp-kind fsdp1 --limit-all-gathers 0 --set cuda_allocator=caching --json > retries.json 2> notes
"$lockstep" run --from "$LS_DATA_DIR/pretrain_gpt.sh" --cluster pair --json > from.json 2> notes
"$lockstep" run --model tiny --cluster pair --gpus 2 --global-batch 8 --what-if --json > changed.json
{ paths changed.json | sed -E 's/^what_if\..*/what_if/'; paths run.json; paths from.json; paths trace.json; paths path.json; paths retries.json; } | sed -E 's/^network_all\.[^.]+/network_all.NETWORK/' | sort -u > run.keys
compare 'json: run' run.keys
{ paths validate.json; paths coverage.json; paths mixed.json | { grep ^coverage || true; }; } | sed -E 's/(^|\.)by_family\.[^.]+/\1by_family.FAMILY/; s/by_source\.[^.]+/by_source.SOURCE/; s/left_out\.[^.]+/left_out.WHAT/' | sort -u > validate.keys
compare 'json: validate' validate.keys
measured=$LS_DATA_DIR/collectives.csv
"$lockstep" collective --compare "$measured" --json 2> notes > collective.json
"$lockstep" collective --cluster pair --op all-reduce --gpus 2 --messages --json > messages.json
{ paths collective.json; paths messages.json; } | sed -E 's/^by_family\.[^.]+/by_family.FAMILY/' | sort -u > collective.keys
compare 'json: collective' collective.keys
"$lockstep" kernel --gpu flat --from "$LS_DATA_DIR/gemm.csv" --json > kernel.json
paths kernel.json | sort -u > kernel.keys
compare 'json: kernel' kernel.keys
"$lockstep" topology --cluster pair --nodes 2 --path 0,3 --all --json > topology.json
paths topology.json | sort -u > topology.keys
compare 'json: topology' topology.keys
# One that does not fit, so that there is advice.
"$lockstep" memory --model tiny --cluster pair --gpus 1 --micro-batch 64 --global-batch 64 --json > memory.json 2> notes
paths memory.json | sort -u > memory.keys
compare 'json: memory' memory.keys
"$lockstep" sweep --model tiny --cluster pair --gpus 4 --global-batch 8 --micro-batch 1 --recompute none --pareto --gpu-hour 1 --gpu-watts 100 --json > sweep.json
printf 'pretrain_gpt.py --num-layers 2 --hidden-size 256 --num-attention-heads 4 --seq-length 512 --vocab-size 1000 --bf16 --micro-batch-size 1 --global-batch-size 4\n' > args.txt
"$lockstep" sweep --from args.txt --for megatron --cluster pair --gpus 2 --tp 2 --json > changes.json 2> notes
"$lockstep" sweep --model tiny --cluster pair --gpus 2 --global-batch 8 --micro-batch 1 --recompute none --objective time-to-loss --loss 9 --scaling-law lab --reliability lab --json > loss.json
{ paths sweep.json; paths loss.json; paths changes.json | { grep ^changes || true; }; } | sort -u > sweep.keys
compare 'json: sweep' sweep.keys
"$lockstep" import "$LS_DATA_DIR/megatron.log" --json > import.json 2> notes
paths import.json | sed -E 's/^(model|strategy)\..*/\1/' | sort -u > import.keys
compare 'json: import' import.keys
"$lockstep" whatif --model tiny --cluster pair --gpus 4 --pp 2 --global-batch 8 --json > whatif.json
paths whatif.json | sort -u > whatif.keys
compare 'json: whatif' whatif.keys
"$lockstep" whatif --model tiny --cluster pair --gpus 2 --global-batch 8 --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: whatif' columns
"$lockstep" place --model tiny --cluster pair --gpus 4 --pp 2 --global-batch 8 --json > place.json
paths place.json | sort -u > place.keys
compare 'json: place' place.keys
"$lockstep" place --model tiny --cluster pair --gpus 2 --global-batch 8 --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: place' columns
printf '{"schema": "lockstep.jobs/1", "cluster": "pair:fabric.nodes_per_leaf=2", "jobs": [{"name": "a", "nodes": "0,2", "options": {"model": "tiny"}}, {"name": "b", "nodes": "1,3", "options": {"model": "tiny"}}], "traffic": [{"name": "t", "from": "4", "to": "5", "bytes": "1GB"}]}\n' > jobs.json
"$lockstep" share jobs.json --shift 2 --json > share.json
paths share.json | sort -u > share.keys
compare 'json: share' share.keys
"$lockstep" share jobs.json --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: share' columns
"$lockstep" train --model tiny --cluster pair --gpus 2 --loss 90 --scaling-law lab --global-batch 2 --batches 4 --reliability lab --json > train.json
paths train.json | sort -u > train.keys
compare 'json: train' train.keys
"$lockstep" train --model tiny --cluster pair --gpus 2 --train-steps 10 --reliability lab --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: train' columns
"$lockstep" memory --model tiny --cluster pair --gpus 2 --csv > rows.csv
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: memory' columns
"$lockstep" schedule --schedule zbv --pp 2 --micro-batches 2 --json > schedule.json
"$lockstep" schedule --all --pp 2 --micro-batches 2 --memory-limit 2 --json > schedules.json
{ paths schedule.json; paths schedules.json; } | sort -u > schedule.keys
compare 'json: schedule' schedule.keys
"$lockstep" compare path.json run.json --json > results.json
"$lockstep" compare path.json run.json path.json --json > many.json
"$lockstep" compare --spans "$LS_DATA_DIR/spans-measured.csv" "$LS_DATA_DIR/spans-predicted.csv" --json > compared.json
{ paths results.json; paths many.json; paths compared.json; } | sort -u > compare.keys
compare 'json: compare' compare.keys
head -n 1 links.csv | tr ',' '\n' | sort > columns
compare 'csv: links' columns
head -n 1 spans.csv | tr ',' '\n' | sort > columns
compare 'csv: run' columns
"$lockstep" collective --compare "$measured" --csv > rows.csv 2> notes
head -n 1 rows.csv | tr ',' '\n' | sort > columns
compare 'csv: collective' columns
grep -rhoE 'getenv \("[A-Z_]+"\)' "$root/src" --include='*.c' | grep -oE '[A-Z_]+' | sort -u > variables
compare environment variables
exit "$status"
