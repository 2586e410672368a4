/* Pins the kernels of a layer, of the embedding and of the head: their order, shapes, bytes and FLOPs, and what
 * each way to compute (dropout, fused operators, formats, gradients) makes of them. */
#include "ls_test.h"

#include <string.h>

#include "model_shapes.h"

static bool
is_dropout (const LsKernel *k)
{
  return strstr (k->name, "dropout") != NULL;
}

/* TorchScript's, in models with biases and unfused attention. */
static bool
is_jit_gelu (const LsKernel *k)
{
  return strcmp (k->name, "bias-gelu") == 0 || strcmp (k->name, "gelu-bwd") == 0;
}

static const LsKernel *
find_kernel (const LsKernel *kernels, uint32_t n, const char *name)
{
  for (uint32_t i = 0; i < n; i++)
    if (g_str_equal (kernels[i].name, name))
      return &kernels[i];
  return NULL;
}

static const LsKernel *
kernel_named (const GArray *ops, const char *name)
{
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *op = &g_array_index (ops, LsOperator, i);
    const LsKernel *k = find_kernel (op->fwd, op->n_fwd, name);
    k = k ? k : find_kernel (op->igrad, op->n_igrad, name);
    k = k ? k : find_kernel (op->wgrad, op->n_wgrad, name);
    if (k)
      return k;
  }
  return NULL;
}

static double
kernel_bytes (const GArray *ops, const char *name)
{
  const LsKernel *k = kernel_named (ops, name);
  return LS_CHECK (k != NULL) ? k->bytes : -1;
}

/* Every operator runs something forward; every kernel has a name, moves bytes, and
 * only matrix products and attention have FLOPs, and what the first two models compute beside. */
static void
kernels_are_well_formed (void)
{
  LsModel models[] = { gpt (2, 2304, 24), llama3_70b (), gpt (2, 2304, 24), llama3_70b () };
  models[2].position = LS_POSITION_ALIBI;
  models[2].dropout = false;
  models[3].attention = LS_ATTENTION_UNFUSED;
  for (size_t i = 0; i < G_N_ELEMENTS (models); i++) {
    LsShard s = shard (&models[i], 4, true, 1);
    Parts p = parts_new (&models[i], &s);
    append_operators (p.layer, p.embedding);
    append_operators (p.layer, p.head);
    for (guint k = 0; k < p.layer->len; k++) {
      const LsOperator *op = &g_array_index (p.layer, LsOperator, k);
      LS_CHECK_INT (op->n_fwd, >, 0);
      LS_CHECK_INT (op->tp == LS_TP_REDUCE, ==, op->comm.reduce_bytes > 0);
      const LsKernel *lists[] = { op->fwd, op->igrad, op->wgrad };
      uint32_t n[] = { op->n_fwd, op->n_igrad, op->n_wgrad };
      for (int l = 0; l < 3; l++)
        for (uint32_t j = 0; j < n[l]; j++) {
          LS_CHECK (lists[l][j].name != NULL);
          LS_CHECK_DOUBLE (lists[l][j].bytes, >, 0);
          LS_CHECK_INT (lists[l][j].flops > 0, ==,
                        is_gemm (&lists[l][j]) || is_flash (&lists[l][j])
                            || (l == 0 && is_dropout (&lists[l][j])) || is_jit_gelu (&lists[l][j]));
        }
    }
    parts_free (p);
  }
}

