#!/usr/bin/env bash
# Checks of the manual must accept one that is in order, and report each of their rules where it is broken.
# Usage: manual_catches.sh CHECK [ARG...]; the name of CHECK says which function below is for it.
set -euo pipefail
check=$1
shift
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT

# tools/man/make must keep what a page says, also what roff would take for its own; man.sh
# must accept complete pages, and report a page, a command or an option that is missing and
# what roff complains of.
man() {
  make=$1 lowdown=$2
  cat > "$tree/lockstep" <<'END'
#!/bin/sh
case $1 in
--help) printf 'Commands:\n  run        runs\n\n' ;;
run) printf 'Options:\n  --tp=N   degree\n  -j, --threads=N   threads\n  --json   JSON\n  -h, --help   help\n\n' ;;
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

<!-- options: run -->
- `-j, --threads N`: threads
- `--json`, `-h, --help`: [as everywhere](index.md#x)
<!-- /options -->

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
}

# manual.sh must accept a whole manual, and report each of its rules where it is broken.
manual() {
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
  wrong 'run.md has more than 1,000 lines' 'seq 1000 >> src/manual/commands/run.md'
  wrong 'has 61 files' 'for i in {1..60}; do echo > src/manual/commands/$i.txt; done'
  wrong 'src/base/x.c cites PLAN.md' 'echo "/* PLAN.md 3 */" >> src/base/x.c'
}

# options.sh must accept a manual that says what --help says, report another word, a missing
# item, a page or a marker that is not there, and write the blocks on request. A long option,
# a text of several lines, and "|" are kept.
options() {
  pages=$tree/src/manual/commands
  mkdir -p "$pages" "$tree/src/manual/formats"
  unset LS_UPDATE_GOLDEN
  cat > "$tree/lockstep" <<'END'
#!/bin/sh
case "$*" in
--help) printf 'Commands:\n  run        runs\n\n' ;;
'run --help all') printf 'Usage: lockstep run\n  lockstep run again\n\nRuns.\n\nTopic (--help topic):\n  --tp=N                      degree\n  --pp=N                      stages\n  --set tp_async=0|1          async\nResults:\n  --a=X|Y                     one\n                              and more\n  --an-option-that-is-longer=WHAT\n                              two\n\nExample:\n  --none\n' ;;
esac
END
  chmod +x "$tree/lockstep"
  page() {
    printf '%s\n' '<!-- usage: run -->' '```' 'lockstep run' 'lockstep run again' '```' '<!-- /usage -->' '' '<!-- options: run -->' \
      '- `--a X|Y`: one and more' '- `--an-option-that-is-longer WHAT`: two' '<!-- /options -->' 'kept' > "$pages/run.md"
    printf '%s\n' '<!-- knobs -->' '' '### Topic: `--help topic`' '' '- `--tp N`: degree' '- `--pp N`, `--set tp_async=0|1`' '<!-- /knobs -->' > "$pages/knobs.md"
    printf '%s\n' '<!-- fields: strategy -->' '- `pp` (integer): stages' '- `tp_async` (boolean): async' '<!-- /fields -->' > "$tree/src/manual/formats/strategy.md"
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
  wrong 's/one and more/one/' src/manual/commands/run.md '+- `--a X|Y`: one and more'
  wrong '/longer/d' src/manual/commands/run.md '+- `--an-option-that-is-longer WHAT`: two'
  wrong 's/run again/run/' src/manual/commands/run.md '+lockstep run again'
  wrong 's/degree/a degree/' src/manual/commands/knobs.md '+- `--tp N`: degree'
  wrong 's/`--pp N`, //' src/manual/commands/knobs.md '+- `--pp N`, `--set tp_async=0|1`'
  wrong 's/| runs/| walks/' README.md '| runs |'
  wrong 's/options: run/options: walk/' src/manual/commands/run.md 'expected "<!-- options: run -->"' lost
  page
  rm "$pages/run.md"
  ! run > "$tree/said"
  grep -qF 'commands/run.md: expected' "$tree/said"
}

