/* tests/support/model_shapes.h — dimensions and shards that several tests use, and layers of a model as operators,
 * whose weights are held against their products. */
#ifndef LS_TESTS_MODEL_SHAPES_H
#define LS_TESTS_MODEL_SHAPES_H

#include "ls_test.h"
#include "model/operators.h"

/* As Narayanan et al. 2021: f = 4h, tied, learned positions, V 51,200, s 2048. */
static inline LsModel
gpt (uint32_t layers, uint32_t hidden, uint32_t heads)
{
  return (LsModel) {
    .n_layers = layers,
    .hidden = hidden,
    .n_heads = heads,
    .n_kv_heads = heads,
    .head_dim = hidden / heads,
    .ffn = 4 * hidden,
    .vocab = 51200,
    .seq = 2048,
    .mlp = LS_MLP_GELU,
    .norm = LS_NORM_LAYERNORM,
    .position = LS_POSITION_LEARNED,
    .attention = LS_ATTENTION_UNFUSED,
    .linear_bias = true,
    .tied_embeddings = true,
    .dropout = true,
  };
}

static inline LsModel
llama (uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t kv_heads, uint32_t ffn, uint32_t vocab)
{
  return (LsModel) {
    .n_layers = layers,
    .hidden = hidden,
    .n_heads = heads,
    .n_kv_heads = kv_heads,
    .head_dim = hidden / heads,
    .ffn = ffn,
    .vocab = vocab,
    .seq = 8192,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
  };
}

static inline LsModel
llama3_70b (void)
{
  return llama (80, 8192, 64, 8, 28672, 128256);
}

static inline LsShard
shard (const LsModel *m, uint32_t tp, bool sp, uint32_t micro_batch)
{
  return (LsShard) {
    .tp = tp,
    .sp = sp,
    .micro_batch = micro_batch,
    .seq = m->seq,
    .attention = m->attention,
    .dtype = LS_DTYPE_FP16,
    .grad_dtype = LS_DTYPE_FP16,
  };
}

static inline GArray *
operators_new (void)
{
  return ls_operators_new ();
}

static inline GArray *
layer_operators (const LsModel *m, const LsShard *s)
{
  GArray *ops = operators_new ();
  ls_operators_layer (m, s, 0, ops);
  return ops;
}

/* NULL if there is none of that name. */
static inline const LsOperator *
find_operator (const GArray *ops, const char *name)
{
  for (guint i = 0; i < ops->len; i++)
    if (g_str_equal (g_array_index (ops, LsOperator, i).name, name))
      return &g_array_index (ops, LsOperator, i);
  return NULL;
}

static inline uint64_t
saved_bytes (const GArray *ops, bool with_attention_core)
{
  uint64_t bytes = 0;
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *op = &g_array_index (ops, LsOperator, i);
    if (with_attention_core || !op->kept.is_core)
      bytes += op->kept.saved_bytes;
  }
  return bytes;
}

static inline bool
is_gemm (const LsKernel *k)
{
  return k->kind == LS_KERNEL_GEMM || k->kind == LS_KERNEL_BATCHED_GEMM;
}

static inline bool
is_flash (const LsKernel *k)
{
  return k->kind == LS_KERNEL_ATTENTION_FWD || k->kind == LS_KERNEL_ATTENTION_BWD;
}

typedef struct {
  GArray *embedding, *layer, *head;
} Parts;

static inline Parts
parts_new (const LsModel *m, const LsShard *s)
{
  Parts p = { operators_new (), operators_new (), operators_new () };
  ls_operators_embedding (m, s, p.embedding);
  ls_operators_layer (m, s, 0, p.layer);
  ls_operators_head (m, s, !m->tied_embeddings, p.head);
  return p;
}

/* Copies of operators behind those of another array. */
static inline void
append_operators (GArray *to, const GArray *from)
{
  g_array_set_size (to, to->len + from->len);
  for (guint i = 0; i < from->len; i++)
    ls_operator_copy (&g_array_index (to, LsOperator, to->len - from->len + i),
                      &g_array_index (from, LsOperator, i));
}

static inline void
parts_free (Parts p)
{
  g_array_unref (p.embedding);
  g_array_unref (p.layer);
  g_array_unref (p.head);
}

/* ---- layers as operators ---- */

static inline LsModel
small (void)
{
  LsModel m = llama (12, 1024, 8, 2, 4096, 32000);
  m.seq = 4096;
  return m;
}

static inline uint64_t
columns_of_products (const LsOperator *op)
{
  uint64_t n = 0;
  for (uint32_t p = 0; p < op->n_products; p++)
    n += op->product_columns[p];
  return n;
}

/* The first of them, or NULL; its gradient may be added by a kernel behind it. */
static inline const LsKernel *
product_of (const LsKernel *kernels, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (is_gemm (&kernels[i]))
      return &kernels[i];
  return NULL;
}

/* Weights of products are matrices, which optimizers tell from vectors, with the sides of their gradients;
 * products that software launches one by one are all of them together. */
static inline void
check_weights (const GArray *operators)
{
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *op = &g_array_index (operators, LsOperator, i);
    const LsTensor *t = &op->params.shape[0];
    const LsKernel *k = product_of (op->wgrad, op->n_wgrad);
    if (!k || op->params.n == 0)
      continue;
    if (op->n_products > 0 && op->params.alike[0] <= 1)
      ls_check_impl (columns_of_products (op) == t->rows, __FILE__, __LINE__, "%s", op->name);
    ls_check_impl (t->kind == LS_TENSOR_MATRIX
                       && (op->params.alike[0] > 1 || (t->rows == k->m && t->columns == k->n)),
                   __FILE__, __LINE__, "%s: %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT, op->name,
                   (guint64) t->rows, (guint64) t->columns);
  }
}

static inline GArray *
layer_of (const LsModel *m, uint32_t layer)
{
  GArray *operators = operators_new ();
  LsShard s = shard (m, 1, false, 1);
  ls_operators_layer (m, &s, layer, operators);
  check_weights (operators);
  return operators;
}

static inline uint64_t
n_layer_params (const GArray *operators)
{
  uint64_t sum = 0;
  for (guint i = 0; i < operators->len; i++)
    for (uint32_t p = 0; p < g_array_index (operators, LsOperator, i).params.n; p++)
      sum += g_array_index (operators, LsOperator, i).params.numel[p];
  return sum;
}

#endif
