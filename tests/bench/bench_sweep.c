/* Sweeps on one thread, as a user starts them: configurations that a second of bounding leaves
 * out, those that a second simulates, and the whole. Lowering and loading count as bounding.
 *
 * Usage: bench_sweep LOCKSTEP [MOST-GPUS] */
#include <stdlib.h>

#include "ls_bench.h"
#include "program.h"

static const struct {
  const char *model;
  guint n_gpus, global_batch;
} jobs[] = {
  { "gpt-1.7b", 16, 512 },
  { "gpt-7.5b", 64, 512 },
  { "gpt3-175b", 1024, 1536 },
};

static void
measure (const char *lockstep, const char *model, guint n_gpus, guint global_batch)
{
  g_autofree char *line = g_strdup_printf (
      "%s sweep --json --timing -j 1 --model %s --cluster dgx-a100-80g --gpus %u --global-batch %u", lockstep,
      model, n_gpus, global_batch);
  g_auto (GStrv) argv = g_strsplit (line, " ", -1);
  double wall_s, peak_mib;
  g_autofree char *json = ls_bench_program (argv, NULL, &wall_s, &peak_mib);
  double simulate_s = ls_bench_number (json, "simulate_s"), n_simulated = ls_bench_number (json, "simulated");
  double n_left_out = ls_bench_number (json, "enumerated") - n_simulated;
  ls_bench_print ("sweep_left_out", n_gpus, "configurations/s", n_left_out / (wall_s - simulate_s), 0);
  ls_bench_print ("sweep_simulated", n_gpus, "configurations/s", n_simulated / simulate_s, 0);
  ls_bench_print ("sweep_wall", n_gpus, "s", wall_s, 0);
  ls_bench_print ("sweep_memory", n_gpus, "MiB", peak_mib, 0);
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
    measure (argv[1], jobs[i].model, jobs[i].n_gpus, jobs[i].global_batch);
  return 0;
}
