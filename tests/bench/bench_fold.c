/* Folding and coarsening: Llama 3.1 405B on H100s, tp 8, pp 16 in 8 chunks, the rest replicas, as
 * a user starts it. Wall time and memory over GPUs, with both, with one and with neither; each
 * rank by itself as far as that is sensible. All must report the same step time. Then processor time up to
 * 2^20 GPUs, and of uneven jobs: one link at half its rate, one slow node.
 *
 * Usage: bench_fold LOCKSTEP [MOST-GPUS [MOST-UNFOLDED]] */
#include <stdlib.h>
#include <sys/resource.h>

#include "ls_bench.h"
#include "program.h"

typedef struct {
  double wall_s, peak_mib, step_s, n_classes;
} Cost;

/* Below 128 GPUs there are fewer stages. */
static Cost
run (const char *lockstep, guint n_gpus, const char *fold, const char *coarsen)
{
  guint pp = MIN (16, n_gpus / 8), dp = n_gpus / (8 * pp);
  g_autofree char *text
      = g_strdup_printf ("--nodes %u --pp %u --dp %u --global-batch %u", n_gpus / 8, pp, dp, dp * pp);
  g_autofree char *line = g_strdup_printf (
      "%s run --json --model llama3.1-405b --cluster dgx-h100 --tp 8 --vpp %u --sp --micro-batch 1 --seq 8192 --zero 1 "
      "--schedule interleaved-1f1b --fold %s --coarsen %s %s",
      lockstep, 128 / pp, fold, coarsen, text);
  g_auto (GStrv) argv = g_strsplit (line, " ", -1);
  Cost c;
  g_autofree char *json = ls_bench_program (argv, NULL, &c.wall_s, &c.peak_mib);
  c.step_s = ls_bench_number (json, "step_time_s");
  c.n_classes = ls_bench_number (json, "n_classes");
  return c;
}

static const struct {
  const char *name, *fold, *coarsen;
} variants[] = {
  { "fold", "auto", "auto" },
  { "fold_opened", "auto", "off" },
  { "whole", "off", "auto" }, /* and later ones: unfolded */
  { "whole_opened", "off", "off" },
};
enum { FOLDED, WHOLE = 2, N_VARIANTS = G_N_ELEMENTS (variants) };

static void
print (guint n, guint n_run, const Cost *costs)
{
  for (guint v = 0; v < n_run; v++) {
    g_autofree char *wall = g_strconcat (variants[v].name, "_wall", NULL),
                    *memory = g_strconcat (variants[v].name, "_memory", NULL);
    gboolean has_ratio = v == FOLDED && n_run == N_VARIANTS;
    ls_bench_print (wall, n, "s", costs[v].wall_s, has_ratio ? costs[WHOLE].wall_s / costs[v].wall_s : 0);
    ls_bench_print (memory, n, "MiB", costs[v].peak_mib, 0);
  }
  ls_bench_print ("fold_classes", n, "classes", costs[FOLDED].n_classes, 0);
}

/* --- processor time ------------------------------------------------------------------------- */

static double
children_cpu_s (void)
{
  struct rusage used;
  getrusage (RUSAGE_CHILDREN, &used);
  return (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec)
      + (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

#define REPLICAS "--model llama3.1-405b --tp 8 --pp 16"

/* A sequence for each eight GPUs. */
static void
print_cpu (const char *name, const char *lockstep, guint n_gpus, const char *cluster, const char *job)
{
  g_autofree char *text = g_strdup_printf ("%s run --json --cluster %s --gpus %u --global-batch %u %s",
                                           lockstep, cluster, n_gpus, MAX (n_gpus / 8, 1), job);
  g_auto (GStrv) argv = g_strsplit (g_strchomp (text), " ", -1);
  g_autofree char *cpu = g_strconcat (name, "_cpu", NULL), *memory = g_strconcat (name, "_memory", NULL);
  double before = children_cpu_s (), wall_s, peak_mib;
  g_autofree char *json = ls_bench_program (argv, NULL, &wall_s, &peak_mib);
  ls_bench_print (cpu, n_gpus, "s", children_cpu_s () - before, 0);
  ls_bench_print (memory, n_gpus, "MiB", peak_mib, 0);
}

static void
print_scale (const char *lockstep)
{
  static const guint sizes[] = { 1024, 4096, 16384, 65536, 131072, 262144, 1 << 20 };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    print_cpu ("scale", lockstep, sizes[i], "dgx-h100", REPLICAS);
  for (guint n = 131072; n <= 1 << 20; n *= 8) {
    print_cpu ("scale_zero", lockstep, n, "dgx-h100", REPLICAS " --zero 1");
    print_cpu ("scale_fsdp", lockstep, n, "dgx-h100", "--model llama3.1-70b --tp 8 --dp-kind fsdp2");
    print_cpu ("scale_bad_link", lockstep, n, "dgx-h100:faults.node0/nic0>leaf0=0.5", REPLICAS);
  }
  print_cpu (
      "scale_slow_node", lockstep, 131072, "dgx-h100",
      REPLICAS
      " --slow rank=0:1.2,rank=1:1.2,rank=2:1.2,rank=3:1.2,rank=4:1.2,rank=5:1.2,rank=6:1.2,rank=7:1.2");
}

int
main (int argc, char **argv)
{
  if (argc < 2 || argc > 4) {
    fprintf (stderr, "usage: bench_fold LOCKSTEP [MOST-GPUS [MOST-UNFOLDED]]\n");
    return 2;
  }
  guint most = argc > 2 ? (guint) atoi (argv[2]) : 131072,
        most_whole = argc > 3 ? (guint) atoi (argv[3]) : 2048; /* 16384 by itself take minutes */
  ls_bench_header ();
  for (guint n = 64; n <= most; n *= n < 1024 ? 4 : 2) {
    guint n_run = n <= most_whole ? N_VARIANTS : WHOLE;
    Cost costs[N_VARIANTS];
    for (guint v = 0; v < n_run; v++) {
      costs[v] = run (argv[1], n, variants[v].fold, variants[v].coarsen);
      if (costs[v].step_s != costs[FOLDED].step_s) {
        fprintf (stderr,
                 "bench_fold: %u GPUs: a step takes %.17g s folded, %.17g s with --fold %s --coarsen %s\n", n,
                 costs[FOLDED].step_s, costs[v].step_s, variants[v].fold, variants[v].coarsen);
        return 1;
      }
    }
    print (n, n_run, costs);
  }
  print_scale (argv[1]);
  return 0;
}
