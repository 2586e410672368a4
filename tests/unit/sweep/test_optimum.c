/* Pins that a sweep finds what was measured to be the best: GPT of 162.2B parameters on 64 A100,
 * Narayanan et al. 2021 (arXiv 2104.04473), figure 13: tensor parallelism over a node of 8 and 8
 * stages beat all other pairs at both global batches, 32 and 128. Knobs are those of the paper, and
 * more than one replica does not fit. Simulated beside the best is what comes next to it.
 *
 * At 128 sequences 4 x 16 is behind by 1.3 %, which is the transfers between stages: with whole
 * tensors in place of scatter-gather (--p2p batched) it is ahead by 0.2 %. */
#include "ls_test.h"

#include "sweep/sweep.h"

static const char *const paper[][2] = {
  { "model", "gpt-162b" }, { "cluster", "dgx-a100-80g" }, { "gpus", "64" },
  { "dtype", "fp16" },     { "micro-batch", "1" },        { "schedule", "1f1b" },
  { "vpp", "1" },          { "recompute", "full" },       { "zero", "0" },
  { "sp", "0" },           { "dp-kind", "megatron" },     { "dp-overlap", "0" },
  { "tp-overlap", "0" },   { "p2p", "scatter-gather" },   { "prune", "off" },
};

static void
check_best (const char *global_batch, const char *tp)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsSweepSpec spec;
  ls_sweep_spec_init (&spec);
  for (guint i = 0; i < G_N_ELEMENTS (paper); i++)
    LS_CHECK (ls_sweep_spec_set (&spec, paper[i][0], paper[i][1], diags));
  LS_CHECK (ls_sweep_spec_set (&spec, "global-batch", global_batch, diags));
  LS_CHECK (ls_sweep_spec_set (&spec, "tp", tp, diags));
  g_autoptr (LsSweepRun) run = ls_sweep_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  const LsSweepReport *r = ls_sweep_run_report (run);
  LS_CHECK_INT (r->counts.simulated, ==, 2);
  const LsSweepRow *best = &g_array_index (r->best, LsSweepRow, 0);
  LS_CHECK_INT (best->strategy.tp, ==, 8);
  LS_CHECK_INT (best->strategy.pp, ==, 8);
  ls_sweep_spec_clear (&spec);
}

static void
tensor_parallelism_fills_a_node_at_32_sequences (void)
{
  check_best ("32", "8,16");
}

static void
tensor_parallelism_fills_a_node_at_128_sequences (void)
{
  check_best ("128", "4,8");
}

LS_TEST_SUITE (LS_TEST (tensor_parallelism_fills_a_node_at_32_sequences),
               LS_TEST (tensor_parallelism_fills_a_node_at_128_sequences))
