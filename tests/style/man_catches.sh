#!/usr/bin/env bash
# tools/man/make must keep what a page says, also what roff would take for its own; man.sh
# must accept complete pages, and report a page, a command or an option that is missing and
# what roff complains of.
# Usage: man_catches.sh CHECK MAKE LOWDOWN
set -euo pipefail
check=$1
make=$2
lowdown=$3
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
cat > "$tree/lockstep" <<'END'
#!/bin/sh
case $1 in
--help) printf 'Commands:\n  run        runs\n\n' ;;
run) printf 'Options:\n  --tp=N   degree\n  -j, --threads=N   threads\n  -h, --help   help\n\n' ;;
esac
END
chmod +x "$tree/lockstep"
cat > "$tree/index.md" <<'END'
# lockstep

Predicts.

| Command | What it does |
|---|---|
| [`lockstep run`](run.md) | a simulation |
END
cat > "$tree/run.md" <<'END'
# lockstep run

Runs *one* thing.

<!-- a remark -->

## Some words

.SH is no request here, and a \ stays one. See [the
index](index.md#a-b); it's `--tp` [OPTION].

    'code \ with -x'

| Option | Meaning |
|---|---|
| `--tp A\|B` | degree, as --tp 1 |
| `-j, --threads N` | threads |
| `-h, --help` | this |

After it.
END
printf '# More\n\nKnobs.\n' > "$tree/more.md"
make_pages() {
  "$make" "$lowdown" 1.2 /doc lockstep "$tree/index.md" > "$tree/lockstep.1"
  "$make" "$lowdown" 1.2 /doc lockstep-run "$tree/run.md" "$tree/more.md" > "$tree/lockstep-run.1"
}
refuses() {
  local out
  if out=$(bash "$check" "$tree" "$tree/lockstep") || [[ $out != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$out"
    exit 1
  fi
}

make_pages
bash "$check" "$tree" "$tree/lockstep"
text=$(groff -K utf8 -man -T ascii -P -c -P -b -P -o -P -u "$tree/lockstep-run.1" | tr -s ' \n' ' ')
for wanted in 'lockstep-run - Runs one thing.' 'SOME WORDS' '.SH is no request here, and a \ stays one. See the index;' "it's --tp" \
  "'code \\ with -x'" '--tp A|B degree, as --tp 1' '[OPTION]' 'After it.' 'MORE Knobs.' 'formats: /doc/index.md'; do
  [[ $text == *"$wanted"* ]] || { printf 'lost: %s\n%s\n' "$wanted" "$text"; exit 1; }
done
[[ $text != *remark* && $text != *index.md#* ]]

printf '.nonsense\n' >> "$tree/lockstep-run.1"
refuses nonsense
sed -i '/--threads/d' "$tree/run.md"
make_pages
refuses 'no entry for --threads in lockstep-run.1'
sed -i 's/lockstep run/lockstep/' "$tree/index.md"
make_pages
refuses 'lockstep.1 does not name run'
rm "$tree/lockstep-run.1"
refuses 'there is no lockstep-run.1'
