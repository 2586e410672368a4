/* lower/layers/lower_operator.c — one operator on one rank, with its tensor parallelism, as
 * Megatron-LM issues it (core/tensor_parallel/layers.py):
 *
 *   column-parallel  forward   SP: gather the input, GEMM
 *                    backward  SP: gather the input || I GEMM; wait; reduce-scatter
 *                              its result || W GEMM; wait
 *                              no SP: I GEMM; all-reduce its result || W GEMM; wait
 *   row-parallel     forward   GEMM, all-reduce (SP: reduce-scatter) the output
 *                    backward  SP: gather the gradient; I GEMM; W GEMM
 *
 * "||" relies on CUDA_DEVICE_MAX_CONNECTIONS = 1: the communication kernel is
 * launched first. Whatever has no "||" blocks the compute stream. Megatron-LM has
 * "||" since late 2021 (async_tensor_model_parallel_allreduce); tp_async off is the
 * code before, in which these block too.
 *
 * Pieces of these collectives beside the GEMM itself: lower_tp_overlap.c. Attention over
 * sequences that are cut over ranks: lower_cp.c.
 *
 * What runs beside the exchange of tokens: lower_shared.c.
 *
 * A split backward: I has the input gradients, W the weight gradients of matrix products,
 * and the collectives that each needs; nothing of I then runs beside the GEMMs of W. */
#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

#include <string.h>

static bool
has_tp (const Lower *l)
{
  return l->mesh.tp > 1;
}

/* The gathered tensor that sequence parallelism cuts along the sequence: that between two layers,
 * unless the operator says otherwise. */
static uint64_t
full_bytes (const Lower *l, const LsOperator *o)
{
  if (o->tp_bytes > 0)
    return o->tp_bytes;
  return ls_boundary_bytes (l->model, &l->shard) * (l->shard.sp ? l->mesh.tp : 1);
}

/* What is gathered of it for a matrix product. */
static uint64_t
gathered_bytes (const Lower *l, const LsOperator *o)
{
  return gathers_scaled (l, o) ? ls_dtype_cast_bytes (scaled_dtype (o), full_bytes (l, o))
                               : full_bytes (l, o);
}

static uint16_t
build_tp (Build *b, int coll, uint64_t bytes, LsTag tag, const char *name)
{
  return build_coll (b, LS_STREAM_TP, LS_SLOT_TP, coll, bytes, b->l->shard.dtype, tag, name);
}

static void
build_tp_sync (Build *b, int coll, uint64_t bytes, LsTag tag, const char *name)
{
  build_join (b, build_tp (b, coll, bytes, tag, name));
}

/* NCCL joins what it gathers along the first dimension, and scatters along it. A tensor of [sequences,
 * tokens, hidden] that is cut along its tokens is copied into its order behind a gather, and out of it before
 * a reduction (DTensor: torch.cat of torch.chunk, torch/distributed/_functional_collectives.py); one of
 * [tokens, sequences, hidden], as Megatron-LM's, is not. Only where the job's software lists such copies. Of
 * one sequence what was gathered is in order as it is; PyTorch copies it nevertheless until it had
 * torch._utils._maybe_view_chunk_cat. Gathered logits, cut along their words, are put in order by a copy of
 * another name where one is listed, else by that behind gathers. */
const char *const ls_tp_copies[]
    = { "tp-gather-copy", "tp-gather-copy-of-one", "tp-logits-copy", "tp-scatter-copy", "tp-cut-copy", NULL };

static const LsRecipeKernel *
lists_tp_copy (const Lower *l, const char *name)
{
  const LsRecipe *r = ls_recipe_find (l->shard.recipes, LS_RECIPE_TP, l->model);
  return r ? ls_recipe_kernel_named (r->forward, name) : NULL;
}

static void
build_tp_copy (Build *b, const char *name, uint64_t bytes, LsTag tag)
{
  const Lower *l = b->l;
  const LsRecipeKernel *listed = lists_tp_copy (l, name);
  LsDtype dtype = ls_dtype_between (l->shard.dtype);
  if (!listed)
    return;
  LsKernel k = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, dtype, 1, bytes / ls_dtype_bytes (dtype),
                                 2.0 * (double) bytes, 0);
  k.access = (LsAccess) listed->access;
  build_kernel (b, &k, tag);
}

