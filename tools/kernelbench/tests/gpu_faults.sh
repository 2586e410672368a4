#!/usr/bin/env bash
# The program that nvcc built, on a made-up GPU (fake_cuda.cpp) whose calls fail where the environment says: one that is not
# supported, no memory, a launch that fails, a device that is lost in the middle, kill -9, heat, kernels that compute nothing, no code for
# the chip. Each costs its row and no other, or ends in a message.
#
# Usage: gpu_faults.sh KERNELBENCH FAKE-CUDA-LIBRARY FOLDER-OF-THE-FAKE-DRIVER LOCKSTEP PLAN FAKE-CUDNN FAKE-CUDNN-WITHOUT-EXECUTE
set -u
bench=$(realpath "$1") fake=$(realpath "$2") driver=$(realpath "$3") lockstep=$(realpath "$4") plan=$(realpath "$5")
cudnn=$(realpath "$6") cudnn_without_execute=$(realpath "$7")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir cuda nvml lacking
for name in $(ldd "$bench" | grep -oE 'lib(cudart|cublasLt)\.so\.[0-9]+' | sort -u); do
  ln -s "$fake" "cuda/$name"
done
ln -s "$driver/libnvidia-ml.so.1" nvml/
ln -s "$cudnn" cuda/libcudnn.so.9
ln -s "$cudnn_without_execute" lacking/libcudnn.so.9
export LD_LIBRARY_PATH=$work/cuda
n_failed=0

fail ()
{
  echo "FAILED $test: $1"
  n_failed=$((n_failed + 1))
}

# run NAME STATUS [ARGUMENT...]: with profile NAME.json, standard output NAME.csv, errors NAME.err
run ()
{
  name=$1 expected=$2
  shift 2
  "$bench" --json "$name.json" "$@" > "$name.csv" 2> "$name.err"
  status=$?
  [ $status = "$expected" ] || fail "$name: exit status $status, expected $expected: $(tail -2 "$name.err")"
}

has () { grep -qE -- "$2" "$1" || fail "$1 has no \"$2\""; }
has_not () { ! grep -q -- "$2" "$1" || fail "$1 has \"$2\""; }
planned () { echo $(($("$bench" --dry-run --only "$1" | wc -l) - 1)); }
n_rows () { n=$(($(wc -l < "$1") - 1)); [ $n = "$2" ] || fail "$1 has $n rows, expected $2"; }

test="all that is launched is there"
groups=host,streams,operators,attention,gemm-isolated,gemm-batched
run all 0 --only $groups --skip-checks
n_rows all.csv "$(planned $groups)"
has all.err " 0 failed; 0 left out"
has all.json '"gpu": "Fake GPU"'

test="attention of cuDNN stands beside ours, and calibrations keep them apart"
run attention 0 --only attention --skip-checks
n_rows attention.csv "$(planned attention)"
n_cudnn=$(grep -c "implementation=cudnn" attention.csv) n_own=$(grep -vc "implementation=cudnn" attention.csv)
[ "$n_cudnn" = 16 ] || fail "$n_cudnn rows of cuDNN"
has attention.csv "^attention,flash-attention-bwd,1x8192x8x1x128,bf16,.*,causal=1 implementation=cudnn$"
has attention.json '"implementation": "cudnn"'
run attention 0 --only attention --skip-checks --resume
n_rows attention.csv "$(planned attention)"
has attention.err "$(planned attention) of an earlier run"
sed -E 's/"time_us": ([0-9]+)\./"time_us": \1000./' attention.json > slower.json # than any GPU's peak
LD_LIBRARY_PATH='' "$lockstep" calibrate slower.json --gpu h100 -o kept.json > read.txt 2>&1 || fail "calibrate: $(tail -1 read.txt)"
has read.txt "$((n_own - 1)) rows of kernelbench's own flash attention are left out"
has read.txt "^cudnn_fwd +compute_efficiency .*replaced"
has read.txt "^cudnn_bwd bf16 +8 "

test="what goes wrong with cuDNN costs its rows"
two='attention/*/1x8192x8x1x128,attention/*/4x2048x12x12x128'
n_two=$("$bench" --dry-run --only "$two" | grep -c implementation=cudnn)
# without WHY [NAME=VALUE...]: ours are measured all the same
without ()
{
  why=$1
  shift
  rm -f less.*
  env "$@" "$bench" --json less.json --only "$two" --skip-checks > less.csv 2> less.err || fail "$*: exit status $?"
  n_rows less.csv $(($(planned "$two") - n_two))
  [ "$(grep -cE "attention flash-attention-.*implementation=cudnn.*$why" less.json)" = "$n_two" ] || fail "$*: no \"$why\""
}
without "no engine for this graph: its heuristics propose none" KB_CUDNN=no-engine
without "no engine for this graph: .*NOT_SUPPORTED: this engine takes no such graph" KB_CUDNN=no-plan
without "cuDNN 8.9.2 is too old" KB_CUDNN=old
without "cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED" KB_CUDNN=no-handle
without "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED: a kernel failed" KB_CUDNN=execute
without "libcudnn.so.9 has no cudnnBackendExecute" "LD_LIBRARY_PATH=$work/lacking:$LD_LIBRARY_PATH"

