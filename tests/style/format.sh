#!/usr/bin/env bash
# No line of src has more than 110 columns, and C sources are as clang-format writes them by .clang-format. Other
# versions of it write some lines otherwise, so it is version 14, Debian 12's, or none: then that is skipped.
# Usage: format.sh ROOT; prints the lines that differ.
set -euo pipefail
root=$1
columns=110

export LC_ALL=C.UTF-8
if grep -rnE --include='*.[ch]' "^.{$((columns + 1))}" "$root/src"; then
  printf 'longer than %d columns\n' "$columns"
  exit 1
fi
[[ $(clang-format --version 2>/dev/null || true) == *'version 14.'* ]] || exit 77
cd -- "$root"
find src tests -name '*.[ch]' -print0 | xargs -0 -n 60 clang-format --dry-run --Werror