/* Behind a gather of what is cut along its tokens. */
static void
build_copy_out (Build *b, uint64_t bytes, LsTag tag)
{
  build_tp_copy (b, b->l->shard.micro_batch > 1 ? "tp-gather-copy" : "tp-gather-copy-of-one", bytes, tag);
}

/* The input of a column-parallel operator, as often as it gathers. */
static void
build_input_gathers (Build *b, const LsOperator *o, LsTag tag)
{
  for (uint32_t i = 0; i < MAX (1, o->n_gathers); i++) {
    build_tp_sync (b, LS_COLL_ALL_GATHER, gathered_bytes (b->l, o), tag, "tp all-gather");
    build_copy_out (b, gathered_bytes (b->l, o), tag);
  }
}

/* --- forward -------------------------------------------------------------------- */

/* The host waits for what the compute stream has: .item (), torch.nonzero (). */
static void
build_host_read (Build *b)
{
  LsOp sync = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "host reads");
  LsDep computed = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  sync.host = LS_HOST_SYNC;
  build_op (b, sync, &computed, 1);
}

uint16_t
build_operator_kernel (Build *b, const LsOperator *o, const LsKernel *k, LsTag tag)
{
  LsKernel kernel = *k;
  bool is_attention = ls_kernel_is_attention (k->kind);
  if (b->documents && is_attention)
    ls_documents_apply (b->documents, o->layer_kind, 0, &kernel);
  return build_kernel (b, &kernel, tag);
}

static void
build_forward_kernels (Build *b, const Chunk *c, guint i, bool is_pipelined, LsTag tag)
{
  const LsOperator *o = operator_at (c, i);
  if (o->context_parallel)
    build_context_forward (b, c, i, tag);
  else if (o->exchange.n > 0)
    build_exchange_forward (b, c, i, tag);
  else if (is_pipelined && o->tp == LS_TP_COLUMN)
    build_gather_gemm (b, o->fwd, o->n_fwd, tag, tag);
  else if (is_pipelined)
    build_gemm_scatter (b, o->fwd, o->n_fwd, tag, tag);
  else
    for (uint32_t k = 0; k < o->n_fwd; k++) {
      if (o->beside == LS_BESIDE_SUM && k + 1 == o->n_fwd)
        build_join_stream (b, LS_STREAM_SHARED);
      for (uint32_t r = 0; r < o->n_host_reads && k + 1 == o->n_fwd; r++)
        build_host_read (b);
      build_operator_kernel (b, o, &o->fwd[k], tag);
    }
}

uint16_t
first_op (Build *b, guint from)
{
  if (b->ops->len == 0)
    build_barrier (b);
  return (uint16_t) MIN (from, b->ops->len - 1);
}

void
build_gather (Build *b, const Chunk *c, guint i, LsTag tag)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  if (o->tp == LS_TP_COLUMN && has_tp (l) && l->shard.sp && !pipelines_tp (l, c, i))
    build_input_gathers (b, o, tag);
}

void
build_forward_operator (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps)
{
  if (runs_beside (c, i)) {
    b->shared = (SharedExperts) { c, first_beside (c, i), tag, keeps, LS_ACTION_F };
    return;
  }
  if (operator_at (c, i)->beside == LS_BESIDE_GATHER)
    b->beside (b, LS_BESIDE_GATHER);
  build_gather (b, c, i, tag);
  build_forward_here (b, c, i, tag, keeps);
}

