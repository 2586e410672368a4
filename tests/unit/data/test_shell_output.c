/* Pins what a script says of itself: what $(commands) print, where it lies, variables that arithmetic sets,
 * and files that it writes. */
#include "ls_test.h"

#include "shell_check.h"

static void
what_a_command_prints_is_known_by_the_script (void)
{
  shell_check ("A=4\nrun $([ -z \"$A\" ] && echo --x || echo --y $A) $(echo a  b)/c $(echo)d\n",
               "run|--y|4|a|b/c|d\n");
  shell_check ("run \"$(if [[ 3 -gt 2 ]]; then echo '1 2'; fi)\" $([ -n \"$U\" ] && echo --u)z\n",
               "run|1 2|z\n");
  shell_check ("N=2\nrun $(expr 16 \\* $N + 1) `expr 7 / 2` $(expr length ab) $(expr 1 / 0)\n",
               "run|33|3|{$(expr length ab)}|{$(expr 1 / 0)}\n");
  shell_check ("f() { echo $(( $1 * 2 )); }\nrun $(f 4) $(echo $(echo 3))\n", "run|8|3\n");
  shell_check ("A=4\nrun \"$(cat <<- EOM\n  a $A \\$B\nEOM\n)\" $(cat <<'E'\n$A b\nE\n)\n",
               "run|  a 4 $B|$A|b\n");
}

/* What only a run would know is not guessed, and what it sets is not kept. */
static void
what_a_command_prints_beside_that_is_open (void)
{
  shell_check ("run $(echo 1,2 | wc -l) $(echo no >&2) $(pwd)\n",
               "run|{$(echo 1,2 | wc -l)}|{$(echo no >&2)}|{$(pwd)}\n");
  shell_check ("run $([ -f x ] && echo y) $(A=1; echo 2) $(<x)\nrun $A\n",
               "run|{$([ -f x ] && echo y)}|{$(A=1; echo 2)}|{$(<x)}\nrun|{$A}\n");
  shell_check ("run $(cat x <<E\na\nE\n)\n", "run|{$(cat x <<E a E )}\n");
  shell_check ("run $(echo -e 'a\\nb') $(exit 0) $(ls; echo a)\nrun\n",
               "run|{$(echo -e 'a\\nb')}|{$(exit 0)}|{$(ls; echo a)}\nrun\n");
  shell_check ("run $(awk '{print $1' x)\n", "run|{$(awk '{print $1' x)}\n");
}

/* A program is started for what it does, whatever becomes of what it prints. */
static void
a_command_that_launches_is_found_in_another (void)
{
  shell_check ("A=4\nlog=$(torchrun train.py --a $A 2>&1)\nrun $(echo x.py) $(ls *.sh) ${log:+1}\n",
               "torchrun|train.py|--a|4\nrun|x.py|{$(ls *.sh)}|1\n");
  shell_check ("id=$(sbatch --parsable job.sbatch)\nif [ $U = 1 ]; then b=`srun a.py`; fi\nrun $id\n",
               "sbatch|--parsable|job.sbatch\nsrun|a.py?\nrun|{$(sbatch --parsable job.sbatch)}\n");
}

#define HERE "{the folder of the script}"

static void
a_script_knows_where_it_lies (void)
{
  shell_check (
      "D=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" &> /dev/null && pwd)\nrun $D/x.py $(dirname $D)\n",
      "run|" HERE "/x.py|" HERE "/..\n");
  shell_check ("run ${0%/*} $(basename $0) $(dirname \"$(readlink -f $0)\")/a ${0##*/}\n",
               "run|" HERE "|job.sh|" HERE "/a|job.sh\n");
  shell_check ("run $(cd $(dirname $0)/../b && pwd) $(cd ../b && pwd)\n",
               "run|" HERE "/../b|{$(cd ../b && pwd)}\n");
}

static void
arithmetic_sets_variables (void)
{
  shell_check ("A=2; (( A *= 3 + 1 )); (( B = A + 1 )); (( A++ ))\nrun $A $B\n", "run|9|9\n");
  shell_check ("A=2; (( A += U ))\nlet B=3*4 \"C = B / 2\"\nrun $A $B $C\n", "run|{$((A))}|12|6\n");
  shell_check ("A=2; if [ -f x ]; then (( A = 4 )); fi\nrun $A\n",
               "run|{$A, which the script does not decide}\n");
  shell_check ("N=4\n[[ N -gt 2 && $N =~ ^[0-9]+$ ]] && run yes\n[[ ab =~ ^b ]] && run no\n", "run|yes\n");
}

static void
files_are_written_line_by_line (void)
{
  shell_check ("echo 'a $X' > w\necho b >> w\n", "w: a $X\nw: + b\n");
}

LS_TEST_SUITE (LS_TEST (what_a_command_prints_is_known_by_the_script),
               LS_TEST (what_a_command_prints_beside_that_is_open),
               LS_TEST (a_command_that_launches_is_found_in_another), LS_TEST (a_script_knows_where_it_lies),
               LS_TEST (arithmetic_sets_variables), LS_TEST (files_are_written_line_by_line))
