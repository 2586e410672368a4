#!/usr/bin/env bash
# Pins that what is built and packed is hardened as dpkg hardens Debian's packages (hardening=+all): it lies where the system
# puts it (PIE), its tables of functions are bound at the start and read only (RELRO, BIND_NOW), returns are guarded
# (-fstack-protector-strong), and calls of libc are checked (FORTIFY).
# Usage: hardened.sh FILE...
set -euo pipefail
export LC_ALL=C
status=0

needs() { # FILE WHAT PATTERN OPTION...
  local file=$1 what=$2 pattern=$3
  shift 3
  readelf -W "$@" "$file" | grep -E "$pattern" > /dev/null || { printf '%s: no %s\n' "${file##*/}" "$what"; status=1; }
}

command -v readelf > /dev/null || { echo 'no readelf; Debian: binutils'; exit 77; }
(( $# > 0 )) || { echo 'no file'; exit 1; }
for file; do
  needs "$file" 'position-independent code' '^ *Type: +DYN' -h
  needs "$file" 'RELRO' 'GNU_RELRO' -l
  needs "$file" 'BIND_NOW' 'BIND_NOW|FLAGS_1.*NOW' -d
  needs "$file" 'stack protector' '__stack_chk_fail' --dyn-syms
  needs "$file" 'FORTIFY' ' __[a-z]+_chk' --dyn-syms
done
exit $status