/* The order of Megatron-LM's layer, and where tensor parallelism communicates. */
static void
gpt_layer_is_megatrons (void)
{
  static const struct {
    const char *name;
    LsTpMode tp;
    bool core;
  } expected[] = {
    { "input-norm", LS_TP_NONE, false },
    { "qkv", LS_TP_COLUMN, false },
    { "attention-scores", LS_TP_NONE, true },
    { "attention-softmax", LS_TP_NONE, true },
    { "attention-dropout", LS_TP_NONE, true },
    { "attention-context", LS_TP_NONE, true },
    { "proj", LS_TP_ROW, false },
    { "attention-add", LS_TP_NONE, false },
    { "mlp-norm", LS_TP_NONE, false },
    { "fc1", LS_TP_COLUMN, false },
    { "mlp-act", LS_TP_NONE, false },
    { "fc2", LS_TP_ROW, false },
    { "mlp-add", LS_TP_NONE, false },
  };
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, false, 4);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  if (!LS_CHECK (ops->len == G_N_ELEMENTS (expected)))
    return;
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *op = &g_array_index (ops, LsOperator, i);
    LS_CHECK_STR (op->name, expected[i].name);
    LS_CHECK_INT (op->tp, ==, expected[i].tp);
    LS_CHECK_INT (op->kept.is_core, ==, expected[i].core);
  }
}

/* Shapes of the 22B layer at t = 8, b = 4: tokens 8192, h 6144, 8 heads of 96. */
static void
gemms_have_the_shapes_of_22b (void)
{
  static const struct {
    const char *name;
    uint64_t m, n, k, batch;
  } expected[] = {
    { "qkv", 8192, 2304, 6144, 1 },        { "qkv-dgrad", 8192, 6144, 2304, 1 },
    { "qkv-wgrad", 2304, 6144, 8192, 1 },  { "scores-bmm", 2048, 2048, 96, 32 },
    { "context-bmm", 2048, 96, 2048, 32 }, { "dp-bmm", 2048, 2048, 96, 32 },
    { "dv-bmm", 2048, 96, 2048, 32 },      { "dq-bmm", 2048, 96, 2048, 32 },
    { "dk-bmm", 2048, 96, 2048, 32 },      { "proj", 8192, 6144, 768, 1 },
    { "fc1", 8192, 3072, 6144, 1 },        { "fc2", 8192, 6144, 3072, 1 },
    { "fc2-wgrad", 6144, 3072, 8192, 1 },
  };
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, true, 4);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  for (size_t i = 0; i < G_N_ELEMENTS (expected); i++) {
    const LsKernel *k = kernel_named (ops, expected[i].name);
    if (!LS_CHECK (k != NULL))
      continue;
    LS_CHECK_INT (k->m, ==, expected[i].m);
    LS_CHECK_INT (k->n, ==, expected[i].n);
    LS_CHECK_INT (k->k, ==, expected[i].k);
    LS_CHECK_INT (k->batch, ==, expected[i].batch);
  }
}

/* Bytes of the memory-bound kernels, in tensors: an addition moves 3, a norm 2, and dropout masks. */
static void
streams_move_their_tensors (void)
{
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, false, 4);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  double n = 8192.0 * 6144, f = 8192.0 * 3072, p = 32.0 * 2048 * 2048;
  double below = 32.0 * 2048 * 2049 / 2; /* the diagonal and below */
  LS_CHECK_DOUBLE (kernel_bytes (ops, "layernorm-fwd"), ==, 4 * n);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "layernorm-dgrad"), ==, 6 * n);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "bias-dropout-add"), ==, 7 * n);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "bias-dropout-add-bwd"), ==, 5 * n);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "bias-gelu"), ==, 4 * f);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "gelu-bwd"), ==, 6 * f);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "attention-dropout"), ==, 5 * p);
  LS_CHECK_NEAR (kernel_bytes (ops, "scale-mask-softmax"), 2 * p + 2 * below, 1e-12);
  LS_CHECK_NEAR (kernel_bytes (ops, "scale-mask-softmax-bwd"), 2 * p + 4 * below, 1e-12);
}

