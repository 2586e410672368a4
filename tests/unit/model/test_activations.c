/* Pins what operators keep for the backward against Korthikanti et al. 2022 (arXiv
 * 2205.05198); ids: tests/README.md. */
#include "ls_test.h"

#include <math.h>

#include "model_shapes.h"

typedef struct {
  const char *name;
  uint32_t layers, hidden, heads;
  uint32_t micro_batch, pp, vpp;
  double pct[4]; /* of tensor parallelism alone: SP; selective; both; full   */
  double gib[2]; /* first stage: nothing recomputed; SP and selective        */
} Korthikanti;

/* act-* (figure 7) and actG-* (figure 1), t = 8, as profiled by the paper and
 * quoted in calculon-ai/calculon, calculon/llm/validation.py. */
static const Korthikanti models[] = {
  { "22B", 48, 6144, 64, 4, 1, 1, { 66.84, 49.42, 16.18, 7.64 }, { 59.25, 9.5625 } },
  { "175B", 96, 12288, 96, 1, 8, 3, { 62.04, 56.53, 18.49, 8.71 }, { 66.8438, 12.3516 } },
  { "530B", 105, 20480, 128, 1, 35, 3, { 58.31, 62.04, 20.27, 9.42 }, { 114.023, 23.0762 } },
  { "1T", 128, 25600, 160, 1, 64, 1, { 58.31, 62.04, 20.27, 9.42 }, { 131.25, 26.5625 } },
};

static double
layer_bytes (const LsModel *m, bool sp, uint32_t micro_batch, bool with_attention_core)
{
  LsShard s = shard (m, 8, sp, micro_batch);
  g_autoptr (GArray) ops = layer_operators (m, &s);
  return (double) saved_bytes (ops, with_attention_core);
}

static void
korthikanti_figure_7 (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (models); i++) {
    LsModel m = gpt (models[i].layers, models[i].hidden, models[i].heads);
    LsShard s = shard (&m, 8, false, 1);
    double baseline = layer_bytes (&m, false, 1, true);
    double pct[] = {
      100 * layer_bytes (&m, true, 1, true) / baseline,
      100 * layer_bytes (&m, false, 1, false) / baseline,
      100 * layer_bytes (&m, true, 1, false) / baseline,
      100 * (double) ls_boundary_bytes (&m, &s) / baseline,
    };
    for (size_t k = 0; k < G_N_ELEMENTS (pct); k++)
      LS_CHECK_DOUBLE (fabs (pct[k] - models[i].pct[k]), <, 1.0);
  }
}

/* The first stage of 1F1B holds as much as the whole model for one micro-batch;
 * interleaving adds (p - 1) / (p v). */
static void
korthikanti_figure_1 (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (models); i++) {
    const Korthikanti *k = &models[i];
    LsModel m = gpt (k->layers, k->hidden, k->heads);
    double in_flight = k->vpp > 1 ? 1 + (k->pp - 1.0) / (k->pp * k->vpp) : 1;
    double scale = k->layers * in_flight / 0x1p30;
    LS_CHECK_NEAR (scale * layer_bytes (&m, false, k->micro_batch, true), k->gib[0], 1e-4);
    LS_CHECK_NEAR (scale * layer_bytes (&m, true, k->micro_batch, false), k->gib[1], 1e-4);
  }
}

/* sbh (10 + 24/t + 5as/ht), with SP all of it / t; selective drops 5as^2 b/t: to
 * the byte. */
static void
layer_follows_the_closed_form (void)
{
  LsModel m = gpt (1, 6144, 64);
  for (uint32_t t = 1; t <= 16; t *= 2)
    for (uint32_t b = 1; b <= 4; b++)
      for (int sp = 0; sp <= 1; sp++) {
        LsShard s = shard (&m, t, sp, b);
        g_autoptr (GArray) ops = layer_operators (&m, &s);
        uint64_t sbh = (uint64_t) b * 2048 * 6144;
        uint64_t scores = 5 * (uint64_t) b * 64 * 2048 * 2048 / t;
        uint64_t linear = (sp ? 10 * sbh / t : 10 * sbh) + 24 * sbh / t;
        LS_CHECK_INT (saved_bytes (ops, true), ==, linear + scores);
        LS_CHECK_INT (saved_bytes (ops, false), ==, linear);
      }
}

/* Section 4.3: the input keeps a dropout mask, the output two inputs and fp32
 * logits. */
static void
embedding_and_head_follow_section_4_3 (void)
{
  LsModel m = gpt (1, 6144, 64);
  uint64_t sbh = 2048 * 6144, t = 8;
  for (int sp = 0; sp <= 1; sp++) {
    LsShard s = shard (&m, t, sp, 1);
    g_autoptr (GArray) embedding = operators_new ();
    g_autoptr (GArray) head = operators_new ();
    ls_operators_embedding (&m, &s, embedding);
    ls_operators_head (&m, &s, false, head);
    uint64_t cut = sp ? t : 1;
    LS_CHECK_INT (saved_bytes (embedding, true), ==, sbh / cut);
    LS_CHECK_INT (saved_bytes (head, true), ==, 4 * sbh / cut + 4 * 2048 * 51200 / t);
  }
}

