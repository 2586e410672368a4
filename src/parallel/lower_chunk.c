/* parallel/lower_chunk.c — forward and backward of one chunk on one rank, as
 * Megatron-LM issues them (core/tensor_parallel/layers.py):
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
 * "||" since late 2021 (async_tensor_model_parallel_allreduce); --tp-async 0 is the
 * code before, in which these block too.
 *
 * A split backward: I has the input gradients, W the weight gradients of matrix products,
 * and the collectives that each needs; nothing of I then runs beside the GEMMs of W. After
 * I only the inputs of these products are kept, and the gradients of their outputs.
 *
 * Recomputation: `full` keeps only the input of each layer and runs its forward
 * again before its backward; `selective` keeps all but the inside of attention
 * and runs that again (Korthikanti et al. 2022, sections 4 and 5). */
#include "parallel/lower_state.h"

#define NO_OP UINT16_MAX

/* --- the chunk -------------------------------------------------------------- */

static void
append_part (Chunk *c, uint16_t layer, guint from)
{
  for (guint i = from; i < c->operators->len; i++) {
    const LsOperator *o = &g_array_index (c->operators, LsOperator, i);
    g_array_append_val (c->layer_of, layer);
    for (uint32_t p = 0; p < o->n_params; p++) {
      c->n_params += o->param_numel[p];
      c->n_partial += o->param_replicated && !o->grad_is_whole ? o->param_numel[p] : 0;
    }
  }
}

void
chunk_init (Lower *l, Chunk *c, uint32_t n_layers, bool has_embedding, bool has_head)
{
  *c = (Chunk) { .n_layers = n_layers, .has_embedding = has_embedding, .has_head = has_head };
  c->operators = g_array_new (FALSE, FALSE, sizeof (LsOperator));
  c->layer_of = g_array_new (FALSE, FALSE, sizeof (uint16_t));
  if (has_embedding)
    ls_operators_embedding (l->model, &l->shard, c->operators);
  append_part (c, UINT16_MAX, 0);
  for (uint32_t i = 0; i < n_layers; i++) {
    guint from = c->operators->len;
    ls_operators_layer (l->model, &l->shard, c->operators);
    append_part (c, (uint16_t) i, from);
  }
  guint from = c->operators->len;
  if (has_head) {
    bool shares_weight = l->model->tied_embeddings && !is_tied_over_ranks (l);
    ls_operators_head (l->model, &l->shard, !shares_weight, c->operators);
  }
  append_part (c, UINT16_MAX, from);
}

void
chunk_clear (Chunk *c)
{
  if (c->operators)
    g_array_unref (c->operators);
  if (c->layer_of)
    g_array_unref (c->layer_of);
}

static const LsOperator *
operator_at (const Chunk *c, guint i)
{
  return &g_array_index (c->operators, LsOperator, i);
}

static uint16_t
layer_of (const Chunk *c, guint i)
{
  return g_array_index (c->layer_of, uint16_t, i);
}

static bool
has_tp (const Lower *l)
{
  return l->mesh.tp > 1;
}

