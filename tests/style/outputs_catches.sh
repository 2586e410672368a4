#!/usr/bin/env bash
# outputs.sh must accept complete tables, and report a column or a
# variable that is missing in them or only there.
# Usage: outputs_catches.sh CHECK
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir -p "$tree/src/manual/formats" "$tree/tests/golden/data"
printf 'x = g_getenv ("A_B");\n' > "$tree/src/a.c"
cat > "$tree/lockstep" <<'END'
#!/usr/bin/env bash
case $1 in
  run) printf 'rank,name\n' > spans.csv; printf 'link\n' > links.csv ;;
  memory) printf 'rank,stage\n' ;;
  whatif) printf 'change,gain\n' ;;
  place) printf 'order\n' ;;
  share) printf 'job\n' ;;
  train) printf 'cause\n' ;;
  collective) printf 'op,size\n1,2\n' ;;
esac
END
chmod +x "$tree/lockstep"

page() {
  cat > "$tree/src/manual/formats/results.md" <<'END'
<!-- csv: whatif -->
| `change`, `gain` | two |
<!-- /csv -->
<!-- csv: place -->
| `order` | one |
<!-- /csv -->
<!-- csv: share -->
| `job` | one |
<!-- /csv -->
<!-- csv: train -->
| `cause` | one |
<!-- /csv -->
<!-- csv: memory -->
| `rank`, `stage` | two |
<!-- /csv -->
<!-- csv: links -->
| `link` | one |
<!-- /csv -->
<!-- csv: collective -->
| `op`, `size` | both |
<!-- /csv -->
<!-- csv: run -->
| `rank`, `name` | both |
<!-- /csv -->
<!-- environment -->
| `A_B` | one |
<!-- /environment -->
END
}
page
"$check" "$tree" "$tree/lockstep"

# Changes to a true page, and what is reported of each: all at once, as each is about a table of its own or another word.
changes=() reports=()
wrong() {
  changes+=(-e "$1")
  reports+=("$2")
}
wrong 's/`rank`, `name`/`name`/' '> rank'
wrong 's/`link`/`links`/' '> link'
wrong 's/`op`, //' '> op'
wrong 's/A_B/&`, `C/' '< C'
wrong '/csv: place/d' 'csv: place: 0 documented'
sed -i "${changes[@]}" "$tree/src/manual/formats/results.md"
if "$check" "$tree" "$tree/lockstep" > "$tree/said"; then
  printf 'accepted\n'
  exit 1
fi
for report in "${reports[@]}"; do
  grep -qxF -- "$report" "$tree/said" || { printf 'expected "%s"; got:\n' "$report"; cat -- "$tree/said"; exit 1; }
done
[[ $(grep -c '^[<>]' "$tree/said") == 6 ]] # and nothing else
