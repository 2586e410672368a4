#!/usr/bin/env bash
# A page is true: README.md, a page of the manual, or the README of a data folder. In the
# order of the page, in a folder of its own with the files of page_inputs.sh:
#
#   <!-- file: NAME -->            the fenced block that follows is written to NAME;
#   a block indented by four       is run as it stands if a line of it begins with "lockstep"
#                                  or "mpirun", and what it says that it writes is there;
#   <!-- example output ... -->    the fenced block that follows, up to <!-- /example output -->,
#                                  is what the block before prints, byte for byte; with
#                                  "first N lines" or "lines N to M" in the marker, these.
#
# An indented block right after a list is none in Markdown: that is an error.
#
# Usage: page.sh ROOT LOCKSTEP PAGE, PAGE within ROOT, or a whole path. LS_UPDATE_GOLDEN=1 writes the outputs.
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
page=$3
[[ $page == /* ]] || page=$root/$page
PATH=$(dirname -- "$lockstep"):$PATH
export LC_ALL=C.UTF-8 LS_DATA_DIR=$root # the bars
. "$(dirname -- "${BASH_SOURCE[0]}")/page_inputs.sh"
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
mkdir -- "$out/folder"
cd -- "$out/folder"
page_inputs
prepare_mpi

status=0 n_commands=0 n_outputs=0 mode=text file='' n_line=0
: > "$out/block"
: > "$out/new"

fail() {
  printf '%s:%d: %s\n' "$page" "$n_line" "$1"
  status=1
}

# The indented block is over.
end_block() {
  [[ -s $out/block ]] || return 0
  if grep -qE '^(lockstep|mpirun) ' "$out/block"; then
    n_commands=$((n_commands + 1))
    rm -f -- "$out/printed"
    { run_block "$out/block" "$out/printed" && outputs_exist "$out/block"; } || fail 'this command, before this line'
  fi
  : > "$out/block"
}

# A line of the example's output: of the page where it is compared, else of the program.
end_output() {
  n_outputs=$((n_outputs + 1))
  [[ -e $out/printed ]] || { fail 'no command above the output'; : > "$out/printed"; }
  if [[ -n $lines ]]; then
    sed -n "${lines}p" "$out/printed" > "$out/head"
    mv -- "$out/head" "$out/printed"
  fi
  cat -- "$out/printed" >> "$out/new"
  [[ ${LS_UPDATE_GOLDEN:-} == 1 ]] || diff -u --label "$page" --label printed "$out/shown" "$out/printed" || fail 'another output'
}

lines='' in_list='' is_output_next='' is_file_next=''
while IFS= read -r line; do
  n_line=$((n_line + 1))
  case $mode:$line in
    output:'```') end_output; mode=fence_end ;;
    output:*) printf '%s\n' "$line" >> "$out/shown"; continue ;;
    file:'```') mode=text ;;
    file:*) printf '%s\n' "$line" >> "$file" ;;
    fence:'```'*) mode=text ;;
    fence:*) ;;
    *:'```'*)
      end_block
      mode=fence
      if [[ -n $is_output_next ]]; then mode=output; : > "$out/shown"; fi
      if [[ -n $is_file_next ]]; then mode=file; mkdir -p -- "$(dirname -- "$file")"; : > "$file"; fi
      is_output_next='' is_file_next=''
      ;;
    *:'    '*)
      [[ -s $out/block || -z $in_list ]] || fail 'an indented block that Markdown takes for a part of the list before it'
      printf '%s\n' "${line:4}" >> "$out/block"
      ;;
    *)
      end_block
      mode=text
      case $line in
        '') ;;
        '- '* | '* '* | [0-9]'. '* | '  '*) in_list=1 ;;
        *) in_list='' ;;
      esac
      [[ $line != '<!-- example output'* ]] || { is_output_next=1; lines=$(sed -nE 's/.*first ([0-9]+) lines.*/1,\1/p; s/.*lines ([0-9]+) to ([0-9]+).*/\1,\2/p' <<< "$line"); }
      [[ $line != '<!-- file: '*' -->' ]] || { is_file_next=1; file=${line#<!-- file: }; file=${file% -->}; }
      ;;
  esac
  printf '%s\n' "$line" >> "$out/new"
done < "$page"
end_block
[[ $mode == text || $mode == fence_end ]] || fail 'a block that does not end'
[[ -z $is_output_next && -z $is_file_next ]] || fail 'no block after a marker'

if [[ ${LS_UPDATE_GOLDEN:-} == 1 && $status == 0 ]]; then
  cmp -s -- "$out/new" "$page" || cat -- "$out/new" > "$page"
fi
printf '%d commands, %d outputs\n' "$n_commands" "$n_outputs"
exit "$status"
