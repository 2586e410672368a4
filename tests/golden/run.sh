#!/usr/bin/env bash
# Runs one case of a file of transcripts:
#
#     === CASE
#     # what it pins
#     $ a command, in bash
#     > its further lines
#       a line of its standard output
#     ! a line of its standard error
#     exit 2
#
# An empty line of standard output is an empty line; `\ no newline` comes after a last line without one. The
# exit code is that of the first part that failed; of a success there is none. One empty line stands between
# two cases.
# The commands of a case share a shell, in an empty folder with two links: data (golden/data, which
# LS_DATA_DIR says) and shipped (the root of the tree). `lockstep` is on the PATH.
# Usage: run.sh FILE CASE LOCKSTEP. LS_UPDATE_GOLDEN=1 rewrites what was printed; with LS_CASE all other
# cases are skipped.
set -euo pipefail
export LC_ALL=C
file=$1 name=$2
PATH=$(dirname -- "$(realpath -- "$3")"):$PATH
golden=$(dirname -- "$(realpath -- "$0")")
[[ ${LS_CASE:-$name} == "$name" ]] || exit 77
# What a build without options prints is written by `meson test` of such a build alone.
if [[ ${LS_UPDATE_GOLDEN:-} == 1 && $name == without-* && ! ${MESON_TEST_ITERATION:-} ]]; then
  printf '%s: only meson test of a build without it rewrites it\n' "$name" >&2
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -- "$work/here"
ln -s -- "$golden/data" "$work/here/data"
ln -s -- "$(realpath -- "$golden/../..")" "$work/here/shipped"

# Sets all, the lines of the file, and start and end, where the case is.
read_file() {
  local i
  mapfile -t all < "$file"
  start= end=${#all[@]}
  for i in "${!all[@]}"; do
    [[ ${all[i]} == '=== '* ]] || continue
    if [[ $start ]]; then
      end=$i
      [[ ${all[i - 1]} ]] || end=$((i - 1))
      return
    fi
    [[ ${all[i]} != "=== $name" ]] || start=$i
  done
  [[ $start ]] || { printf '%s: no case "=== %s"\n' "$file" "$name" >&2; exit 1; }
}

print_lines() { (($# == 0)) || printf '%s\n' "$@"; }

# What stops before its input ends reads the rest of a pipe here: what writes into it would die of SIGPIPE, now and then.
read_all() {
  local code=0
  command "$@" || code=$?
  [[ ! -p /dev/stdin ]] || cat > /dev/null
  return "$code"
}
head() { read_all head "$@"; }
grep() { read_all grep "$@"; }
sed() { read_all sed "$@"; }

# Prints the commands of the case as a script; command N writes N.out, N.err and N.code.
print_script() {
  local line n=0
  declare -f read_all head grep sed
  printf '%s\n' 'trap '\''_failed=$?; ((_code)) || _code=$_failed'\'' ERR'
  for line in "${expected[@]}"; do
    case $line in
      '$ '*)
        ((n == 0)) || print_command_end
        n=$((n + 1))
        printf '_code=0\n{\n%s\n' "${line:2}"
        ;;
      '> '* | '>') printf '%s\n' "${line:2}" ;;
    esac
  done
  ((n == 0)) || print_command_end
}
print_command_end() {
  printf '} > %q 2> %q\necho "$_code" > %q\n' "$work/$n.out" "$work/$n.err" "$work/$n.code"
}

# print_stream PREFIX FILE
print_stream() {
  local lines line
  mapfile lines < "$2"
  for line in "${lines[@]}"; do
    case $line in
      $'\n') printf '%s\n' "${1%% *}" ;;
      *$'\n') printf '%s%s' "$1" "$line" ;;
      *) printf '%s%s\n\\ no newline\n' "$1" "$line" ;;
    esac
  done
}

print_result() {
  local code='? (the shell ended)'
  if [[ -e $work/$1.out ]]; then
    print_stream '  ' "$work/$1.out"
    print_stream '! ' "$work/$1.err"
  fi
  [[ ! -e $work/$1.code ]] || read -r code < "$work/$1.code"
  [[ $code == 0 ]] || printf 'exit %s\n' "$code"
}

# Prints the case as it should be: its commands and comments with what came out.
print_got() {
  local line n=0 due=
  for line in "${expected[@]}"; do
    case $line in
      '$ '* | '#'*)
        [[ ! $due ]] || print_result "$n"
        due=
        [[ $line == '#'* ]] || { n=$((n + 1)); due=1; }
        ;;
      '=== '* | '> '* | '>') ;;
      *) continue ;;
    esac
    printf '%s\n' "$line"
  done
  [[ ! $due ]] || print_result "$n"
}

exec 9< "$file" # all cases of a file may be rewritten at the same time
flock -s 9
read_file
flock -u 9
expected=("${all[@]:start:end - start}")
print_script > "$work/script"
(cd -- "$work/here" && LS_DATA_DIR=data exec bash -Euo pipefail "$work/script" </dev/null) || true
print_got > "$work/got"
printf '%s\n' "${expected[@]}" > "$work/expected"

if [[ ${LS_UPDATE_GOLDEN:-} != 1 ]]; then
  diff -u --label "$name expected" --label "$name got" "$work/expected" "$work/got"
elif ! cmp -s -- "$work/expected" "$work/got"; then
  flock 9
  read_file
  { print_lines "${all[@]:0:start}"; cat -- "$work/got"; print_lines "${all[@]:end}"; } > "$work/new"
  cat -- "$work/new" > "$file"
fi
