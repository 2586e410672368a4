#!/usr/bin/env bash
# run.sh writes what commands print into the transcript, accepts it afterwards, and fails where output, errors, an exit code or a
# case is another; cases of one file can be rewritten at the same time.
# Usage: run_catches.sh RUN
set -euo pipefail
run=$(realpath -- "$1")
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
cd -- "$tree"
mkdir -p tests/golden/data bin
cp -- "$run" tests/golden/run.sh
printf '%s\n' '#!/usr/bin/env bash' 'printf "%s\n" "$@"' > bin/lockstep
chmod +x bin/lockstep

cat > commands.txt <<'END'
# Above all cases.

=== first
# Streams and blank lines.
$ lockstep '$ a' '' b >&2; lockstep '$ a' '' b ''
$ for word in one two; do
>
>   cat <<HERE
> $word
> HERE
> done
# What comes later: a failure in the middle, no newline, a shared shell.
$ folder=$PWD; (exit 3); printf x
$ cd / && [[ -e $folder/data && -e $folder/shipped/tests && $LS_DATA_DIR == data ]]
# A pipe into what stops early is no failure.
$ seq 100000 | head -n 1; seq 100000 | grep -m 1 2; seq 100000 | sed 1q; seq 100000 | grep -q 3

=== second
$ exit 4
$ lockstep never
END
cat > expected.txt <<'END'
# Above all cases.

=== first
# Streams and blank lines.
$ lockstep '$ a' '' b >&2; lockstep '$ a' '' b ''
  $ a

  b

! $ a
!
! b
$ for word in one two; do
>
>   cat <<HERE
> $word
> HERE
> done
  one
  two
# What comes later: a failure in the middle, no newline, a shared shell.
$ folder=$PWD; (exit 3); printf x
  x
\ no newline
exit 3
$ cd / && [[ -e $folder/data && -e $folder/shipped/tests && $LS_DATA_DIR == data ]]
# A pipe into what stops early is no failure.
$ seq 100000 | head -n 1; seq 100000 | grep -m 1 2; seq 100000 | sed 1q; seq 100000 | grep -q 3
  1
  2
  1

=== second
$ exit 4
exit ? (the shell ended)
$ lockstep never
exit ? (the shell ended)
END

# case FILE NAME
case_of() { LS_UPDATE_GOLDEN=${update:-} LS_CASE=${only:-} bash tests/golden/run.sh "$1" "$2" bin/lockstep > out 2>&1; }
fail() { printf '%s\n' "$1"; cat out; exit 1; }

for _ in 1 2; do # the second time nothing changes
  update=1 case_of commands.txt first & update=1 case_of commands.txt second & wait
  diff -u expected.txt commands.txt
done
case_of expected.txt first || fail 'what was written is not accepted'
for fault in 's/^  one/  two/' 's/^! b/! c/' 's/^exit 3/exit 2/' '/^exit 3/d' 's/no newline/a newline/' '/^  two/d' 's/^  x/  x\n/'; do
  sed "$fault" expected.txt > wrong.txt
  ! case_of wrong.txt first || fail "not caught: $fault"
done
! case_of expected.txt third || fail 'a case that is not there'
code=0
only=second case_of expected.txt first || code=$?
[[ $code == 77 ]] || fail 'LS_CASE does not skip'
