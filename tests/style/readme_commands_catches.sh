#!/usr/bin/env bash
# readme_commands.sh fails on a command that fails, in a README or among the examples of a --help, on a file that was
# not written, and if it found nothing.
# Usage: readme_commands_catches.sh CHECK
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
root=$(realpath -- "$(dirname -- "$0")/../..")
mkdir -p "$tree/tests" "$tree/bin"
ln -s "$root/tests/golden" "$tree/tests/golden"
for folder in models topologies strategies traces; do
  mkdir "$tree/$folder"
  printf 'none\n' > "$tree/$folder/README.md"
done
# A program that writes what -o names, and refuses --wrong; EXAMPLE is that of its only command.
export EXAMPLE=--good
printf '%s\n' '#!/usr/bin/env bash' 'case "$*" in' '--help) printf "Commands:\n  run runs\n\n"; exit ;;' \
  '"run --help") printf "Example:\n  lockstep run \\\\\n    $EXAMPLE\n\n"; exit ;;' esac 'while (($#)); do' '  [[ $1 != --wrong ]] || exit 2' '  [[ $1 != -o ]] || echo x > "$2"' '  shift' 'done' > "$tree/bin/lockstep"
chmod +x "$tree/bin/lockstep"

# Twenty good blocks and then $1.
readme() {
  for _ in {1..20}; do
    printf 'text\n\n    on=x\n    lockstep run $on -o a.json\n\n'
  done > "$tree/README.md"
  printf '%b' "$1" >> "$tree/README.md"
}
fails_with() {
  readme "$2"
  if out=$(bash "$check" "$tree" "$tree/bin/lockstep" 2>&1); then
    printf 'not caught: %s\n' "$2"
    exit 1
  fi
  grep -qF -- "$1" <<< "$out" || { printf 'expected "%s" in:\n%s\n' "$1" "$out"; exit 1; }
}
readme ''
bash "$check" "$tree" "$tree/bin/lockstep"
fails_with 'fails:' '    lockstep run \\\n      --wrong\n'
EXAMPLE=--wrong fails_with 'fails:' ''
fails_with 'b.csv was not written' '    lockstep sweep --list b.csv\n'
printf 'nothing\n' > "$tree/README.md"
! bash "$check" "$tree" "$tree/bin/lockstep" > "$tree/out"
