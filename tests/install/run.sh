#!/usr/bin/env bash
# An installed Lockstep is complete: the program of lockstep.h, built with what
# pkg-config says of the copy, runs against its library and data and prints what the
# installed command line prints; the data, the manual, its man pages where there is lowdown, and
# the completion are there; the Python module does the same. And
# the command line needs of the library only what it shows: it links with it and behaves
# the same.
# Usage: run.sh ROOT BUILD LOCKSTEP_SHARED MESON COMPILER [ARG...], with prefix, bindir,
# libdir, includedir, datadir, mandir of the configuration, has_man, pythondir and python_preload in the environment
set -euo pipefail
root=$1 build=$2 shared=$(realpath -- "$3") meson=$4
shift 4
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
unset LS_DATA_DIR PKG_CONFIG_SYSROOT_DIR

fail() {
  printf '%s\n' "$1"
  exit 1
}

# The indented program at the beginning of the header, and the file.
diff -B <(sed -n '/^ \*   #include <stdio/,/^ \* [^ ]/p' "$root/src/include/lockstep/lockstep.h" | sed '$d' | sed -E 's/^ \*(   )?//') \
  <(sed -n '/^#include/,$p' "$root/tests/install/example.c") || fail 'lockstep.h shows another program'

"$meson" install -C "$build" --destdir "$out" --no-rebuild --quiet >/dev/null
copy=$out$prefix
for file in "$bindir/lockstep" "$libdir/liblockstep.so" \
            "$datadir/bash-completion/completions/lockstep" "$datadir/zsh/site-functions/_lockstep" \
            "$datadir/fish/vendor_completions.d/lockstep.fish" "$datadir"/lockstep/{models,topologies,strategies}/README.md; do
  [[ -e $copy/$file ]] || fail "not installed: $file"
done

# Stand-ins of CUDA's libraries are found from where the copy lies, if they are built.
if [[ -e $copy/$libdir/lockstep/capture/liblockstep-capture.so ]]; then
  LS_DATA_DIR=$root "$copy/$bindir/lockstep" capture --clock simulated --cluster dgx-h100 -- python3 "$root/tests/capture/fake/train.py" > "$out/captured" 2>&1 \
    || fail 'an installed capture fails'
  grep -q '^Fits' "$out/captured" || fail 'an installed capture has no verdict'
fi
diff <({ (cd -- "$root/src/manual" && find . -name '*.md' -o -name '*.png'); (cd -- "$root/strategies" && find ./labs -name '*.json' | sed 's/json$/md/'); echo ./labs/instructors.md; } | sort) <(cd -- "$copy/$datadir/doc/lockstep" && find . -type f | sort) || fail 'another manual is installed'
[[ $has_man == false || -e $copy/$mandir/man1/lockstep.1 && -e $copy/$mandir/man1/lockstep-run.1 ]] || fail 'no man pages are installed'
diff <(cd -- "$root/src/include/lockstep" && ls -- *.h) <(ls "$copy/$includedir/lockstep") || fail 'other headers are installed'

# As if it had been configured with that prefix.
pc=$copy/$libdir/pkgconfig/lockstep.pc
sed -i "s,^prefix=.*,prefix=$copy," "$pc"
export PKG_CONFIG_PATH=$copy/$libdir/pkgconfig LD_LIBRARY_PATH=$copy/$libdir LC_ALL=C.UTF-8
[[ "lockstep $(pkg-config --modversion lockstep)" == "$("$copy/$bindir/lockstep" --version | sed -n 1p)" ]] || fail 'pkg-config names another version'
read -r -a flags < <(pkg-config --cflags --libs lockstep)
"$@" -std=gnu11 -Wall -Wextra -Werror "$root/tests/install/example.c" -o "$out/example" "${flags[@]}"

mkdir "$out/empty"
cd -- "$out/empty"
job=(run --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 2 --pp 2)
"$out/example" > "$out/example.txt"
[[ $(head -n 1 "$out/example.txt") == 'llama3.1-8b on 8 GPUs of dgx-h100; 8.03 B parameters' ]] || fail 'the example prints something else'
for program in "$copy/$bindir/lockstep" "$shared"; do
  diff <("$program" "${job[@]}") "$out/example.txt" || fail "$program prints something else"
done
diff <("$shared" run --help) <("$copy/$bindir/lockstep" run --help)

# Where python3 was found: the module finds the library of its own prefix.
if [[ $pythondir ]]; then
  [[ $pythondir == /* ]] || pythondir=$prefix/$pythondir
  code='import lockstep; print(lockstep.run(model="llama3.1-8b", cluster="dgx-h100", gpus=8, tp=2, pp=2).text(), end="")'
  with=(PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$out$pythondir")
  [[ -z $python_preload ]] || with+=(LD_PRELOAD="$python_preload" ASAN_OPTIONS=detect_leaks=0)
  diff <(env -u LD_LIBRARY_PATH "${with[@]}" python3 -c "$code") "$out/example.txt" \
    || fail 'the Python module prints something else'
fi
printf 'installed, built and run\n'
