/* lower/layers/lower_wgrad.c — weight gradients: those computed behind an exchange of tokens, and tensors
 * that stand for those that a buffer of the program's own takes. */
#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

#include "strategy/shard.h"

/* --- delayed: an exchange does not wait for them (lower_pieces.h) -------------------------------------- */

bool
delays_weights (const Lower *l, LsActionType pass)
{
  return l->s->delay_wgrad && pass == LS_ACTION_B;
}

void
delay_weights (Build *b, guint i)
{
  g_array_append_val (b->delayed, i);
}

/* They need nothing of what the next op waits for. */
void
build_delayed_weights (Build *b)
{
  DpPass *p = b->pass;
  GArray *joins = b->next_deps;
  b->next_deps = g_array_new (FALSE, FALSE, sizeof (LsDep));
  uint16_t layer = b->layer;
  bool is_counted = b->is_counted;
  build_piece (b, PIECE_WEIGHTS);
  for (guint d = 0; d < b->delayed->len; d++) {
    guint i = g_array_index (b->delayed, guint, d);
    build_at_operator (b, p->c, i);
    build_weight_operator (b, p->c, i);
    if (p->backend->after)
      p->backend->after (b, p, i);
  }
  b->layer = layer;
  b->is_counted = is_counted;
  g_array_set_size (b->delayed, 0);
  g_array_prepend_vals (b->next_deps, joins->data, joins->len);
  g_array_unref (joins);
}

/* --- made by autograd ---------------------------------------------------------------------------------- */

/* Of one copy of the model, and beside the buckets of DDP, which stay, the backward of the first micro-batch
 * makes them, and the step forgets them (set_to_none): where activations are at their peak there are none. */
bool
grads_come_and_go (const Lower *l)
{
  bool is_autograds = l->s->dp_kind == LS_DP_NONE || ls_strategy_has_buckets (l->s);
  return l->shard.grad_is_own && is_autograds && l->mesh.pp == 1 && l->n_chunks == 1;
}

static uint64_t
trained_params (const LsOperator *o)
{
  uint64_t n = 0;
  for (uint32_t k = 0; k < o->n_params && !o->is_frozen; k++)
    n += o->param_numel[k];
  return n;
}

static void
hold_gradients_of (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  uint64_t n = trained_params (operator_at (c, i));
  build_buffer (b, op, dp_buffer (b, c, 1 + i), LS_MEM_GRADIENTS, dp_grad_bytes (b->l, n), is_free);
}

/* Where the kernel that makes them is another operator's (bias_grad_listed), they are there as well. */
void
make_gradients (Build *b, uint16_t op, const Chunk *c, guint i)
{
  bool makes = grads_come_and_go (b->l) && b->pass && b->pass->is_first;
  if (makes && (op != NO_OP || trained_params (operator_at (c, i)) > 0))
    hold_gradients_of (b, some_op (b, op), c, i, false);
}

void
forget_gradients (Build *b, uint32_t pp_rank)
{
  if (!grads_come_and_go (b->l))
    return;
  const Chunk *c = chunk_at (b->l, pp_rank, 0);
  for (guint i = 0; i < c->operators->len; i++)
    hold_gradients_of (b, dp_last_compute (b), c, i, true);
}

/* --- placeholders ------------------------------------------------------------------------------------ */

/* Tensors that stand for gradients.
 *
 * Megatron-LM adds weight gradients to a buffer of its own (main_grad) inside the GEMM; what autograd
 * is handed in their place, so that its hooks run, is an empty tensor of the weight's shape and type:
 *
 *   linears    Transformer Engine 2.3 and later: one for each shape, kept for good (get_dummy_wgrad in
 *              pytorch/module/base.py; which release has it: SimuMax, simumax/core/config.py)
 *   the head   Megatron-LM's own linear makes one in each backward (grad_weight in
 *              LinearWithGradAccumulationAndAsyncCommunication, core/tensor_parallel/layers.py)
 *
 * Worked example. Llama 3.1 405B, tp 2, bf16: 2 (20480 + 16384 + 3 * 53248) 16384 / 2 = 3.0 GiB for the four
 * shapes of a layer, and 128256 * 16384 = 2.0 GiB while the head's backward runs.
 *
 * Deviation. A placeholder that autograd copies, as somebody else holds it too, is not counted twice. */

#define SIXTEEN_BITS 2 /* bytes of a weight's nominal type */

static uint64_t
weight_bytes_of (const LsKernel *wgrad)
{
  return SIXTEEN_BITS * wgrad->batch * wgrad->m * wgrad->n;
}

static bool
is_known (const GArray *shapes, const LsKernel *wgrad)
{
  for (guint i = 0; i < shapes->len; i++) {
    const LsKernel *k = g_array_index (shapes, const LsKernel *, i);
    if (k->batch == wgrad->batch && k->m == wgrad->m && k->n == wgrad->n)
      return true;
  }
  return false;
}

uint64_t
placeholder_bytes (const Lower *l, uint32_t pp_rank)
{
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (const LsKernel *));
  uint64_t bytes = 0;
  for (uint32_t c = 0; l->s->wgrad_placeholders && c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint i = 0; i < chunk->operators->len; i++) {
      const LsKernel *wgrad = deferred_gemm (operator_at (chunk, i));
      if (!wgrad || layer_of (chunk, i) == UINT16_MAX || is_known (shapes, wgrad))
        continue;
      g_array_append_val (shapes, wgrad);
      bytes += weight_bytes_of (wgrad);
    }
  }
  return bytes;
}

void
hold_placeholder (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  const LsKernel *wgrad = deferred_gemm (operator_at (c, i));
  if (b->l->s->wgrad_placeholders && wgrad && layer_of (c, i) == UINT16_MAX)
    build_buffer (b, op, placeholder_id (b, c, i), LS_MEM_UNSHARDED, weight_bytes_of (wgrad), is_free);
}
