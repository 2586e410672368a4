#!/usr/bin/env bash
# A check must accept what is right and report each kind of violation: it is run on small trees of its own.
# Usage: catches.sh CHECK [COMPILER [ARG...]]; the name of CHECK says which function below is for it.
set -euo pipefail
check=$1
compiler=("${@:2}")
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT

# refuses WORDS COMMAND...: the command fails, and says these words.
refuses() {
  local said
  if said=$("${@:2}" 2>&1) || [[ $said != *"$1"* ]]; then
    printf 'expected "%s"; got:\n%s\n' "$1" "$said"
    exit 1
  fi
}

# One file of each violation, and one that is in order.
layers() {
  put() {
    mkdir -p "$tree/$(dirname "$1")"
    printf '#include %s\n' "${@:2}" > "$tree/$1"
  }
  mkdir -p "$tree/tests" "$tree/tools"
  put src/base/up.c '"core/evq.h"'
  put src/network/side.c '"compute/cost.h"'
  put src/lower/side.c '"network/coll.h"'
  put src/lower/core.c '"core/engine.h"'
  put src/cli/deep.c '"job/job.h"'
  put src/model/json.c '<cjson/cJSON.h>'
  put src/exec/gsl.c '<gsl/gsl_math.h>'
  put src/core/cunit.c '<CUnit/CUnit.h>'
  put src/sweep/public.c '<lockstep/lockstep.h>'
  put src/sweep/mpi.c '<mpi.h>'
  put src/data/relative.c '"../base/diag.h"'
  put src/job/leaf.c '"data/launch/import_reader.h"'
  put src/network/fine.c '"network/coll.h"' '"core/maxmin.h"' '"base/arena.h"' '<lockstep/units.h>' '<glib.h>'
  refuses '13 files, 12 violations' "$check" "$tree"
  ! "$check" "$tree" | grep -F fine.c
}

# Words that the glossary replaces, in each kind of place; not in comments, code and names.
words() {
  mkdir -p "$tree/src/show/text" "$tree"/{strategies,models,topologies,traces,tests}
  touch "$tree/README.md" "$tree/tests/README.md"
  printf '%s\n' '/* what lies beside it is taken to be off */' 'const char *key = "beside"; /* a key */' > "$tree/src/a.c"
  printf '%s\n' '{ "beside": 1, "source": "given as `beside`" }' > "$tree/strategies/a.json"
  "$check" "$tree"
  printf 'const char *text = "zero: taken to be off";\n' > "$tree/src/b.c"
  refuses 'b.c:1:const char *text = "zero: taken to be off";    -> assumed to be' "$check" "$tree"
  rm "$tree/src/b.c"
  printf '|a kernel beside another\n' > "$tree/src/show/text/a.txt"
  refuses 'a.txt:1:' "$check" "$tree"
  rm "$tree/src/show/text/a.txt"
  printf '{ "notes": ["layers are not told apart"] }\n' > "$tree/models/a.json"
  refuses 'a.json:1:' "$check" "$tree"
  rm "$tree/models/a.json"
  printf 'Each so-manieth checkpoint.\n' > "$tree/README.md"
  refuses 'README.md:1:' "$check" "$tree"
}

# A file that is not on the map, one that is only on it, one that does not say what it is, a file in no room, a name that two
# rooms have, a mention of what does not exist.
map() {
  mkdir -p "$tree/src/base" "$tree/src/core"
  printf '/* base/a.h — a pair, unlike c.[ch]. It has more to it. */\n' > "$tree/src/base/a.h"
  touch "$tree/src/base/a.c" "$tree/src/base/meson.build"
  printf '/* One file, see base/a.h:\n *\n * more. */\n' > "$tree/src/core/b.c"
  printf '%s\n' '### base/' '| File | Concept |' '|---|---|' '| `a.[ch]` | a pair, unlike c.[ch] |' '### core/' '| File | Concept |' \
    '|---|---|' '| `b.c` | One file, see base/a.h |' '## Other' '| `d.c` | not a file of a room |' > "$tree/src/README.md"
  "$check" "$tree"
  printf '/* Another. */\n' > "$tree/src/core/new.c"
  refuses '+| `new.c` | Another |' "$check" "$tree"
  : > "$tree/src/core/new.c"
  refuses 'core/new.c: does not begin with a comment' "$check" "$tree"
  LS_UPDATE_GOLDEN=1 refuses 'core/new.c: does not begin with a comment' "$check" "$tree"
  mv "$tree/src/core/new.c" "$tree/src/core/a.c"
  refuses 'a is a file of base, core' "$check" "$tree"
  rm "$tree/src/core/a.c"
  LS_UPDATE_GOLDEN=1 "$check" "$tree"
  "$check" "$tree"
  rm "$tree/src/base/a.h"
  refuses '-| `a.[ch]` | a pair, unlike c.[ch] |' "$check" "$tree"
  printf '/* A pair. */\n' > "$tree/src/base/a.h"
  LS_UPDATE_GOLDEN=1 "$check" "$tree"
  mkdir "$tree/src/new"
  touch "$tree/src/new/c.c"
  refuses 'no room has new/c.c' "$check" "$tree"
  rm "$tree/src/new/c.c"
  printf 'see `core/gone.h`\n' >> "$tree/src/README.md"
  refuses 'there is no core/gone.h' "$check" "$tree"
}

