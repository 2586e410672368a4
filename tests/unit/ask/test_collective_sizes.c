/* Pins that a larger array never takes less time, whatever is called on which machine, by flows or message by
 * message, as long as NCCL takes the same algorithm and protocol. Sizes are powers of 2, of which a pipeline's
 * chunks are too. */
#include "ls_test.h"

#include "ask/collective/collective_sizes.h"

static LsCollectiveRun *
run (const char *cluster, const char *op, const char *gpus, const char *network)
{
  const char *const knobs[][2]
      = { { "cluster", cluster }, { "op", op },      { "gpus", gpus },      { "min", "1KiB" },
          { "max", "16MiB" },     { "factor", "2" }, { "network", network } };
  LsCollectiveSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_collective_spec_init (&spec);
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_collective_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  LsCollectiveRun *r = ls_collective_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_collective_spec_clear (&spec);
  return r;
}

static void
check_rows (const LsCollectiveRun *r)
{
  const LsCollectiveTable *t = ls_collective_run_table (r);
  for (guint i = 1; i < t->n_rows; i++) {
    const LsCollectiveRow *a = &t->rows[i - 1], *b = &t->rows[i];
    bool is_same = g_str_equal (a->algorithm, b->algorithm) && g_str_equal (a->protocol, b->protocol);
    ls_check_impl (!is_same || b->time >= a->time, __FILE__, __LINE__,
                   "%s, %s of %u, %s: %g us for %" G_GUINT64_FORMAT " bytes, %g us for %" G_GUINT64_FORMAT,
                   a->cluster, a->op, a->n_ranks, a->network, 1e6 * ls_time_to_s (a->time), a->bytes,
                   1e6 * ls_time_to_s (b->time), b->bytes);
  }
}

static void
larger_arrays_take_no_less (void)
{
  static const char *const machines[][2]
      = { { "tpu-v4", "8" },    { "tpu-v5p", "16" },  { "dgx-h100", "8" },
          { "dgx-h100", "16" }, { "pcie-a100", "8" }, { "dgx-b200", "8" } };
  static const char *const ops[] = { "all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce",
                                     "all-to-all", "gather",     "scatter",        "permute" };
  static const char *const networks[] = { "step", "flow" };
  for (guint m = 0; m < G_N_ELEMENTS (machines); m++)
    for (guint o = 0; o < G_N_ELEMENTS (ops); o++)
      for (guint n = 0; n < G_N_ELEMENTS (networks); n++) {
        g_autoptr (LsCollectiveRun) r = run (machines[m][0], ops[o], machines[m][1], networks[n]);
        if (r)
          check_rows (r);
      }
}

LS_TEST_SUITE (LS_TEST (larger_arrays_take_no_less))
