/* The program as a user starts it: what it prints, and what it takes.
 *
 * Usage: bench_program run|fold|sweep LOCKSTEP [MOST-GPUS [MOST-UNFOLDED]]; the latter of fold */
#include "ls_bench.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The first number of this key. */
static double
number_of (const char *json, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("\"%s\":", key);
  const char *at = strstr (json, quoted);
  if (!at) {
    fprintf (stderr, "no %s in the output\n", quoted);
    exit (1);
  }
  return g_ascii_strtod (at + strlen (quoted), NULL);
}

/* What it prints, newly allocated, and what it takes; its failure is ours, its talk goes to stderr. env NULL:
 * ours. Inlined, gcc 12 takes what it returns for a dangling pointer. */
static G_GNUC_NO_INLINE char *
run_program (char **argv, char **env, double *ret_wall_s, double *ret_peak_mib)
{
  g_autoptr (GError) error = NULL;
  GPid pid;
  int out;
  gint64 start_us = g_get_monotonic_time ();
  if (!g_spawn_async_with_pipes (NULL, argv, env, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, NULL, &out,
                                 NULL, &error)) {
    fprintf (stderr, "%s\n", error->message);
    exit (1);
  }
  g_autoptr (GIOChannel) channel = g_io_channel_unix_new (out);
  g_io_channel_set_close_on_unref (channel, TRUE);
  char *text = NULL;
  g_io_channel_read_to_end (channel, &text, NULL, NULL);
  struct rusage used;
  int status;
  if (wait4 (pid, &status, 0, &used) != pid || status != 0) {
    fprintf (stderr, "%s failed\n", argv[0]);
    exit (1);
  }
  *ret_wall_s = (double) (g_get_monotonic_time () - start_us) / 1e6;
  *ret_peak_mib = (double) used.ru_maxrss / 1024;
  return text;
}

/* ---- a whole run ---- */

/* A whole run, as a user starts it: the example of README.md for n steps. Ops per
 * second of wall time, the wall time, and the memory at its peak; against the plain
 * implementations for one step. Then a wide one, each rank by itself. */

#define PLAIN "evq=ref,solver=ref,runahead=off"

typedef struct {
  double wall_s, peak_mib, n_ops;
} RunCost;

static RunCost
run_whole (const char *lockstep, const char *n_steps, const char *debug)
{
  const char *argv[] = {
    lockstep,
    "run",
    "--json",
    "--model",
    "gpt3-175b",
    "--cluster",
    "dgx-a100-80g",
    "--nodes",
    "8",
    "--tp",
    "8",
    "--pp",
    "8",
    "--vpp",
    "3",
    "--sp",
    "--recompute",
    "selective",
    "--micro-batch",
    "1",
    "--global-batch",
    "64",
    "--schedule",
    "interleaved-1f1b",
    "--steps",
    n_steps,
    NULL,
  };
  g_auto (GStrv) env = g_environ_setenv (g_get_environ (), "LS_DEBUG", debug, TRUE);
  RunCost c;
  g_autofree char *text = run_program ((char **) argv, env, &c.wall_s, &c.peak_mib);
  c.n_ops = number_of (text, "n_op_instances") * number_of (text, "n_steps");
  return c;
}

/* The best of some: what disturbs only adds. */
static RunCost
best_of (int n, const char *lockstep, const char *n_steps, const char *debug)
{
  RunCost best = run_whole (lockstep, n_steps, debug);
  for (int i = 1; i < n; i++) {
    RunCost c = run_whole (lockstep, n_steps, debug);
    if (c.wall_s < best.wall_s)
      best = c;
  }
  return best;
}

static void
print_whole (uint64_t n_steps, RunCost c, double ratio)
{
  ls_bench_print ("run_ops", n_steps, "ops/s", c.n_ops / c.wall_s, ratio);
  ls_bench_print ("run_wall", n_steps, "s", c.wall_s, 0);
  ls_bench_print ("run_memory", n_steps, "MiB", c.peak_mib, 0);
}

/* --- a wide one --------------------------------------------------------------------------------- */

/* A step as wide as GPT-3's, 16 layers deep, on 1,024 H100s, tp 8 and 128 replicas, each rank by itself:
 * collectives as flows, and every message of them (--network step).
 *
 * Targets: 0.4 s by flows, 5.5 s by messages. */

#define WIDE   "wide16"
#define N_WIDE 1024

