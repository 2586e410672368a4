#!/usr/bin/env bash
# No source file is longer than 1,000 lines: two concepts are two files. Data, transcripts and documents may be longer.
# No folder of src and tests has more than 60 files.
# The root holds nothing else than it should.
# Usage: length.sh ROOT; prints each file, and each folder, that is or has.
set -euo pipefail
cd -- "$1"
find src tests tools -type f \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu*' -o -name '*.sh' -o -name '*.awk' -o -name '*.py' \
  -o -name meson.build -o -perm -u+x \) -print0 | xargs -0 wc -l \
  | awk '$2 == "total" { next } { n++ } $1 > 1000 { print $2 ": " $1 " lines, more than 1000"; bad = 1 } END { exit bad || n < 100 }'
find src tests -type f -printf '%h\n' | sort | uniq -c \
  | awk '$1 > 60 { print $2 ": " $1 " files, more than 60"; bad = 1 } END { exit bad }'
git rev-parse HEAD >/dev/null 2>&1 || exit 0
git ls-files | cut -d/ -f1 | sort -u | awk '
  /^\./ || /^(LICENSE|README\.md|meson\.build|meson_options\.txt|models|src|strategies|tests|tools|topologies|traces)$/ { next }
  { print $0 ": does not belong into the root"; bad = 1 } END { exit bad }'
