#!/usr/bin/env bash
# Pins what packages promise, each made of this build and tried where nothing of it is known: the tarball runs from any folder
# with the libraries that it brings, and no glibc newer than Debian 12's is needed; the wheel installs into a venv without a
# network, answers as the program does, and leaves nothing; the Debian packages have what their names say, lintian finds nothing,
# and dpkg installs, runs and removes them in a folder.
# Usage: packages.sh tarball|wheel|deb ROOT BUILD LOCKSTEP
set -euo pipefail
kind=$1 root=$2 build=$3 lockstep=$4
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
mkdir -- "$out/empty" "$out/home"
job=(run --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 2 --pp 2)
LS_DATA_DIR=$root "$lockstep" "${job[@]}" > "$out/expected"
bare=(env -i HOME="$out/home" PATH=/usr/bin:/bin LC_ALL=C.UTF-8 XDG_DATA_DIRS="$out/home" PYTHONDONTWRITEBYTECODE=1)

fail() {
  printf '%s\n' "$1"
  exit 1
}
make() { "$root/tools/package/$kind" --build "$build" "$out"; } # 77, with the reason, where a tool is missing
is_newer() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | tail -n 1) == "$1" ]]; }
answers() { (cd -- "$out/empty" && "${bare[@]}" "$@" "${job[@]}") | diff - "$out/expected" || fail "$1 prints something else"; }

# All that FILE... need but glibc lies in the folder.
brings_its_libraries() {
  local folder=$1
  shift
  ldd "$@" | sed -n 's/.*=> \(\/\S*\) .*/\1/p' | sort -u \
    | grep -vE "^$folder/|/lib(c|m|dl|pthread|rt|resolv)\.so\.[0-9]+$" && fail 'libraries of the system are used'
  return 0
}

tarball() {
  local path top
  path=$(make)
  mkdir -- "$out/a place"
  tar -xzf "$path" -C "$out/a place"
  top=$(echo "$out/a place"/lockstep-*)
  answers "$top/bin/lockstep"
  mv -- "$top" "$out/moved"
  top=$out/moved
  answers "$top/bin/lockstep"
  (cd -- "$out/empty" && ln -s ../moved/bin/lockstep lockstep)
  answers ./lockstep
  "$root/tests/install/hardened.sh" "$top/bin/lockstep"
  brings_its_libraries "$top" "$top/bin/lockstep" "$top"/lib/*.so.*
  grep -qE 'glibc, 2\.[0-9]+ or newer' "$top/README" || fail 'README does not say which glibc'
  ! is_newer "$(sed -n 's/.*glibc, \(2\.[0-9]*\) or newer.*/\1/p' "$top/README")" 2.36 || fail 'a glibc newer than that of Debian 12 is needed'
  cmp "$root/LICENSE" "$top/LICENSE"
}

wheel() {
  local path code venv=$out/venv before
  path=$(make)
  python3 -m venv "$venv" > "$out/log" 2>&1 || { echo 'python3 has no venv; Debian: python3-venv'; exit 77; }
  before=$(cd -- "$venv" && find . -name __pycache__ -prune -o -print | sort)
  "${bare[@]}" "$venv/bin/pip" -q install --no-index --no-compile --disable-pip-version-check "$path"
  brings_its_libraries "$venv" "$venv"/lib/python3*/site-packages/lockstep/{,libs/}*.so.*
  "$root/tests/install/hardened.sh" "$venv"/lib/python3*/site-packages/lockstep/*.so*
  code='import lockstep; print(lockstep.run(model="llama3.1-8b", cluster="dgx-h100", gpus=8, tp=2, pp=2).text(), end="")'
  (cd -- "$out/empty" && "${bare[@]}" "$venv/bin/python" -c "$code") | diff - "$out/expected" || fail 'the wheel prints something else'
  "${bare[@]}" "$venv/bin/pip" -q uninstall --yes --disable-pip-version-check lockstep
  diff <(echo "$before") <(cd -- "$venv" && find . -name __pycache__ -prune -o -print | sort) || fail 'the wheel leaves files'
}

# has PACKAGE PATTERN: a file of the package has such a path.
has() { [[ $(dpkg-deb -c "$out/$1"_*.deb | awk -v pattern="$2" '!/^d/ && $6 ~ pattern') ]]; }

deb() {
  local version log n
  make > "$out/made"
  version=$("$lockstep" --version | sed -n 's/^lockstep //p')
  [[ $(dpkg-deb -f "$out"/lockstep_*.deb Version) == "$version" ]] || fail 'debian/changelog has another version than meson.build'
  has lockstep '^[.]/usr/share/lockstep/topologies/gpu/' || fail 'lockstep has no data'
  has liblockstep0 '/liblockstep[.]so[.]0' || fail 'liblockstep0 has no library'
  has liblockstep-dev '/pkgconfig/lockstep[.]pc$' || fail 'liblockstep-dev has no lockstep.pc'
  has lockstep-doc '/index[.]md$' || fail 'lockstep-doc has no manual'
  has python3-lockstep '/_binding[.]py$' || fail 'python3-lockstep has no module'
  if command -v lintian >/dev/null; then
    log=$(lintian --fail-on none --suppress-tags "$([[ -d $build/tools/man ]] && compgen -G "$build/tools/man/*.1" >/dev/null || echo no-manual-page)" \
      --allow-root "$out"/*.deb 2>&1) || true
    [[ ! $log ]] || fail "lintian: $log"
  fi
  try_dpkg
}

# As far as it goes without being root, and without scripts: those of these packages only tell ldconfig and byte-compile.
try_dpkg() {
  local dpkg=(dpkg --root="$out/system" --force-depends --force-not-root --force-script-chrootless --log=/dev/null)
  mkdir -p -- "$out/system/var/lib/dpkg"/{updates,info,triggers} "$out/system/etc"
  : > "$out/system/var/lib/dpkg/status"
  "${dpkg[@]}" --install "$out"/lockstep_*.deb "$out"/lockstep-doc_*.deb "$out"/liblockstep-dev_*.deb > "$out/log" 2>&1 || fail "$(cat -- "$out/log")"
  answers "$out/system/usr/bin/lockstep"
  "${dpkg[@]}" --purge lockstep lockstep-doc liblockstep-dev > "$out/log" 2>&1 || fail "$(cat -- "$out/log")"
  diff /dev/null <(cd -- "$out/system" && find usr 2>/dev/null) || fail 'the packages leave files'
}

"$kind"
printf '%s: made, tried, removed\n' "$kind"