test="GEMMs that lie on the SMs in known ways"
for way in tiles clusters persistent; do
  grep -q "variant=$way" <<< "$("$bench" --dry-run --only slowdown)" || fail "no $way among the plan"
done
run beside 0 --only slowdown --skip-checks --seconds 4
has beside.csv "^slowdown,beside-spin,.*variant=default blocks=8 .* cluster=2$"
has beside.csv "^slowdown,beside-spin,.*variant=sm-target blocks=8 "
has beside.err "[1-9][0-9]* left out for lack of time"

test="kernels that compute nothing pass no check"
run idle 0 --only "streams/add,streams/residual-grad-add,gemm-isolated/forward/2048x6144x*,$two"
n_rows idle.csv 0
has idle.json '"failed": \['
has idle.json "streams add 8192x6144"
has idle.json "streams residual-grad-add 8192x6144"
has idle.json "gemm-isolated forward"
has idle.json "attention flash-attention-fwd 4x2048x12x12x128 bf16 causal=0 implementation=cudnn.*check .*attention cudnn bf16 fwd d=128 causal=0 heads-per-kv=1 "
has idle.json "attention flash-attention-bwd 1x8192x8x1x128 bf16 causal=1 implementation=cudnn.*check .*attention cudnn bf16 bwd d=128 causal=1 heads-per-kv=8 "

test="a product that is not supported costs its row"
some='gemm-isolated/wgrad/*x2048'
KB_FAULT=cublasLtMatmulAlgoGetHeuristic:3:15 run unsupported 0 --only "$some" --skip-checks
n_rows unsupported.csv $(($(planned "$some") - 1))
has unsupported.json "gemm-isolated wgrad .*cublasLtMatmulAlgoGetHeuristic.*is not supported"
KB_NO_ALGORITHM=1 run none 0 --only 'gemm-isolated/dgrad/2048x*,streams/add' --skip-checks
n_rows none.csv "$(planned streams/add)"
has none.json "gemm-isolated dgrad .*cublasLt knows no algorithm"

test="no memory costs what needs it"
KB_FAULT=cudaMalloc:2:2 run memory 0 --only streams --skip-checks
has memory.json "streams copy 65536x2048.*out of memory"
has memory.csv "^streams,adam,1x500000000"
n_rows memory.csv $(($(planned streams/adam) * 6)) # of the optimizer

test="a launch that fails costs its row"
KB_FAULT=forward_kernel:100:701 run launch 0 --only streams --skip-checks
n_rows launch.csv $(($(planned streams) - 1))
has launch.json "streams scale-mask-softmax 65536x2048"

test="a device that is lost ends the run, and --resume goes on behind the culprit"
KB_FAULT=forward_kernel:100:700:lost run lost 1 --only streams --skip-checks
has lost.err "does not answer"
before=$(($(wc -l < lost.csv) - 1))
[ $before -gt 1 ] && [ $before -lt "$(planned streams)" ] || fail "$before rows before the loss"
run lost 0 --only streams --skip-checks --resume
n_rows lost.csv $(($(planned streams) - 1))
has lost.err "$before of an earlier run; 1 failed"

test="kill -9 loses the row that it was at"
KB_KILL=backward_kernel:100 run killed 137 --only streams --skip-checks
run killed 0 --only streams --skip-checks --resume
n_rows killed.csv "$(planned streams)"

test="heat is seen, and said if it stays"
export LD_LIBRARY_PATH=$work/cuda:$work/nvml
KB_HOT=1000000 run hot 0 --only host/event-pair --skip-checks
has hot.err "disturbed \(heat\), measured again"
has hot.csv "disturbed=heat"
KB_HOT=3 run cooled 0 --only host/event-pair --skip-checks
has cooled.err "measured again"
has_not cooled.csv "disturbed"
export LD_LIBRARY_PATH=$work/cuda

test="a plan runs, and tells of its kernels"
"$bench" --plan "$plan" --skip-checks --seconds 1 > spans.csv 2> spans.err || fail "exit status $?: $(tail -1 spans.err)"
has spans.csv "^0,step,event-pair,"
has spans.csv ",kind=gemm [^,]*,cublaslt$"
LD_LIBRARY_PATH='' "$lockstep" calibrate spans.csv --gpu h100 > read.txt 2>&1
has read.txt "spans.csv"
has_not read.txt "expected"
KB_FAULT=cudaStreamSynchronize:2:700:lost "$bench" --plan "$plan" --skip-checks --seconds 1 > /dev/null 2> spans.err && fail "a plan on a lost device"
has spans.err "illegal memory access"

test="no GPU, no such GPU, no code for it: messages"
KB_FAULT=cudaGetDeviceCount:1:100 run absent 1
has absent.err "error: no GPU can be used: no CUDA-capable device"
run absent 1 --device 3
has absent.err "device 3: there is 1"
KB_FAULT=cudaFuncGetAttributes:1:209 run absent 1
has absent.err "has no code for Fake GPU \(compute capability 9.0\)"

[ $n_failed = 0 ] && echo ok
exit $((n_failed > 0))
