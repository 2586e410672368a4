#!/usr/bin/env bash
# Profiles of GPUs that we measured: the half of the kernels that the fit did not see is within a
# fifth, and products in bf16 within a twentieth.
# Usage: profiles.sh FOLDER LOCKSTEP
set -euo pipefail
lockstep=$(realpath -- "$2") n=0
cd -- "$1"
verdict=$(mktemp)
trap 'rm -f -- "$verdict"' EXIT
for profile in *[0-9].json; do
  libraries=${profile%%-*}-libraries-${profile#*-} # others have no products to hold out
  [[ $profile != *-libraries-* && -f $libraries ]] || continue
  "$lockstep" calibrate "$profile" "$libraries" --hold-out half --max-mape 20 > "$verdict"
  awk -v file="$profile" '/^gemm bf16 / { n++; if ($8 > 5) { print file ": " $0; n = 9 } } END { exit n != 1 }' "$verdict"
  n=$((n + 1))
done
((n >= 2))
