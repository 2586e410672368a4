#!/usr/bin/env bash
# readme_example.sh must accept a true example, report one of several that differs in a
# byte or whose command fails, and write a true one on request.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
cat > "$tree/lockstep" <<'END'
#!/bin/sh
echo "it says $*"
END
chmod +x "$tree/lockstep"
unset LS_UPDATE_GOLDEN

page() {
  printf '%s\n' '    not this' '' '    lockstep one \' '      two' '' '<!-- example output: x -->' '```' "$@" '```' \
    '<!-- /example output -->' 'after' > "$tree/README.md"
}
refuses() {
  local said
  if said=$("$check" "$tree/README.md" "$tree/lockstep" 2>&1) || [[ $said != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$said"
    exit 1
  fi
}

page 'it says one two'
"$check" "$tree/README.md" "$tree/lockstep"
page 'it says one  two'
refuses '+it says one two'
page
refuses '+it says one two'
LS_UPDATE_GOLDEN=1 "$check" "$tree/README.md" "$tree/lockstep"
written=$(cat "$tree/README.md")
page 'it says one two'
[[ $written == "$(cat "$tree/README.md")" ]]
page 'it says one two' # the second of two examples is looked at as well
cat "$tree/README.md" "$tree/README.md" > "$tree/twice"
mv "$tree/twice" "$tree/README.md"
"$check" "$tree/README.md" "$tree/lockstep"
sed -i '14,$ s/it says/it said/' "$tree/README.md"
refuses '+it says one two'
LS_UPDATE_GOLDEN=1 "$check" "$tree/README.md" "$tree/lockstep"
"$check" "$tree/README.md" "$tree/lockstep"
page 'it says one two'
sed -i 's/lockstep one/false/' "$tree/README.md"
refuses 'the command fails with 1'
printf 'nothing here\n' > "$tree/README.md"
refuses 'expected a line "<!-- example output"'
