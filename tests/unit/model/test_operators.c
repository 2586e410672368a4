/* Pins what operators and their kernels compute, hold and move, of layers of widths of their own too. */
#include "ls_test.h"
#include "model_shapes.h"

#include <string.h>

#include "model/kernel.h"

/* Pins the FLOP and byte counts of a GEMM and the names of kernel kinds. */

static void
gemm_counts_two_flops_per_multiply_add (void)
{
  LsKernel k = ls_kernel_gemm ("x", LS_DTYPE_BF16, 10, 20, 30, 1, 2, false);
  LS_CHECK_INT (k.kind, ==, LS_KERNEL_GEMM);
  LS_CHECK_DOUBLE (k.flops, ==, 2.0 * 10 * 20 * 30);
  LS_CHECK_DOUBLE (k.bytes, ==, 2.0 * (10 * 30 + 30 * 20 + 10 * 20));
}

static void
accumulating_gemm_reads_c_too (void)
{
  LsKernel once = ls_kernel_gemm ("x", LS_DTYPE_FP8, 10, 20, 30, 1, 4, false);
  LsKernel added = ls_kernel_gemm ("x", LS_DTYPE_FP8, 10, 20, 30, 1, 4, true);
  LS_CHECK_DOUBLE (once.bytes, ==, 10 * 30 + 30 * 20 + 4 * 10 * 20);
  LS_CHECK_DOUBLE (added.bytes - once.bytes, ==, 4 * 10 * 20);
}

static void
batch_multiplies_both (void)
{
  LsKernel one = ls_kernel_gemm ("x", LS_DTYPE_FP16, 64, 64, 32, 1, 2, false);
  LsKernel many = ls_kernel_gemm ("x", LS_DTYPE_FP16, 64, 64, 32, 12, 2, false);
  LS_CHECK_INT (many.kind, ==, LS_KERNEL_BATCHED_GEMM);
  LS_CHECK_DOUBLE (many.flops, ==, 12 * one.flops);
  LS_CHECK_DOUBLE (many.bytes, ==, 12 * one.bytes);
}

/* B is read by each part, all else once. */
static void
parts_of_a_gemm_add_up (void)
{
  LsKernel whole = ls_kernel_gemm ("x", LS_DTYPE_BF16, 64, 20, 30, 1, 4, true),
           part = ls_kernel_gemm_part (&whole, 4);
  LS_CHECK_INT (part.m, ==, 16);
  LS_CHECK_DOUBLE (4 * part.flops, ==, whole.flops);
  LS_CHECK_DOUBLE (4 * part.bytes, ==, whole.bytes + 3 * 2 * 20 * 30);
  LS_CHECK_DOUBLE (part.bytes, ==, ls_kernel_gemm ("x", LS_DTYPE_BF16, 16, 20, 30, 1, 4, true).bytes);
}

static void
dimensions_beyond_32_bits_do_not_wrap (void)
{
  LsKernel k = ls_kernel_gemm ("x", LS_DTYPE_BF16, 1u << 31, 1u << 31, 1u << 20, 1, 2, false);
  LS_CHECK_DOUBLE (k.flops, ==, 0x1p83);
}

static void
stream_keeps_shape_and_bytes (void)
{
  LsKernel k = ls_kernel_stream ("gelu", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 8, 9, 288, 1);
  LS_CHECK_STR (k.name, "gelu");
  LS_CHECK_INT (k.m, ==, 8);
  LS_CHECK_INT (k.n, ==, 9);
  LS_CHECK_INT (k.k, ==, 0);
  LS_CHECK_DOUBLE (k.bytes, ==, 288);
  LS_CHECK_DOUBLE (k.flops, ==, 1);
}

static void
kinds_have_distinct_names (void)
{
  for (int i = 0; i < LS_N_KERNEL_KINDS; i++)
    for (int j = 0; j < i; j++)
      LS_CHECK (g_strcmp0 (ls_kernel_kind_names[i].name, ls_kernel_kind_names[j].name) != 0);
  LS_CHECK_STR (ls_kernel_kind_names[LS_KERNEL_GEMM].name, "gemm");
}

/* Pins conservation and sharding: ranks together compute the FLOPs and hold the parameters of the model. */

typedef bool (*Filter) (const LsKernel *k);

static double
sum_flops (const LsKernel *kernels, uint32_t n, Filter filter)
{
  double flops = 0;
  for (uint32_t i = 0; i < n; i++)
    if (filter (&kernels[i]))
      flops += kernels[i].flops;
  return flops;
}

static double
operator_flops (const LsOperator *op, Filter filter)
{
  return sum_flops (op->fwd, op->n_fwd, filter) + sum_flops (op->igrad, op->n_igrad, filter)
      + sum_flops (op->wgrad, op->n_wgrad, filter);
}

static double
total_flops (const GArray *ops, Filter filter)
{
  double flops = 0;
  for (guint i = 0; i < ops->len; i++)
    flops += operator_flops (&g_array_index (ops, LsOperator, i), filter);
  return flops;
}

