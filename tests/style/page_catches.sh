#!/usr/bin/env bash
# page.sh must run a true page, write the files that it shows, write a true output on
# request, and report a command that fails, an output that differs in a byte (also of the
# second of two, and of a beginning), a file that was not written and a marker without a block.
# Usage: page_catches.sh CHECK
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir -p "$tree/tests" "$tree/bin"
ln -s "$(realpath -- "$(dirname -- "$0")/..")/golden" "$tree/tests/golden"
# Says its arguments, refuses --wrong, writes what -o names, prints what --cat names.
cat > "$tree/bin/lockstep" <<'END'
#!/bin/sh
echo "it says $*"
while [ $# -gt 0 ]; do
  case $1 in
  --wrong) exit 2 ;;
  -o) echo x > "$2" ;;
  --cat) cat "$2" ;;
  esac
  shift
done
END
chmod +x "$tree/bin/lockstep"
unset LS_UPDATE_GOLDEN

run() { bash "$check" "$tree" "$tree/bin/lockstep" page.md; }
page() { printf '%s\n' "$@" > "$tree/page.md"; }
output() { printf '%s\n' '' "    lockstep $1" '' "<!-- example output${2-} -->" '```' 'it says '"$1" '```' '<!-- /example output -->'; }
refuses() {
  local said
  if said=$(run 2>&1) || [[ $said != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$said"
    exit 1
  fi
}

page 'text' '' '    on=x' '    lockstep run $on -o a.json' '' 'and'
run
page '<!-- file: a/b.txt -->' '```' 'in it' '```' '' '    lockstep --cat a/b.txt' '' '<!-- example output -->' '```' 'it says --cat a/b.txt' 'in it' '```' '<!-- /example output -->'
run
page '    lockstep run \' '      --wrong'
refuses 'fails with 2'
page '    lockstep sweep > /dev/null && rm -f b.csv # --list b.csv'
refuses 'b.csv was not written'
page '- a list' '  and more' '' '    lockstep run'
refuses 'an indented block that Markdown takes'
page '- a list' '' 'Text.' '' '    lockstep run'
run
page '<!-- example output -->' '```' '```'
refuses 'no command above the output'
page '    lockstep x' '' '<!-- example output -->'
refuses 'no block after a marker'

{ output one; output 'two three'; } > "$tree/page.md"
run
true_page=$(cat "$tree/page.md")
sed -i 's/it says two three/it says two  three/' "$tree/page.md"
refuses '+it says two three'
LS_UPDATE_GOLDEN=1 run
[[ $true_page == "$(cat "$tree/page.md")" ]]
sed -i '/^it says/d' "$tree/page.md"
refuses '+it says one'
LS_UPDATE_GOLDEN=1 run
[[ $true_page == "$(cat "$tree/page.md")" ]]
output 'one --cat page' ': its first 1 lines' > "$tree/page.md"
sed -i 's,--cat page,--cat /dev/null,' "$tree/page.md"
run
sed -i 's,it says one,it says One,' "$tree/page.md"
refuses '+it says one'