/* SP cuts what lies outside the tensor-parallel regions, and nothing else. */
static void
sequence_parallelism_cuts_norms_and_adds (void)
{
  LsModel m = gpt (1, 6144, 64);
  LsShard off = shard (&m, 8, false, 4), on = shard (&m, 8, true, 4);
  g_autoptr (GArray) without = layer_operators (&m, &off);
  g_autoptr (GArray) with = layer_operators (&m, &on);
  static const char *const cut[] = {
    "layernorm-fwd",
    "layernorm-dgrad",
    "bias-dropout-add",
    "row-bias-grad",
  };
  static const char *const kept[] = {
    "qkv", "fc1-bias-grad", "bias-gelu", "scale-mask-softmax", "context-transpose",
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cut); i++)
    LS_CHECK_DOUBLE (8 * kernel_bytes (with, cut[i]), ==, kernel_bytes (without, cut[i]));
  for (size_t i = 0; i < G_N_ELEMENTS (kept); i++)
    LS_CHECK_DOUBLE (kernel_bytes (with, kept[i]), ==, kernel_bytes (without, kept[i]));
}

static void
without_dropout_its_kernels_vanish (void)
{
  LsModel m = gpt (1, 6144, 64);
  m.dropout = false;
  LsShard s = shard (&m, 8, false, 4);
  Parts p = parts_new (&m, &s);
  LS_CHECK (find_operator (p.layer, "attention-dropout") == NULL);
  LS_CHECK (find_operator (p.embedding, "embedding-dropout") == NULL);
  LS_CHECK_DOUBLE (kernel_bytes (p.layer, "bias-add"), ==, 6.0 * 8192 * 6144);
  LS_CHECK (kernel_named (p.layer, "bias-dropout-add-bwd") == NULL);
  parts_free (p);
}

/* 43 FLOPs a random number; the backward has the mask. */
static void
dropout_draws_a_random_number_for_each_element (void)
{
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, false, 4);
  Parts p = parts_new (&m, &s);
  double n = 8192.0 * 6144, scores = 4.0 * 8 * 2048 * 2048;
  LS_CHECK_DOUBLE (kernel_named (p.layer, "attention-dropout")->flops, ==, 43 * scores);
  LS_CHECK_DOUBLE (kernel_named (p.layer, "bias-dropout-add")->flops, ==, 43 * n);
  LS_CHECK_DOUBLE (kernel_named (p.embedding, "embedding-dropout")->flops, ==, 43 * n);
  LS_CHECK_DOUBLE (kernel_named (p.layer, "attention-dropout-bwd")->flops, ==, 0);
  LS_CHECK_DOUBLE (kernel_named (p.layer, "bias-dropout-add-bwd")->flops, ==, 0);
  parts_free (p);
}

/* TorchScript's GELU is of the unfused path: 42 FLOPs an element forward, 39 back, of the same bytes. */
static void
jit_gelu_computes_as_well (void)
{
  LsModel m = gpt (1, 6144, 64), no_bias = m;
  no_bias.linear_bias = false;
  LsShard s = shard (&m, 8, false, 4), later = s;
  later.attention = LS_ATTENTION_FLASH;
  g_autoptr (GArray) jit = layer_operators (&m, &s);
  g_autoptr (GArray) fused = layer_operators (&m, &later);
  g_autoptr (GArray) plain = layer_operators (&no_bias, &s);
  double f = 8192.0 * 3072;
  LS_CHECK_DOUBLE (kernel_named (jit, "bias-gelu")->flops, ==, 42 * f);
  LS_CHECK_DOUBLE (kernel_named (jit, "gelu-bwd")->flops, ==, 39 * f);
  LS_CHECK_DOUBLE (kernel_bytes (jit, "bias-gelu"), ==, kernel_bytes (fused, "bias-gelu"));
  LS_CHECK_DOUBLE (kernel_named (fused, "bias-gelu")->flops, ==, 0);
  LS_CHECK_DOUBLE (kernel_named (plain, "gelu")->flops, ==, 0);
}

/* apex's layer norms are short of arithmetic, not of memory: 55 and 120 FLOPs an element. RMSNorm never was
 * apex's. */
