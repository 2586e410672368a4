# Sourced: small input files of the names that the pages and the examples of --help use, in
# the current folder, and what mpirun needs here. Measured times are made up; the profile of kernels is
# that of the flat GPU of the golden tests as an H200. $root is the project.

# Many families of kernels, as one of five is held out of a fit.
kernel_tables() {
  local n
  printf 'M,N,K,dtype,latency_ms\n' > gemm_b200.csv
  printf 'batch,seq,heads,kv_heads,head_dim,attn_dtype,latency_ms\n' > attn_fwd_h200.csv
  printf 'op,tokens,hidden,bytes_min,latency_us\n' > elementwise_vidur.csv
  for n in {1..20}; do
    printf '4096,%d,4096,bf16,2\n' "$((n * 512))" >> gemm_b200.csv
    printf '1,2048,%d,8,128,bf16,2\n' "$((n * 8))" >> attn_fwd_h200.csv
    printf 'add,8192,%d,%d,500\n' "$((n * 512))" "$((8192 * n * 512 * 6))" >> elementwise_vidur.csv
  done
}

# A profile in which all takes 64 times as long: that of a model as large as those that the pages name.
slow_profile() {
  gunzip -c -- "$1" | awk '
    function stretched(key, from,    at) {
      if (!match($0, "\"" key "\": [0-9.]+")) return
      at = substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
      $0 = substr($0, 1, RSTART + length(key) + 3) sprintf("%.3f", from + 64 * (at - from)) substr($0, RSTART + RLENGTH)
    }
    { stretched("ts", 88511387000); stretched("dur", 0); print }'
}

page_inputs() {
  local data=$root/tests/golden/data
  sed 's/"gpu": "Flat"/"gpu": "NVIDIA H200"/; s/"n_sms": 100/"n_sms": 132/' "$data/profile-flat.json" > profile.json
  cp -- "$data/all-reduce-pair.txt" all_reduce.txt
  cp -- "$data/all-gather-pair.json" all_gather.json
  slow_profile "$data/rank0.json.gz" | gzip -n > rank0.json.gz
  cp -- "$data/spans-measured.csv" measured.csv
  cp -- "$data/spans-predicted.csv" predicted.csv
  cp -- "$data/pretrain_gpt.sh" "$data/config.sh" "$data/megatron.log" .
  sed -nE '1p; 2,5s/,pair,/,dgx-h100,/; 2s/,[^,]*$/,0.0354/p; 3s/,[^,]*$/,0.0405/p; 4s/,[^,]*$/,0.0782/p; 5s/,[^,]*$/,0.0353/p' \
    "$data/runs.csv" > mine.csv
  cp -- mine.csv cases.csv
  printf '{ "schema": "lockstep.ranges/1", "tp": [1, 2, 4], "micro_batch": [1, 2], "zero": [1], "schedule": ["1f1b", "zb-h1"] }\n' > ranges.json
  kernel_tables
  # The published runs, but for most of those that take long.
  mkdir -p tests/accuracy
  [[ ! -e $root/tests/accuracy/memory.csv ]] || cp -- "$root/tests/accuracy/memory.csv" tests/accuracy
  [[ ! -e $root/tests/accuracy/cases.csv ]] || awk 'NR == 1 || /^(sc21-t1-1.7B|korth-t5-22B|titan-t3|maxtext-v5e-32B-1x)/' "$root/tests/accuracy/cases.csv" > tests/accuracy/cases.csv
  cp -r -- "$data/captured" traced
  cp -r -- "$root"/tests/capture/fake/{clocked.py,torch} . # a torch of a few lines
  cp -r -- "$data/small-llama" "$data/models/small-llama.json" .
  mkdir -p topologies/calib # of a checkout: a command writes there
}

# This machine is the only host. Containers are root, and Open MPI keeps memory to its end.
prepare_mpi() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_plm=isolated
  export OMPI_MCA_btl_vader_single_copy_mechanism=none
  printf 'localhost slots=1\n' > hosts
}

# Runs the commands of file $1, all that they say into file $2. A command with mpirun may
# fail where there is no MPI. "run ..." stands for a job.
run_block() {
  local leaks=1 code=0
  sed 's/lockstep run \.\.\./lockstep run --model llama3.1-8b --gpus 32 --tp 8/' "$1" > "$1.full"
  ! grep -q '^mpirun ' "$1" || leaks=0
  ASAN_OPTIONS=detect_leaks=$leaks bash -euo pipefail "$1.full" > "$2" 2>&1 </dev/null || code=$?
  if ((code)) && grep -q '^mpirun ' "$1" && { ! command -v mpirun > /dev/null || grep -q 'built without MPI' "$2"; }; then
    return 0
  fi
  ((code == 0)) || { printf 'fails with %d:\n' "$code"; cat -- "$1" "$2"; return 1; }
}

# What the commands of file $1 name as their output is there.
outputs_exist() {
  local file status=0
  while read -r file; do
    [[ -s $file ]] || { printf '%s was not written\n' "$file"; status=1; }
  done < <({ grep -E '^ *(lockstep|mpirun|-)' "$1" || true; } \
    | { grep -oE -- '(-o|--list|--plot|--chart|--timeline|--chrome-trace|--csv|--links|--memory-chart|--heat-map|--pareto-chart|--scaling-chart|--svg|--dot) [^- ][^ ]*\.[a-z]+' || true; } | awk '{ print $2 }')
  return "$status"
}
