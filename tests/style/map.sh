#!/usr/bin/env bash
# src/README.md, the map, names exactly the files under src/, but for the manual, which has an
# index of its own (manual.sh): the first column of
# the tables below each "### ROOM/", where `x.[ch]` stands for two; and every other
# name with a slash, such as `core/flow.h`, exists. No two rooms or folders have files of one name, but for x.[ch]
# and public headers.
# Usage: map.sh ROOT; prints each difference and fails if there is one.
set -euo pipefail
root=$1
map=$root/src/README.md

# `x.[ch]` stands for two names.
both() { sed -E 's/^(.*)\.\[ch\]$/\1.h\n\1.c/'; }

mapped() {
  awk '
    /^### .*\/$/ { room = substr($0, 5) }
    /^## / { room = "" }
    /^\|/ && room {
      cell = substr($0, 2)
      sub(/\|.*/, "", cell)
      for (; match(cell, /`[^` ]+`/); cell = substr(cell, RSTART + RLENGTH))
        print room substr(cell, RSTART + 1, RLENGTH - 2)
    }' "$map" | both | sort
}

present() {
  (cd -- "$root/src" && find . -type f ! -name meson.build ! -path ./README.md ! -path './manual/*') | sed 's,^\./,,' | sort
}

# Names with a slash, in a table from the room on; elsewhere such as `core/flow.h` or `tests/style/map.sh`; X is any name.
mentioned() {
  grep -oE '`[^` ]+`' "$map" | tr -d '`' | both | grep -E '/[a-z0-9_]*\.(c|h|sh|json)$' | sort -u || true
}

status=0
if ! diff <(mapped) <(present); then
  printf 'src/README.md (<) and src/ (>) differ\n'
  status=1
fi
while IFS= read -r name; do
  if [[ ! -e $root/src/$name && ! -e $root/$name ]] && ! compgen -G "$root/src/*/$name" > /dev/null; then
    printf 'src/README.md: there is no %s\n' "$name"
    status=1
  fi
done < <(mentioned)
# "NAME PLACE" of each file but for public headers; one line for x.c and x.h of one place.
stems() { present | grep -v '^include/' | sed -E 's,^(.*)/([^/]*)\.[ch]$,\2 \1,' | sort -u; }
while IFS= read -r name; do
  printf 'src: %s is a file of:%s\n' "$name" "$(stems | awk -v name="$name" '$1 == name { printf " %s", $2 }')"
  status=1
done < <(stems | cut -d' ' -f1 | uniq -d)
n=$(mapped | wc -l)
printf '%d files on the map\n' "$n"
((n > 0)) || status=1
exit "$status"
