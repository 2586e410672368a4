#!/usr/bin/env bash
# help_examples.sh must accept examples that work, and report one that fails, one whose file
# was not written, and a command without an example. What a page has too is left to it.
# Usage: help_examples_catches.sh CHECK
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir "$tree/bin"
cat > "$tree/bin/lockstep" <<'END'
#!/usr/bin/env bash
case "$*" in
--help) printf 'Commands:\n  run        runs\n\n'; exit ;;
'run --help') printf '%b\n' "$EXAMPLE"; exit ;;
esac
[[ "$*" != *--wrong* ]]
END
chmod +x "$tree/bin/lockstep"
check_with() { EXAMPLE=$1 bash "$check" "$tree" "$tree/bin/lockstep"; }
refuses() {
  local said
  if said=$(check_with "$2" 2>&1) || [[ $said != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$said"
    exit 1
  fi
}
check_with 'Example:\n  lockstep run \\\n    --good\n'
refuses 'fails with 1' 'Examples:\n  lockstep run --good\n  lockstep run --wrong\n'
refuses 'b.json was not written' 'Example:\n  lockstep run -o b.json\n'
refuses 'run --help has no example' 'Options:\n  --tp\n'
mkdir -p "$tree/src/manual"
printf 'Text.\n\n    lockstep run --wrong\n' > "$tree/src/manual/run.md"
check_with 'Examples:\n  lockstep run --good\n  lockstep run --wrong\n'
refuses 'fails with 1' 'Example:\n  lockstep run --wrong --more\n'
