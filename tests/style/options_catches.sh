#!/usr/bin/env bash
# options.sh must accept a manual that says what --help says, report another word, a missing
# row, a page or a marker that is not there, and write the blocks on request. A long option,
# a text of several lines, and "|" are kept.
# Usage: options_catches.sh CHECK
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
pages=$tree/src/manual/commands
mkdir -p "$pages"
unset LS_UPDATE_GOLDEN
cat > "$tree/lockstep" <<'END'
#!/bin/sh
case "$*" in
--help) printf 'Commands:\n  run        runs\n\n' ;;
'run --help all') printf 'Usage: lockstep run\n  lockstep run again\n\nRuns.\n\nTopic (--help topic):\n  --tp=N                      degree\n  --set tp_async=0|1          async\nResults:\n  --a=X|Y                     one\n                              and more\n  --an-option-that-is-longer=WHAT\n                              two\n\nExample:\n  --none\n' ;;
esac
END
chmod +x "$tree/lockstep"
page() {
  printf '%s\n' '<!-- usage: run -->' '```' 'lockstep run' 'lockstep run again' '```' '<!-- /usage -->' '' '<!-- options: run -->' '| Option | Meaning |' '|---|---|' \
    '| `--a X\|Y` | one and more |' '| `--an-option-that-is-longer WHAT` | two |' '<!-- /options -->' 'kept' > "$pages/run.md"
  printf '%s\n' '<!-- knobs -->' '' '### Topic: `--help topic`' '' '| Option | Meaning |' '|---|---|' '| `--tp N` | degree |' \
    '| `--set tp_async=0\|1` | async |' '<!-- /knobs -->' > "$pages/knobs.md"
  printf '%s\n' '<!-- commands -->' '| Command | What it does |' '|---|---|' '| [`lockstep run`](run.md) | runs |' '<!-- /commands -->' > "$pages/index.md"
  sed 's,(run,(src/manual/commands/run,' "$pages/index.md" > "$tree/README.md"
}
run() { bash "$check" "$tree" "$tree/lockstep"; }
# After the change $1 to $2, $3 is reported, and LS_UPDATE_GOLDEN mends it where $4 is not "lost".
wrong() {
  local said before
  page
  before=$(cat "$tree/$2")
  sed -i "$1" "$tree/$2"
  if said=$(run 2>&1) || [[ $said != *"$3"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$3" "$said"
    exit 1
  fi
  [[ ${4-} != lost ]] || return 0
  LS_UPDATE_GOLDEN=1 run
  [[ $(cat "$tree/$2") == "$before" ]]
}
page
run
wrong 's/one and more/one/' src/manual/commands/run.md '+| `--a X\|Y` | one and more |'
wrong '/longer/d' src/manual/commands/run.md '+| `--an-option-that-is-longer WHAT` | two |'
wrong 's/run again/run/' src/manual/commands/run.md '+lockstep run again'
wrong 's/degree/a degree/' src/manual/commands/knobs.md '+| `--tp N` | degree |'
wrong 's/| runs/| walks/' README.md '| runs |'
wrong 's/options: run/options: walk/' src/manual/commands/run.md 'expected "<!-- options: run -->"' lost
page
rm "$pages/run.md"
! run > "$tree/said"
grep -qF 'commands/run.md: expected' "$tree/said"
