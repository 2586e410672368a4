/* Pins what a script says of itself: what $(commands) print, where it lies, variables that arithmetic sets, and
 * scripts that it writes and starts. */
#include "ls_test.h"

#include <glib/gstdio.h>

#include "import_check.h"
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

#define TRAIN "python train.py --model_name_or_path gpt2 --per_device_train_batch_size 2 --bf16"

/* A worker's script: each rank runs it, whatever starts it. */
static void
a_script_that_is_written_is_started (void)
{
  check ("cat > /tmp/w.sh <<'EOF'\n" TRAIN " --block_size $L\nEOF\nL=64\n"
         "torchrun --nproc_per_node 8 --nnodes 2 --no-python bash /tmp/w.sh\n",
         "gpus=16; micro_batch=2; dtype=bf16; seq=64");
  check ("echo 'L=64' > w.sh\necho '" TRAIN
         " --block_size $L' >> w.sh\nsrun -N 2 --ntasks-per-node=4 bash w.sh\n",
         "gpus=8; micro_batch=2; seq=64");
  check ("#SBATCH --nodes=2 --gpus-per-node=4\ncat <<EOF > w.sh\n" TRAIN
         " --block_size \\$1\nEOF\nsrun ./w.sh 32\n",
         "gpus=8; seq=32");
}

static void
write_text (const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (folder, name, NULL), *inner = g_path_get_dirname (path);
  LS_CHECK_INT (g_mkdir_with_parents (inner, 0700), ==, 0);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
}

/* What is asked of a job whose script is scripts/run.sh. */
static void
check_sourced (const char *folder, const char *script, const char *expected)
{
  write_text (folder, "scripts/run.sh", script);
  g_autofree char *path = g_build_filename (folder, "scripts", "run.sh", NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImport import;
  bool ok = ls_import_load ((const char *const[]) { path, NULL }, &import, diags);
  LS_CHECK (ok);
  if (!ok)
    return;
  g_auto (GStrv) all = g_strsplit (expected, "; ", -1);
  for (char **one = all; *one; one++)
    check_one (&import, *one, script);
  ls_import_clear (&import);
}

static void
sourced_files_lie_where_their_path_says (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-sourced-XXXXXX", NULL);
  const char *const names[] = { "scripts/conf/base.sh",
                                "scripts/base.sh",
                                "models/base.sh",
                                "scripts/run.sh",
                                "scripts/conf/more.sh",
                                "scripts/conf",
                                "scripts",
                                "models",
                                "" };
  write_text (folder, "scripts/conf/base.sh", "L=32\n. $(dirname \"${BASH_SOURCE[0]}\")/more.sh\n");
  write_text (folder, "scripts/conf/more.sh", "B=3\n");
  write_text (folder, "scripts/base.sh", "L=64\nB=1\n");
  write_text (folder, "models/base.sh", "L=128\nB=4\n");
#define RUN "\npython train.py --model_name_or_path gpt2 --block_size $L --per_device_train_batch_size $B"
  check_sourced (folder, "D=$(cd $(dirname $0) && pwd)\nsource \"${D}/conf/base.sh\"" RUN,
                 "seq=32; micro_batch=3");
  check_sourced (folder, "source $(dirname $0)/../models/base.sh" RUN, "seq=128; micro_batch=4");
  check_sourced (folder, "source models/base.sh" RUN, "seq=128");
  check_sourced (folder, "source /opt/other/base.sh" RUN, "seq=64");
  check_sourced (folder, "source $HERE/absent/base.sh" RUN, "seq=64");
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (folder, names[i], NULL);
    g_remove (path);
  }
}

LS_TEST_SUITE (LS_TEST (what_a_command_prints_is_known_by_the_script),
               LS_TEST (what_a_command_prints_beside_that_is_open),
               LS_TEST (a_command_that_launches_is_found_in_another), LS_TEST (a_script_knows_where_it_lies),
               LS_TEST (arithmetic_sets_variables), LS_TEST (files_are_written_line_by_line),
               LS_TEST (a_script_that_is_written_is_started),
               LS_TEST (sourced_files_lie_where_their_path_says))
