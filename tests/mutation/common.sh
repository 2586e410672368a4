# What prepare and run share. In the folder tree/ of a mutation run.
flags='-std=gnu11 -O1 -fPIC -w -ffp-contract=off -finstrument-functions -Werror=int-conversion
  -Werror=incompatible-pointer-types -Werror=implicit-function-declaration'
packages='glib-2.0 gmodule-no-export-2.0 gio-2.0 libcjson gsl libprotobuf-c sqlite3 yaml-0.1 zlib'
generated=../generated/src # by the build
includes="-Isrc -Isrc/include -I$generated $(printf -- "-I$generated/%s " ask data show api)
  $(pkg-config --cflags $packages)"
libraries="$(pkg-config --libs $packages) -lm -ldl -pthread"

# Neither the module of MPI nor the stand-ins of CUDA's libraries nor what takes the place of an absent part
# belongs to the program.
sources () {
  find src -name '*.c' ! -name transport_mpi.c ! -name 'without_*.c' ! -path 'src/capture/*' | LC_ALL=C sort
}
generated_sources () { find "$generated" -name '*.c' ! -path '*/capture/*' | LC_ALL=C sort; }
unit_sources () { find tests/unit -name 'test_*.c' ! -path '*/capture/*' ! -path '*/cli/*' | LC_ALL=C sort; }

room_of () { cut -d/ -f2 <<< "$1"; }
object_of () { local name=${1#*src/}; printf '%s.o' "${name//\//-}"; }

# compile FILE FOLDER: FOLDER/room-file.c.o
compile () {
  gcc $flags $includes '-DG_LOG_DOMAIN="lockstep"' '-DLS_DATADIR="/nowhere"' '-DLS_MODULEDIR="/nowhere"' \
    '-DLS_LIBDIR="nowhere"' -DLS_HAS_GSL -c -o "$2/$(object_of "$1")" "$1"
}

all_tests () {
  unit_sources | sed 's:tests/unit/\(.*\)/test_\(.*\)\.c:unit\t\1/\2:'
  sed -n 's/^=== /golden\t/p' tests/golden/*.txt | LC_ALL=C sort
}

# run_test WORK SUITE NAME: with LS_MUTANT=FILE, a library whose functions take the place of liball.so's
run_test () {
  export LS_DATA_DIR=$PWD LC_ALL=C LS_SHARED_DATA=${LS_SHARED_DATA:-}
  case $2 in
    unit) LS_DEBUG=check LD_PRELOAD=${LS_MUTANT:-} "$1/bin/${3//\//-}" ;;
    golden) tests/golden/run.sh "$(grep -lx "=== $3" tests/golden/*.txt)" "$3" "$1/bin/lockstep" ;;
  esac </dev/null >/dev/null 2>&1
}

# seconds_of WORK SUITE NAME: prints the processor time of a test, and fails with it
seconds_of () {
  local TIMEFORMAT='%U %S' status=0 times
  times=$( { time run_test "$@"; } 2>&1) || status=$?
  awk '{ print $1 + $2 }' <<< "$times"
  return "$status"
}