# A circle of five files, by a function or by data, and one of two headers; four files may need each other.
circles() {
  mkdir -p "$tree/src/room"
  # ring N KIND: a library of N files, each of which needs the next, the last one the first.
  ring() {
    local i next
    rm -f "$tree"/*.[oa]
    for ((i = 0; i < $1; i++)); do
      next=$(((i + 1) % $1))
      if [[ $2 == data ]]; then
        printf 'extern const void *const d%d; const void *const d%d = &d%d;\n' "$next" "$i" "$next"
      else
        printf 'int f%d (int); int f%d (int x) { return x > 0 ? f%d (x - 1) : 0; }\n' "$next" "$i" "$next"
      fi > "$tree/f$i.c"
      "${compiler[@]}" -c "$tree/f$i.c" -o "$tree/f$i.c.o"
    done
    ar -rcs "$tree/ring.a" "$tree"/*.o
  }
  printf '#include "room/b.h"\n' > "$tree/src/room/a.h"
  printf '#include <glib.h>\n' > "$tree/src/room/b.h"
  ring 4 code
  "$check" "$tree" "$tree/ring.a"
  ring 5 code
  refuses 'circle of 5 objects' "$check" "$tree" "$tree/ring.a"
  ring 5 data
  refuses 'circle of 5 objects' "$check" "$tree" "$tree/ring.a"
  ring 4 code
  printf '#include "room/a.h"\n' >> "$tree/src/room/b.h"
  refuses 'circle of 2 headers' "$check" "$tree" "$tree/ring.a"
}

# A function that is hidden, and one that is shown but not declared.
exports() {
  mkdir "$tree/lockstep"
  printf '/* ls_comment () */\nint ls_one (void);\nint ls_two (int a);\n' > "$tree/lockstep/a.h"
  local shown='__attribute__ ((visibility ("default")))'
  # Builds a library of these lines and checks it.
  library() {
    printf '%s\n' "$@" > "$tree/a.c"
    "${compiler[@]}" -shared -fPIC -fvisibility=hidden -o "$tree/liba.so" "$tree/a.c"
    "$check" "$tree" "$tree/liba.so" "${compiler[@]}"
  }
  local one="$shown int ls_one (void) { return 1; }" two="$shown int ls_two (int a) { return a; }"
  library "$one" "$two" 'int ls_inner (void) { return 3; }'
  refuses '< ls_two' library "$one" 'int ls_two (int a) { return a; }'
  refuses '> ls_three' library "$one" "$two" "$shown int ls_three (void) { return 3; }"
  refuses '> other' library "$one" "$two" "$shown int other;"
}

# C that does not compile, and a manual without any; other blocks are left alone.
snippets() {
  mkdir -p "$tree/src/manual" "$tree/src/include"
  printf 'int half (int x);\n' > "$tree/src/half.h"
  page() { printf '%s\n' '```' 'not C' '```' "$@" > "$tree/src/manual/a.md"; }
  page '<!-- compiled -->' '```' '#include "half.h"' 'int half (int x) { return x / 2; }' '```'
  "$check" "$tree" "${compiler[@]}"
  page '<!-- compiled -->' '```' 'int half (int x) { return y / 2; }' '```'
  refuses y "$check" "$tree" "${compiler[@]}"
  page
  refuses '0 snippets' "$check" "$tree" "${compiler[@]}"
}

# An example that fails, one whose file was not written, a command without one. What a page has too is left to it.
help_examples() {
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
  check_with() { EXAMPLE=$1 "$check" "$tree" "$tree/bin/lockstep"; }
  check_with 'Example:\n  lockstep run \\\n    --good\n'
  refuses 'fails with 1' check_with 'Examples:\n  lockstep run --good\n  lockstep run --wrong\n'
  refuses 'b.json was not written' check_with 'Example:\n  lockstep run -o b.json\n'
  refuses 'run --help has no example' check_with 'Options:\n  --tp\n'
  mkdir -p "$tree/src/manual"
  printf 'Text.\n\n    lockstep run --wrong\n' > "$tree/src/manual/run.md"
  check_with 'Examples:\n  lockstep run --good\n  lockstep run --wrong\n'
  refuses 'fails with 1' check_with 'Example:\n  lockstep run --wrong --more\n'
}

# A file of 1,001 lines among short ones, and a folder of 61 files; data may be long.
length() {
  mkdir -p "$tree"/{src/{a,b},tests,tools}
  for i in {1..60}; do printf 'int x;\n' | tee "$tree/src/a/$i.c" > "$tree/src/b/$i.c"; done
  seq 1100 > "$tree/tests/data.txt"
  seq 1000 > "$tree/tests/fits.c"
  "$check" "$tree"
  seq 1001 > "$tree/tools/long.sh"
  refuses 'tools/long.sh: 1001 lines' "$check" "$tree"
  mv "$tree/tools/long.sh" "$tree/src/a/data.csv"
  refuses 'src/a: 61 files' "$check" "$tree"
  rm -r "$tree/src"/*
  refuses '' "$check" "$tree"
}

# A misspelt word, and one that is known; a tree without anything to read.
spelling() {
  command -v codespell >/dev/null || exit 77
  refuses '' "$check" "$tree"
  mkdir "$tree/src"
  printf 'The mape of all.\n' > "$tree/README.md"
  "$check" "$tree"
  printf '/* the rate of a link, recieved */\n' > "$tree/src/a.c"
  refuses 'recieved ==> received' "$check" "$tree"
}

# A pipe into what stops early, where a script heeds what ends each command of a pipe; into what reads all, and without a pipe.
pipes() {
  local reader fine=$'set -euo pipefail\n# list | head\nlist | grep a > /dev/null || head -3 file\ngrep -q a file || list | grep --color a\n'
  mkdir -p "$tree"/{.ci,tests,tools}
  refuses 'no script was looked at' "$check" "$tree"
  printf '%s' "$fine" > "$tree/tests/a.sh"
  printf 'set -u\nlist | head\n' > "$tree/tools/b"
  "$check" "$tree"
  for reader in 'head -n 1' 'grep -q a' 'grep -xqF a' 'grep -F -m 1 a'; do
    printf '%slist | %s\n' "$fine" "$reader" > "$tree/tools/c"
    refuses "tools/c:5:list | $reader" "$check" "$tree"
  done
}

# An output, a note, a file or a table that says GPU, and a command that was not tried. Keys, options and names of vertices
# are no words.
accelerator_word() {
  local said fault root
  root=$(realpath -- "$(dirname -- "$0")/../..")

  # A program with a fault in some commands.
  cat > "$tree/lockstep" <<'EOF'
#!/usr/bin/env bash
case $1 in
  --help) printf 'Commands:\n  run   one\n  dance  another\n\n' ;;
  trace) touch files/job.json ;;
  compare) echo 'on 8 GPUs of it' ;;
  kernel) echo 'note: a GPU.' >&2 ;;
  sweep) echo "set xlabel 'GPUs'" > files/s.gp ;;
  topology) printf 'node0/gpu1 4 x gpu\n' ;;
  schedule) printf -- 'run --gpus 8 --gpu-hour 2, "gpus": 8, n_GPUs, node0/gpu*>gpu*\n' ;;
esac
EOF
  chmod +x "$tree/lockstep"

  if said=$(bash "$check" "$root" "$tree/lockstep" 2>&1); then
    printf 'nothing was caught\n'
    exit 1
  fi
  for fault in 'stdout of lockstep compare' 'stderr of lockstep kernel' 'files/s.gp of lockstep sweep' 'lockstep topology .* calls chips gpu:' \
    'lockstep dance is not tried' 'exit code 4 expected, 0 got'; do
    if ! grep -q -- "$fault" <<< "$said"; then
      printf 'not caught: %s\n' "$fault"
      exit 1
    fi
  done
  if grep -e 'of lockstep schedule' -e 'run is not tried' <<< "$said"; then
    printf 'caught, and there is no fault\n'
    exit 1
  fi
}

name=$(basename -- "$check")
"${name%.*}"
