#!/usr/bin/env bash
# layers.sh must report each kind of violation: it is run on a tree that has one
# of each, and one file that is in order.
set -euo pipefail
layers=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT

put() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '#include %s\n' "${@:2}" > "$tree/$1"
}
mkdir -p "$tree/tests" "$tree/tools"
put src/base/up.c '"core/event.h"'
put src/network/side.c '"compute/cost.h"'
put src/lower/side.c '"network/coll.h"'
put src/lower/core.c '"core/engine.h"'
put src/cli/deep.c '"job/job.h"'
put src/model/json.c '<cjson/cJSON.h>'
put src/exec/gsl.c '<gsl/gsl_math.h>'
put src/core/cunit.c '<CUnit/CUnit.h>'
put src/sweep/public.c '<lockstep/lockstep.h>'
put src/sweep/mpi.c '<mpi.h>'
put src/data/relative.c '"../base/diag.h"'
put src/network/fine.c '"network/coll.h"' '"core/maxmin.h"' '"base/arena.h"' '<lockstep/units.h>' '<glib.h>'

if out=$("$layers" "$tree"); then
  printf 'accepted a bad tree:\n%s\n' "$out"
  exit 1
fi
printf '%s\n' "$out"
[[ $out == *"12 files, 11 violations"* && $out != *fine.c* ]]
