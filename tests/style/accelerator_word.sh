#!/usr/bin/env bash
# Accelerators of a TPU cluster are chips, in whatever any command prints of it: no "GPU" in outputs, notes, errors, files or
# pictures. Every command that --help lists is run, those that take a cluster on a slice, with good input and with wrong.
# "gpu" in lower case is a key, an option or a part of a name (node0/gpu1), but not a word of the text of topology or placement.
# Usage: accelerator_word.sh ROOT LOCKSTEP
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
export LC_ALL=C.UTF-8 LS_DATA_DIR=$root
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
cd -- "$out"
data=$root/tests/golden/data
cluster=tpu-v5e
job=(--model "$data/models/tiny.json" --cluster "$cluster" --global-batch 64)
status=0
declare -A tried=()

# What a program reads, or types again: keys, options, and names of vertices and links. And where other programs run.
allowed='s/--gpu[a-z-]*//g; s/runs on GPUs, not on tpu//'

# Runs a command on a slice; the code that it ends with, or "any", comes first. What it printed and wrote is looked through.
look() {
  local expected=$1 code=0 file
  shift
  tried[$1]=1
  rm -rf -- files && mkdir files
  "$lockstep" "$@" > stdout 2> stderr </dev/null || code=$?
  if [[ $code != "$expected" ]]; then
    printf 'exit code %s expected, %s got: lockstep %s\n' "$expected" "$code" "$*"
    head -3 stderr
    status=1
  fi
  for file in stdout stderr files/*; do
    [[ -f $file ]] || continue
    if sed -E "$allowed" "$file" | grep -nw -e 'GPU' -e 'GPUs' > found; then
      printf '%s of lockstep %s calls chips GPUs:\n' "$file" "$*"
      head -5 found
      status=1
    fi
  done
}

# The same, and "gpu" is no word of what is printed.
look_at_words() {
  look 0 "$@"
  if sed -E "$allowed"'; s/gpu[0-9*]+//g' stdout | grep -nw -e 'gpu' -e 'gpus' > found; then
    printf 'lockstep %s calls chips gpu:\n' "$*"
    head -5 found
    status=1
  fi
}

# --- jobs ---
look 0 run "${job[@]}" --gpus 16 --chrome-trace files/t.json --csv files/s.csv --links files/l.csv --timeline files/t.gp --timeline files/t.svg --report files/r.html --memory-chart files/m.gp
look 0 run "${job[@]}" --gpus 16 --critical-path --sensitivity --residuals residuals
look 0 run "${job[@]}" --gpus 16 --json --measured 1s,tflops=100
look_at_words run "${job[@]}" --gpus 16 --show-placement
look 0 run "${job[@]}" --gpus 16 --tp 4 --pp 2 --software megatron --residuals residuals # unlike what was measured
look 2 run "${job[@]}" --gpus 16 --measured 1s,tflops
look 4 run "${job[@]}" --gpus 17
look 4 run "${job[@]}" --gpus 32 --nodes 1 --slice 4x4
look 4 run "${job[@]}" --nodes 1048576
look 1 run "${job[@]}" --tp 1048576 --pp 1048576
look 1 run "${job[@]}" --gpus 16 --max-memory 1KiB
look 4 run "${job[@]}" --gpus 16 --tp 8 --sp --tp-overlap 1 --nodes 4 --slice 2x2
look 4 run "${job[@]}" --gpus 16 --offload-activations --emit torchtitan
look 0 memory "${job[@]}" --gpus 16 --memory-chart files/m.gp
look 0 memory --model llama3.1-8b --cluster "$cluster" --gpus 4 --global-batch 4 # does not fit
look 0 memory "${job[@]}" --gpus 16 --csv
look 0 whatif "${job[@]}" --gpus 16 --all
look 0 whatif "${job[@]}" --gpus 16 --csv
look 0 place "${job[@]}" --gpus 16 --tp 4
printf '{"schema": "lockstep.jobs/1", "cluster": "%s", "jobs": [{"name": "a", "nodes": "0", "options": {"model": "llama3.1-8b"}}, {"name": "b", "nodes": "1", "options": {"model": "llama3.1-8b"}}]}\n' "$cluster" > jobs.json
look 0 share jobs.json --shift 2
look 4 capture --memory --cluster "$cluster" -- python3 train.py
look 0 train "${job[@]}" --gpus 16 --train-steps 1000
look 0 train "${job[@]}" --gpus 16 --train-steps 1000 --json
look 4 train "${job[@]}" --gpus 16 --train-steps 1000 --checkpoint-to local
look 0 trace export "${job[@]}" --gpus 4 -o files/job.json
cp -- files/job.json job.json
look 0 run --trace job.json --cluster "$cluster"
look 4 run --trace job.json --cluster "$cluster" --nodes 1 --slice 1x2

printf '%s' '{ "schema": "lockstep.lab/1", "name": "slice", "source": "made up", "title": "A slice", "minutes": 5, "aims": ["a"], "read": ["b"],
  "commands": ["lockstep list"], "explain": ["c"], "measures": { "step": "run --model llama3.1-8b --cluster '"$cluster"' --gpus 16 --global-batch 64 => step_time_s" },
  "questions": [{ "name": "step", "ask": "d", "value": "step", "within": 0.1, "hint": "e", "mistakes": [{ "value": "2*step", "hint": "f" }] }],
  "task": { "ask": "g", "run": "run --model llama3.1-8b --cluster '"$cluster"' --gpus 16 --global-batch 64", "choose": ["tp"], "right": "own.step_time_s > 0",
    "hint": "h", "mistakes": [{ "value": "own.step_time_s < 0", "hint": "i" }] } }' > slice.json
look 0 lab show ./slice.json
look 5 lab check ./slice.json step=1e9
look 0 lab check ./slice.json --tp 4 --json
look 4 lab check ./slice.json --tp 3

# --- sweeps ---
narrow=(--tp 1,2 --pp 1 --cp 1 --micro-batch 1 --recompute none)
look 0 sweep "${job[@]}" "${narrow[@]}" --gpus 16 --gpu-hour 1 --gpu-watts 200 --list files/l.csv
look 0 sweep "${job[@]}" "${narrow[@]}" --gpus 16,32 --pareto --scaling-chart files/s.gp --pareto-chart files/p.gp
look 0 sweep "${job[@]}" "${narrow[@]}" --gpus 16,32 --global-batch 64,128 --scaling-chart files/s.gp
look 0 sweep "${job[@]}" "${narrow[@]}" --gpus 16 --heat-map files/h.gp --heat-axes tp,recompute
look 4 sweep --model llama3.1-70b --cluster "$cluster" --gpus 16 --global-batch 16 "${narrow[@]}" # nothing fits

# --- collectives ---
look 0 collective --cluster "$cluster" --op all-reduce --plot files/c.gp
look 0 collective --cluster "$cluster" --op all-reduce --gpus 1 --max 1KiB
look 0 collective --cluster "$cluster" --op all-gather --gpus 8,16,64 --plot files/c.gp
look 0 collective --cluster "$cluster" --op barrier --gpus 8,16 --plot files/c.gp
look 0 collective --cluster "$cluster" --op all-gather --gpus 8 --network all --max 1MiB --json
look 4 collective --cluster "$cluster" --op send-recv --gpus 8
look 4 collective --cluster "$cluster" --op all-reduce --gpus 8 --nodes 1 --slice 2x2
for algorithm in tree nvls nvls-tree hierarchical pat collnet; do
  look 4 collective --cluster "$cluster" --op all-reduce --gpus 8 --algorithm "$algorithm"
done
printf 'cluster,op,gpus,nodes,size_bytes,time_us\n' > rows.csv
printf "$cluster,%s,1,1048576,100\n" all-reduce,16 all-reduce,256 all-reduce,512 send-recv,3 >> rows.csv
look 0 collective --compare rows.csv --plot files/c.gp
look 2 collective --compare rows.csv --slice 4x4

# --- the cluster ---
look_at_words topology --cluster "$cluster" --gpus 16 --path 0,12 --links --dot files/t.dot
look_at_words topology --cluster "$cluster" --nodes 2 --svg files/t.gp
look 0 topology --cluster "$cluster" --json
for ends in 0 0,0 0,x 0,100000; do
  look "$([[ $ends == 0,100000 ]] && printf 4 || printf 2)" topology --cluster "$cluster" --path "$ends"
done
look 0 list clusters
look 0 list clusters --json
look 0 schema list
look 0 check "$root/topologies/tpu.set.json" "$root/topologies/gpu/tpu.set.json"
look 0 import "$data/megatron.log"
look 0 schedule --schedule 1f1b --pp 4 --micro-batches 8
look 0 kernel --gpu "$cluster" --gemm 4096,4096,4096

# --- measurements ---
sed "s/,pair,/,$cluster,/" "$data/runs.csv" > runs.csv
look 0 calibrate --runs runs.csv --cluster "$cluster" -o files/mine.json
head -2 runs.csv > one.csv
look 3 calibrate --runs one.csv --cluster "$cluster"
look 0 validate runs.csv
printf '%s\n' M,N,K,dtype,latency_ms 4096,{1..20}000,4096,bf16,5 > gemm.csv
# What is written quotes the sources of what it started from, which name GPUs.
look 0 calibrate gemm.csv --gpu "$cluster" -o mine.json
printf '{"schema": "lockstep.gpu/1", "name": "bare", "source": "without a calibration", "extends": "%s", "calibration": null}' "$cluster" > bare.json
look 0 calibrate gemm.csv --gpu bare.json -o mine.json
gunzip -c -- "$data/rank0.json.gz" > rank0.json
look 0 calibrate --pytorch-trace rank0.json "${job[@]}" --gpus 16 --other-job
cp -- "$data/all-reduce-pair.txt" all_reduce.txt
look 4 calibrate --nccl all_reduce.txt --cluster "$cluster"
"$lockstep" run "${job[@]}" --gpus 16 --json > a.json
"$lockstep" run "${job[@]}" --gpus 32 --json > b.json
look 0 compare a.json b.json

for name in $("$lockstep" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  if [[ -z ${tried[$name]:-} ]]; then
    printf 'lockstep %s is not tried\n' "$name"
    status=1
  fi
done
((${#tried[@]} > 0)) || status=1
exit "$status"