/* The gathered tensor that sequence parallelism cuts along the sequence. */
static uint64_t
full_boundary_bytes (const Lower *l)
{
  return ls_boundary_bytes (l->model, &l->shard) * (l->shard.sp ? l->mesh.tp : 1);
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

/* --- forward -------------------------------------------------------------------- */

/* Weight gradients that a split backward leaves to W: those of matrix products, as zero
 * bubble's code does (sail-sg/zero-bubble-pipeline-parallelism, WeightGradStore); biases,
 * norms and embeddings have theirs with I. */
static const LsKernel *
deferred_gemm (const LsOperator *o)
{
  for (uint32_t k = 0; k < o->n_wgrad; k++)
    if (o->wgrad[k].kind == LS_KERNEL_GEMM)
      return &o->wgrad[k];
  return NULL;
}

/* What W multiplies: the gradient of the output, m x k of its GEMM, and the input, k x n,
 * which sequence parallelism cuts. */
static uint64_t
deferred_grad_bytes (const LsKernel *gemm)
{
  return gemm->m * gemm->k * ls_dtype_bytes (gemm->dtype);
}

static uint64_t
deferred_input_bytes (const Lower *l, const LsOperator *o)
{
  const LsKernel *gemm = l->has_split ? deferred_gemm (o) : NULL;
  if (!gemm)
    return 0;
  bool is_cut = o->tp == LS_TP_COLUMN && l->shard.sp;
  uint64_t bytes = gemm->n * gemm->k * ls_dtype_bytes (gemm->dtype) / (is_cut ? l->mesh.tp : 1);
  return MIN (bytes, o->saved_bytes); /* another operator may have saved it */
}

/* The kept activation of operator i, but for what W needs of it. Buffer ids: the operator,
 * behind them the layers (inputs kept by full recomputation), then what W needs: inputs
 * of operators, gradients of their outputs. */
static void
keep_activation (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  const LsOperator *o = operator_at (c, i);
  build_buffer (b, op, (uint16_t) i, LS_MEM_ACTIVATIONS, o->saved_bytes - deferred_input_bytes (b->l, o), is_free);
}

/* Past the layers' buffers; a chunk that has more than an id can count has too many ops too. */
static uint16_t
deferred_id (Build *b, const Chunk *c, guint i)
{
  guint id = c->operators->len + c->n_layers + i;
  b->is_too_long |= id > UINT16_MAX;
  return (uint16_t) id;
}

static void
keep_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  build_buffer (b, op, deferred_id (b, c, i), LS_MEM_ACTIVATIONS, deferred_input_bytes (b->l, operator_at (c, i)), is_free);
}

static void
keep_gradient (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  uint16_t id = deferred_id (b, c, c->operators->len + i);
  build_buffer (b, op, id, LS_MEM_ACTIVATIONS, deferred_grad_bytes (deferred_gemm (operator_at (c, i))), is_free);
}

static void
build_forward_operator (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  bool sp = l->shard.sp;
  if (o->tp == LS_TP_COLUMN && has_tp (l) && sp)
    build_tp_sync (b, COLL_ALL_GATHER, full_boundary_bytes (l), tag, "tp all-gather");
  for (uint32_t k = 0; k < o->n_fwd; k++) {
    uint16_t op = build_kernel (b, &o->fwd[k], tag);
    if (k == 0 && keeps) {
      keep_activation (b, op, c, i, false);
      keep_input (b, op, c, i, false);
    }
  }
  if (!has_tp (l))
    return;
  if (o->tp == LS_TP_VOCAB)
    build_tp_sync (b, COLL_ALL_REDUCE, full_boundary_bytes (l), tag, "tp all-reduce");
  else if (o->tp == LS_TP_ROW)
    build_tp_sync (b, sp ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, full_boundary_bytes (l), tag,
                   sp ? "tp reduce-scatter" : "tp all-reduce");
  else if (o->tp == LS_TP_REDUCE)
    build_tp_sync (b, COLL_ALL_REDUCE, o->reduce_bytes, tag, "loss all-reduce");
}

static bool
is_layer (const Chunk *c, guint i)
{
  return layer_of (c, i) != UINT16_MAX;
}

static bool
is_recomputed (const Lower *l, const Chunk *c, guint i)
{
  if (!is_layer (c, i))
    return false;
  return l->s->recompute == LS_RECOMPUTE_FULL
         || (l->s->recompute == LS_RECOMPUTE_SELECTIVE && operator_at (c, i)->attention_core);
}

static bool
begins_layer (const Chunk *c, guint i)
{
  return is_layer (c, i) && (i == 0 || layer_of (c, i - 1) != layer_of (c, i));
}

static uint16_t
layer_buffer (const Chunk *c, guint i)
{
  return (uint16_t) (c->operators->len + layer_of (c, i));
}

/* Segments are shared by all chunks of the same shape. */
static char *
segment_name (const Chunk *c, const char *pass, const char *what)
{
  return g_strdup_printf ("%s %u layers%s%s%s", pass, c->n_layers, c->has_embedding ? " embedding" : "",
                          c->has_head ? " head" : "", what);
}

