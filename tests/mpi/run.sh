#!/usr/bin/env bash
# `lockstep sweep --mpi`, validate and train by 1, 2 and 4 processes print and write the bytes of one without it;
# errors are said once, with their exit code; of a kill of any process the journal is sound, and
# taken up again it gives the same bytes. Skipped where there is no mpirun.
# Usage: run.sh LOCKSTEP DATA
set -euo pipefail
lockstep=$(realpath -- "$1")
export LS_DATA_DIR=$2
command -v mpirun >/dev/null || { printf 'mpirun was not found\n'; exit 77; }

out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
cd -- "$out"
# Containers are root. No network: processes are on this machine.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_plm=isolated
export OMPI_MCA_btl_vader_single_copy_mechanism=none # ptrace is not for everybody
# Open MPI keeps memory to its end.
export ASAN_OPTIONS=detect_leaks=0
job=(sweep --model tiny --cluster pair --gpus 4 --micro-batch 1,2 --pp 1,2 --recompute none --vpp 1 --dp-kind megatron
     --zero 0,1 --threads 1)

fail() {
  printf '%s\n' "$*"
  exit 1
}
# By N processes; a job that hangs is an error.
by() {
  local n=$1
  shift
  timeout 60 mpirun --oversubscribe -np "$n" "$lockstep" "$@" --mpi
}

same() { cmp -s "$1" "$2" || { diff "$1" "$2" || true; fail "$3"; }; }

# --- results

"$lockstep" "${job[@]}" --global-batch 16,32 --pareto --json --list one.list > one.json 2> one.err
"$lockstep" "${job[@]}" --global-batch 16 --csv > one.csv 2> /dev/null
[[ $(wc -l < one.list) -gt 20 ]] || fail 'too few configurations to say anything'
for n in 1 2 4; do
  by "$n" "${job[@]}" --global-batch 16,32 --pareto --json --list n.list > n.json 2> n.err || fail "$n processes: $(cat n.err)"
  same one.err n.err "$n processes say something else"
  same one.json n.json "$n processes find something else"
  same one.list n.list "$n processes list something else"
done
by 2 "${job[@]}" --global-batch 16 --csv --report n.html > n.csv 2> n.err || fail "two processes with a report: $(cat n.err)"
"$lockstep" "${job[@]}" --global-batch 16 --csv --report one.html > one.csv 2> one.err
same one.err n.err 'two processes with a report say something else'
same <(sed 's/ --mpi//' n.html) one.html 'two processes write another page'
same one.csv n.csv 'two processes print another table'

cases=(validate "$LS_DATA_DIR/cases.csv" "$LS_DATA_DIR/cases-refused.csv" --threads 1 --ablate --json)
topologies=$(realpath -- "$LS_DATA_DIR/../../../topologies")
training=(train --model tiny --cluster pair --gpus 4 --global-batch 16 --jitter "$topologies/jitter/published.set.json#mlperf-5.1"
          --reliability "$topologies/reliability/published.set.json#llama3-h100" --seeds 30 --threads 1)
long=("${training[@]}" --tokens 2B --spares 0,1 --batches 16,32,7 --json)
for command in cases long; do
  declare -n words=$command
  "$lockstep" "${words[@]}" --report one.html > one.json 2> one.err
  for n in 1 2 4; do
    by "$n" "${words[@]}" --report n.html > n.json 2> n.err || fail "$command by $n processes: $(cat n.err)"
    same one.err n.err "$command by $n processes say something else"
    same one.json n.json "$command by $n processes is something else"
    same <(sed 's/ --mpi//' n.html) one.html "$command by $n processes write another page"
  done
done
"$lockstep" "${training[@]}" --tokens 20K --seq 1k > one.txt 2> one.err
[[ -s one.err ]] || fail 'no note: this says nothing of notes'
by 3 "${training[@]}" --tokens 20K --seq 1k > n.txt 2> n.err
same one.txt n.txt 'another table by several processes'
same one.err n.err 'other notes by several processes'