static const char model[]
    = "{\"schema\": \"lockstep.model/1\", \"name\": \"" WIDE
      "\", \"source\": \"width of Brown et al. 2020 (arXiv 2005.14165)\",\n"
      " \"layers\": 16, \"hidden\": 12288, \"heads\": 96, \"ffn\": 49152, \"vocab\": 51200, \"seq\": 2048, \"mlp\": \"gelu\",\n"
      " \"norm\": \"layernorm\", \"position\": \"learned\", \"attention\": \"unfused\", \"linear_bias\": true,\n"
      " \"tied_embeddings\": true}\n";

static void
measure_wide (const char *lockstep, const char *path, const char *network, int n_times)
{
  g_autofree char *line = g_strdup_printf (
      "%s run --json --model %s --cluster dgx-h100 --gpus %d --tp 8 --sp --micro-batch 1 --global-batch %d --steps 1 --fold off "
      "--network %s",
      lockstep, path, N_WIDE, N_WIDE / 8, network);
  g_auto (GStrv) argv = g_strsplit (line, " ", -1);
  double best_s = 0, peak_mib = 0;
  for (int i = 0; i < n_times; i++) { /* what disturbs only adds */
    double wall_s;
    g_autofree char *json = run_program (argv, NULL, &wall_s, &peak_mib);
    best_s = i == 0 ? wall_s : MIN (best_s, wall_s);
  }
  g_autofree char *wall = g_strdup_printf ("wide_%s_wall", network),
                  *memory = g_strdup_printf ("wide_%s_memory", network);
  ls_bench_print (wall, N_WIDE, "s", best_s, 0);
  ls_bench_print (memory, N_WIDE, "MiB", peak_mib, 0);
}

/* Whether its model could be written. */
static bool
print_wide (const char *lockstep)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("lockstep-bench-XXXXXX", &error);
  g_autofree char *path = dir ? g_build_filename (dir, WIDE ".json", NULL) : NULL;
  if (!path || !g_file_set_contents (path, model, -1, &error)) {
    fprintf (stderr, "bench_program: %s\n", error->message);
    return false;
  }
  measure_wide (lockstep, path, "flow", 5);
  measure_wide (lockstep, path, "step", 3);
  g_remove (path);
  g_rmdir (dir);
  return true;
}

static int
bench_run (char **argv)
{
  RunCost one = best_of (5, argv[0], "1", ""), three = best_of (3, argv[0], "3", ""),
          plain = best_of (1, argv[0], "1", PLAIN);
  print_whole (1, one, plain.wall_s / one.wall_s);
  print_whole (3, three, 0);
  return print_wide (argv[0]) ? 0 : 1;
}

/* ---- folding and coarsening ---- */

/* Folding and coarsening: Llama 3.1 405B on H100s, tp 8, pp 16 in 8 chunks, the rest replicas, as
 * a user starts it. Wall time and memory over GPUs, with both, with one and with neither; each
 * rank by itself as far as that is sensible. All must report the same step time. Then processor time up to
 * 2^20 GPUs, and of uneven jobs: one link at half its rate, one slow node. */

typedef struct {
  double wall_s, peak_mib, step_s, n_classes;
} FoldCost;

