# Sourced: install_packages PACKAGE... installs what is missing of Debian packages.
# Nothing is asked, nothing is done where all are there.

missing_packages() {
  local package status
  for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=
    [[ $status == installed ]] || printf '%s\n' "$package"
  done
}

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  else
    sudo --non-interactive "$@"
  fi
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    printf 'not a Debian system: expecting these packages or their like: %s\n' "$*" >&2
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  printf 'installing %s\n' "${missing[*]}" >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2 </dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install --yes --no-install-recommends \
    "${missing[@]}" >&2 </dev/null
}

build_packages=(gcc libc6-dev meson ninja-build pkg-config libglib2.0-dev libcjson-dev libgsl-dev libprotobuf-c-dev libsqlite3-dev libyaml-dev protobuf-c-compiler zlib1g-dev gnuplot-nox)
# what is optional: sweep --mpi, man pages
extra_packages=(libopenmpi-dev openmpi-bin lowdown)
# what packages are made with, and tried
packing_packages=(binutils debhelper dh-python dpkg-dev lintian patchelf python3-venv)
