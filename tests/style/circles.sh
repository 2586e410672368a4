#!/usr/bin/env bash
# A change should not drag half a room along: files that need each other in a circle, by the symbols that
# their objects define and use, are at most 4; headers that include each other are none.
# Usage: circles.sh ROOT LIBRARY...; prints the circles that are too large, and fails if there is one.
set -euo pipefail
root=$1
shift
most=4

# Of each symbol a line "file D symbol" where it is defined, "file U symbol" where it is used.
symbols() {
  nm -A -P "$@" | awk '$3 ~ /^[A-Z]$/ { print $1, ($3 == "U" ? "U" : "D"), $2 }' |
    sed -E 's,^[^[]*\[([^]]*/)?([^]]*)\.o\]:?,\2,'
}

# The same of headers: each defines its own name, and uses those that it includes.
headers() {
  (cd -- "$root/src" && find . -name '*.h' -print0 | sort -z | xargs -0 awk '
    { file = substr(FILENAME, 3) }
    FNR == 1 { print file, "D", file }
    /^#include "/ { split($0, part, "\""); print file, "U", part[2] }')
}

# circles WHAT MOST: of such lines; fails, too, if there is nothing to look at.
circles() {
  awk -v what="$1" -v most="$2" '
    $2 == "D" { owner[$3] = $1; if (!($1 in n_used)) { n_used[$1] = 0; file[++n_files] = $1 } }
    $2 == "U" { if (!($1 in n_used)) { n_used[$1] = 0; file[++n_files] = $1 }; used[$1, ++n_used[$1]] = $3 }
    function least(a, b) { return a < b ? a : b }
    # Tarjan: low[v] is the earliest file on the stack that v leads back to.
    function visit(v,    i, w, n, text) {
      at[v] = low[v] = ++n_visited
      stack[++height] = v
      is_open[v] = 1
      for (i = 1; i <= n_used[v]; i++) {
        w = owner[used[v, i]]
        if (w == "")
          continue
        n_edges += w != v
        if (!(w in at)) {
          visit(w)
          low[v] = least(low[v], low[w])
        } else if (is_open[w])
          low[v] = least(low[v], at[w])
      }
      if (low[v] != at[v])
        return
      do {
        w = stack[height--]
        is_open[w] = 0
        text = text " " w
        n++
      } while (w != v)
      largest = n > largest ? n : largest
      if (n > most) {
        printf "circle of %d %s (at most %d):%s\n", n, what, most, text
        n_bad++
      }
    }
    END {
      for (i = 1; i <= n_files; i++)
        if (!(file[i] in at))
          visit(file[i])
      printf "%d %s, %d links, largest circle %d\n", n_files, what, n_edges, largest
      exit n_bad > 0 || n_edges == 0
    }'
}

status=0
symbols "$@" | circles objects "$most" || status=1
headers | circles headers 1 || status=1
exit "$status"