static void
apex_norms_compute_more_and_move_as_much (void)
{
  LsModel m = gpt (1, 6144, 64), llama = llama3_70b ();
  LsShard s = shard (&m, 8, false, 4), t = shard (&llama, 8, true, 1);
  g_autoptr (GArray) fast = layer_operators (&m, &s);
  s.apex_norm = t.apex_norm = true;
  g_autoptr (GArray) apex = layer_operators (&m, &s);
  g_autoptr (GArray) rms = layer_operators (&llama, &t);
  double n = 8192.0 * 6144;
  LS_CHECK_DOUBLE (kernel_named (fast, "layernorm-fwd")->flops, ==, 0);
  LS_CHECK_DOUBLE (kernel_named (apex, "layernorm-fwd")->flops, ==, 55 * n);
  LS_CHECK_DOUBLE (kernel_named (apex, "layernorm-gamma-beta-grad")->flops, ==, 48 * n);
  LS_CHECK_DOUBLE (kernel_named (apex, "layernorm-dgrad")->flops, ==, 72 * n);
  LS_CHECK_DOUBLE (kernel_bytes (apex, "layernorm-dgrad"), ==, kernel_bytes (fast, "layernorm-dgrad"));
  LS_CHECK_DOUBLE (kernel_named (rms, "rmsnorm-fwd")->flops, ==, 0);
}

/* Apart, the bias is one kernel more that reads and writes x; the rest moves what it moved. */
static void
a_bias_apart_is_read_and_written_once_more (void)
{
  LsModel m = gpt (1, 6144, 64), llama = llama3_70b ();
  LsShard s = shard (&m, 8, false, 4), t = shard (&llama, 8, true, 1);
  s.bias_is_apart = t.bias_is_apart = true;
  g_autoptr (GArray) apart = layer_operators (&m, &s);
  g_autoptr (GArray) without = layer_operators (&llama, &t);
  double n = 8192.0 * 6144;
  LS_CHECK_DOUBLE (kernel_bytes (apart, "output-bias"), ==, 4 * n);
  LS_CHECK_DOUBLE (kernel_bytes (apart, "dropout-add"), ==, 7 * n);
  LS_CHECK_DOUBLE (kernel_named (apart, "dropout-add")->flops, ==, 43 * n);
  LS_CHECK (kernel_named (apart, "bias-dropout-add") == NULL);
  LS_CHECK (kernel_named (without, "output-bias") == NULL);
}

/* The W GEMM adds to an fp32 main gradient itself (8 bytes of C); with a 16-bit one
 * it writes 2 and a kernel of 6 bytes adds them. */
static void
wgrad_accumulates_in_grad_dtype (void)
{
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, false, 4);
  g_autoptr (GArray) narrow = layer_operators (&m, &s);
  s.grad_dtype = LS_DTYPE_FP32;
  g_autoptr (GArray) wide = layer_operators (&m, &s);
  double numel = 3072.0 * 6144;
  LS_CHECK_DOUBLE (kernel_bytes (wide, "fc1-wgrad") - kernel_bytes (narrow, "fc1-wgrad"), ==,
                   (8 - 2) * numel);
  LS_CHECK_DOUBLE (kernel_bytes (narrow, "grad-accumulate"), ==, 6.0 * 2304 * 6144); /* qkv, the first */
  LS_CHECK (kernel_named (wide, "grad-accumulate") == NULL);
  LS_CHECK_DOUBLE (kernel_bytes (wide, "fc1-dgrad"), ==, kernel_bytes (narrow, "fc1-dgrad"));

  s.grad_dtype = LS_DTYPE_FP16;
  s.grad.is_fused = true; /* Megatron-LM of 2023: read 2, write 2, and no kernel more */
  g_autoptr (GArray) fused = layer_operators (&m, &s);
  LS_CHECK_DOUBLE (kernel_bytes (fused, "fc1-wgrad") - kernel_bytes (narrow, "fc1-wgrad"), ==, 2 * numel);
  LS_CHECK (kernel_named (fused, "grad-accumulate") == NULL);
  s.grad_dtype = LS_DTYPE_FP32;

  s.grad.is_apart = true; /* nanotron: the product writes 2; read 2 + 4, write 4 */
  g_autoptr (GArray) apart = layer_operators (&m, &s);
  LS_CHECK_DOUBLE (kernel_bytes (apart, "grad-accumulate"), ==, 10.0 * 2304 * 6144);
  LS_CHECK_DOUBLE (kernel_bytes (apart, "qkv-wgrad"), ==, kernel_bytes (narrow, "qkv-wgrad"));
  s.grad.is_fused = s.grad.is_apart = false;

  s.grad.is_cast = true; /* DeepSpeed's bf16 optimizer: read 2, write 4; read 4 + 4, write 4 */
  g_autoptr (GArray) cast = layer_operators (&m, &s);
  LS_CHECK_DOUBLE (kernel_bytes (cast, "grad-accumulate"), ==, 18.0 * 2304 * 6144);
  LS_CHECK_DOUBLE (kernel_bytes (cast, "qkv-wgrad"), ==, kernel_bytes (narrow, "qkv-wgrad"));
  s.grad.is_cast = false;
  s.grad.is_fresh = true; /* FSDP: written once, in 16 bits, whatever reduces it */
  g_autoptr (GArray) fresh = layer_operators (&m, &s);
  LS_CHECK_DOUBLE (kernel_bytes (fresh, "fc1-wgrad"), ==, kernel_bytes (narrow, "fc1-wgrad"));
  LS_CHECK (kernel_named (fresh, "grad-accumulate") == NULL);
}

