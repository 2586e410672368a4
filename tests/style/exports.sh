#!/usr/bin/env bash
# The shared library shows exactly the functions that the public headers declare.
# Usage: exports.sh INCLUDE_FOLDER LIBRARY COMPILER [ARG...]
set -euo pipefail
include=$1
library=$2
shift 2
read -r -a glib < <(pkg-config --cflags glib-2.0)

declared() {
  local header
  for header in "$include"/lockstep/*.h; do
    "$@" -E -P -x c -std=gnu11 "${glib[@]}" -I "$include" "$header"
  done | grep -oE '\bls_[a-z0-9_]+ \(' | tr -d ' (' | sort -u
}
# Without what the address sanitizer adds.
exported() { nm -D --defined-only --format=posix "$library" | cut -d' ' -f1 | grep -v '^__\(odr_\)\?asan' | sort -u; }

n=$(declared "$@" | wc -l)
if ! diff <(declared "$@") <(exported); then
  printf 'the headers (<) and the library (>) differ\n'
  exit 1
fi
printf '%d functions\n' "$n"
((n > 0))
