/* Pins the words of launch files: options with values, what values of another sort are, and the shell around
 * them. */
#include "ls_test.h"

#include <string.h>

#include "data/launch/option_table.h"
#include "shell_check.h"

/* Pins options with values: names of '_' and '-' that are the same and are shown as written, the last that
 * holds, trees of configurations as dotted names, and which row of a table fits a name. */

static char *
values_of (const LaunchWords *w, const char *name)
{
  const LaunchOption *o = launch_words_find (w, name);
  if (!o)
    return g_strdup (g_hash_table_contains (w->off, name) ? "off" : "not there");
  GString *text = g_string_new (o->values->len > 0 ? NULL : "on");
  for (guint i = 0; i < o->values->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "", (const char *) o->values->pdata[i]);
  return g_string_free (text, FALSE);
}

static void
check_option (const LaunchWords *w, const char *name, const char *expected)
{
  g_autofree char *found = values_of (w, name);
  ls_check_impl (strcmp (found, expected) == 0, __FILE__, __LINE__, "%s: %s; found %s", name, expected,
                 found);
}

static void
add_words (LaunchWords *w, const char *text, void (*add) (LaunchWords *, char *const *, guint))
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  add (w, words, g_strv_length (words));
}

static void
names_are_kept_and_compared_alike (void)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  add_words (w, "front --tp_size 8 --tp-size=4 -b 1 2", launch_words_add);
  check_option (w, "tp-size", "4");
  check_option (w, "tp_size", "4");
  check_option (w, "b", "1 2");
  LS_CHECK_STR (launch_words_find (w, "tp_size")->written, "--tp-size");
  LS_CHECK_INT (w->others->len, ==, 1);
}

/* An override turns off what a file turned on, and on. */
static void
the_last_holds (void)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  add_words (w, "a.b=true +c=3 ++d=x word", launch_words_add_pairs);
  check_option (w, "a.b", "on");
  check_option (w, "c", "3");
  check_option (w, "d", "x");
  add_words (w, "a.b=false c=None", launch_words_add_pairs);
  check_option (w, "a.b", "off");
  check_option (w, "c", "off");
  add_words (w, "--c 4", launch_words_add);
  check_option (w, "c", "4");
  LS_CHECK (!g_hash_table_contains (w->off, "c"));
}

static void
trees_are_dotted_names (void)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  cJSON *tree = cJSON_Parse ("{\"training\": {\"seq_len\": 8192, \"lr\": 0.0003, \"compile\": true},"
                             "\"off\": {\"a\": false, \"b\": null, \"c\": \"\", \"d\": [], \"e\": {}},"
                             "\"flat\": [1, \"two\", true], \"deep\": [{\"x\": 1}, [2, 3]]}");
  launch_words_add_tree (w, tree);
  cJSON_Delete (tree);
  check_option (w, "training.seq_len", "8192");
  check_option (w, "training.lr", "0.0003");
  check_option (w, "training.compile", "on");
  for (const char *name = "abcde"; *name; name++) {
    const char off[] = { 'o', 'f', 'f', '.', *name, '\0' };
    check_option (w, off, "off");
  }
  check_option (w, "flat", "1 two true");
  check_option (w, "deep.0.x", "1");
  check_option (w, "deep.1", "2 3");
  check_option (w, "training", "not there");
}