void
build_forward_here (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  bool sp = l->shard.sp, is_pipelined = pipelines_tp (l, c, i);
  experts_before (b, o, false, tag);
  guint first = b->ops->len;
  build_forward_kernels (b, c, i, is_pipelined, tag);
  if (keeps) {
    uint16_t op = first_op (b, first);
    keep_activation (b, op, c, i, false);
    bool is_there = tag == LS_TAG_RECOMPUTE && keeps_part_input (l, c, i);
    if (!drops_input (l, c, i) && !is_there)
      keep_input (b, op, c, i, false);
  }
  experts_after (b, o, false, tag);
  if (!has_tp (l) || is_pipelined)
    return;
  if (o->tp == LS_TP_VOCAB)
    build_tp_sync (b, LS_COLL_ALL_REDUCE, full_bytes (l, o), tag, "tp all-reduce");
  else if (o->tp == LS_TP_ROW) {
    if (sp)
      build_tp_copy (b, "tp-scatter-copy", full_bytes (l, o), tag);
    build_tp_sync (b, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, full_bytes (l, o), tag,
                   sp ? "tp reduce-scatter" : "tp all-reduce");
  } else if (o->tp == LS_TP_REDUCE)
    build_tp_sync (b, LS_COLL_ALL_REDUCE, o->reduce_bytes, tag, "loss all-reduce");
  else if (o->tp == LS_TP_GATHER) {
    build_tp_sync (b, LS_COLL_ALL_GATHER, o->reduce_bytes, tag, "logits all-gather");
    build_tp_copy (b, lists_tp_copy (b->l, "tp-logits-copy") ? "tp-logits-copy" : "tp-gather-copy",
                   o->reduce_bytes, tag);
  }
}

/* --- backward ------------------------------------------------------------------- */

/* What adds a gradient to those of earlier micro-batches, where there are none. That of words is added to
 * what the head made of the same weights. */
static bool
adds_to_nothing (const Build *b, const LsKernel *k)
{
  if (!b->l->shard.grad_is_own || !b->pass || !b->pass->is_first)
    return false;
  bool is_shared = b->l->model->tied_embeddings && b->pass->c->has_head;
  return k->role == LS_ROLE_ADD_GRAD || (k->role == LS_ROLE_ADD_WORDS && !is_shared);
}

static uint16_t
build_wgrad (Build *b, const LsOperator *o, LsActionType pass, uint16_t last)
{
  for (uint32_t k = 0; k < o->n_wgrad; k++) {
    if (adds_to_nothing (b, &o->wgrad[k]))
      continue;
    bool is_deferred = deferred_gemm (o) && o->wgrad[k].kind != LS_KERNEL_REDUCTION;
    if (pass == LS_ACTION_B || is_deferred == (pass == LS_ACTION_W))
      last = build_kernel (b, &o->wgrad[k], LS_TAG_W);
  }
  return last;
}

uint16_t
some_op (Build *b, uint16_t last)
{
  if (last != NO_OP)
    return last;
  build_barrier (b);
  return (uint16_t) (b->ops->len - 1);
}

/* The input of a column-parallel layer, which sequence parallelism has cut; frozen, it needs none
 * (Megatron-Core, core/tensor_parallel/layers.py: LinearWithFrozenWeight). */
static bool
gathers_again (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  bool is_there = o->beside || (l->shard.sp_save_gathered && !drops_input (l, c, i));
  return has_tp (l) && l->shard.sp && !is_there && o->n_wgrad > 0;
}

/* The gradient of the output of a row-parallel layer, or of an embedding that learns. */
static bool
gathers_gradient (const Lower *l, const LsOperator *o)
{
  bool is_cut = o->tp == LS_TP_ROW || o->tp == LS_TP_VOCAB;
  return is_cut && has_tp (l) && l->shard.sp && o->n_igrad + o->n_wgrad > 0;
}

/* W: the input is gathered again for it, with nothing to run beside. */
void
build_weight_operator (Build *b, const Chunk *c, guint i)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  if (!deferred_gemm (o))
    return;
  if (o->tp == LS_TP_COLUMN && gathers_again (l, c, i))
    build_input_gathers (b, o, LS_TAG_W);
  uint16_t last = build_wgrad (b, o, LS_ACTION_W, NO_OP);
  keep_input (b, last, c, i, true);
  keep_gradient (b, last, c, i, true);
}

/* A collective of the backward that may run beside the GEMM which follows. */
static uint16_t
build_tp_async (Build *b, int coll, uint64_t bytes, const char *name)
{
  const LsStrategy *s = b->l->s;
  bool is_bulk = s->tp_overlap && (s->tp_async || s->tp_overlap_kind == LS_TP_OVERLAP_BULK);
  uint16_t op = build_tp (b, coll, bytes, LS_TAG_B, name);
  g_array_index (b->ops, LsOp, op).has_margin = is_bulk && s->tp_overlap_margin;
  if (!s->tp_async && !is_bulk)
    build_join (b, op);
  return op;
}

