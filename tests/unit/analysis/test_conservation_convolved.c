/* Pins: the conservation laws hold with convolutions of queries and keys, routers with layers of their own and scales
 * of residuals (model/convolved.c); weights and kept bytes of such layers, by hand; and what is refused there. */
#include "layer_laws.h"

/* As ZAYA1 has them. */
static LsModel
convolved (void)
{
  LsModel m = small_model ("convolved");
  m.mlp = LS_MLP_SWIGLU;
  m.attn.qk_conv = 2;
  m.attn.qk_mix = 3;
  m.moe.router_hidden = 64;
  m.halves.residual_scale = true;
  m.moe.n_experts = 8;
  m.moe.zero_experts = 1;
  m.moe.top_k = m.moe.every = 1;
  m.moe.expert_ffn = 256;
  return m;
}

static void
weights_and_flops_are_those_of_the_parts (void)
{
  LsModel m = convolved ();
  const uint64_t h = 512, c = (8 + 4) * 64, r = 64, plain = 2 * h * 512 + 2 * h * 256, expert = 3 * h * 256;
  const uint64_t mix = c * 64 * 3, router = h * r + 2 * r * r + r * 9;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_PARTS, NULL));
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==,
                plain + mix + c * (2 + 2) + 4 + router + 5 * r + 8 * expert + 2 * h + 8 * h);
  LS_CHECK_INT (ls_model_layer_linear_params (&m, 0), ==, plain + mix + router + expert);
  const LsShard shard = whole_shard (&m);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *scale = find_operator (operators, "qk-scale"); /* four tensors move for means, each way */
  LS_CHECK_DOUBLE (scale->fwd[0].bytes, ==, 4.0 * 2 * 256 * c);
  LS_CHECK_DOUBLE (scale->igrad[scale->n_igrad - 1].bytes, ==, 4.0 * 2 * 256 * c);
}

static uint64_t
kept (const LsModel *m)
{
  const LsShard shard = whole_shard (m);
  g_autoptr (GArray) operators = ls_operators_new ();
  uint64_t n = 0;
  ls_operators_layer (m, &shard, 0, operators);
  for (guint i = 0; i < operators->len; i++)
    n += g_array_index (operators, LsOperator, i).kept.saved_bytes;
  return n;
}

/* In numbers of 2 bytes a token: what was convolved once, and what norms read; of a router what its norm, three products
 * and two activations read; of residuals both. */
static void
layers_keep_what_the_backward_reads (void)
{
  const uint64_t token = 2 * 256;
  LsModel all = convolved (), without = convolved ();
  without.attn.qk_conv = without.attn.qk_mix = 0;
  LS_CHECK_INT (kept (&all) - kept (&without), ==, token * 2 * 768);
  without = convolved (), without.moe.router_hidden = 0;
  LS_CHECK_INT (kept (&all) - kept (&without), ==, token * 6 * 64);
  without = convolved (), without.halves.residual_scale = false;
  LS_CHECK_INT (kept (&all) - kept (&without), ==, token * 2 * 2 * 512);
}

static void
convolutions_keep_the_laws (void)
{
  for (guint i = 0; i < 16; i++) {
    LsModel m = convolved ();
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = 1u << i % 2;
    s.sp = s.tp > 1;
    s.ep = i / 2 % 2 ? 4 : 1;
    s.pp = i / 4 % 2 && s.ep == 1 ? 2 : 1;
    s.recompute = i / 8 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

static void
what_is_not_modelled_is_refused (void)
{
  for (guint i = 0; i < 2; i++) {
    LsModel m = convolved ();
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 8;
    s.tp = i == 0 ? 8 : 1;
    s.sp = i == 0;
    s.cp = i == 1 ? 2 : 1;
    says (&m, &s, i == 0 ? "heads of keys that are convolved; got 8" : "keys that meet those of tokens");
  }
}

/* Each breaks one rule. */
static void
models_must_agree_with_themselves (void)
{
  LsModel m = convolved (), none = convolved ();
  none.attn.qk_mix = 0;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_PARTS, NULL), "\"qk_conv\" with \"qk_mix\""));
  none = m, none.moe.n_experts = 0;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_PARTS, NULL), "router_hidden"));
  none = m, none.attn.kv_conv = 2;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_PARTS, NULL), "plain attention"));
  none = m, none.norms = LS_NORMS_POST;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_PARTS, NULL), "norms before each half"));
}

LS_TEST_SUITE (LS_TEST (weights_and_flops_are_those_of_the_parts),
               LS_TEST (layers_keep_what_the_backward_reads), LS_TEST (convolutions_keep_the_laws),
               LS_TEST (what_is_not_modelled_is_refused), LS_TEST (models_must_agree_with_themselves))
