#!/usr/bin/env bash
# map.sh must accept a true map, and report a file that is not on it, a file that
# is only on it, a name that two rooms have, and a mention of what does not exist.
set -euo pipefail
map=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir -p "$tree/src/base" "$tree/src/core"
touch "$tree"/src/base/{a.c,a.h,meson.build} "$tree/src/core/b.c"
cat > "$tree/src/README.md" <<'END'
### base/
| File | Concept |
|---|---|
| `a.[ch]` | a pair, unlike `c.[ch]` |
### core/
| `b.c` | one file; see `base/a.h` |
## Other
| `d.c` | not a file of a room |
END
good=$(cat "$tree/src/README.md")

refuses() {
  local out
  if out=$("$map" "$tree") || [[ $out != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$out"
    exit 1
  fi
}

"$map" "$tree"
touch "$tree/src/core/new.c"
refuses '> core/new.c'
mv "$tree/src/core/new.c" "$tree/src/core/a.c"
refuses 'a is a file of: base core'
rm "$tree/src/core/a.c" "$tree/src/base/a.h"
refuses '< base/a.h'
touch "$tree/src/base/a.h"
printf '%s\nsee `core/gone.h`\n' "$good" > "$tree/src/README.md"
refuses 'there is no core/gone.h'
