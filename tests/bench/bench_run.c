/* A whole run, as a user starts it: the example of README.md for n steps. Ops per
 * second of wall time, the wall time, and the memory at its peak; against the plain
 * implementations for one step.
 *
 * Usage: bench_run LOCKSTEP */
#include "ls_bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define PLAIN "evq=ref,solver=ref,runahead=off"

typedef struct {
  double wall_s, peak_mib, n_ops;
} Cost;

static double
number_of (const char *json, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("\"%s\":", key);
  const char *at = strstr (json, quoted);
  if (!at) {
    fprintf (stderr, "bench_run: no %s in the output\n", quoted);
    exit (1);
  }
  return g_ascii_strtod (at + strlen (quoted), NULL);
}

static Cost
run (const char *lockstep, const char *n_steps, const char *debug)
{
  const char *argv[] = {
    lockstep, "run", "--json", "--model", "gpt3-175b", "--cluster", "dgx-a100-80g", "--nodes", "8", "--tp", "8", "--pp", "8",
    "--vpp", "3", "--sp", "--recompute", "selective", "--micro-batch", "1", "--global-batch", "64",
    "--schedule", "interleaved-1f1b", "--steps", n_steps, NULL,
  };
  g_auto (GStrv) env = g_environ_setenv (g_get_environ (), "LS_DEBUG", debug, TRUE);
  g_autoptr (GError) error = NULL;
  GPid pid;
  int out;
  gint64 start_us = g_get_monotonic_time ();
  if (!g_spawn_async_with_pipes (NULL, (char **) argv, env, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, NULL, &out, NULL, &error)) {
    fprintf (stderr, "bench_run: %s\n", error->message);
    exit (1);
  }
  g_autoptr (GIOChannel) channel = g_io_channel_unix_new (out);
  g_io_channel_set_close_on_unref (channel, TRUE);
  g_autofree char *text = NULL;
  g_io_channel_read_to_end (channel, &text, NULL, NULL);
  struct rusage used;
  int status;
  if (wait4 (pid, &status, 0, &used) != pid || status != 0) {
    fprintf (stderr, "bench_run: %s failed\n", lockstep);
    exit (1);
  }
  Cost c = { .wall_s = (double) (g_get_monotonic_time () - start_us) / 1e6, .peak_mib = (double) used.ru_maxrss / 1024 };
  c.n_ops = number_of (text, "n_op_instances") * number_of (text, "n_steps");
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
  Cost one = best_of (5, argv[1], "1", ""), three = best_of (3, argv[1], "3", ""), plain = best_of (1, argv[1], "1", PLAIN);
  print (1, one, plain.wall_s / one.wall_s);
  print (3, three, 0);
}