# --- errors: of all processes, then of one that is not the leader

expect() {
  local code=$1 text=$2 got=0
  shift 2
  "$@" > n.out 2> n.err || got=$?
  [[ $got == "$code" ]] || fail "exit code $got, not $code: $(cat n.err)"
  [[ ! -s n.out ]] || fail "an error has output: $(cat n.out)"
  [[ $(grep -c "$text" n.err) == 1 ]] || fail "expected once \"$text\": $(cat n.err)"
}
expect 2 '^error: --tp: expected' by 3 "${job[@]}" --global-batch 16 --tp x
expect 3 '^error: no model is named "nope"' by 3 "${job[@]}" --global-batch 16 --model nope
expect 2 '^error: no row matches' by 3 "${cases[@]}" --only nope
expect 3 '^error: no model is named "nope"' by 3 "${training[@]}" --tokens 20K --model nope
# Rank 1 alone gets other arguments.
two=(timeout 60 mpirun --oversubscribe -np 1 "$lockstep" "${job[@]}" --global-batch 16 --mpi : -np 1 "$lockstep")
expect 3 '^process 1: error: no model is named "nope"' "${two[@]}" "${job[@]}" --global-batch 16 --mpi --model nope
expect 4 '^error: process 1 has another job' "${two[@]}" "${job[@]}" --global-batch 32 --mpi
for other in '--assume recompute=full' '--only a-2'; do
  expect 4 '^error: process 1 has another job' timeout 60 mpirun --oversubscribe -np 1 "$lockstep" "${cases[@]}" --mpi \
    : -np 1 "$lockstep" "${cases[@]}" $other --mpi
done
sed 's/"layers": *[0-9]*/"layers": 8/' "$LS_DATA_DIR/models/tiny.json" > tiny.json
! cmp -s tiny.json "$LS_DATA_DIR/models/tiny.json" || fail 'the other model is the same'
mkdir -p other && cp -r "$LS_DATA_DIR"/. other/ && cp tiny.json other/models/
expect 4 '^error: process 1 simulates another step' timeout 60 mpirun --oversubscribe -np 1 "$lockstep" "${job[@]}" --prune off \
  --global-batch 16 --mpi : -np 1 -x LS_DATA_DIR="$out/other" "$lockstep" "${job[@]}" --prune off --global-batch 16 --mpi

# --- kills: of a mate, once results are in the journal; then of all but the same sweep is done

long=(sweep --model tiny --cluster pair --gpus 4 --global-batch 64 --dp-kind megatron --prune off --threads 1)
"$lockstep" "${long[@]}" --json > long.json
timeout 120 mpirun --oversubscribe -np 3 "$lockstep" "${long[@]}" --mpi --json --journal "$out/journal" > n.json 2> n.err &
job_pid=$!
for ((i = 0; i < 3000; i++)); do
  [[ ! -f journal || $(wc -l < journal) -lt 5 ]] || break
  sleep 0.02
done
mate=$(pgrep -f -- "--journal $out/journal" | while read -r pid; do
  ! tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null | grep -x OMPI_COMM_WORLD_RANK=2 >/dev/null || printf '%s\n' "$pid"
done)
[[ -n $mate ]] || fail 'there is no third process'
kill -9 "$mate"
code=0
wait "$job_pid" || code=$?
[[ $code != 0 && $code != 124 ]] || fail "after a kill: exit code $code"
[[ ! -s n.json ]] || fail 'a sweep that was killed has results'
n=$(wc -l < journal)
by 2 "${long[@]}" --json --journal journal > n.json
same long.json n.json 'another result after a kill'
(($(wc -l < journal) > n)) || fail 'nothing was left to do after the kill'
"$lockstep" "${long[@]}" --json --journal journal > n.json
same long.json n.json 'another result from the journal of several processes'
printf 'the same by 1, 2 and 4 processes; %d lines before the kill\n' "$n"
