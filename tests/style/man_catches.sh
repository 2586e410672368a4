#!/usr/bin/env bash
# man.awk must keep what a README says, also what roff would take for its own; man.sh
# must accept a complete page, and report a command or a flag without an entry and what
# roff complains of.
# Usage: man_catches.sh CHECK AWK_PROGRAM
set -euo pipefail
check=$1
program=$2
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
cat > "$tree/lockstep" <<'END'
#!/bin/sh
case $1 in
--help) printf 'Commands:\n  run        runs\n\n' ;;
run) printf 'Options:\n  --tp=N   degree\n  -j, --threads=N   threads\n  -h, --help   help\n' ;;
esac
END
chmod +x "$tree/lockstep"
cat > "$tree/README.md" <<'END'
Not in the manual.

<!-- man -->

## Commands

| Command | What it does |
|---|---|
| `lockstep run` | runs *one* thing |

### lockstep run

.SH is no request here, and a \ stays one.

| Flag | Meaning | Default |
|---|---|---|
| `--tp A\|B` | degree | 1 |
| `-j N`, `--threads N` | threads | |

    'code \ with -x'

<!-- /man -->

Nor this.
END
make_page() { awk -v version=1.2 -f "$program" "$tree/README.md" > "$tree/page"; }
refuses() {
  local out
  if out=$("$check" "$tree/page" "$tree/lockstep") || [[ $out != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$out"
    exit 1
  fi
}

make_page
"$check" "$tree/page" "$tree/lockstep"
text=$(groff -K utf8 -man -T ascii -P -c -P -b -P -o -P -u "$tree/page")
for wanted in 'runs one thing' '.SH is no request here, and a \ stays one.' '--tp A|B' 'degree. Default: 1' "'code \\ with -x'"; do
  [[ $text == *"$wanted"* ]] || { printf 'lost: %s\n%s\n' "$wanted" "$text"; exit 1; }
done
[[ $text != *Not* && $text != *Nor* ]]

printf '.nonsense\n' >> "$tree/page"
refuses nonsense
sed -i '/--threads/d' "$tree/README.md"
make_page
refuses 'no entry for --threads of lockstep run'
sed -i 's/`lockstep run`/`lockstep`/' "$tree/README.md"
make_page
refuses 'no entry for the command run'
