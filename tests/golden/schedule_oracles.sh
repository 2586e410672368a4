#!/usr/bin/env bash
# `lockstep schedule --format csv` prints the orders that the authors' code generates, byte
# for byte, and reads their files: every STRIDE-th of each family under
# $LS_SHARED_DATA/schedules. zb-h1, zb-h2 and hanayo are only read: theirs is another
# order. Exits with 77 where there are no such files.
# Usage: schedule_oracles.sh LOCKSTEP [STRIDE]
set -euo pipefail
lockstep=$(realpath -- "$1")
stride=${2:-16}
folder=${LS_SHARED_DATA:-}/schedules
[[ -d $folder ]] || { printf 'skipped: no %s\n' "$folder"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
n=0

# The flags that make the order of a file, from its name.
flags_of() {
  local name=$1 family=${1%%_*} p m
  p=$(sed -E 's/.*_p([0-9]+).*/\1/' <<< "$name")
  m=$(sed -E 's/.*_m([0-9]+).*/\1/' <<< "$name")
  case $family in
    megatron-1f1b) family=1f1b ;;
    megatron-interleaved) family=interleaved-1f1b ;;
    interleaved-1f1b) printf -- '--rounds pytorch ' ;;
  esac
  printf -- '--schedule %s --pp %d --micro-batches %d' "$family" "$p" "$m"
  [[ ! $name =~ _v([0-9]+) ]] || printf -- ' --vpp %d' "${BASH_REMATCH[1]}"
  [[ ! $name =~ _stages([0-9]+) ]] || printf -- ' --vpp %d' "$((BASH_REMATCH[1] / p))"
  [[ ! $name =~ _N([0-9]+) ]] || printf -- ' --group %d' "${BASH_REMATCH[1]}"
}

for family in "$folder"/*/; do
  files=("$family"*.csv)
  for ((i = 0; i < ${#files[@]}; i += stride)); do
    file=${files[i]}
    name=$(basename -- "$file" .csv)
    tr -d '\r' < "$file" > "$out/theirs"
    "$lockstep" schedule --schedule "$file" --format csv | cmp - "$out/theirs" || { printf 'reading %s\n' "$name"; exit 1; }
    n=$((n + 1))
    case $name in zb-h1* | zb-h2* | hanayo*) continue ;; esac
    # shellcheck disable=SC2046 # words
    "$lockstep" schedule $(flags_of "$name") --format csv | cmp - "$out/theirs" || { printf '%s\n' "$name"; exit 1; }
  done
done
((n > 30))
printf '%d orders\n' "$n"
