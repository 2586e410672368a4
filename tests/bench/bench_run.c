/* A whole run, as a user starts it: the example of README.md for n steps. Ops per
 * second of wall time, the wall time, and the memory at its peak; against the plain
 * implementations for one step.
 *
 * Usage: bench_run LOCKSTEP */
#include <stdlib.h>

#include "ls_bench.h"
#include "program.h"

#define PLAIN "evq=ref,solver=ref,runahead=off"

typedef struct {
  double wall_s, peak_mib, n_ops;
} Cost;

static Cost
run (const char *lockstep, const char *n_steps, const char *debug)
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
  Cost c;
  g_autofree char *text = ls_bench_program ((char **) argv, env, &c.wall_s, &c.peak_mib);
  c.n_ops = ls_bench_number (text, "n_op_instances") * ls_bench_number (text, "n_steps");
  return c;
}

/* The best of some: what disturbs only adds. */
static Cost
best_of (int n, const char *lockstep, const char *n_steps, const char *debug)
{
  Cost best = run (lockstep, n_steps, debug);
  for (int i = 1; i < n; i++) {
    Cost c = run (lockstep, n_steps, debug);
    if (c.wall_s < best.wall_s)
      best = c;
  }
  return best;
}

static void
print (uint64_t n_steps, Cost c, double ratio)
{
  ls_bench_print ("run_ops", n_steps, "ops/s", c.n_ops / c.wall_s, ratio);
  ls_bench_print ("run_wall", n_steps, "s", c.wall_s, 0);
  ls_bench_print ("run_memory", n_steps, "MiB", c.peak_mib, 0);
}

int
main (int argc, char **argv)
{
  if (argc != 2) {
    fprintf (stderr, "usage: bench_run LOCKSTEP\n");
    return 2;
  }
  ls_bench_header ();
  Cost one = best_of (5, argv[1], "1", ""), three = best_of (3, argv[1], "3", ""),
       plain = best_of (1, argv[1], "1", PLAIN);
  print (1, one, plain.wall_s / one.wall_s);
  print (3, three, 0);
}
