#!/usr/bin/env bash
# What a run survives, on the host's twin with injected faults: a call that is not supported, no
# memory, a check that fails, a device that is lost in the middle, kill -9, heat, others on the
# GPU. Each costs its row and no other; what was measured before is kept and not measured again.
#
# Usage: faults.sh KERNELBENCH-HOST-FAULTY FOLDER-OF-THE-FAKE-DRIVER LOCKSTEP
set -u
bench=$(realpath "$1") driver=$(realpath "$2") lockstep=$(realpath "$3")
path=${LD_LIBRARY_PATH:-}
LD_LIBRARY_PATH=${path//$driver/} # meson puts it there
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
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

has () { grep -q -- "$2" "$1" || fail "$1 has no \"$2\""; }
has_not () { ! grep -q -- "$2" "$1" || fail "$1 has \"$2\""; }
# planned WHAT: how many rows --only WHAT has
planned () { echo $(($("$bench" --dry-run --only "$1" | wc -l) - 1)); }
# n_rows FILE.csv NUMBER: rows, the header not counted
n_rows () { n=$(($(wc -l < "$1") - 1)); [ $n = "$2" ] || fail "$1 has $n rows, expected $2"; }
# lockstep reads it, and refuses it for another GPU only
is_profile () { "$lockstep" calibrate "$1" --gpu h100 2>&1 | grep -q "with 1 SMs; h100 has 132" || fail "$1 is no profile"; }

test="--only chooses groups, names and shapes"
[ "$(planned 'gemm-isolated/wgrad/96x256x192')" = 1 ] || fail "$(planned 'gemm-isolated/wgrad/96x256x192') rows of a shape"
[ "$(planned 'gemm-isolated/wgrad')" = 28 ] || fail "$(planned 'gemm-isolated/wgrad') rows of a name"
"$bench" --dry-run --only 'gemm-isolated/[dw]grad/96x256x*,streams/a*/*' > chosen.csv
[ "$(cut -d, -f1-3 chosen.csv | sort | tr '\n' ' ')" = "$("$bench" --dry-run | cut -d, -f1-3 \
  | grep -E '^(group|gemm-isolated,[dw]grad,96x256x|streams,a)' | sort | tr '\n' ' ')" ] || fail "other rows: $(cat chosen.csv)"
for wrong in gemm-isolated/wgrad/96x256 gemm-isolated/Wgrad streams/copy/96x1024/bf16 stream host,streams/add/1x1; do
  "$bench" --dry-run --only "$wrong" > /dev/null 2> wrong.err
  [ $? = 2 ] || fail "$wrong is taken"
  run wrong 2 --only "$wrong"
  grep -q '^error: --only: ' wrong.err || fail "$wrong: $(cat wrong.err)"
  [ ! -s wrong.csv ] && [ ! -e wrong.json ] || fail "$wrong: something was begun"
done
has wrong.err '"streams/add/1x1" is no row'

test="a call that is not supported costs its row"
some='gemm-isolated/wgrad/96x*'
KB_FAULT=gemm:30:801 run unsupported 0 --only "$some" --skip-checks
n_rows unsupported.csv $(($(planned "$some") - 1))
has unsupported.json "gemm-isolated wgrad 96x256x192.*operation not supported"
is_profile unsupported.json

test="no memory costs what needs it"
KB_FAULT=cudaMalloc:2:2 run memory 0 --only streams/copy --skip-checks
n_rows memory.csv $(($(planned streams/copy) - 1))
has memory.json "streams copy 96x1024.*out of memory"

test="a check that cannot run costs its kernels"
KB_FAULT=gemm:2:801 run checked 0 --only 'gemm-isolated/dgrad/96x1*,gemm-isolated/forward/96x1*'
n_rows checked.csv "$(planned 'gemm-isolated/forward/96x1*')"
has checked.json "gemm-isolated dgrad .*check could not run.*operation not supported"
has_not checked.csv "dgrad"

test="a device that is lost ends the run, and --resume goes on behind the culprit"
KB_FAULT=stream:60:700:lost run lost 1 --only streams --skip-checks
has lost.err "does not answer"
before=$(($(wc -l < lost.csv) - 1))
[ $before -gt 1 ] && [ $before -lt 15 ] || fail "$before rows before the loss"
grep -c '"last": true' lost.rows.jsonl | grep -qx $before || fail "rows that were measured are not in the file"
run lost 0 --only streams --skip-checks --resume
n_rows lost.csv $(($(planned streams) - 1))
has lost.err "$before of an earlier run; 1 failed"
is_profile lost.json

test="kill -9 loses the row that it was at"
KB_KILL=stream:60 run killed 137 --only streams --skip-checks
[ ! -e killed.json ] || fail "a profile of a run that was killed"
before=$(grep -c '"last": true' killed.rows.jsonl)
printf '{"case": "streams ad' >> killed.rows.jsonl
run killed 3 --only streams --skip-checks
has killed.err "is there already; --resume"
run killed 0 --only streams --skip-checks --resume
n_rows killed.csv "$(planned streams)"
has killed.err "$before of an earlier run; 0 failed"
[ "$(cut -d, -f1-4 killed.csv | sort | uniq -d | wc -l)" = 0 ] || fail "a row twice"

test="a row that ends the program twice has failed"
KB_KILL=stream:60 run culprit 137 --only streams/add --skip-checks
KB_KILL=stream:1 run culprit 137 --only streams/add --skip-checks --resume
run culprit 0 --only streams/add --skip-checks --resume
has culprit.json "begun twice and never ended"

test="the profile of rows, without a GPU"
"$bench" --assemble --rows killed.rows.jsonl --json again.json || fail "exit status $?"
cmp killed.json again.json || fail "another profile than that of the run"

test="rows of another choice of checks are not mixed"
run killed 3 --only streams --resume
has killed.err "are of another GPU, driver, toolkit or choice of checks"

test="what was damaged in the middle is refused with its place"
sed '3s/.*/{"case": 7}/' killed.rows.jsonl > damaged.rows.jsonl
run damaged 3 --resume
has damaged.err 'damaged.rows.jsonl:3:1:10: error: expected text; got a number'

export LD_LIBRARY_PATH=$driver:$path
test="conditions are recorded with each row"
run calm 0 --only host
has calm.json '"sm_mhz": 1500, "sm_mhz_min": 1500, "memory_mhz": 2600, "power_w": 300, "temperature_c": 50, "throttle": 4'
has_not calm.json '"disturbed"'
has calm.json '"driver": "none'

test="a row that was disturbed is measured again"
KB_HOT=3 run hot 0 --only host
has hot.err "disturbed (heat), measured again"
has_not hot.json '"disturbed"'

test="and marked if it stays so"
KB_HOT=1000000 run hotter 0 --only host
has hotter.csv "disturbed=heat"
KB_OTHERS=2 run shared 0 --only host
has shared.err "2 other processes compute"
has shared.json '"disturbed": "other-process"'

test="a part of a GPU is said to be one"
KB_MIG=1 run mig 0 --only host
has mig.err "divided (MIG)"
has mig.json '"mig": true'

test="no device is a message"
KB_FAULT=cudaGetDeviceCount:1:100 run none 1
has none.err "error: no GPU can be used: no device is there"
run none 1 --device 3
has none.err "device 3: there is 1"

[ $n_failed = 0 ] && echo ok
exit $((n_failed > 0))
