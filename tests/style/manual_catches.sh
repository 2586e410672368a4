#!/usr/bin/env bash
# manual.sh must accept a whole manual, and report each of its rules where it is broken.
# Usage: manual_catches.sh CHECK
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
manual=$tree/src/manual

lay_out() {
  rm -rf -- "$tree"
  mkdir -p "$manual/commands" "$tree/src/base"
  printf '#!/bin/sh\nprintf "Commands:\\n  run        runs\\n\\n"\n' > "$tree/lockstep"
  chmod +x "$tree/lockstep"
  printf '%s\n' '[manual](src/manual/index.md) [site](https://x.org/none)' > "$tree/README.md"
  printf '%s\n' '[run](commands/run.md#two-words)' '' '    [code](none.md)' > "$manual/index.md"
  printf '%s\n' '# run' '## Two words!' '[back](../index.md) `[x](y)`' > "$manual/commands/run.md"
  printf '%s\n' "files('index.md', 'commands/run.md')" > "$manual/meson.build"
  printf '/* README.md says it. */\n' > "$tree/src/base/x.c"
}
run() { bash "$check" "$tree" "$tree/lockstep"; }
# After the command $2, $1 is reported.
wrong() {
  local said
  lay_out
  (cd -- "$tree" && eval "$2")
  if said=$(run 2>&1) || [[ $said != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$said"
    exit 1
  fi
}
lay_out
run
wrong 'README.md has 151 lines' 'seq 150 >> README.md'
wrong 'README.md: the link (none.md) leads nowhere' 'echo "[x](none.md)" >> README.md'
wrong 'the link (../none.md) leads nowhere' 'echo "[x](../none.md)" >> src/manual/commands/run.md'
wrong 'no heading for the link (commands/run.md#two-words)' 'sed -i s/Two/Three/ src/manual/commands/run.md'
wrong 'index.md names src/base/y.c' 'echo "see \`src/base/y.c\` and \`src/base/x.c\`" >> src/manual/index.md'
wrong 'lockstep run has no page' 'mv src/manual/commands/run.md src/manual/commands/walk.md'
wrong 'x.md is not reached' 'echo x > src/manual/x.md'
wrong 'run.md is not in' 'echo > src/manual/meson.build'
wrong 'run.md has more than 500 lines' 'seq 500 >> src/manual/commands/run.md'
wrong 'has 61 files' 'for i in {1..60}; do echo > src/manual/commands/$i.txt; done'
wrong 'src/base/x.c cites PLAN.md' 'echo "/* PLAN.md 3 */" >> src/base/x.c'
