#!/usr/bin/env bash
# circles.sh must report a circle of five files, by a function or by data, and one of two headers; four files
# may need each other.
# Usage: circles_catches.sh CIRCLES COMPILER [ARG...]
set -euo pipefail
circles=$1
shift
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir -p "$tree/src/room"

# ring N KIND: a library of N files, each of which needs the next, the last one the first.
ring() {
  local i next
  rm -f "$tree"/*.[oa]
  for ((i = 0; i < $1; i++)); do
    next=$(((i + 1) % $1))
    if [[ $2 == data ]]; then
      printf 'extern const void *const d%d; const void *const d%d = &d%d;\n' "$next" "$i" "$next"
    else
      printf 'int f%d (int); int f%d (int x) { return x > 0 ? f%d (x - 1) : 0; }\n' "$next" "$i" "$next"
    fi > "$tree/f$i.c"
    "${@:3}" -c "$tree/f$i.c" -o "$tree/f$i.c.o"
  done
  ar -rcs "$tree/ring.a" "$tree"/*.o
}
refused() {
  if "$circles" "$tree" "$tree/ring.a" > "$tree/out"; then
    printf 'accepted %s\n' "$1"
    exit 1
  fi
  grep -F "$1" "$tree/out"
}

printf '#include "room/b.h"\n' > "$tree/src/room/a.h"
printf '#include <glib.h>\n' > "$tree/src/room/b.h"
ring 4 code "$@"
"$circles" "$tree" "$tree/ring.a"
ring 5 code "$@"
refused 'circle of 5 objects'
ring 5 data "$@"
refused 'circle of 5 objects'
ring 4 code "$@"
printf '#include "room/a.h"\n' >> "$tree/src/room/b.h"
refused 'circle of 2 headers'
