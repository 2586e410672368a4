#!/usr/bin/env bash
# exports.sh must accept a library that shows what its header declares, and report a
# function that is hidden, and one that is shown but not declared.
# Usage: exports_catches.sh CHECK COMPILER [ARG...]
set -euo pipefail
check=$1
shift
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir "$tree/lockstep"
printf '/* ls_comment () */\nint ls_one (void);\nint ls_two (int a);\n' > "$tree/lockstep/a.h"
shown='__attribute__ ((visibility ("default")))'

# Builds a library of these lines and checks it.
library() {
  printf '%s\n' "$@" > "$tree/a.c"
  "${compiler[@]}" -shared -fPIC -fvisibility=hidden -o "$tree/liba.so" "$tree/a.c"
  "$check" "$tree" "$tree/liba.so" "${compiler[@]}"
}
refuses() {
  local wanted=$1 out
  shift
  if out=$(library "$@") || [[ $out != *"$wanted"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$wanted" "$out"
    exit 1
  fi
}
compiler=("$@")

one="$shown int ls_one (void) { return 1; }"
two="$shown int ls_two (int a) { return a; }"
library "$one" "$two" 'int ls_inner (void) { return 3; }'
refuses '< ls_two' "$one" 'int ls_two (int a) { return a; }'
refuses '> ls_three' "$one" "$two" "$shown int ls_three (void) { return 3; }"
refuses '> other' "$one" "$two" "$shown int other;"
