#!/usr/bin/env bash
# The id of a measured run is a name: nothing in src decides by it, but --only, whose pattern
# is the user's. (tests/accuracy renames all ids and asks for the same predictions.)
# Usage: ids.sh ROOT
set -euo pipefail
cd -- "$1/src"
grep -rnE '(prefix|suffix|cmp|equal|_match|strstr|contains|pattern)[a-z_]* \([^;]*(c|row|case)(->|\.)id\b' --include='*.[ch]' . \
  | grep -vF 'g_regex_match (only, c->id, 0, NULL)' && { echo 'decides by the id of a row'; exit 1; }
# Nor are there the names that published rows have (a profile is called internevo-0.3).
grep -rnE '"(korth|sc21|vtrain|simumax|mtnlg|dgxc|internevo-7b|titan)[-"]' --include='*.c' . && { echo 'names published rows'; exit 1; }
[[ $(grep -rlE 'g_regex_match \(only, c->id' --include='*.c' . | wc -l) == 1 ]] # the pattern above still finds what it should