/* The gradient of the input of a column-parallel operator, or of one of its products. */
static uint16_t
build_input_grad_reduction (Build *b, uint64_t bytes)
{
  bool sp = b->l->shard.sp;
  if (sp)
    build_tp_copy (b, "tp-scatter-copy", bytes, LS_TAG_B);
  return build_tp_async (b, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, bytes,
                         sp ? "tp reduce-scatter" : "tp all-reduce");
}

/* The last of them may add what comes from shared experts. */
static uint16_t
build_igrad (Build *b, const LsOperator *o, uint16_t last)
{
  for (uint32_t k = 0; k < o->n_igrad; k++) {
    if (o->beside == LS_BESIDE_GRAD_SUM && k + 1 == o->n_igrad)
      build_join_stream (b, LS_STREAM_SHARED);
    last = build_operator_kernel (b, o, &o->igrad[k], LS_TAG_I);
  }
  return last;
}

void
build_backward_operator (Build *b, const Chunk *c, guint i, LsActionType pass)
{
  if (runs_beside (c, i))
    return; /* it was there before */
  if (operator_at (c, i)->beside == LS_BESIDE_SUM)
    b->shared = (SharedExperts) { .c = c, .first = first_beside (c, i), .pass = pass };
  build_backward_here (b, c, i, pass);
}

void
build_backward_here (Build *b, const Chunk *c, guint i, LsActionType pass)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  bool sp = l->shard.sp, is_column = o->tp == LS_TP_COLUMN && has_tp (l);
  bool gathers_input = is_column && gathers_again (l, c, i) && pass == LS_ACTION_B;
  bool gathers_grad = gathers_gradient (l, o);
  bool is_pipelined = gathers_grad && pipelines_tp (l, c, i);
  bool is_apart = is_column && o->beside; /* its collectives are by themselves: W is before them */
  uint64_t bytes = full_bytes (l, o);
  uint16_t last = NO_OP, async = NO_OP;

  experts_before (b, o, true, LS_TAG_B);
  if (gathers_grad && !is_pipelined) {
    build_tp_sync (b, LS_COLL_ALL_GATHER, gathered_bytes (l, o), LS_TAG_B, "tp all-gather");
    build_copy_out (b, gathered_bytes (l, o), LS_TAG_B);
  }
  for (uint32_t k = 0; gathers_input && k < MAX (1, o->n_gathers); k++)
    async = build_tp_async (b, LS_COLL_ALL_GATHER, gathered_bytes (l, o), "tp all-gather");
  if (o->context_parallel)
    last = build_context_backward (b, c, i);
  else if (o->exchange.n > 0)
    last = build_exchange_backward (b, c, i);
  else if (is_pipelined)
    last = build_gather_gemm (b, o->igrad, o->n_igrad, LS_TAG_I, LS_TAG_B);
  else
    last = build_igrad (b, o, last);
  if (pass == LS_ACTION_B && last != NO_OP)
    hold_placeholder (b, last, c, i, false);
  if (gathers_input)
    build_join (b, async);
  for (uint32_t k = 0; gathers_input && k < MAX (1, o->n_gathers); k++)
    build_copy_out (b, gathered_bytes (l, o), LS_TAG_B);
  for (uint32_t k = 0; is_column && !is_apart && k < MAX (1, o->n_reduces); k++)
    async = build_input_grad_reduction (b, bytes);
  last = build_wgrad (b, o, pass, last);
  make_gradients (b, last, c, i);
  if (pass == LS_ACTION_B && last != NO_OP)
    hold_placeholder (b, last, c, i, true);
  if (is_apart)
    build_tp_sync (b, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, bytes, LS_TAG_B,
                   sp ? "tp reduce-scatter" : "tp all-reduce");
  else if (is_column)
    build_join (b, async);
  experts_after (b, o, true, LS_TAG_B);
  if (o->saved_bytes > 0) {
    last = some_op (b, last);
    keep_activation (b, last, c, i, true);
    if (pass == LS_ACTION_B)
      keep_input (b, last, c, i, true);
  }
  if (pass == LS_ACTION_I && deferred_gemm (o))
    keep_gradient (b, some_op (b, last), c, i, false);
}
