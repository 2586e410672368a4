#!/usr/bin/env bash
# --nccl on four made-up devices with a made-up libnccl: what is printed is what lockstep reads of
# nccl-tests, wrong results are counted and fail, one GPU and a missing library are messages.
#
# Usage: nccl.sh KERNELBENCH-HOST-FAULTY FOLDER-OF-THE-FAKE-LIBRARY LOCKSTEP
set -u
bench=$(realpath "$1") library=$(realpath "$2") lockstep=$(realpath "$3")
path=${LD_LIBRARY_PATH:-}
LD_LIBRARY_PATH=${path//$library/} # meson puts it there
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail () { echo "FAILED: $1"; cat err out 2>/dev/null; exit 1; }

"$bench" --nccl > out 2> err; [ $? = 1 ] && grep -q "need two GPUs or more; there is 1" err || fail "one GPU"
export KB_GPUS=4
if ! ldconfig -p | grep -q libnccl.so.2; then
  "$bench" --nccl > out 2> err; [ $? = 1 ] && grep -q "libnccl.so.2 is not found" err || fail "no library"
fi
"$bench" --nccl --json x > out 2> err; [ $? = 2 ] || fail "--json"
export LD_LIBRARY_PATH=$library:$path
"$bench" --nccl --max-bytes 262144 > out 2> err || fail "exit status $?"
[ "$(grep -c "^ *262144 .* 0 .*N/A$" out)" = 3 ] || fail "rows of the largest size"
"$lockstep" calibrate --nccl out --cluster dgx-h100 > calibrated 2> err || fail "lockstep does not read it"
grep -q "all-gather" calibrated && grep -q "reduce-scatter" calibrated || fail "not all operations are read: $(cat calibrated)"
KB_NCCL_WRONG=1 "$bench" --nccl --max-bytes 2048 > out 2> err; [ $? = 1 ] && grep -q "Out of bounds values : [1-9].* FAILED" out || fail "wrong results pass"
echo ok
