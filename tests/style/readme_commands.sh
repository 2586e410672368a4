#!/usr/bin/env bash
# Every command line of README.md, of the READMEs of the data folders, and of the examples of each --help works: each
# indented block that holds a line beginning with "lockstep" or "mpirun" is run as it stands, in the order of the file,
# in one folder with small input files of the names that the text uses, and so are the examples of a command, but for
# those that a README has too. "..." in a command stands for a job. Without MPI mpirun's are only looked at.
# Usage: readme_commands.sh ROOT LOCKSTEP
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
PATH=$(dirname -- "$lockstep"):$PATH
export LC_ALL=C.UTF-8
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
mkdir -- "$out/blocks" "$out/folder"
data=$root/tests/golden/data

# The inputs. Measured times are made up; the profile is that of the flat GPU of the golden tests as an H200.
inputs() {
  sed 's/"gpu": "Flat"/"gpu": "NVIDIA H200"/; s/"n_sms": 100/"n_sms": 132/' "$data/profile-flat.json" > profile.json
  cp -- "$data/all-reduce-pair.txt" all_reduce.txt
  cp -- "$data/all-gather-pair.json" all_gather.json
  cp -- "$data/rank0.json.gz" rank0.json.gz
  cp -- "$data/spans-measured.csv" measured.csv
  cp -- "$data/spans-predicted.csv" predicted.csv
  sed -nE '1p; 2,5s/,pair,/,dgx-h100,/; 2s/,[^,]*$/,0.0354/p; 3s/,[^,]*$/,0.0405/p; 4s/,[^,]*$/,0.0782/p; 5s/,[^,]*$/,0.0353/p' \
    "$data/runs.csv" > mine.csv
  cp -- mine.csv cases.csv
  sed -n 's/^    \({ "schema": "lockstep.ranges.*\)/\1/p' "$root/strategies/README.md" > ranges.json
  # Many families, as one of five is held out.
  local n
  printf 'M,N,K,dtype,latency_ms\n' > gemm_b200.csv
  printf 'batch,seq,heads,kv_heads,head_dim,attn_dtype,latency_ms\n' > attn_fwd_h200.csv
  printf 'op,tokens,hidden,bytes_min,latency_us\n' > elementwise_vidur.csv
  for n in {1..20}; do
    printf '4096,%d,4096,bf16,2\n' "$((n * 512))" >> gemm_b200.csv
    printf '1,2048,%d,8,128,bf16,2\n' "$((n * 8))" >> attn_fwd_h200.csv
    printf 'add,8192,%d,%d,500\n' "$((n * 512))" "$((8192 * n * 512 * 6))" >> elementwise_vidur.csv
  done
  mkdir -p topologies/calib # of a checkout: a command writes there
}

# Each block of $1 as a file, in order: lines of four blanks, outside fences.
split_blocks() {
  awk -v prefix="$out/blocks/$2" '
    /^```/ { in_fence = !in_fence }
    in_fence || !/^    / { in_block = 0; next }
    { if (!in_block) file = sprintf("%s-%03d", prefix, NR)
      in_block = 1
      print substr($0, 5) > file }' "$1"
}

# This machine is the only host. Containers are root, and Open MPI keeps memory to its end.
prepare_mpi() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_plm=isolated
  export OMPI_MCA_btl_vader_single_copy_mechanism=none
  printf 'localhost slots=1\n' > hosts
}
is_without_mpi() {
  grep -q '^mpirun ' "$out/command" && { ! command -v mpirun > /dev/null || grep -q 'built without MPI' "$out/printed"; }
}

# What the examples of a command name, and a README calls otherwise.
help_inputs() {
  case $1 in
    collective) sed 's/pair/dgx-h100/' "$data/collectives.csv" > measured.csv ;;
    kernel | calibrate)
      cp -- gemm_b200.csv gemm.csv
      cp -- attn_fwd_h200.csv attention.csv
      ;;
    compare)
      lockstep run --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 2 --json > before.json
      lockstep run --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 4 --json > after.json
      ;;
    schedule) lockstep schedule --schedule gpipe --pp 2 --micro-batches 4 --format csv > mine.csv ;;
    validate) awk -F, -v OFS=, 'NR == 1 { $2 = "split" OFS $2 } NR > 1 { $1 = "korth" NR; $2 = "validation" OFS $2; $NF *= 0.87 } { print }' mine.csv > cases.csv ;;
    check)
      sed 's/"name": *"[^"]*"/"name": "my-cluster"/' "$root/topologies/dgx-h100.json" > my-cluster.json
      sed 's/"name": *"[^"]*"/"name": "my-strategy"/' "$root/strategies/ddp.json" > my-strategy.json
      ;;
  esac
}

# The examples of a command, but for those that stand in $out/said, as a file.
split_examples() {
  lockstep "$1" --help | sed -n '/^Examples\{0,1\}:$/,/^$/ s/^  //p' | sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' | { grep -vxFf "$out/said" || true; } > "$out/example"
}

status=0 n=0
run_block() {
  grep -qE '^(lockstep|mpirun) ' "$1" || return 0
  sed 's/lockstep run \.\.\./lockstep run --model llama3.1-8b --gpus 32 --tp 8/' "$1" > "$out/command"
  n=$((n + 1))
  local leaks=1
  ! grep -q '^mpirun ' "$1" || leaks=0
  if ! ASAN_OPTIONS=detect_leaks=$leaks bash -euo pipefail "$out/command" > "$out/printed" 2>&1 </dev/null && ! is_without_mpi; then
    printf '%s fails:\n' "${1##*/}"
    cat -- "$out/command" "$out/printed"
    status=1
  fi
}

cd -- "$out/folder"
inputs
prepare_mpi
for readme in README.md models/README.md topologies/README.md strategies/README.md traces/README.md; do
  split_blocks "$root/$readme" "$(printf '%s' "${readme%.md}" | tr '/' '-')"
done
export LS_DATA_DIR=$root
shopt -s nullglob
for block in "$out"/blocks/*; do
  start=$EPOCHREALTIME
  run_block "$block"
  [[ -z ${LS_TIMES:-} ]] || printf '%s %s\n' "$(bc <<< "$EPOCHREALTIME - $start")" "${block##*/}"
done
# What the commands name as their output is there.
cat -- /dev/null "$out"/blocks/* | sed -nE 's/^ *lockstep (.*)/\1/p' | { grep -oE -- '(-o|--list|--plot|--chart|--memory-chart|--heat-map|--pareto-chart|--scaling-chart) [^ ]+' || true; } \
  | awk '{ print $2 }' | while read -r file; do [[ -s $file ]] || { printf '%s was not written\n' "$file"; exit 1; }; done || status=1

cat -- "$out"/blocks/* > "$out/said"
for command in $(lockstep --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  mkdir -- "$out/$command"
  cd -- "$out/$command"
  inputs
  help_inputs "$command"
  split_examples "$command"
  start=$EPOCHREALTIME
  run_block "$out/example"
  [[ -z ${LS_TIMES:-} ]] || printf "%s %s\n" "$(bc <<< "$EPOCHREALTIME - $start")" "$command"
done
printf '%d commands\n' "$n"
((n >= 20)) || status=1
exit "$status"
