#!/usr/bin/env bash
# snippets.sh must accept C that compiles, leave other blocks alone, and report C that does not
# compile and a manual without any.
# Usage: snippets_catches.sh CHECK COMPILER [ARG...]
set -euo pipefail
check=$1
shift
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir -p "$tree/src/manual" "$tree/src/include"
printf 'int half (int x);\n' > "$tree/src/half.h"
page() { printf '%s\n' '```' 'not C' '```' "$@" > "$tree/src/manual/a.md"; }
page '<!-- compiled -->' '```' '#include "half.h"' 'int half (int x) { return x / 2; }' '```'
bash "$check" "$tree" "$@"
page '<!-- compiled -->' '```' 'int half (int x) { return y / 2; }' '```'
! bash "$check" "$tree" "$@" > "$tree/said" 2>&1
grep -q 'y' "$tree/said"
page
! bash "$check" "$tree" "$@" > "$tree/said" 2>&1
grep -q '0 snippets' "$tree/said"
