#!/usr/bin/env bash
# Each header compiles alone, without warnings; the public ones as C++ too. What a source file includes
# before anything else has been compiled so by the build.
# Usage: headers.sh ROOT COMPILER [ARG...], in a build folder, where made headers are
set -euo pipefail
root=$1
shift
read -r -a packages < <(pkg-config --cflags glib-2.0 libcjson gsl libprotobuf-c yaml-0.1)
export root

check() {
  "${@:2}" -x c -std=gnu11 -fsyntax-only -Wall -Wextra -Werror -Wno-unused-parameter \
    -Wno-missing-field-initializers \
    -I "$root/src" -I src -I "$root/src/include" -include "$1" /dev/null
}
check_public() {
  "${@:2}" -x c++ -std=c++11 -fsyntax-only -Wall -Wextra -Werror -I "$root/src/include" -include "$1" /dev/null
}

declare -A is_built=()
while IFS= read -r included; do
  is_built[$included]=1
done < <(find "$root/src" -name '*.c' -exec awk 'FNR == 1 { begins = 1 } begins && /^#/ { begins = 0; if (/^#include "/) { gsub (/"/, "", $2); print $2 } }' {} +)

n=0
n_bad=0
while IFS= read -r -d '' header; do
  n=$((n + 1))
  [[ -n ${is_built[${header#"$root/src/"}]:-} ]] || check "$header" "$@" "${packages[@]}" || n_bad=$((n_bad + 1))
  [[ $header != */src/include/* ]] || check_public "$header" "$@" "${packages[@]}" || n_bad=$((n_bad + 1))
done < <(find "$root/src" -name '*.h' -print0 | sort -z)
printf '%d headers, %d do not compile alone\n' "$n" "$n_bad"
((n > 0 && n_bad == 0))
