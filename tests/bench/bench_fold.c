/* Folding: Llama 3.1 405B on H100s, tp 8, pp 16 in 8 chunks, the rest replicas, as a user
 * starts it. Wall time and memory over GPUs, folded; and each rank by itself as far as that
 * is sensible, which must report the same step time.
 *
 * Usage: bench_fold LOCKSTEP [MOST-GPUS [MOST-UNFOLDED]] */
#include <stdlib.h>

#include "ls_bench.h"
#include "program.h"

typedef struct {
  double wall_s, peak_mib, step_s, n_classes;
} Cost;

/* Below 128 GPUs there are fewer stages. */
static Cost
run (const char *lockstep, guint n_gpus, const char *fold)
{
  guint pp = MIN (16, n_gpus / 8), dp = n_gpus / (8 * pp);
  g_autofree char *text = g_strdup_printf ("--nodes %u --pp %u --dp %u --global-batch %u", n_gpus / 8, pp, dp, dp * pp);
  g_autofree char *line = g_strdup_printf (
      "%s run --json --model llama3.1-405b --cluster dgx-h100 --tp 8 --vpp %u --sp --micro-batch 1 --seq 8192 --zero 1 "
      "--schedule interleaved-1f1b --fold %s %s",
      lockstep, 128 / pp, fold, text);
  g_auto (GStrv) argv = g_strsplit (line, " ", -1);
  Cost c;
  g_autofree char *json = ls_bench_program (argv, NULL, &c.wall_s, &c.peak_mib);
  c.step_s = ls_bench_number (json, "step_time_s");
  c.n_classes = ls_bench_number (json, "n_classes");
  return c;
}

int
main (int argc, char **argv)
{
  if (argc < 2 || argc > 4) {
    fprintf (stderr, "usage: bench_fold LOCKSTEP [MOST-GPUS [MOST-UNFOLDED]]\n");
    return 2;
  }
  guint most = argc > 2 ? (guint) atoi (argv[2]) : 131072, most_unfolded = argc > 3 ? (guint) atoi (argv[3]) : 1024;
  ls_bench_header ();
  for (guint n = 64; n <= most; n *= n < 1024 ? 4 : 2) {
    Cost folded = run (argv[1], n, "auto");
    double ratio = 0;
    if (n <= most_unfolded) {
      Cost whole = run (argv[1], n, "off");
      ratio = whole.wall_s / folded.wall_s;
      if (whole.step_s != folded.step_s) {
        fprintf (stderr, "bench_fold: %u GPUs: a step takes %.17g s folded, %.17g s unfolded\n", n, folded.step_s, whole.step_s);
        return 1;
      }
    }
    ls_bench_print ("fold_wall", n, "s", folded.wall_s, ratio);
    ls_bench_print ("fold_memory", n, "MiB", folded.peak_mib, 0);
    ls_bench_print ("fold_classes", n, "classes", folded.n_classes, 0);
  }
  return 0;
}