# outputs.sh must accept complete tables, and report a column or a
# variable that is missing in them or only there.
outputs() {
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
- `change`, `gain`: two
<!-- /csv -->
<!-- csv: place -->
- `order`: one
<!-- /csv -->
<!-- csv: share -->
- `job`: one
<!-- /csv -->
<!-- csv: train -->
- `cause`: one
<!-- /csv -->
<!-- csv: memory -->
- `rank`, `stage`: two
<!-- /csv -->
<!-- csv: links -->
- `link`: one
<!-- /csv -->
<!-- csv: collective -->
- `op`, `size`: both
<!-- /csv -->
<!-- csv: run -->
- `rank`, `name`: both
<!-- /csv -->
<!-- environment -->
- `A_B`: one
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
}

# page.sh must run a true page, write the files that it shows, write a true output on
# request, and report a command that fails, an output that differs in a byte (also of the
# second of two, and of a beginning), a file that was not written and a marker without a block.
page() {
  mkdir -p "$tree/tests" "$tree/bin"
  ln -s "$(realpath -- "$(dirname -- "$0")/..")/golden" "$tree/tests/golden"
  ln -s "$(realpath -- "$(dirname -- "$0")/..")/capture" "$tree/tests/capture"
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
  local lines
  for lines in 'first 1 lines' 'lines 1 to 1'; do
    output 'one --cat page' ": its $lines" > "$tree/page.md"
    sed -i 's,--cat page,--cat /dev/null,' "$tree/page.md"
    run
    sed -i 's,it says one,it says One,' "$tree/page.md"
    refuses '+it says one'
  done
}

# sentences.sh must report a sentence of 36 words in a paragraph, an item of a list or over several lines, with the line
# where it starts, and accept one of 35; code, links, tables, blocks, headings and comments are not counted.
sentences() {
  page=$tree/src/manual/a.md
  mkdir -p "$tree/src/manual"
  run() { bash "$check" "$tree"; }
  # words N: N words.
  words() { printf 'word %.0s' $(seq "$1") | sed 's/ $//'; }
  refuses() {
    local said
    if said=$(run 2>&1) || [[ $said != *"$1"* ]]; then
      printf 'expected "%s"; got:\n%s\n' "$1" "$said"
      exit 1
    fi
  }

  refuses '0 pages, 0 sentences'
  mkdir -p "$tree/src/manual/b"
  printf '# %s\n' "$(words 36)" > "$page"
  refuses '1 pages, 0 sentences'
  printf '%s\n' "# $(words 36)" '' "It $(words 34)." "**2.** Then \`$(words 36)\` and \`$(words 18)" "$(words 18)\`." "| $(words 36) |" '' \
    "    $(words 36)" '' '```' "$(words 36)" '```' "<!-- $(words 36)" "$(words 36)" '-->' \
    "[A link $(words 31)](a.md \"$(words 36)\") to - it." "E. Chan et al. (2007) and $(words 27) e.g. this." \
    "- $(words 34), one" "- $(words 34): two" "1. $(words 35)" "   And $(words 34)" > "$page"
  refuses 'a.md:20: 70 words: word word'
  sed -i 's/^   And/   \n&/; $ s/ word$//' "$page"
  [[ $(run) == '1 pages, 8 sentences' ]]
  printf '%s\n' "$(words 34) one. *this* is $(words 32). (It $(words 20). \`b\` $(words 20)" > "$page"
  [[ $(run) == '1 pages, 4 sentences' ]]

  printf '%s\n' 'One.' "Two; $(words 34)," "it is." > "$page"
  refuses 'a.md:2: 37 words: Two; word word word word word ...'
  printf '%s\n' '- One.' "- $(words 18)" "  $(words 18). Three?" > "$page"
  refuses 'a.md:2: 36 words'
  printf '%s\n' "\`code" 'more` is one. It' "$(words 35)" > "$page"
  refuses 'a.md:2: 36 words'
  printf '%s\n' "E. Chan et al. (2007) and $(words 30)." > "$page"
  refuses 'a.md:1: 36 words'
  printf '%s\n' "By E. Chan et al. Also $(words 30)." > "$page"
  refuses 'a.md:1: 36 words'
  printf '%s\n' "\`one word\` $(words 35)" > "$page"
  refuses 'a.md:1: 36 words'
  printf '%s\n' 'The last' > "$page"
  printf '%s\n' "$(words 36)" > "$tree/src/manual/b/c.md"
  refuses 'src/manual/b/c.md:1: 36 words'
}

"$(basename -- "$check" .sh)" "$@"
