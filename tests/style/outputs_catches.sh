#!/usr/bin/env bash
# outputs.sh must accept complete tables, and report a key, a column or a
# variable that is missing in them or only there.
# Usage: outputs_catches.sh CHECK
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
mkdir -p "$tree/src/manual/formats" "$tree/tests/golden/data"
touch "$tree/tests/golden/data/cases-coverage.csv"
printf 'x = g_getenv ("A_B");\n' > "$tree/src/a.c"
cat > "$tree/lockstep" <<'END'
#!/usr/bin/env bash
if [[ $1 == run ]]; then
  printf 'rank,name\n' > spans.csv
  printf 'link\n' > links.csv
  printf '{\n  "t": 1,\n  "m": {\n    "a": 1,\n    "deep": {\n      "x": "{"\n    }\n  },\n  "links": [\n    {\n      "name": "["\n    }\n  ],\n  "none": []\n}\n'
elif [[ $1 == compare ]]; then
  printf '{\n  "a": 1\n}\n'
elif [[ $1 == schedule ]]; then
  printf '{\n  "span": 1\n}\n'
elif [[ $1 == topology ]]; then
  printf '{\n  "cluster": 1\n}\n'
elif [[ $1 == memory ]]; then
  [[ ${!#} == --csv ]] && printf 'rank,stage\n' || printf '{\n  "clock": 1\n}\n'
elif [[ $1 == import ]]; then
  printf '{\n  "model": {\n    "layers": 1\n  }\n}\n'
elif [[ $1 == whatif ]]; then
  [[ ${!#} == --csv ]] && printf 'change,gain\n' || printf '{\n  "now": 1\n}\n'
elif [[ $1 == place ]]; then
  [[ ${!#} == --csv ]] && printf 'order\n' || printf '{\n  "given": 1\n}\n'
elif [[ $1 == share ]]; then
  [[ ${!#} == --csv ]] && printf 'job\n' || printf '{\n  "jobs": 1\n}\n'
elif [[ $1 == train ]]; then
  [[ ${!#} == --csv ]] && printf 'cause\n' || printf '{\n  "gpus": 1\n}\n'
elif [[ $1 == sweep ]]; then
  printf '{\n  "wall_s": 1\n}\n'
elif [[ $1 == kernel ]]; then
  printf '{\n  "gpu": 1\n}\n'
elif [[ $1 == collective ]]; then
  [[ $4 == --csv ]] && printf 'op,size\n1,2\n' || printf '{\n  "rows": [\n    {\n      "op": 1\n    }\n  ]\n}\n'
else
  printf '{\n  "by_family": {\n    "korth": {\n      "n": 1\n    }\n  },\n  "assumed": [\n    "a=b",\n    "c=d"\n  ]\n}\n'
fi
END
chmod +x "$tree/lockstep"

page() {
  cat > "$tree/src/manual/formats/results.md" <<'END'
<!-- json: run -->
| `t` | one |
| `m.a` | two |
| `m.deep.x` | three |
| `links[].name` | four |
| `none` | five |
<!-- /json -->
<!-- json: validate -->
| `by_family.FAMILY.n` | `not a key` |
| `assumed[]` | two |
<!-- /json -->
<!-- json: import -->
| `model` | one |
<!-- /json -->
<!-- json: whatif -->
| `now` | one |
<!-- /json -->
<!-- csv: whatif -->
| `change`, `gain` | two |
<!-- /csv -->
<!-- json: place -->
| `given` | one |
<!-- /json -->
<!-- csv: place -->
| `order` | one |
<!-- /csv -->
<!-- json: share -->
| `jobs` | one |
<!-- /json -->
<!-- csv: share -->
| `job` | one |
<!-- /csv -->
<!-- json: train -->
| `gpus` | one |
<!-- /json -->
<!-- csv: train -->
| `cause` | one |
<!-- /csv -->
<!-- json: sweep -->
| `wall_s` | one |
<!-- /json -->
<!-- json: kernel -->
| `gpu` | one |
<!-- /json -->
<!-- json: compare -->
| `a` | one |
<!-- /json -->
<!-- json: schedule -->
| `span` | one |
<!-- /json -->
<!-- json: topology -->
| `cluster` | one |
<!-- /json -->
<!-- json: memory -->
| `clock` | one |
<!-- /json -->
<!-- csv: memory -->
| `rank`, `stage` | two |
<!-- /csv -->
<!-- csv: links -->
| `link` | one |
<!-- /csv -->
<!-- json: collective -->
| `rows[].op` | one |
<!-- /json -->
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
wrong '/m.deep.x/d' '> m.deep.x'
wrong 's/links\[\].name/&`, `.size/' '< links[].size'
wrong '/assumed/d' '> assumed[]'
wrong 's/`rank`, `name`/`name`/' '> rank'
wrong 's/`link`/`links`/' '> link'
wrong 's/`cluster`/`clusters`/' '> cluster'
wrong 's/`op`, //' '> op'
wrong 's/rows\[\].op/rows[].other/' '> rows[].op'
wrong 's/A_B/&`, `C/' '< C'
wrong '/json: kernel/d' 'json: kernel: 0 documented'
sed -i "${changes[@]}" "$tree/src/manual/formats/results.md"
if "$check" "$tree" "$tree/lockstep" > "$tree/said"; then
  printf 'accepted\n'
  exit 1
fi
for report in "${reports[@]}"; do
  grep -qxF -- "$report" "$tree/said" || { printf 'expected "%s"; got:\n' "$report"; cat -- "$tree/said"; exit 1; }
done
[[ $(grep -c '^[<>]' "$tree/said") == 13 ]] # and nothing else