static void
llama_layer_has_rope_swiglu_and_no_biases (void)
{
  LsModel m = llama3_70b ();
  LsShard s = shard (&m, 8, true, 1);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  double tokens = 8192;
  LS_CHECK_DOUBLE (kernel_bytes (ops, "rope-fwd"), ==, 4 * tokens * (1024 + 128));
  LS_CHECK_DOUBLE (kernel_bytes (ops, "swiglu"), ==, 6 * tokens * 3584);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "swiglu-bwd"), ==, 10 * tokens * 3584);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "flash-attention-fwd"), ==, tokens * (4 * (1024 + 128) + 4 * 8));
  const LsKernel *fc1 = kernel_named (ops, "fc1");
  const LsKernel *qkv = kernel_named (ops, "qkv");
  if (!LS_CHECK (fc1 && qkv))
    return;
  LS_CHECK_INT (fc1->n, ==, 2 * 3584);
  LS_CHECK_INT (qkv->n, ==, 1024 + 2 * 128);
  LS_CHECK (kernel_named (ops, "fc1-bias-grad") == NULL);
  LS_CHECK (kernel_named (ops, "row-bias-grad") == NULL);
}

/* Unfused attention repeats K and V for the queries of their group. */
static void
grouped_queries_unfused_expand_k_and_v (void)
{
  LsModel m = llama3_70b ();
  m.attention = LS_ATTENTION_UNFUSED;
  LsShard s = shard (&m, 8, false, 1);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  LS_CHECK_DOUBLE (kernel_bytes (ops, "repeat-k"), ==, 2.0 * 8192 * (1024 + 128));
  LS_CHECK_DOUBLE (kernel_bytes (ops, "repeat-v"), ==, 2.0 * 8192 * (1024 + 128));
  LS_CHECK_DOUBLE (kernel_bytes (ops, "dv-group-sum"), ==, 2.0 * 8192 * (1024 + 128));
}

/* baddbmm adds the scores to the broadcast ALiBi: C is read too. */
static void
alibi_is_added_by_the_score_gemm (void)
{
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, false, 1);
  g_autoptr (GArray) plain = layer_operators (&m, &s);
  m.position = LS_POSITION_ALIBI;
  g_autoptr (GArray) alibi = layer_operators (&m, &s);
  double c = 2.0 * 8 * 2048 * 2048;
  LS_CHECK_DOUBLE (kernel_bytes (alibi, "alibi-broadcast"), ==, c);
  LS_CHECK_DOUBLE (kernel_bytes (alibi, "scores-bmm") - kernel_bytes (plain, "scores-bmm"), ==, c);
}

