#!/usr/bin/env bash
# The whole route on real times of this machine: kernels measured, half of them predicted from the
# other half, a step composed and run, a verdict. Printed are the errors reached; the bounds are
# wide, for other programs share the machine (no other test: it runs alone), but a wrong unit, count
# or shape is off by more. A bound that cannot be held fails.
#
# Usage: verdict.sh RUN KERNELBENCH-HOST LOCKSTEP
set -u
run=$1 bench=$(realpath "$2") lockstep=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work" "$work.said"' EXIT

verdict () { "$run" --host --kernelbench "$bench" --lockstep "$lockstep" --out "$work" "$@" 2> "$work/err"; }

# In a process of its own, whose exit status tells.
route () (
  rm -rf "${work:?}"/*
  verdict --max-mape 60 --max-error 60 > "$work/out" || { echo "FAILED: exit status $?"; cat "$work/out" "$work/err"; exit 1; }
  sed -n '/^kernels/,/^$/p; /^computing/p; /^step/p' "$work/out"
  grep -q '"host": true' "$work/profile.json" || { echo "FAILED: the profile does not say that it is of a host"; exit 1; }

  # A second time, on the rows that are there.
  verdict --seconds 1 --max-mape 0.0001 > "$work/out"
  [ $? = 5 ] || { echo "FAILED: kernels that are predicted exactly"; exit 1; }
  grep -q "[0-9]* rows, [1-9][0-9]* of an earlier run" "$work/err" || { echo "FAILED: rows were measured again"; exit 1; }
  verdict --seconds 1 --max-mape 60 --max-error 0.000001 > "$work/out"
  [ $? = 5 ] || { echo "FAILED: a step that is predicted exactly"; exit 1; }
  verdict --max-mape
  [ $? = 2 ] || { echo "FAILED: an option without its value"; exit 1; }

  # The kernels of a job, timed and laid over that calibration.
  cd "$work" || exit 1
  gpu='./host.json:calibration=./gpu-measured.json,nccl=nccl-h100'
  "$lockstep" kernel --list-shapes --model ./model.json --cluster "dgx-h100:gpu=\"$gpu\"" --gpus 1 > shapes.json \
    && "$bench" --shapes shapes.json --json shapes-profile.json > shapes.csv 2> err \
    && "$lockstep" calibrate shapes-profile.json --gpu "./host.json:calibration=./gpu-measured.json" -o over.json > out 2>> err \
    || { echo "FAILED: kernels of a job"; cat err; exit 1; }
  n=$(grep -c '"name"' shapes.json)
  [ "$(grep -c ^shapes, shapes.csv)" = "$n" ] || { echo "FAILED: $(grep -c ^shapes, shapes.csv) of $n kernels were timed"; exit 1; }
  grep -q "^  shapes-profile.json: $n rows, $n kernels used" out || { echo "FAILED: kernels that calibrate passes over"; cat out; exit 1; }

  # The step that was run tells of its kernels, too: products on hot cores, streams; nothing of attention, which is our own.
  "$lockstep" calibrate measured.csv --gpu "./host.json:calibration=./gpu-measured.json" -o in-a-step.json > out 2> err || { echo "FAILED: spans"; cat err; exit 1; }
  grep -q '^  measured.csv: [0-9]* rows, [1-9][0-9]* kernels used' out || { echo "FAILED: no kernel of the step is used"; cat out err; exit 1; }
  grep -q "GEMMs on a hot one" out || { echo "FAILED: the products of the step are not used"; cat out; exit 1; }
  grep -q '^0,step,event-pair,' measured.csv || { echo "FAILED: no event-pair among the spans"; exit 1; }
)

# What else runs on the machine may spoil a measurement, or slow all of it down between two, but not three times in a row.
for attempt in 1 2 3; do
  route > "$work.said" && break
  [ "$attempt" -lt 3 ] || { cat "$work.said"; exit 1; }
done
cat "$work.said"
