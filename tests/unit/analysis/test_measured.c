/* Pins what is said of logged numbers: that they agree where they were made from the job, each known way of
 * counting FLOPs where it was used, and another batch or sequence where tokens differ. */
#include "analysis/logged_step.h"

#include <string.h>

#include "ls_test.h"

#define GIB (UINT64_C (1) << 30)

static const LsModel model = {
  .name = (char *) "m",
  .n_layers = 32,
  .hidden = 4096,
  .n_heads = 32,
  .n_kv_heads = 32,
  .head_dim = 128,
  .ffn = 16384,
  .vocab = 51200,
  .seq = 2048,
};

static LsStrategy
strategy (void)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.tp = 1, s.dp = 8, s.global_batch = 64, s.seq = 2048;
  return s;
}

static double
flops (const LsStrategy *s, bool is_causal)
{
  return ls_model_flops (&model, ls_model_padded_vocab (&model, s->tp), s->seq, s->global_batch, is_causal);
}

static LsReport
report (const LsStrategy *s)
{
  return (LsReport) {
    .step_time_s = 10,
    .mfu = 0.4,
    .hfu = 0.5,
    .n_ranks = 8,
    .chip = "GPU",
    .n_params = 6000000000,
    .n_active_params = 6000000000,
    .needed_bytes = 40 * GIB,
    .peak_bytes = 40 * GIB,
    .context_bytes = 2 * GIB,
    .at_peak
    = { [LS_MEM_GRADIENTS] = 10 * GIB, [LS_MEM_OPTIMIZER] = 16 * GIB, [LS_MEM_ACTIVATIONS] = 8 * GIB },
  };
}

/* What is said, all together. */
static char *
said (const LsMeasured *m)
{
  g_autofree LsStrategy *s = g_new (LsStrategy, 1);
  *s = strategy ();
  LsReport r = report (s);
  g_autoptr (GPtrArray) words = ls_measured_explain (m, &r, &model, s);
  g_ptr_array_add (words, NULL);
  return g_strjoinv ("\n", (char **) words->pdata);
}

static void
numbers_of_the_job_agree (void)
{
  LsStrategy s = strategy ();
  const LsMeasured m = {
    .step_s = 12,
    .flops_per_gpu = flops (&s, false) / 8 / 12,
    .tokens_per_s = 64 * 2048 / 12.0,
    .memory_bytes = 40.0 * GIB,
  };
  g_autofree char *words = said (&m);
  LS_CHECK (strstr (words, "TFLOP/s: agree with the time and this job (+0.0 %)") != NULL);
  LS_CHECK (strstr (words, "tokens/s: agree with the time and this job's 1.311e+05 tokens a step (+0.0 %)")
            != NULL);
  LS_CHECK (strstr (words, "memory: agrees with the 40.00 GiB predicted (+0.0 %)") != NULL);
}

static void
check_way (double step_flops, const char *way)
{
  const LsMeasured m = { .step_s = 12, .flops_per_gpu = step_flops / 8 / 12 };
  g_autofree char *words = said (&m);
  ls_check_impl (strstr (words, way) != NULL, __FILE__, __LINE__, "%s: %s", way, words);
}

static void
each_way_to_count_is_named (void)
{
  LsStrategy s = strategy ();
  double whole = flops (&s, false), tokens = 64.0 * 2048;
  check_way (flops (&s, true), "if the log counts with the causal half of attention");
  check_way (whole * 0.5 / 0.4, "if the log counts with what is computed again");
  check_way (8 * 6e9 * tokens, "as 8 FLOPs a parameter and token");
  check_way (3 * whole, "which no known way to count explains");
}

static void
another_batch_is_named_with_its_error (void)
{
  const LsMeasured m = { .step_s = 12, .tokens_per_s_per_gpu = 2 * 64 * 2048 / 12.0 / 8 };
  g_autofree char *words = said (&m);
  LS_CHECK (strstr (words, "another batch (128 sequences of 2048)") != NULL);
  LS_CHECK (strstr (words, "this job would take 6 s, and the error would be +66.7 %") != NULL);
}

static void
memory_names_what_would_explain_it (void)
{
  LsMeasured m = { .step_s = 12, .memory_bytes = 50.0 * GIB };
  g_autofree char *more = said (&m);
  LS_CHECK (
      strstr (more, "10.00 GiB more than the 40.00 GiB predicted; would be explained by gradients in fp32")
      != NULL);
  m.memory_bytes = 42.0 * GIB;
  g_autofree char *context = said (&m);
  LS_CHECK (strstr (context, "the CUDA context, which nvidia-smi counts") != NULL);
  m.memory_bytes = 70.0 * GIB;
  g_autofree char *unknown = said (&m);
  LS_CHECK (strstr (unknown, "30.00 GiB more") != NULL && strstr (unknown, "explained") == NULL);
}

LS_TEST_SUITE (LS_TEST (numbers_of_the_job_agree), LS_TEST (each_way_to_count_is_named),
               LS_TEST (another_batch_is_named_with_its_error), LS_TEST (memory_names_what_would_explain_it))
