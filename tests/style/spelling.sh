#!/usr/bin/env bash
# No misspelt word that codespell knows, in what is written for readers: sources, tools, data and their documents. Tests
# misspell on purpose; their README is read. Skipped without codespell.
# Usage: spelling.sh ROOT; prints each misspelt word.
set -euo pipefail
cd -- "$1"
command -v codespell >/dev/null || exit 77
# Terms and names that look like misspelt words, and words misspelt as examples.
known=mape,softwares,te,nin,nd,dout,hiden,titel,afer
places=()
for place in README.md tests/README.md .ci src tools models topologies strategies traces; do
  [[ -e $place ]] && places+=("$place")
done
((${#places[@]}))
codespell --quiet-level 3 --ignore-words-list "$known" "${places[@]}"
