#!/usr/bin/env bash
# The examples of each command's --help work, in a folder with small input files of the names
# that they use; and what they say that they write is there. Those that a page of the manual has
# too are run there (page.sh).
# Usage: help_examples.sh ROOT LOCKSTEP
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
PATH=$(dirname -- "$lockstep"):$PATH
export LC_ALL=C.UTF-8 LS_DATA_DIR=$root
. "$(dirname -- "${BASH_SOURCE[0]}")/page_inputs.sh"
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT

# What the examples of a command name, and a page calls otherwise.
help_inputs() {
  case $1 in
    collective) sed 's/pair/dgx-h100/' "$root/tests/golden/data/collectives.csv" > measured.csv ;;
    kernel | calibrate)
      cp -- gemm_b200.csv gemm.csv
      cp -- attn_fwd_h200.csv attention.csv
      ;;
    compare)
      lockstep run --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 2 --json > before.json
      lockstep run --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 4 --json > after.json
      ;;
    capture)
      cp -r -- "$root"/tests/capture/fake/* .
      PATH=$PWD:$PATH
      ;;
    schedule) lockstep schedule --schedule gpipe --pp 2 --micro-batches 4 --format csv > mine.csv ;;
    validate) awk -F, -v OFS=, 'NR == 1 { $2 = "split" OFS $2 } NR > 1 { $1 = "korth" NR; $2 = "validation" OFS $2; $NF *= 0.87 } { print }' mine.csv > cases.csv ;;
    check)
      sed 's/"name": *"[^"]*"/"name": "my-cluster"/' "$root/topologies/dgx-h100.json" > my-cluster.json
      sed 's/"name": *"[^"]*"/"name": "my-strategy"/' "$root/strategies/ddp.json" > my-strategy.json
      ;;
  esac
}

status=0 n=0
: > "$out/pages"
[[ ! -d $root/src/manual ]] || grep -rhE '^    lockstep ' "$root/src/manual" --include='*.md' | sed 's/^ *//' > "$out/pages"
for command in $(lockstep --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  mkdir -- "$out/$command"
  cd -- "$out/$command"
  if [[ -e $root/tests/golden/data ]]; then
    page_inputs
    help_inputs "$command"
  fi
  lockstep "$command" --help | sed -n '/^Examples\{0,1\}:$/,/^$/ s/^  //p' | sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' > "$out/examples"
  [[ -s $out/examples ]] || { printf '%s --help has no example\n' "$command"; status=1; }
  { grep -vxFf "$out/pages" "$out/examples" || true; } > "$out/example"
  { run_block "$out/example" "$out/printed" && outputs_exist "$out/example"; } || status=1
  n=$((n + 1))
done
printf 'examples of %d commands\n' "$n"
((n > 0)) || status=1
exit "$status"
