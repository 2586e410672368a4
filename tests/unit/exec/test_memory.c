/* Pins memory on the host clock: hand-made programs, and the activations of the
 * first stage that Korthikanti et al. 2022 (figure 1, layers only) give, walked out
 * of real programs. */
#include "ls_test.h"

#include "exec/memory.h"
#include "parallel/lower.h"

#define GIB 1073741824.0

static LsMemory *
memory_of (uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t micro_batch, uint32_t pp, uint32_t vpp,
           uint32_t n_micro_batches, LsRecompute recompute, bool sp)
{
  LsModel m = {
    .name = (char *) "gpt", .n_layers = layers, .hidden = hidden, .n_heads = heads, .n_kv_heads = heads,
    .head_dim = hidden / heads, .ffn = 4 * hidden, .vocab = 51200, .seq = 2048, .mlp = LS_MLP_GELU,
    .norm = LS_NORM_LAYERNORM, .position = LS_POSITION_LEARNED, .attention = LS_ATTENTION_UNFUSED, .linear_bias = true,
    .tied_embeddings = true, .dropout = true,
  };
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_strategy_init (&s);
  s.tp = 8;
  s.pp = pp;
  s.vpp = vpp;
  s.sp = sp;
  s.gpus = 8 * pp;
  s.micro_batch = micro_batch;
  s.global_batch = micro_batch * n_micro_batches;
  s.recompute = (int) recompute;
  s.dtype = LS_DTYPE_FP16;
  LS_CHECK (ls_strategy_resolve (&s, &m, s.gpus, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  ls_strategy_clear (&s);
  return plan ? ls_memory_new (plan) : NULL;
}

/* actG-* (reference/worked-examples.csv): no recomputation without sequence
 * parallelism, and selective with it. Our figure has the embedding's dropout mask
 * and, where the stage is also the last, the loss on top. */
static void
first_stage_activations_are_the_published_ones (void)
{
  static const struct {
    uint32_t layers, hidden, heads, micro_batch, pp, vpp, n_mb;
    double none_gib, selective_gib;
  } rows[] = {
    { 96, 12288, 96, 1, 8, 3, 64, 66.84375, 12.3515625 },
    { 105, 20480, 128, 1, 35, 3, 280, 114.0234375, 23.076171875 },
    { 128, 25600, 160, 1, 64, 1, 512, 131.25, 26.5625 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    for (int selective = 0; selective < 2; selective++) {
      g_autoptr (LsMemory) m
          = memory_of (rows[i].layers, rows[i].hidden, rows[i].heads, rows[i].micro_batch, rows[i].pp, rows[i].vpp,
                       rows[i].n_mb, selective ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE, selective);
      if (m)
        LS_CHECK_NEAR ((double) m->roles[0].category_peak[LS_MEM_ACTIVATIONS] / GIB,
                       selective ? rows[i].selective_gib : rows[i].none_gib, 0.03);
    }
}

/* actG-22B: one stage, one micro-batch of 4: 59.25 GiB of layers. The head's logits
 * and loss come on top: 2 and 4 bytes of b s V / t, and its inputs. */
static void
one_stage_holds_the_head_too (void)
{
  g_autoptr (LsMemory) m = memory_of (48, 6144, 64, 4, 1, 1, 1, LS_RECOMPUTE_NONE, false);
  double tokens = 4 * 2048.0, head = tokens * 51200 / 8 * 4 + 3 * tokens * 6144 * 2;
  if (m)
    LS_CHECK_NEAR ((double) m->roles[0].category_peak[LS_MEM_ACTIVATIONS], 59.25 * GIB + head, 0.01);
}

/* Full recomputation keeps 2sbh per layer and one layer's worth while it runs. */
static void
full_recomputation_keeps_inputs_and_one_layer (void)
{
  g_autoptr (LsMemory) m = memory_of (48, 6144, 64, 4, 1, 1, 1, LS_RECOMPUTE_FULL, false);
  double sbh = 4 * 2048.0 * 6144, one_layer = sbh * (10 + 24.0 / 8 + 5 * 64 * 2048.0 / (6144 * 8));
  if (m)
    LS_CHECK_NEAR ((double) m->roles[0].category_peak[LS_MEM_ACTIVATIONS], 48 * 2 * sbh + one_layer + sbh, 0.02);
}

/* 18 bytes per parameter with fp32 gradients, 16 with 16-bit ones: 2 + 2 + 12. */
static void
static_memory_follows_the_recipe (void)
{
  g_autoptr (LsMemory) m = memory_of (96, 12288, 96, 1, 8, 3, 8, LS_RECOMPUTE_SELECTIVE, true);
  if (!m)
    return;
  const LsRoleMemory *r = &m->roles[3];
  LS_CHECK_INT (r->category_peak[LS_MEM_GRADIENTS], ==, r->category_peak[LS_MEM_PARAMETERS]);
  LS_CHECK_INT (r->category_peak[LS_MEM_OPTIMIZER], ==, 6 * r->category_peak[LS_MEM_PARAMETERS]);
  LS_CHECK (r->peak_bytes >= r->at_peak[LS_MEM_PARAMETERS] + r->at_peak[LS_MEM_GRADIENTS] + r->at_peak[LS_MEM_OPTIMIZER]);
}

/* Activations at their peak on one stage without a pipeline: F0 I0 F1 I1 ..., then the W. */
static uint64_t
peak_of_late_weights (uint32_t layers, uint32_t n_micro_batches)
{
  LsModel m = {
    .name = (char *) "gpt", .n_layers = layers, .hidden = 1024, .n_heads = 16, .n_kv_heads = 16, .head_dim = 64, .ffn = 4096,
    .vocab = 51200, .seq = 2048, .mlp = LS_MLP_GELU, .norm = LS_NORM_LAYERNORM, .position = LS_POSITION_LEARNED,
    .attention = LS_ATTENTION_UNFUSED, .linear_bias = true, .tied_embeddings = true, .dropout = true,
  };
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_strategy_init (&s);
  s.schedule = g_strdup ("zb-h1");
  s.global_batch = n_micro_batches;
  LS_CHECK (ls_strategy_resolve (&s, &m, 1, 8, diags));
  g_autoptr (LsOrders) orders = ls_orders_new (1, 1, 1, 1, n_micro_batches, &(LsStageRef) { 0, 0 });
  for (uint32_t i = 0; i < 3 * n_micro_batches; i++) {
    bool is_w = i >= 2 * n_micro_batches;
    LsAction a = { .mb = is_w ? i - 2 * n_micro_batches : i / 2,
                   .type = (uint8_t) (is_w ? LS_ACTION_W : i % 2 ? LS_ACTION_I : LS_ACTION_F) };
    g_array_append_val (orders->ranks[0], a);
  }
  g_autoptr (LsPlan) plan = ls_lower_orders (&m, &s, orders, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsMemory) memory = plan ? ls_memory_new (plan) : NULL;
  ls_strategy_clear (&s);
  return memory ? memory->roles[0].category_peak[LS_MEM_ACTIVATIONS] : 0;
}

/* M_W = 32 s b h of a layer (Qi et al. 2024, section 3.1): each micro-batch more that waits
 * for its W holds so much more per layer; the head's part, which both depths have, cancels. */
static void
what_waits_for_weight_gradients_is_the_published (void)
{
  uint64_t deep = peak_of_late_weights (4, 3) - peak_of_late_weights (4, 2);
  uint64_t flat = peak_of_late_weights (2, 3) - peak_of_late_weights (2, 2);
  LS_CHECK_INT (deep - flat, ==, UINT64_C (2) * 32 * 2048 * 1024);
}

LS_TEST_MAIN ("memory", LS_TEST (first_stage_activations_are_the_published_ones), LS_TEST (one_stage_holds_the_head_too),
              LS_TEST (full_recomputation_keeps_inputs_and_one_layer), LS_TEST (static_memory_follows_the_recipe),
              LS_TEST (what_waits_for_weight_gradients_is_the_published))
