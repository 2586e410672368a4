#!/usr/bin/env bash
# C sources are as clang-format writes them by .clang-format. Other versions of it write some lines otherwise, so it is
# version 14, Debian 12's, or none: then the test is skipped.
# Usage: format.sh ROOT; prints the lines that differ.
set -euo pipefail
root=$1

[[ $(clang-format --version 2>/dev/null || true) == *'version 14.'* ]] || exit 77
cd -- "$root"
find src tests -name '*.[ch]' -print0 | xargs -0 -n 60 clang-format --dry-run --Werror
