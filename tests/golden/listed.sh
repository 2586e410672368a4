#!/usr/bin/env bash
# Every case of the files of transcripts is run, each once: NAME... is what meson.build lists.
# Usage: listed.sh FOLDER NAME...
set -euo pipefail
cd -- "$1"
shift
if ! diff <(printf '%s\n' "$@" | sort) <(sed -n 's/^=== //p' -- *.txt | sort); then
  printf 'meson.build (<) and the files (>) differ\n'
  exit 1
fi
printf '%d cases\n' "$#"
(($# > 0))