/* Below 128 GPUs there are fewer stages. */
static FoldCost
run_folded (const char *lockstep, guint n_gpus, const char *fold, const char *coarsen)
{
  guint pp = MIN (16, n_gpus / 8), dp = n_gpus / (8 * pp);
  g_autofree char *text
      = g_strdup_printf ("--nodes %u --pp %u --dp %u --global-batch %u", n_gpus / 8, pp, dp, dp * pp);
  g_autofree char *line = g_strdup_printf (
      "%s run --json --model llama3.1-405b --cluster dgx-h100 --tp 8 --vpp %u --sp --micro-batch 1 --seq 8192 --zero 1 "
      "--schedule interleaved-1f1b --fold %s --coarsen %s %s",
      lockstep, 128 / pp, fold, coarsen, text);
  g_auto (GStrv) argv = g_strsplit (line, " ", -1);
  FoldCost c;
  g_autofree char *json = run_program (argv, NULL, &c.wall_s, &c.peak_mib);
  c.step_s = number_of (json, "step_time_s");
  c.n_classes = number_of (json, "n_classes");
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
print_folded (guint n, guint n_run, const FoldCost *costs)
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
  g_autofree char *json = run_program (argv, NULL, &wall_s, &peak_mib);
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

static int
bench_fold (char **argv)
{
  guint most = argv[1] ? (guint) atoi (argv[1]) : 131072,
        most_whole = argv[1] && argv[2] ? (guint) atoi (argv[2]) : 2048; /* 16384 by itself take minutes */
  for (guint n = 64; n <= most; n *= n < 1024 ? 4 : 2) {
    guint n_run = n <= most_whole ? N_VARIANTS : WHOLE;
    FoldCost costs[N_VARIANTS];
    for (guint v = 0; v < n_run; v++) {
      costs[v] = run_folded (argv[0], n, variants[v].fold, variants[v].coarsen);
      if (costs[v].step_s != costs[FOLDED].step_s) {
        fprintf (stderr,
                 "bench_program: %u GPUs: a step takes %.17g s folded, %.17g s with --fold %s --coarsen %s\n",
                 n, costs[FOLDED].step_s, costs[v].step_s, variants[v].fold, variants[v].coarsen);
        return 1;
      }
    }
    print_folded (n, n_run, costs);
  }
  print_scale (argv[0]);
  return 0;
}

/* ---- sweeps ---- */

/* Sweeps on one thread, as a user starts them: configurations that a second of bounding leaves
 * out, those that a second simulates, and the whole, which two threads do too. Lowering and loading
 * count as bounding. */

typedef struct {
  const char *model, *cluster;
  guint n_gpus, global_batch;
  const char *more; /* options that narrow it */
} Job;

static const Job jobs[] = {
  { "gpt-1.7b", "dgx-a100-80g", 16, 512, "" },
  { "gpt-7.5b", "dgx-a100-80g", 64, 512, "" },
  { "gpt3-175b", "dgx-a100-80g", 1024, 1536, "" },
  { "deepseek-v3", "dgx-h100", 2048, 8192, " --ep 64 --micro-batch 1 --dp-kind megatron --zero 1" },
  { "llama3.1-405b", "dgx-h100", 16384, 2048, "" },
};

/* What it prints, to be freed. */
static char *
sweep (const char *lockstep, const Job *job, guint n_threads, double *wall_s, double *peak_mib)
{
  g_autofree char *line = g_strdup_printf (
      "%s sweep --json --timing -j %u --model %s --cluster %s --gpus %u --global-batch %u%s", lockstep,
      n_threads, job->model, job->cluster, job->n_gpus, job->global_batch, job->more);
  g_auto (GStrv) argv = g_strsplit (line, " ", -1);
  return run_program (argv, NULL, wall_s, peak_mib);
}

static void
measure_sweep (const char *lockstep, const Job *job)
{
  guint n_gpus = job->n_gpus;
  double wall_s, peak_mib, wall_of_two_s, peak_of_two_mib;
  g_autofree char *json = sweep (lockstep, job, 1, &wall_s, &peak_mib);
  g_autofree char *json_of_two = sweep (lockstep, job, 2, &wall_of_two_s, &peak_of_two_mib);
  double simulate_s = number_of (json, "simulate_s"), n_simulated = number_of (json, "simulated");
  double n_left_out = number_of (json, "enumerated") - n_simulated;
  ls_bench_print ("sweep_left_out", n_gpus, "configurations/s", n_left_out / (wall_s - simulate_s), 0);
  ls_bench_print ("sweep_simulated", n_gpus, "configurations/s", n_simulated / simulate_s, 0);
  ls_bench_print ("sweep_wall", n_gpus, "s", wall_s, 0);
  ls_bench_print ("sweep_memory", n_gpus, "MiB", peak_mib, 0);
  ls_bench_print ("sweep_wall_of_two_threads", n_gpus, "s", wall_of_two_s, 0);
}

static int
bench_sweep (char **argv)
{
  guint most = argv[1] ? (guint) atoi (argv[1]) : G_MAXUINT;
  for (guint i = 0; i < G_N_ELEMENTS (jobs) && jobs[i].n_gpus <= most; i++)
    measure_sweep (argv[0], &jobs[i]);
  return 0;
}

/* ---- the program ---- */

static const struct {
  const char *name;
  int (*run) (char **argv); /* from LOCKSTEP on */
} benchmarks[] = { { "run", bench_run }, { "fold", bench_fold }, { "sweep", bench_sweep } };

int
main (int argc, char **argv)
{
  for (size_t i = 0; argc >= 3 && argc <= 5 && i < G_N_ELEMENTS (benchmarks); i++)
    if (strcmp (argv[1], benchmarks[i].name) == 0) {
      ls_bench_header ();
      return benchmarks[i].run (argv + 2);
    }
  fprintf (stderr, "usage: bench_program run|fold|sweep LOCKSTEP [MOST-GPUS [MOST-UNFOLDED]]\n");
  return 2;
}
