/* Folding: Llama 3.1 405B on H100s, tp 8, pp 16 in 8 chunks, the rest replicas, as a user
 * starts it. Wall time and memory over GPUs, folded; and each rank by itself as far as that
 * is sensible, which must report the same step time.
 *
 * Usage: bench_fold LOCKSTEP [MOST-GPUS [MOST-UNFOLDED]] */
#include "ls_bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

typedef struct {
  double wall_s, peak_mib, step_s, n_classes;
} Cost;

static double
number_of (const char *json, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("\"%s\":", key);
  const char *at = strstr (json, quoted);
  if (!at) {
    fprintf (stderr, "bench_fold: no %s in the output\n", quoted);
    exit (1);
  }
  return g_ascii_strtod (at + strlen (quoted), NULL);
}

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
  g_autoptr (GError) error = NULL;
  GPid pid;
  int out;
  gint64 start_us = g_get_monotonic_time ();
  if (!g_spawn_async_with_pipes (NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &pid, NULL, &out,
                                 NULL, &error)) {
    fprintf (stderr, "bench_fold: %s\n", error->message);
    exit (1);
  }
  g_autoptr (GIOChannel) channel = g_io_channel_unix_new (out);
  g_io_channel_set_close_on_unref (channel, TRUE);
  g_autofree char *json = NULL;
  g_io_channel_read_to_end (channel, &json, NULL, NULL);
  struct rusage used;
  int status;
  if (wait4 (pid, &status, 0, &used) != pid || status != 0) {
    fprintf (stderr, "bench_fold: %s failed\n", line);
    exit (1);
  }
  return (Cost) { (double) (g_get_monotonic_time () - start_us) / 1e6, (double) used.ru_maxrss / 1024, number_of (json, "step_time_s"),
                  number_of (json, "n_classes") };
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
