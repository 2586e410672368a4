#!/usr/bin/env bash
# One word per thing, and the field's, in what users read: texts of the program (strings with a blank in them, pictures
# of results), data files, READMEs and the manual. What stands in comments of C is not looked at, nor what is code there:
# `beside`, "beside".
# Usage: words.sh ROOT; prints each place, with the word to use.
set -euo pipefail
cd -- "$1"
status=0

# use WORD INSTEAD: an extended regular expression, and what is written in its place.
use() {
  local found
  found=$(grep -rnE --include='*.c' --include='*.h' \
    "\"[^\"]* ($1)([^[:alnum:]_-][^\"]*)?\"|\"([^\"]*[^[:alnum:]\`_-])?($1) [^\"]*\"" src |
    grep -vE '^[^:]*:[0-9]+: *(/?\*|#include)|offsetof' || true
    grep -rnE --include='*.txt' --include='*.json' --include='*.md' "(^|[^\`\"[:alnum:]_-])($1)([^[:alnum:]_.(-]|\$)" \
      src strategies models topologies traces README.md tests/README.md 2>/dev/null | grep -vE "keys\.txt:[0-9]+:($1) = " || true)
  [[ $found ]] || return 0
  printf '%s\n' "$found" | sed "s|\$|    -> $2|"
  status=1
}

use 'taken to be|taken for' 'assumed to be'
use '(each )?so[- ]manieth' 'every n-th'
use 'largest numbers of tensors' 'amax of tensors'
use '(is|are|was|were|not) told apart' 'distinguished'
use 'but-(qkv|attention|projection|up|down)' 'keep-...'
use 'beside' 'next to, together with, overlapping'
exit "$status"
