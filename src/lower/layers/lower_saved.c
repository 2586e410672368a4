/* lower/layers/lower_saved.c — buffers of what lives from a forward to its backward.
 *
 * A split backward: after I only the inputs of the matrix products that W computes are kept,
 * and the gradients of their outputs. */
#include "lower/layers/lower_layers.h"

/* Weight gradients that a split backward leaves to W: those of matrix products, as zero
 * bubble's code does (sail-sg/zero-bubble-pipeline-parallelism, WeightGradStore); biases,
 * norms and embeddings have theirs with I. */
const LsKernel *
deferred_gemm (const LsOperator *o)
{
  for (uint32_t k = 0; k < o->n_wgrad; k++)
    if (o->wgrad[k].kind == LS_KERNEL_GEMM)
      return &o->wgrad[k];
  return NULL;
}

/* What W multiplies besides the input: the gradients of the outputs, m x k of each GEMM. */
static uint64_t
deferred_grad_bytes (const LsOperator *o)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < o->n_wgrad; i++) {
    const LsKernel *k = &o->wgrad[i];
    bytes += k->kind == LS_KERNEL_GEMM ? ls_dtype_array_bytes (k->dtype, k->batch * k->m * k->k) : 0;
  }
  return bytes;
}

/* The input of operator i, if it lives longer or shorter than the rest of what that keeps; or
 * what is there from the forward on while the rest is made again. */
static uint64_t
input_bytes_apart (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  if (recomputes_ops (l) && layer_of (c, i) != UINT16_MAX)
    return c->again ? recompute_kept_bytes (l, c, i) : 0;
  bool is_apart = (l->has_split && deferred_gemm (o)) || drops_input (l, c, i) || keeps_part_input (l, c, i);
  return is_apart ? o->input_bytes : 0;
}

/* The kept activation of operator i, but for an input that lives apart. Buffer ids: the
 * operator, behind them the layers (inputs kept by full recomputation), then inputs of
 * operators, then gradients of their outputs, then placeholders of theirs. */
void
keep_activation (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  const LsOperator *o = operator_at (c, i);
  build_buffer (b, op, (uint16_t) i, LS_MEM_ACTIVATIONS, o->saved_bytes - input_bytes_apart (b->l, c, i),
                is_free);
}

/* Past the layers' buffers; a chunk that has more than an id can count has too many ops too. */
static uint16_t
deferred_id (Build *b, const Chunk *c, guint i)
{
  guint id = c->operators->len + c->n_layers + i;
  b->is_too_long |= id > UINT16_MAX;
  return (uint16_t) id;
}

uint16_t
placeholder_id (Build *b, const Chunk *c, guint i)
{
  return deferred_id (b, c, 2 * c->operators->len + i);
}

void
keep_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  build_buffer (b, op, deferred_id (b, c, i), LS_MEM_ACTIVATIONS, input_bytes_apart (b->l, c, i), is_free);
}

void
keep_gradient (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  uint16_t id = deferred_id (b, c, c->operators->len + i);
  build_buffer (b, op, id, LS_MEM_ACTIVATIONS, deferred_grad_bytes (operator_at (c, i)), is_free);
}

void
saved_by_layer (Build *b, uint16_t op, const Chunk *c, uint32_t layer, bool is_free)
{
  for (guint i = 0; i < c->operators->len; i++) {
    if (layer_of (c, i) != layer)
      continue;
    keep_group_input (b, op, c, i, is_free);
    if (recomputes_ops (b->l))
      keep_input (b, op, c, i, is_free);
    if (keeps_part_input (b->l, c, i))
      keep_input (b, op, c, i, is_free);
    if (is_recomputed (b->l, c, i))
      continue;
    keep_activation (b, op, c, i, is_free);
    if (!drops_input (b->l, c, i))
      keep_input (b, op, c, i, is_free);
  }
}
