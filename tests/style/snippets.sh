#!/usr/bin/env bash
# C in the manual compiles: each fenced block after a line "<!-- compiled -->", as a file of src/.
# Usage: snippets.sh ROOT COMPILER [ARG...]
set -euo pipefail
root=$(realpath -- "$1")
shift
read -r -a packages < <(pkg-config --cflags glib-2.0)
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
awk -v out="$out" '
  FNR == 1 { wanted = on = 0 }
  /^<!-- compiled -->$/ { wanted = 1; next }
  /^```/ && on { on = 0; close(file); next }
  /^```/ && wanted { wanted = 0; on = 1; file = sprintf("%s/%03d.c", out, ++n); next }
  on { print > file }' $(find "$root/src/manual" -name '*.md' | sort)
n=0 status=0
for file in "$out"/*.c; do
  [[ -e $file ]] || break
  n=$((n + 1))
  "$@" -std=gnu11 -fsyntax-only -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers \
    -I "$root/src" -I "$root/src/include" "${packages[@]}" "$file" || { sed -n 1p "$file"; status=1; }
done
printf '%d snippets\n' "$n"
((n > 0)) || status=1
exit "$status"
