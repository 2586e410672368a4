#!/usr/bin/env bash
# The order of the rooms (src/README.md): a room includes only rooms before it,
# and foreign libraries only where they belong.
# Usage: layers.sh ROOT; prints each violation and fails if there is one.
set -euo pipefail
root=$1
rooms=(base core cluster model compute plan schedules strategy lower network exec analysis data job ask bound train
       sweep validate calibrate show api cli)
n_bad=0

bad() {
  printf '%s: %s\n' "$1" "$2"
  n_bad=$((n_bad + 1))
}

# May a file of room $1 include "$2"?
may_include() {
  local room=$1 header=$2 seen
  # readers and writers of other programs' files, a leaf that a build may leave out
  if [[ $header =~ ^data/(launch|python|shell)/ && ! $path =~ ^src/data/(launch|python|shell)/ ]]; then
    return 1
  fi
  # the plain replay, which needs nothing of the rest of its room
  if [[ $header == exec/* && $header != exec/replay/* && $path == src/exec/replay/* ]]; then
    return 1
  fi
  case $room:$header in
    network:core/maxmin.h | network:plan/collective.h) return 0 ;; # the types of a demand; numbers of collectives
    network:base/* | network:cluster/* | network:network/*) return 0 ;;
    network:*) return 1 ;;
    plan:core/maxmin.h | lower:core/maxmin.h) return 0 ;;
    plan:compute/* | schedules:compute/* | strategy:compute/* | lower:compute/*) return 1 ;;
    plan:core/* | schedules:core/* | strategy:core/* | lower:core/*) return 1 ;;
    cli:*) [[ $header == cli/* ]]; return ;;
    capture:*) [[ $header == capture/* ]]; return ;;
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
    cjson/* | cJSON.h | protobuf-c/* | sqlite3.h | yaml.h | zlib.h) [[ $place == data || $place == tests ]] ;;
    gsl/*) [[ $place =~ ^(calibrate|tools|tests)$ ]] ;;
    mpi.h) [[ $path == src/base/transport_mpi.c ]] ;; # a module of its own
    CUnit/*) [[ $place == tests ]] ;;
    lockstep/units.h | lockstep/error.h) true ;;
    lockstep/*) [[ $place =~ ^(api|cli|tests|include)$ ]] ;;
    *) true ;;
  esac
}

# Of these files each include, as: path, a tab, " or <, the header.
includes() {
  awk '/^[ \t]*#[ \t]*include[ \t]+["<]/ {
    sub(/^[ \t]*#[ \t]*include[ \t]+/, "")
    end = index(substr($0, 2), substr($0, 1, 1) == "<" ? ">" : "\"")
    if (end > 1)
      print FILENAME "\t" substr($0, 1, end)
  }' "$@"
}

mapfile -d '' files < <(find "$root/src" "$root/tests" "$root/tools" -path "$root/tests/style" -prune -o \
                        \( -name '*.c' -o -name '*.h' \) -print0 | sort -z)
n_files=${#files[@]}
while IFS=$'\t' read -r file header; do
  path=${file#"$root"/}
  place=${path%%/*}
  if [[ $place == src ]]; then
    place=${path#src/}
    place=${place%%/*}
  fi
  case $header in
    '<'*) may_use "$place" "${header:1}" || bad "$path" "$place must not include <${header:1}>" ;;
    *) [[ $path != src/* ]] || may_include "$place" "${header:1}" || bad "$path" "$place must not include \"${header:1}\"" ;;
  esac
done < <(includes "${files[@]}" /dev/null)

((n_files > 0)) || bad "$root" "no source files found"
printf '%d files, %d violations\n' "$n_files" "$n_bad"
((n_bad == 0))
