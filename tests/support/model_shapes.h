/* tests/support/model_shapes.h — dimensions and shards that several tests use. */
#ifndef LS_TESTS_MODEL_SHAPES_H
#define LS_TESTS_MODEL_SHAPES_H

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

#endif