/* The parameters of a bucket are needed by the first of its operators. */
static void
build_param_waits (Build *b, const GArray *buckets, guint operator_next)
{
  for (guint i = 0; buckets && i < buckets->len; i++) {
    if (g_array_index (buckets, Bucket, i).last_operator != operator_next)
      continue;
    LsOp wait = op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait parameters");
    wait.event = (uint16_t) (EVENT_PARAMS + i);
    wait.unit = (uint16_t) i;
    build_op (b, wait, NULL, 0);
  }
}

uint32_t
segment_forward (Lower *l, const Chunk *c, uint32_t pp_rank, bool waits_for_params)
{
  g_autofree char *name = segment_name (c, "forward", !waits_for_params ? "" : pp_rank == 0 ? " waits-first-stage" : " waits");
  uint32_t id = build_find (l, name);
  if (id != UINT32_MAX)
    return id;
  Build b;
  build_init (&b, l);
  g_autoptr (GArray) buckets = waits_for_params ? buckets_of_chunk (l, c, pp_rank) : NULL;
  for (guint i = 0; i < c->operators->len; i++) {
    build_param_waits (&b, buckets, i);
    b.layer = layer_of (c, i);
    guint first = b.ops->len;
    build_forward_operator (&b, c, i, LS_TAG_F, !is_recomputed (l, c, i));
    if (l->s->recompute == LS_RECOMPUTE_FULL && begins_layer (c, i))
      build_buffer (&b, (uint16_t) first, layer_buffer (c, i), LS_MEM_ACTIVATIONS, ls_boundary_bytes (l->model, &l->shard), false);
  }
  return build_finish (&b, name);
}

/* --- backward ------------------------------------------------------------------- */

static uint16_t
build_kernels (Build *b, const LsKernel *k, uint32_t n, LsTag tag, uint16_t last)
{
  for (uint32_t i = 0; i < n; i++)
    last = build_kernel (b, &k[i], tag);
  return last;
}

static uint16_t
build_wgrad (Build *b, const LsOperator *o, LsActionType pass, uint16_t last)
{
  for (uint32_t k = 0; k < o->n_wgrad; k++) {
    bool is_deferred = deferred_gemm (o) && o->wgrad[k].kind != LS_KERNEL_REDUCTION;
    if (pass == LS_ACTION_B || is_deferred == (pass == LS_ACTION_W))
      last = build_kernel (b, &o->wgrad[k], LS_TAG_W);
  }
  return last;
}

/* An op to which buffers can be tied. */
static uint16_t
some_op (Build *b, uint16_t last)
{
  if (last != NO_OP)
    return last;
  build_barrier (b);
  return (uint16_t) (b->ops->len - 1);
}

/* W: the input is gathered again for it, with nothing to run beside. */
static void
build_weight_operator (Build *b, const Chunk *c, guint i)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  if (!deferred_gemm (o))
    return;
  if (o->tp == LS_TP_COLUMN && has_tp (l) && l->shard.sp)
    build_tp_sync (b, COLL_ALL_GATHER, full_boundary_bytes (l), LS_TAG_W, "tp all-gather");
  uint16_t last = build_wgrad (b, o, LS_ACTION_W, NO_OP);
  keep_input (b, last, c, i, true);
  keep_gradient (b, last, c, i, true);
}

/* A collective of the backward that may run beside the GEMM which follows. */
static uint16_t
build_tp_async (Build *b, int coll, uint64_t bytes, const char *name)
{
  uint16_t op = build_tp (b, coll, bytes, LS_TAG_B, name);
  if (!b->l->s->tp_async)
    build_join (b, op);
  return op;
}

