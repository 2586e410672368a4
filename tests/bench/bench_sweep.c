/* Sweeps on one thread, as a user starts them: configurations that a second of bounding leaves
 * out, those that a second simulates, and the whole, which two threads do too. Lowering and loading
 * count as bounding.
 *
 * Usage: bench_sweep LOCKSTEP [MOST-GPUS] */
#include <stdlib.h>

#include "ls_bench.h"
#include "program.h"

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
  return ls_bench_program (argv, NULL, wall_s, peak_mib);
}

static void
measure (const char *lockstep, const Job *job)
{
  guint n_gpus = job->n_gpus;
  double wall_s, peak_mib, wall_of_two_s, peak_of_two_mib;
  g_autofree char *json = sweep (lockstep, job, 1, &wall_s, &peak_mib);
  g_autofree char *json_of_two = sweep (lockstep, job, 2, &wall_of_two_s, &peak_of_two_mib);
  double simulate_s = ls_bench_number (json, "simulate_s"), n_simulated = ls_bench_number (json, "simulated");
  double n_left_out = ls_bench_number (json, "enumerated") - n_simulated;
  ls_bench_print ("sweep_left_out", n_gpus, "configurations/s", n_left_out / (wall_s - simulate_s), 0);
  ls_bench_print ("sweep_simulated", n_gpus, "configurations/s", n_simulated / simulate_s, 0);
  ls_bench_print ("sweep_wall", n_gpus, "s", wall_s, 0);
  ls_bench_print ("sweep_memory", n_gpus, "MiB", peak_mib, 0);
  ls_bench_print ("sweep_wall_of_two_threads", n_gpus, "s", wall_of_two_s, 0);
}

int
main (int argc, char **argv)
{
  if (argc < 2 || argc > 3) {
    fprintf (stderr, "usage: bench_sweep LOCKSTEP [MOST-GPUS]\n");
    return 2;
  }
  guint most = argc > 2 ? (guint) atoi (argv[2]) : G_MAXUINT;
  ls_bench_header ();
  for (guint i = 0; i < G_N_ELEMENTS (jobs) && jobs[i].n_gpus <= most; i++)
    measure (argv[1], &jobs[i]);
  return 0;
}
