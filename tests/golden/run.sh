#!/usr/bin/env bash
# Runs one golden case: a folder with
#   cmd           bash, run in the folder; `lockstep` is on the PATH, $OUT is a
#                 scratch folder
#   exit          the expected exit code
#   stdout.exact  expected output, byte for byte; absent: must be empty
#   stderr.exact  the same for stderr
# Usage: run.sh CASE LOCKSTEP. LS_UPDATE_GOLDEN=1 rewrites the expectations.
set -euo pipefail
lockstep=$(realpath -- "$2")
PATH=$(dirname -- "$lockstep"):$PATH
cd -- "$1"

out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
code=0
OUT=$out bash -euo pipefail ./cmd > "$out/stdout" 2> "$out/stderr" </dev/null || code=$?

if [[ ${LS_UPDATE_GOLDEN:-} == 1 ]]; then
  printf '%d\n' "$code" > exit
  for stream in stdout stderr; do
    rm -f -- "$stream.exact"
    [[ ! -s $out/$stream ]] || cp -- "$out/$stream" "$stream.exact"
  done
  exit 0
fi

status=0
for stream in stdout stderr; do
  expected=$stream.exact
  [[ -e $expected ]] || expected=/dev/null
  diff -u --label "$stream expected" --label "$stream got" "$expected" "$out/$stream" || status=1
done
if [[ $code != "$(cat exit)" ]]; then
  printf 'exit code %s expected, %s got\n' "$(cat exit)" "$code"
  status=1
fi
exit "$status"