static double
parts_flops (Parts p, uint32_t n_layers, Filter filter)
{
  return total_flops (p.embedding, filter) + n_layers * total_flops (p.layer, filter)
      + total_flops (p.head, filter);
}

/* What the ranks of a tensor-parallel group compute is what the model needs. */
static void
unfused_flops_are_the_models (void)
{
  LsModel m = gpt (96, 12288, 96);
  for (uint32_t t = 1; t <= 8; t *= 2) {
    LsShard s = shard (&m, t, t > 1, 2);
    Parts p = parts_new (&m, &s);
    double model = ls_model_flops (&m, ls_model_padded_vocab (&m, 0, t), m.seq, 2, false);
    LS_CHECK_NEAR (t * parts_flops (p, m.n_layers, is_gemm), model, 1e-12);
    LS_CHECK_DOUBLE (parts_flops (p, m.n_layers, is_flash), ==, 0);
    parts_free (p);
  }
}

/* Causal, plus Q K^T once more in each backward: 2.5 forwards instead of 2. */
static void
flash_flops_are_the_models_and_a_recomputation (void)
{
  LsModel m = llama3_70b ();
  for (uint32_t t = 1; t <= 8; t *= 2) {
    LsShard s = shard (&m, t, true, 1);
    uint64_t vocab = ls_model_padded_vocab (&m, 0, t);
    Parts p = parts_new (&m, &s);
    double causal = ls_model_flops (&m, vocab, m.seq, 1, true);
    double attention = ls_model_flops (&m, vocab, m.seq, 1, false) - causal;
    LS_CHECK_NEAR (t * parts_flops (p, m.n_layers, is_gemm), causal - attention, 1e-12);
    LS_CHECK_NEAR (t * parts_flops (p, m.n_layers, is_flash), attention * 3.5 / 3, 1e-12);
    parts_free (p);
  }
}

static void
backward_gemms_are_twice_the_forward (void)
{
  LsModel m = gpt (24, 2304, 24);
  LsShard s = shard (&m, 4, true, 2);
  Parts p = parts_new (&m, &s);
  append_operators (p.layer, p.head);
  for (guint i = 0; i < p.layer->len; i++) {
    const LsOperator *op = &g_array_index (p.layer, LsOperator, i);
    double forward = sum_flops (op->fwd, op->n_fwd, is_gemm);
    LS_CHECK_DOUBLE (operator_flops (op, is_gemm), ==, 3 * forward);
    if (op->tp == LS_TP_COLUMN || op->tp == LS_TP_ROW)
      LS_CHECK_DOUBLE (sum_flops (op->wgrad, op->n_wgrad, is_gemm), ==, forward);
  }
  parts_free (p);
}

/* Each rank of t does exactly 1/t of every operator. */
static void
sharding_divides_gemms_exactly (void)
{
  LsModel m = gpt (96, 12288, 96);
  LsShard whole = shard (&m, 1, false, 1);
  Parts one = parts_new (&m, &whole);
  for (uint32_t t = 2; t <= 8; t *= 2) {
    LsShard part = shard (&m, t, false, 1);
    Parts p = parts_new (&m, &part);
    LS_CHECK_INT (p.layer->len, ==, one.layer->len);
    for (guint i = 0; i < p.layer->len; i++)
      LS_CHECK_DOUBLE (t * operator_flops (&g_array_index (p.layer, LsOperator, i), is_gemm), ==,
                       operator_flops (&g_array_index (one.layer, LsOperator, i), is_gemm));
    LS_CHECK_DOUBLE (t * total_flops (p.head, is_gemm), ==, total_flops (one.head, is_gemm));
    parts_free (p);
  }
  parts_free (one);
}

static uint64_t
params_over_ranks (const GArray *ops, uint32_t t)
{
  uint64_t n = 0;
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *op = &g_array_index (ops, LsOperator, i);
    for (int k = 0; k < op->params.n; k++)
      n += op->params.numel[k] * (op->params.is_replicated ? 1 : t);
  }
  return n;
}

static void
check_params (LsModel m)
{
  for (uint32_t t = 1; t <= 8; t *= 2) {
    LsShard s = shard (&m, t, false, 1);
    Parts p = parts_new (&m, &s);
    LS_CHECK_INT (params_over_ranks (p.layer, t), ==, ls_model_layer_params (&m, 0));
    LS_CHECK_INT (params_over_ranks (p.embedding, t) + m.n_layers * params_over_ranks (p.layer, t)
                      + params_over_ranks (p.head, t),
                  ==, ls_model_params (&m, ls_model_padded_vocab (&m, 0, t)));
    parts_free (p);
  }
}

static void
params_over_ranks_are_the_models (void)
{
  check_params (gpt (96, 12288, 96));
  check_params (llama3_70b ());
  LsModel qwen = llama3_70b ();
  qwen.attn.qkv_bias = true;
  check_params (qwen);
}