/* Without dropout: no masks, and the softmax output is the input of the bmm. */
static void
no_dropout_keeps_no_masks (void)
{
  LsModel m = gpt (1, 6144, 64);
  m.dropout = false;
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  uint64_t sbh = 2048 * 6144, scores = 2ull * 64 * 2048 * 2048;
  LS_CHECK_INT (saved_bytes (ops, true), ==, 32 * sbh + scores);
}

/* Per token: norm in, qkv in, Q K V, log-sum-exp, O, norm in, fc1 in, gate and up,
 * fc2 in. */
static void
llama_with_flash (void)
{
  LsModel m = llama3_70b ();
  uint64_t h = 8192, q = 8192, kv = 1024, a = 64, f = 28672, tokens = 8192, t = 8;
  for (int sp = 0; sp <= 1; sp++) {
    LsShard s = shard (&m, t, sp, 1);
    g_autoptr (GArray) ops = layer_operators (&m, &s);
    uint64_t whole = 4 * 2 * h / (sp ? t : 1);
    uint64_t parts = 2 * (q + 2 * kv) + 4 * a + 2 * q + 4 * f + 2 * f;
    LS_CHECK_INT (saved_bytes (ops, true), ==, tokens * (whole + parts / t));
    LS_CHECK_INT (saved_bytes (ops, false), ==, tokens * (whole + parts / t));
  }
}

/* Inputs of fp8 GEMMs are kept as fp8; the rest stays 16-bit. */
static void
fp8_halves_the_inputs_of_gemms (void)
{
  LsModel m = llama3_70b ();
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) wide = layer_operators (&m, &s);
  s.dtype = LS_DTYPE_FP8;
  g_autoptr (GArray) narrow = layer_operators (&m, &s);
  uint64_t inputs = 8192ull * (8192 + 8192 + 8192 + 28672);
  LS_CHECK_INT (saved_bytes (wide, true) - saved_bytes (narrow, true), ==, inputs);
}

/* Sixteen bits less four and a half of each value that a product keeps. */
static void
nvfp4_keeps_scales_with_the_inputs_of_gemms (void)
{
  LsModel m = llama3_70b ();
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) wide = layer_operators (&m, &s);
  s.dtype = LS_DTYPE_NVFP4;
  g_autoptr (GArray) narrow = layer_operators (&m, &s);
  uint64_t inputs = 8192ull * (8192 + 8192 + 8192 + 28672);
  LS_CHECK_INT (saved_bytes (wide, true) - saved_bytes (narrow, true), ==, inputs * 23 / 16);
}

/* mem-2: jax-ml/scaling-book, training.md, question 2: 2LB (D + 2F), LLaMA-2 13B,
 * 16e6 tokens, is 4.2e13 bytes: a checkpoint of D, and gate and up. */
static void
book_checkpoints_of_llama2_13b (void)
{
  LsModel m = llama (40, 5120, 40, 40, 13824, 32000);
  LsShard s = shard (&m, 1, false, 1);
  s.seq = 16000000;
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  const LsOperator *act = find_operator (ops, "mlp-act");
  if (!LS_CHECK (act != NULL))
    return;
  double per_layer = (double) act->kept.saved_bytes + (double) ls_boundary_bytes (&m, &s);
  LS_CHECK_NEAR (40 * per_layer, 4.2e13, 0.01);
}

/* kv-1: jax-ml/scaling-book, transformers.md, question 1: 2LNH in int8, L = 64,
 * NH = 4096: 512 kB per token. */
static void
keys_and_values_of_a_token (void)
{
  LsModel m = llama (64, 4096, 32, 32, 4 * 4096, 32000);
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  const LsOperator *qkv = find_operator (ops, "qkv");
  if (!LS_CHECK (qkv != NULL))
    return;
  uint64_t width = qkv->params.numel[0] / m.hidden;
  LS_CHECK_INT (m.n_layers * (width - 4096), ==, 512 * 1024);
}

static void
boundary_is_2sbh (void)
{
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, false, 4);
  LS_CHECK_INT (ls_boundary_bytes (&m, &s), ==, 2 * 2048 * 4 * 6144);
  s.sp = true;
  LS_CHECK_INT (ls_boundary_bytes (&m, &s), ==, 2 * 2048 * 4 * 6144 / 8);
  s.dtype = LS_DTYPE_FP8; /* 16-bit between layers */
  LS_CHECK_INT (ls_boundary_bytes (&m, &s), ==, 2 * 2048 * 4 * 6144 / 8);
}

LS_TEST_SUITE (LS_TEST (korthikanti_figure_7), LS_TEST (korthikanti_figure_1),
               LS_TEST (layer_follows_the_closed_form), LS_TEST (embedding_and_head_follow_section_4_3),
               LS_TEST (no_dropout_keeps_no_masks), LS_TEST (llama_with_flash),
               LS_TEST (fp8_halves_the_inputs_of_gemms),
               LS_TEST (nvfp4_keeps_scales_with_the_inputs_of_gemms),
               LS_TEST (book_checkpoints_of_llama2_13b), LS_TEST (keys_and_values_of_a_token),
               LS_TEST (boundary_is_2sbh))
