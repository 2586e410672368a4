/* Pins that pruning loses none of the best, on random spaces of small jobs of tests/golden/data: the same
 * configurations, picoseconds and bytes as where all are simulated. LS_CASES: how many. And that the number of
 * threads changes no byte, which it does if what is found ahead counts before its time. */
#include "ls_test.h"

#include <string.h>

#include "show/answers.h"
#include "small_sweep.h"

typedef struct {
  const char *key, *values[5];
} Choice;

/* Of each some are tried: FSDP2 in a pipeline, experts, what is left to retries, chunks, orders. */
static const Choice choices[] = {
  { "tp", { "1", "2", "4" } },
  { "pp", { "1", "2", "4" } },
  { "vpp", { "1", "2" } },
  { "ep", { "1", "2" } },
  { "sp", { "0", "1" } },
  { "zero", { "0", "1", "2", "3" } },
  { "dp-kind", { "megatron", "fsdp2", "deepspeed" } },
  { "micro-batch", { "1", "2", "4" } },
  { "recompute", { "none", "selective", "full" } },
  { "schedule", { "1f1b", "interleaved-1f1b", "zb-h1", "gpipe" } },
  { "tp-overlap", { "0" } },
  { "seq", { "128", "1024", "4096" } },
  { "grad-dtype", { "bf16", "fp32" } },
};

/* One value, or two of them. */
static char *
draw_values (GRand *rand, const Choice *c)
{
  guint n = 0;
  while (n < G_N_ELEMENTS (c->values) && c->values[n])
    n++;
  guint first = (guint) g_rand_int_range (rand, 0, (gint) n);
  bool is_one = n == 1 || g_rand_int_range (rand, 0, 3) == 0;
  return is_one ? g_strdup (c->values[first])
                : g_strdup_printf ("%s,%s", c->values[first], c->values[(first + 1) % n]);
}

static void
draw_space (guint seed, LsSweepSpec *spec, const char *prune, const char *threads)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  static const char *const models[] = { "tiny", "tiny-moe", "tiny-odd" };
  SPEC_INIT (spec, "model", models[g_rand_int_range (rand, 0, 3)], "gpus", g_rand_boolean (rand) ? "4" : "8",
             "global-batch", g_rand_boolean (rand) ? "8" : "16", "top", g_rand_boolean (rand) ? "5" : "2",
             "prune", prune, "threads", threads);
  for (guint i = 0; i < G_N_ELEMENTS (choices); i++) {
    g_autofree char *values = draw_values (rand, &choices[i]);
    LS_CHECK (ls_sweep_spec_set (spec, choices[i].key, values, diags));
  }
}

static void
check_best (guint seed, const GArray *on, const GArray *off)
{
  bool is_same = on->len == off->len;
  for (guint i = 0; i < MIN (on->len, off->len); i++) {
    const LsSweepRow *x = &g_array_index (on, LsSweepRow, i), *y = &g_array_index (off, LsSweepRow, i);
    is_same &= x->step == y->step && x->memory_bytes == y->memory_bytes && strcmp (x->knobs, y->knobs) == 0;
  }
  ls_check_impl (is_same, __FILE__, __LINE__, "seed %u: pruning changes the best", seed);
}

static void
pruning_keeps_the_best (void)
{
  guint n = ls_test_cases (12, 20);
  uint64_t n_best = 0, n_pruned = 0, n_simulated = 0;
  for (guint seed = 1; seed <= n; seed++) {
    LsSweepSpec on, off;
    draw_space (seed, &on, "on", "2");
    draw_space (seed, &off, "off", "2");
    g_autoptr (LsSweepRun) a = run (&on), b = run (&off);
    check_best (seed, ls_sweep_run_report (a)->best, ls_sweep_run_report (b)->best);
    n_best += ls_sweep_run_report (a)->best->len;
    n_pruned += ls_sweep_run_report (a)->counts.pruned;
    n_simulated += ls_sweep_run_report (b)->counts.simulated;
    ls_sweep_spec_clear (&on);
    ls_sweep_spec_clear (&off);
  }
  LS_CHECK_INT (n_best, >, n);
  LS_CHECK_INT (n_pruned, >, n_simulated / 8);
}

/* Threads go ahead of a wave: what they find must not count before its time. */
static void
threads_change_no_byte (void)
{
  LsSweepSpec all;
  static const char *const threads[] = { "1", "3", "5", "3" };
  g_autofree char *first = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++) {
    SPEC_INIT (&all, "model", "tiny", "gpus", "8", "global-batch", "32", "micro-batch", "1,2", "threads",
               threads[i]);
    g_autoptr (LsSweepRun) x = run (&all);
    g_autofree char *list = ls_sweep_run_list (x), *json = ls_sweep_to_json (ls_sweep_run_report (x));
    g_autofree char *both = g_strconcat (json, list, NULL);
    if (i == 0)
      first = g_steal_pointer (&both);
    else
      LS_CHECK (strcmp (first, both) == 0);
    ls_sweep_spec_clear (&all);
  }
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (pruning_keeps_the_best),
                    LS_TEST (threads_change_no_byte))