static void
fp8_is_for_the_layers_gemms_only (void)
{
  LsModel m = llama3_70b ();
  LsShard s = shard (&m, 8, true, 1);
  s.dtype = LS_DTYPE_FP8;
  Parts p = parts_new (&m, &s);
  const LsKernel *fc1 = kernel_named (p.layer, "fc1-wgrad");
  const LsKernel *flash = kernel_named (p.layer, "flash-attention-bwd");
  const LsKernel *logits = kernel_named (p.head, "logits");
  if (LS_CHECK (fc1 && flash && logits)) {
    LS_CHECK_INT (fc1->dtype, ==, LS_DTYPE_FP8);
    LS_CHECK_INT (flash->dtype, ==, LS_DTYPE_BF16);
    LS_CHECK_INT (logits->dtype, ==, LS_DTYPE_BF16);
  }
  LS_CHECK_DOUBLE (kernel_bytes (p.layer, "rmsnorm-fwd"), ==, 3.0 * 8192 / 8 * 8192);
  parts_free (p);
}

/* What Transformer Engine does for a format whose scales go along one direction: the maximum first (nvfp4
 * only), both layouts from the 16-bit tensor in one pass, no transpose for W; where sequence parallelism
 * gathers the fp4 layout for W, its parts are put together. Attention and logits stay in bf16. */
static void
block_scales_go_along_one_direction (void)
{
  LsModel m = llama3_70b ();
  double local = 8192.0 / 8 * 8192, all = 8192.0 * 8192;
  LsShard s = shard (&m, 8, true, 1);
  s.dtype = LS_DTYPE_NVFP4;
  Parts p = parts_new (&m, &s);
  LS_CHECK_DOUBLE (kernel_bytes (p.layer, "rmsnorm-fwd"), ==, 4 * local);
  LS_CHECK_DOUBLE (kernel_bytes (p.layer, "nvfp4-amax"), ==, 2 * local);
  LS_CHECK (kernel_named (p.layer, "amax-zero") && !kernel_named (p.layer, "fp8-scale"));
  LS_CHECK_DOUBLE (kernel_bytes (p.layer, "nvfp4-cast-transpose"), ==, (2 + 2 * 9.0 / 16) * local);
  LS_CHECK_DOUBLE (kernel_bytes (p.layer, "nvfp4-interleave"), ==, 2 * 9.0 / 16 * all);
  LS_CHECK_INT (kernel_named (p.layer, "nvfp4-cast-transpose")->access, ==, LS_ACCESS_NONE);
  LS_CHECK_INT (kernel_named (p.layer, "qkv")->dtype, ==, LS_DTYPE_NVFP4);
  LS_CHECK_INT (kernel_named (p.layer, "flash-attention-fwd")->dtype, ==, LS_DTYPE_BF16);
  LS_CHECK_INT (kernel_named (p.head, "logits")->dtype, ==, LS_DTYPE_BF16);
  parts_free (p);

  LsShard mx = shard (&m, 8, true, 1);
  mx.dtype = LS_DTYPE_FP8;
  mx.fp8.recipe = LS_FP8_MXFP8;
  Parts q = parts_new (&m, &mx);
  LS_CHECK_DOUBLE (kernel_bytes (q.layer, "fp8-cast-transpose"), ==, (2 + 2 * 33.0 / 32) * local);
  LS_CHECK (!kernel_named (q.layer, "fp8-amax") && !kernel_named (q.layer, "fp8-transpose"));
  LS_CHECK_INT (kernel_named (q.layer, "fp8-cast-transpose")->access, ==, LS_ACCESS_MX_CAST_BOTH);
  parts_free (q);
  mx.fp8.recipe = LS_FP8_BLOCKWISE;
  q = parts_new (&m, &mx);
  LS_CHECK_INT (kernel_named (q.layer, "fp8-cast")->access, ==, LS_ACCESS_BLOCK_CAST);
  LS_CHECK (!kernel_named (q.layer, "amax-zero") && !kernel_named (q.layer, "fp8-scale"));
  parts_free (q);
  mx.fp8.recipe = LS_FP8_CURRENT;
  q = parts_new (&m, &mx);
  LS_CHECK_INT (kernel_named (q.layer, "amax-zero")->access, ==, LS_ACCESS_TINY);
  LS_CHECK_INT (kernel_named (q.layer, "fp8-scale")->access, ==, LS_ACCESS_TINY);
  parts_free (q);

  LsShard whole = shard (&m, 1, false, 1);
  whole.dtype = LS_DTYPE_NVFP4;
  Parts r = parts_new (&m, &whole);
  LS_CHECK (!kernel_named (r.layer, "nvfp4-interleave"));
  parts_free (r);
}