/* A tied head on another stage than the embedding has a copy of the table. */
static void
tied_head_elsewhere_has_a_weight (void)
{
  LsModel m = gpt (24, 2304, 24);
  LsShard s = shard (&m, 2, false, 1);
  g_autoptr (GArray) same = operators_new ();
  g_autoptr (GArray) elsewhere = operators_new ();
  ls_operators_head (&m, &s, false, same);
  ls_operators_head (&m, &s, true, elsewhere);
  LS_CHECK_INT (params_over_ranks (elsewhere, 2) - params_over_ranks (same, 2), ==, 51200 * 2304);
  LS_CHECK_DOUBLE (total_flops (same, is_gemm), ==, total_flops (elsewhere, is_gemm));
}

/* Of 12 layers, in turn: as all, half as many keys and values and a narrow MLP, an MLP alone, one matrix in the
 * place of attention. */
static void
layers_have_widths_of_their_own (void)
{
  uint32_t kv_heads[] = { 0, 1, 0, 0 }, ffn[] = { 0, 1024, 512, 0 };
  LsModel m = small ();
  m.layers.pattern = (char *) "AAdM";
  m.mixer.kind = LS_MIXER_PRODUCT;
  m.mixer.heads = 1, m.mixer.head_dim = 1024;
  m.layers.kv_heads = kv_heads, m.layers.n_kv_heads = 4;
  m.layers.ffn = ffn, m.layers.n_ffn = 4;
  const uint64_t q = 2 * 1024 * 1024, kv = 2 * 1024 * 128, mlp = 3 * 1024;
  const uint64_t params[] = { q + 2 * kv + mlp * 4096 + 2048, q + kv + mlp * 1024 + 2048, mlp * 512 + 1024,
                              1024 * 1024 + mlp * 4096 + 2048 };
  uint64_t all = 2 * 32000 * 1024 + 1024;
  for (uint32_t layer = 0; layer < m.n_layers; layer++) {
    g_autoptr (GArray) operators = layer_of (&m, layer);
    LS_CHECK_INT (ls_model_layer_params (&m, layer), ==, params[layer % 4]);
    LS_CHECK_INT (n_layer_params (operators), ==, params[layer % 4]);
    LS_CHECK_INT (find_operator (operators, "fc2")->fwd[0].k, ==, layer % 4 % 3 == 0 ? 4096 : ffn[layer % 4]);
    all += params[layer % 4];
  }
  LS_CHECK_INT (ls_model_params (&m, 32000), ==, all);
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, 4);
  LS_CHECK_INT (ls_model_n_attention_layers (&m), ==, 6);
  double linear = 6.0 * 4096 * (double) ls_model_linear_params (&m, 32000);
  LS_CHECK_NEAR (ls_model_flops (&m, 32000, 4096, 1, false), linear + 6 * 12 * 4096.0 * 4096 * 1024, 1e-12);
  LS_CHECK (ls_model_is_cut_evenly (&m, 8));
  ffn[2] = 516;
  LS_CHECK (ls_model_is_cut_evenly (&m, 4) && !ls_model_is_cut_evenly (&m, 8));
  LsModel copy;
  ls_model_copy (&copy, &m);
  LS_CHECK_INT (ls_model_layer_params (&copy, 2), ==, mlp * 516 + 1024);
  ls_model_clear (&copy);
}

/* As many kinds as there is room for, and one more. */
static void
widths_are_counted (void)
{
  uint32_t ffn[LS_MAX_MODEL_KINDS + 1];
  LsModel m = small ();
  for (uint32_t i = 0; i <= LS_MAX_MODEL_KINDS; i++)
    ffn[i] = 64 * (i + 1);
  m.layers.ffn = ffn;
  m.n_layers = m.layers.n_ffn = LS_MAX_MODEL_KINDS;
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, LS_MAX_MODEL_KINDS);
  m.n_layers = m.layers.n_ffn = LS_MAX_MODEL_KINDS + 1;
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, LS_MAX_MODEL_KINDS + 1);
}

LS_TEST_SUITE (LS_TEST (gemm_counts_two_flops_per_multiply_add), LS_TEST (accumulating_gemm_reads_c_too),
               LS_TEST (batch_multiplies_both), LS_TEST (parts_of_a_gemm_add_up),
               LS_TEST (dimensions_beyond_32_bits_do_not_wrap), LS_TEST (stream_keeps_shape_and_bytes),
               LS_TEST (kinds_have_distinct_names), LS_TEST (unfused_flops_are_the_models),
               LS_TEST (flash_flops_are_the_models_and_a_recomputation),
               LS_TEST (backward_gemms_are_twice_the_forward), LS_TEST (sharding_divides_gemms_exactly),
               LS_TEST (params_over_ranks_are_the_models), LS_TEST (tied_head_elsewhere_has_a_weight),
               LS_TEST (layers_have_widths_of_their_own), LS_TEST (widths_are_counted))