static void
build_backward_operator (Build *b, const Chunk *c, guint i, LsActionType pass)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  bool sp = l->shard.sp, is_column = o->tp == LS_TP_COLUMN && has_tp (l);
  bool gathers_input = is_column && sp && pass == LS_ACTION_B;
  uint64_t bytes = full_boundary_bytes (l);
  uint16_t last = NO_OP, async = NO_OP;

  if ((o->tp == LS_TP_ROW || o->tp == LS_TP_VOCAB) && has_tp (l) && sp)
    build_tp_sync (b, COLL_ALL_GATHER, bytes, LS_TAG_B, "tp all-gather");
  if (gathers_input)
    async = build_tp_async (b, COLL_ALL_GATHER, bytes, "tp all-gather");
  last = build_kernels (b, o->igrad, o->n_igrad, LS_TAG_I, last);
  if (gathers_input)
    build_join (b, async);
  if (is_column)
    async = build_tp_async (b, sp ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, bytes,
                            sp ? "tp reduce-scatter" : "tp all-reduce");
  last = build_wgrad (b, o, pass, last);
  if (is_column)
    build_join (b, async);
  if (o->saved_bytes > 0) {
    last = some_op (b, last);
    keep_activation (b, last, c, i, true);
    if (pass == LS_ACTION_B)
      keep_input (b, last, c, i, true);
  }
  if (pass == LS_ACTION_I && deferred_gemm (o))
    keep_gradient (b, some_op (b, last), c, i, false);
}

/* Runs forward again what was not kept, from operator `from` to `to`. */
static void
build_recompute (Build *b, const Chunk *c, guint from, guint to)
{
  for (guint i = from; i <= to; i++)
    build_forward_operator (b, c, i, LS_TAG_RECOMPUTE, true);
}

/* First of the neighbouring operators, backwards from i, that are recomputed in
 * one go with i: the layer, or the inside of attention. */
static guint
recompute_start (const Lower *l, const Chunk *c, guint i)
{
  while (i > 0 && !begins_layer (c, i) && is_recomputed (l, c, i - 1))
    i--;
  return i;
}

static void
build_ready_buckets (Build *b, const GArray *buckets, guint operator_done, guint *next)
{
  while (buckets && *next < buckets->len && g_array_index (buckets, Bucket, *next).last_operator == operator_done) {
    build_bucket (b, &g_array_index (buckets, Bucket, *next), (uint16_t) *next);
    (*next)++;
  }
}

static void
build_backward (Build *b, const Chunk *c, const GArray *buckets, LsActionType pass)
{
  const Lower *l = b->l;
  guint next_bucket = 0, recomputed_from = c->operators->len;
  for (guint i = c->operators->len; i-- > 0;) {
    b->layer = layer_of (c, i);
    if (pass == LS_ACTION_W) {
      build_weight_operator (b, c, i);
      build_ready_buckets (b, buckets, i, &next_bucket);
      continue;
    }
    if (is_recomputed (l, c, i) && i < recomputed_from) {
      recomputed_from = recompute_start (l, c, i);
      build_recompute (b, c, recomputed_from, i);
    }
    build_backward_operator (b, c, i, pass);
    if (l->s->recompute == LS_RECOMPUTE_FULL && begins_layer (c, i))
      build_buffer (b, (uint16_t) (b->ops->len - 1), layer_buffer (c, i), LS_MEM_ACTIVATIONS,
                    ls_boundary_bytes (l->model, &l->shard), true);
    build_ready_buckets (b, buckets, i, &next_bucket);
  }
  if (b->ops->len == 0) /* nothing to do for W */
    build_barrier (b);
}

uint32_t
segment_backward (Lower *l, const Chunk *c, uint32_t pp_rank, LsActionType pass, bool is_last)
{
  static const char *const names[] = {
    [LS_ACTION_B] = "backward", [LS_ACTION_I] = "input gradients", [LS_ACTION_W] = "weight gradients",
  };
  bool reduces = is_last && reduces_in_backward (l);
  g_autofree char *name = segment_name (c, names[pass], !reduces ? "" : pp_rank == 0 ? " reduces-first-stage" : " reduces");
  uint32_t id = build_find (l, name);
  if (id != UINT32_MAX)
    return id;
  Build b;
  build_init (&b, l);
  g_autoptr (GArray) buckets = reduces ? buckets_of_chunk (l, c, pp_rank) : NULL;
  build_backward (&b, c, buckets, pass);
  return build_finish (&b, name);
}

void
build_pass (Build *b, const Chunk *c, LsActionType pass)
{
  if (pass != LS_ACTION_F)
    build_backward (b, c, NULL, pass);
  for (guint i = 0; pass == LS_ACTION_F && i < c->operators->len; i++)
    build_forward_operator (b, c, i, LS_TAG_F, false);
}