static void
rows_fit_names (void)
{
  static const OptionRow rows[] = {
    OPTION_MODEL_ROW ("num_layers", "layers"),
    OPTION_OLD_ROW ("n_layers", OPTION_MODEL, "layers", "old"),
    OPTION_SWITCH_ROW ("p.sp", "sp"),
    OPTION_RULE_ROW ("list.*.x"),
    OPTION_IGNORED_ROW ("log*"),
    OPTION_IGNORED_ROW ("*_dir"),
  };
  const OptionTable table = { rows, G_N_ELEMENTS (rows) };
  static const char *const fits[][2] = { { "num-layers", "num_layers" }, { "list.3.x", "list.*.x" },
                                         { "list.a.b.x", "list.*.x" },   { "log", "log*" },
                                         { "log.a_b", "log*" },          { "a.dump-dir", "*_dir" } };
  static const char *const others[] = { "num_layer", "num_layers2", "list.x", "list.0.xy", "lo", "" };
  for (guint i = 0; i < G_N_ELEMENTS (fits); i++) {
    const OptionRow *row = option_find (&table, fits[i][0]);
    ls_check_impl (row && strcmp (row->option, fits[i][1]) == 0, __FILE__, __LINE__, "%s", fits[i][0]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    ls_check_impl (!option_find (&table, others[i]), __FILE__, __LINE__, "%s fits", others[i]);
}

/* Pins what a shell script launches as it is read: what it decides is expanded as a shell would, what it
 * does not stands there by name, and nothing grows without a limit. */

static void
words_are_expanded_as_a_shell_does (void)
{
  shell_check ("A=1\nB=\"$A 2\"\nrun --a $A --b $B \"$B\" '$B' ${A}x\n", "run|--a|1|--b|1|2|1 2|$B|1x\n");
  shell_check ("run a \\\n  b # c\nrun \\\"x\\\"\n", "run|a|b\nrun|\"x\"\n");
  shell_check ("X=${Y:-8}\nZ=${X:+is}\nrun $X $Z ${W-} ${N:=3} $N\n", "run|8|is|3|3\n");
  shell_check ("A=(--a 1 # it's\n  \"--b 2\")\nA+=(--c)\nrun ${A[@]} \"${A[@]}\" ${A[1]} ${#A[@]}\n",
               "run|--a|1|--b|2|--c|--a|1|--b 2|--c|1|4\n");
  shell_check ("F=Ab\nrun ${F,,} ${F^^} ${G,,}\n", "run|ab|AB|{${G,,}}\n");
  shell_check ("F=a/b.tar.gz\nrun ${F##*/} ${F%.gz} ${F#*/} ${F%%.*}\n",
               "run|b.tar.gz|a/b.tar|b.tar.gz|a/b\n");
  shell_check ("run\f\va \\\f b\r\n", "run|a| |b\n");
  shell_check ("run <path to data> x\nrun --save <PATH TO A> --fp16 > log\n",
               "run|{<path to data>}|x\nrun|--save|{<PATH TO A>}|--fp16\n");
}

static void
arithmetic_has_the_rules_of_c (void)
{
  shell_check (
      "A=8; B=3\nrun $((A * B - 4 / 2)) $(($A%$B)) $((2 ** 10)) $((A > B ? 1 : 0)) $(( -A + (1 + 1) * 2 ))\n",
      "run|22|2|1024|1|-4\n");
  shell_check ("run $((1 / 0)) $((9223372036854775807 + 1)) $((C + 1))\n",
               "run|{$((1 / 0))}|{$((9223372036854775807 + 1))}|{$((C + 1))}\n");
}

static void
what_only_a_run_knows_is_a_hole (void)
{
  shell_check ("run $X $1 \"$@\" $(hostname) `pwd`/a ${Y?no}\n",
               "run|{$X}|{$1}|{$@}|{$(hostname)}|{`pwd`}/a|{${Y?no}}\n");
  shell_check ("H=$(hostname)\neval \"run $H '--a' \\$Z\"\nZ=1\n", "run|{$(hostname)}|--a|{$Z}\n");
}

static void
branches_that_are_decided_are_taken (void)
{
  shell_check ("S=b\nif [ $S = a ]; then T=1; elif [[ $S == b* ]]; then T=2; else T=3; fi\nrun $T\n",
               "run|2\n");
  shell_check ("case $((1 + 1)) in 1) T=a ;; 2|3) T=b ;; *) T=c ;; esac\nrun $T\n", "run|b\n");
  shell_check ("if [ -z \"$UNSET\" ] && [ 3 -gt 2 ]; then run yes; fi\n", "run|yes\n");
  shell_check ("while [[ $# -gt 0 ]]; do run loop; shift; done\nfor X in one; do run $X; done\n",
               "run|one\n");
  shell_check ("if [ 1 = 2 ]; then exit 0; fi\nrun a\nexit 0\nrun b\n", "run|a\n");
  shell_check ("[ -n \"$A\" ] || B=4\n[ 1 = 1 ] && C=5\nrun $B $C\n", "run|4|5\n");
}

/* As often as they say; the words of a line that is read go to a name each. */
static void
loops_over_words_are_run (void)
{
  shell_check ("for i in 1 2\ndo\n  T=$((i + 1)); run $T\ndone\nrun $T\n", "run|2\nrun|3\nrun|3\n");
  shell_check (
      "A=(1,2 3,4)\nfor C in \"${A[@]}\"; do IFS=',' read -r X Y <<< \"$C\"; run --x $X --y $Y; done\n",
      "run|--x|1|--y|2\nrun|--x|3|--y|4\n");
  shell_check ("for i in a b; do for j in c d; do run $i$j; done; done\n",
               "run|ac\nrun|ad\nrun|bc\nrun|bd\n");
  shell_check ("for i in 1 2 3; do [ $i = 2 ] && continue; run $i; done\nrun b\n", "run|1\nrun|3\nrun|b\n");
  shell_check ("read X Y <<< \"a b c\"\nrun $Y\nread -r Z <<< $Q\nrun $Z\n", "run|b|c\nrun|{$Q}\n");
}

/* Over a count that the script says, and what printf makes of a list behind them, as slime's files of models. */
static void
loops_over_a_count_are_run (void)
{
  shell_check ("N=3\nfor ((i=0; i<N; i++)); do\n  if (( i < 1 )); then A+=(0); else A+=(1); fi\ndone\n"
               "printf -v F \"[%s]\" \"$(IFS=', '; echo \"${A[*]}\")\"\nrun $F $i ${A[*]}\n",
               "run|[0,1,1]|3|0|1|1\n");
  shell_check ("for (( k = 4; k > 0; k = k - 2 )); do run $k; done\n", "run|4\nrun|2\n");
  shell_check ("for ((i=0; i<$X; i++)); do T=$i; done\nrun $T\n",
               "run|{$T, which the script does not decide}\n");
  shell_check ("for ((i=0; i<9; i++)); do T=$i; break; done\nrun $i\n",
               "break?\nrun|{$i, which the script does not decide}\n");
  shell_check ("for ((i=0; i<1000; i++)); do T=1; done\nrun $T\n",
               "run|{$T, which the script does not decide}\n");
  shell_check ("for ((;;)); do T=1; done\nrun $T\n", "run|{$T, which the script does not decide}\n");
  shell_check ("printf -v F '%s-%d' a 1\nprintf -v G '%5s' a\nrun $F $G\n",
               "run|a-1|{$G, which the script does not decide}\n");
  shell_check ("A=(a b)\nX=$(IFS=:; echo \"${A[*]}\")\nrun $X \"${A[*]}\"\n", "run|a:b|a b\n");
}

/* What may be set in one of them is not known behind them; what is appended stays beside it. */
static void
branches_that_are_not_decided_leave_holes (void)
{
  shell_check ("T=1\nif [ $X = a ]; then T=2; fi\nrun $T\n", "run|{$T, which the script does not decide}\n");
  shell_check ("O=\"--a\"\nif [ -f file ]; then O=\"$O --b\"; fi\nrun $O\n",
               "run|--a|{$O, which the script does not decide}\n");
  shell_check ("A=(--a)\nif [ $X = 1 ]; then A+=(--b); fi\nrun ${A[@]}\n",
               "run|--a|{$A, which the script does not decide}\n");
  shell_check ("if [ $X = a ]; then T=1; run a; else T=1; fi\nrun $T\n",
               "run|a?\nrun|{$T, which the script does not decide}\n");
  shell_check ("for i in 1 $X; do T=$i; done\nrun $T\n", "run|{$T, which the script does not decide}\n");
  shell_check ("for i in 1 2; do T=$i; break; done\nrun $T\n",
               "break?\nrun|{$T, which the script does not decide}\n");
}

static void
texts_that_commands_hand_on_are_read (void)
{
  shell_check ("CMD=\"run --a 1\"\nsrun -N 4 bash -c \"$CMD\"\n", "srun|-N|4|bash|-c|run|--a|1\n");
  shell_check (
      "xpk workload create --num-slices=1 --command=\"set -e && run --a 1 | tee log\"\nrun b\n",
      "xpk|workload|create|--num-slices=1|--command=set -e && run --a 1 | tee log\nrun|--a|1\ntee|log\nrun|b\n");
  shell_check ("N=3\nsbatch <<EOF\n#SBATCH --nodes=$N\nrun --n $N \\$M\nEOF\nrun b\n",
               "#SBATCH|--nodes=3\nsbatch|run|--n|3|{$M}\nrun|b\n");
  shell_check ("cat <<'EOF' > f\nrun $X '\nEOF\nrun a\n", "f: run $X '\n\ncat\nrun|a\n");
  shell_check (". ./config.sh\nlaunch x\n", "run|--tp|4|x\n");
  shell_check ("./base.sh 4 2\nbash base.sh 1\nrun $1\n",
               "./base.sh|4|2\nrun|--tp|4|--pp|2\nbash|base.sh|1\nbash|run|--tp|1|--pp|{$2}\nrun|{$1}\n");
  shell_check ("#SBATCH --nodes=2  # two\nrun\n", "#SBATCH|--nodes=2\nrun\n");
  shell_check ("g() { run $1; }; f() { g x; run $1 $2; }; f a b\n", "run|x\nrun|a|b\n");
  shell_check ("f() { if [ $1 = a ]; then run $1 $#; fi; }\nf a\nf b\n", "run|a|0\n");
  shell_check ("a && b || c\n(cd x; run) | tee log 2>&1\n", "a\nb\nrun\ntee|log\n");
}

/* Scripts that would take any time or memory, or end nowhere, are refused. */
static void
hostile_scripts_are_refused (void)
{
  GString *doubled = g_string_new ("X=aaaaaaaaaaaaaaaa\n"), *nested = g_string_new ("X="),
          *deep = g_string_new (NULL);
  for (int i = 0; i < 60; i++)
    g_string_append (doubled, "X=$X$X\n");
  for (int i = 0; i < 100000; i++)
    g_string_append (nested, "$(");
  for (int i = 0; i < 100000; i++)
    g_string_append (deep, "{ ");
  const char *const scripts[]
      = { doubled->str, nested->str, deep->str, "X='a", "cat <<E\nx", "eval \"$X\" '" };
  const char *const expected[]
      = { "its words grow beyond",    "is not closed", "nested too deep", "is not closed",
          "here document has no end", "is not closed" };
  for (guint i = 0; i < G_N_ELEMENTS (scripts); i++) {
    g_autofree char *fault = NULL, *found = read_script (scripts[i], &fault);
    ls_check_impl (fault && strstr (fault, expected[i]), __FILE__, __LINE__, "%u: %s", i,
                   fault ? fault : "read");
  }
  g_string_free (doubled, TRUE);
  g_string_free (nested, TRUE);
  g_string_free (deep, TRUE);
}

static void
files_that_a_script_writes_are_noted (void)
{
  shell_check ("D=/tmp/d\nA=2\ncat <<EOF > $D/ds.json\n{ $A $B }\nEOF\nrun\n",
               "/tmp/d/ds.json: { 2 {$B} }\n\ncat\nrun\n");
  shell_check ("cat > f 2>&1 <<'E'\n$A\nE\necho \"a b\" c >g\necho x\ntee h <<E\n1\nE\n",
               "f: $A\n\ncat\ng: a b c\nh: 1\n\ntee|h\n");
  shell_check ("if [ -n \"$(q)\" ]; then cat <<E > f\n1\nE\nfi\nrun > log 2> err\n", "f: 1\n\ncat?\nrun\n");
}

/* What ends it may be what only a run knows: a launch that tries again. */
static void
a_text_within_itself_is_read_a_few_times (void)
{
  shell_check (
      "f() { run $1; if [ -n \"$(squeue)\" ]; then f b; fi; }\nf a\nrun c\n",
      "run|a\nrun|{$1, which the script does not decide}?\nrun|{$1, which the script does not decide}?\nrun|c\n");
  shell_check ("f() { f; f; }\nf\nA='eval \"$A\"; eval \"$A\"'\neval \"$A\"\nrun\n", "run\n");
}

LS_TEST_SUITE (LS_TEST (names_are_kept_and_compared_alike), LS_TEST (the_last_holds),
               LS_TEST (trees_are_dotted_names), LS_TEST (rows_fit_names),
               LS_TEST (words_are_expanded_as_a_shell_does), LS_TEST (arithmetic_has_the_rules_of_c),
               LS_TEST (what_only_a_run_knows_is_a_hole), LS_TEST (branches_that_are_decided_are_taken),
               LS_TEST (loops_over_words_are_run), LS_TEST (loops_over_a_count_are_run),
               LS_TEST (branches_that_are_not_decided_leave_holes),
               LS_TEST (texts_that_commands_hand_on_are_read), LS_TEST (hostile_scripts_are_refused),
               LS_TEST (files_that_a_script_writes_are_noted),
               LS_TEST (a_text_within_itself_is_read_a_few_times))