/* So many layers at either end have bf16 products, and no casts; norms write what these take. */
static void
ends_of_a_model_stay_in_bf16 (void)
{
  LsModel m = llama3_70b ();
  LsShard s = shard (&m, 1, false, 1);
  s.dtype = LS_DTYPE_NVFP4;
  s.fp8.bf16_first = 2;
  s.fp8.bf16_last = 3;
  for (uint32_t layer = 0; layer < m.n_layers; layer++) {
    bool is_at_end = layer < 2 || layer >= m.n_layers - 3;
    g_autoptr (GArray) ops = operators_new ();
    ls_operators_layer (&m, &s, layer, ops);
    LS_CHECK_INT (kernel_named (ops, "fc1-wgrad")->dtype, ==, is_at_end ? LS_DTYPE_BF16 : LS_DTYPE_NVFP4);
    LS_CHECK ((kernel_named (ops, "nvfp4-amax") == NULL) == is_at_end);
  }
  s.dtype = LS_DTYPE_FP16;
  LS_CHECK_INT (ls_layer_dtype (&m, &s, 0), ==, LS_DTYPE_FP16);
}

/* Three all-reduces of one fp32 value per token. */
static void
loss_reduces_three_times (void)
{
  LsModel m = gpt (1, 6144, 64);
  LsShard s = shard (&m, 8, false, 4);
  g_autoptr (GArray) head = operators_new ();
  ls_operators_head (&m, &s, true, head);
  int n = 0;
  for (guint i = 0; i < head->len; i++) {
    const LsOperator *op = &g_array_index (head, LsOperator, i);
    if (op->tp == LS_TP_REDUCE) {
      LS_CHECK_INT (op->comm.reduce_bytes, ==, 4 * 2048 * 4);
      n++;
    }
  }
  LS_CHECK_INT (n, ==, 3);
  double logits = 8192.0 * 51200 / 8;
  LS_CHECK_DOUBLE (kernel_bytes (head, "logits-to-fp32"), ==, 6 * logits);
  LS_CHECK_DOUBLE (kernel_bytes (head, "cross-entropy-bwd"), ==, 8 * logits);
}

LS_TEST_SUITE (LS_TEST (kernels_are_well_formed), LS_TEST (gpt_layer_is_megatrons),
               LS_TEST (gemms_have_the_shapes_of_22b), LS_TEST (streams_move_their_tensors),
               LS_TEST (sequence_parallelism_cuts_norms_and_adds),
               LS_TEST (without_dropout_its_kernels_vanish), LS_TEST (wgrad_accumulates_in_grad_dtype),
               LS_TEST (dropout_draws_a_random_number_for_each_element), LS_TEST (jit_gelu_computes_as_well),
               LS_TEST (apex_norms_compute_more_and_move_as_much),
               LS_TEST (a_bias_apart_is_read_and_written_once_more),
               LS_TEST (llama_layer_has_rope_swiglu_and_no_biases),
               LS_TEST (grouped_queries_unfused_expand_k_and_v), LS_TEST (alibi_is_added_by_the_score_gemm),
               LS_TEST (fp8_is_for_the_layers_gemms_only), LS_TEST (block_scales_go_along_one_direction),
               LS_TEST (ends_of_a_model_stay_in_bf16), LS_TEST (loss_reduces_three_times))
