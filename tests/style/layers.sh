#!/usr/bin/env bash
# The order of the rooms (src/README.md): a room includes only rooms before it,
# and foreign libraries only where they belong.
# Usage: layers.sh ROOT; prints each violation and fails if there is one.
set -euo pipefail
root=$1
rooms=(base core cluster model compute plan schedules strategy lower network exec analysis data job ask bound sweep
       validate calibrate show api cli)
n_bad=0

bad() {
  printf '%s: %s\n' "$1" "$2"
  n_bad=$((n_bad + 1))
}

# Quoted includes of a file, one per line.
quoted() { sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]+"([^"]+)".*/\1/p' "$1"; }
angled() { sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]+<([^>]+)>.*/\1/p' "$1"; }

# May a file of room $1 include "$2"?
may_include() {
  local room=$1 header=$2 seen
  case $room:$header in
    network:core/maxmin.h | network:plan/collective.h) return 0 ;; # the types of a demand; numbers of collectives
    network:base/* | network:cluster/* | network:network/*) return 0 ;;
    network:*) return 1 ;;
    plan:core/maxmin.h | lower:core/maxmin.h) return 0 ;;
    plan:compute/* | schedules:compute/* | strategy:compute/* | lower:compute/*) return 1 ;;
    plan:core/* | schedules:core/* | strategy:core/* | lower:core/*) return 1 ;;
    cli:*) [[ $header == cli/* ]]; return ;;
  esac
  for seen in "${rooms[@]}"; do
    [[ $header == "$seen"/* ]] && return 0
    [[ $seen == "$room" ]] && return 1
  done
  return 1
}

# May a file of place $1 (a room, tests or tools) include <$2>?
may_use() {
  local place=$1 header=$2
  case $header in
    cjson/* | cJSON.h | zlib.h) [[ $place == data || $place == tests ]] ;;
    gsl/*) [[ $place =~ ^(base|compute|analysis|calibrate|tools|tests)$ ]] ;;
    mpi.h) [[ $path == src/sweep/transport_mpi.c ]] ;; # a module of its own
    CUnit/*) [[ $place == tests ]] ;;
    lockstep/units.h | lockstep/error.h) true ;;
    lockstep/*) [[ $place =~ ^(api|cli|tests|include)$ ]] ;;
    *) true ;;
  esac
}

n_files=0
while IFS= read -r -d '' file; do
  n_files=$((n_files + 1))
  path=${file#"$root"/}
  place=${path%%/*}
  if [[ $place == src ]]; then
    place=${path#src/}
    place=${place%%/*}
    while IFS= read -r header; do
      may_include "$place" "$header" || bad "$path" "$place must not include \"$header\""
    done < <(quoted "$file")
  fi
  while IFS= read -r header; do
    may_use "$place" "$header" || bad "$path" "$place must not include <$header>"
  done < <(angled "$file")
done < <(find "$root/src" "$root/tests" "$root/tools" -path "$root/tests/style" -prune -o \
         \( -name '*.c' -o -name '*.h' \) -print0 | sort -z)

((n_files > 0)) || bad "$root" "no source files found"
printf '%d files, %d violations\n' "$n_files" "$n_bad"
((n_bad == 0))
