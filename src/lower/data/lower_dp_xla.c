/* XLA's FSDP (GSPMD) as MaxText runs it on TPUs: ZeRO-3 by annotations of shardings, compiled.
 *
 * Problem. Parameters, gradients and optimizer state are cut over the chips of a slice; a step is
 * one executable, in which the layers are the body of a loop (jax.lax.scan), forwards and
 * backwards. What communicates when follows from what XLA may move within one body.
 *
 * Model. A unit is one turn of the loop: a layer, or as many as are computed again together;
 * what stands outside of the layers (embedding; final norm, head) is one too.
 *
 *     forward    as a unit begins all its weights start to be gathered, in the order in
 *                which they are needed; each operator waits for its own
 *     backward   likewise, once for what runs again and for the gradient of the input
 *                (one gather per body); a weight gradient is reduce-scattered as it is
 *                there, and nothing computes meanwhile
 *     (by --set loop_overlap turn, reductions run beside the rest of their turn, whose end waits for them;
 *     pipelined: gathers are issued a turn ahead, and the end of the next turn waits for reductions)
 *     outside    one computation holds the forward and the backward of the head: gathered
 *                once
 *     3@G        G chips of a slice share a copy, slices replicate it: what a chip has of a
 *                gradient is all-reduced over the slices in the background, across turns
 *                of the loop (DCN)
 *
 *     ici   | qkv | proj |    fc1    |  fc2 |
 *     core        | qkv  |attention.. | fc1 ....| fc2 ..| | next turn: qkv exposed again
 *
 * All-gathers are asynchronous by default on TPUs (async collective fusion of XLA), reduce-scatters are
 * a fusion of the core's own order (all-reduce-scatter), all-reduces over DCN are pipelined over iterations
 * (xla_tpu_data_parallel_opt_different_sized_ops): MaxText, benchmarks/xla_flags_library.py and
 * configs/v5e; a profile of the second kind is in the scaling book, chapter "How to profile TPU programs".
 *
 * On GPUs both are kernels of NCCL on a stream of their own, which the latency-hiding scheduler starts early
 * and awaits late within a turn; passes that pipeline collectives move them over its ends. What launches
 * MaxText on GPUs turns all of this on (xla_gpu_enable_latency_hiding_scheduler, xla_gpu_enable_pipelined_*:
 * AI-Hypercomputer/maxtext, configs/a3; NVIDIA/dgxc-benchmarking@v24.11.1, maxtext/configure.sh).
 *
 * Weights are fp32 in memory and cast where they are used (MaxText: weight_dtype float32, dtype
 * bfloat16); the cast is local, so what is gathered has 16 bits, and so has the gradient, which is cast
 * to fp32 behind its reduction (jax-ml/jax issue 27496). There is no second copy of the weights.
 * What tensor parallelism replicates (norms, biases of rows, learned positions) is not cut: its
 * gradients are all-reduced at the end of the unit. The host launches one executable: ops cost it nothing.
 *
 * Copies (--set loop_copies). What a turn keeps is stacked in arrays of all layers. XLA's own fusions write
 * there themselves; what cuBLAS makes is copied there, and what attention's kernels read is copied out
 * (NVIDIA/JAX-Toolbox, rosetta/rosetta/projects/maxtext/README.md: copies by dynamic update slices beside
 * kernels of NVIDIA, which flags that it advises against would spare). A gather that is pipelined without
 * double buffering of the loop is copied from one turn to the next (openxla/xla pull request 5473).
 *
 * With --dp-overlap 0 compute waits for all gathers of a unit, and for each reduction over slices.
 *
 * Worked example. A layer of 4 weights of 134 MB (16 bits) on a v5e slice of 16 x 16, 180 GB/s:
 * 4 gathers of 0.75 ms each way through the loop, of which the first is exposed, and 4 reductions.
 *
 * Deviations. Q, K and V are one weight here, three in MaxText, whose later two gathers hide. Newer XLA can
 * start gathers a turn ahead (xla_tpu_enable_ag_backward_pipelining). Elementwise operators are kernels of
 * their own, where XLA fuses them with matrix products. Casts are not kernels. The small part that is not cut
 * is counted as if it were. What software reaches of the NICs between slices, and slices that lag, are not
 * modelled: here DCN hides, while measured steps grow with slices (MaxText, configs/v5e: 32B by 5 % from 1 to
 * 4, 64B by 19 % from 1 to 32).
 *
 * Reference: Xu et al., GSPMD, arXiv 2105.04663; Austin et al., How to Scale Your Model (2025);
 * AI-Hypercomputer/maxtext. */
#include "lower/data/lower_dp.h"

#include "lower/layers/lower_layers.h"
#include "lower/lower_build.h"

/* ---- the loop over layers that XLA makes: its turns, what they gather and when, and what they copy ---- */

/* A reduction under way, and the gradient that it reads. */
typedef struct {
  uint16_t op, buffer;
  uint64_t bytes;
} Reduction;

typedef struct {
  uint16_t *gathered;  /* [operators]: the gather of its weight in this pass, or NO_OP */
  GArray *reducing;    /* Reduction: those that compute has not waited for, of the turn before ... */
  guint n_before;      /* ... so many, then of this one                                */
  bool has_begun;      /* the first unit of the pass                                   */
  uint64_t replicated; /* parameters of the unit whose gradients are not cut          */
  uint64_t replicated_expert;
} XlaPass;

/* --- units --------------------------------------------------------------------------- */

#define BEHIND_LAYERS UINT32_MAX

/* The turn of the loop that an operator is in; of what stands before it 0, behind it BEHIND_LAYERS. */
static uint32_t
xla_unit_of (const Lower *l, const Chunk *c, guint o)
{
  bool is_grouped
      = l->s->recompute == LS_RECOMPUTE_FULL && l->s->memory.recompute_method == LS_RECOMPUTE_UNIFORM;
  if (layer_of (c, o) != UINT16_MAX)
    return 1 + layer_of (c, o) / (is_grouped ? l->s->memory.recompute_layers : 1);
  for (guint i = o; i < c->operators->len; i++)
    if (layer_of (c, i) != UINT16_MAX)
      return 0;
  return BEHIND_LAYERS;
}

static uint64_t
numel_of (const LsOperator *o)
{
  uint64_t n = 0;
  for (uint32_t p = 0; p < o->params.n; p++)
    n += o->params.numel[p];
  return n;
}

/* Parameters that are cut over the ranks of a copy. */
static uint64_t
xla_cut_numel (const LsOperator *o)
{
  return o->params.is_replicated ? 0 : numel_of (o);
}

/* --- buffers ---------------------------------------------------------------------- */

/* The op to which what an operator leaves behind is tied; the buffer of its weights, or their gradients. */
static uint16_t
xla_last_op (Build *b)
{
  if (b->ops->len == 0)
    build_barrier (b);
  return (uint16_t) (b->ops->len - 1);
}

static uint16_t
xla_buffer_id (Build *b, const Chunk *c, guint o, bool is_gradient)
{
  return dp_buffer (b, c, is_gradient ? c->operators->len + o : o);
}

static void
xla_weight_buffer (Build *b, uint16_t op, const Chunk *c, guint o, bool is_free)
{
  uint64_t bytes = dp_param_bytes (b->l, xla_cut_numel (operator_at (c, o)));
  build_buffer (b, op, xla_buffer_id (b, c, o, false), LS_MEM_UNSHARDED, bytes, is_free);
}

/* Outside of the loop: the head's is there until its gradient has been computed, and so is
 * a word embedding that the head uses too. */
/* Its weights are there until its backward. */
static bool
xla_lives_until_backward (const Lower *l, const Chunk *c, guint o)
{
  const LsOperator *at = operator_at (c, o);
  return !is_layer (c, o) && (at->n_igrad > 0 || (c->has_head && l->model->tied_embeddings));
}

/* --- gathers ---------------------------------------------------------------------------- */

static bool
xla_is_gathered (const Build *b, const Chunk *c, guint o)
{
  const LsOperator *at = operator_at (c, o);
  return xla_cut_numel (at) > 0 && dp_shard (b->l, at->params.is_expert).n > 1;
}

static void
gather (Build *b, XlaPass *x, const Chunk *c, guint o)
{
  const LsOperator *at = operator_at (c, o);
  if (!xla_is_gathered (b, c, o))
    return;
  x->gathered[o] = build_coll (b, LS_STREAM_GATHER, dp_shard (b->l, at->params.is_expert).slot,
                               LS_COLL_ALL_GATHER, dp_param_bytes (b->l, xla_cut_numel (at)),
                               b->l->shard.dtype, LS_TAG_SYNC, "weight all-gather");
  g_array_index (b->ops, LsOp, x->gathered[o]).layer = layer_of (c, o);
  if (!b->l->s->data.overlap)
    build_join (b, x->gathered[o]);
}

/* It runs products again, for which it needs its weights. */
static bool
xla_multiplies_again (const Lower *l, const Chunk *c, guint o)
{
  bool keeps_products = (l->s->memory.recompute_parts & LS_RECOMPUTE_DOTS) == LS_RECOMPUTE_DOTS;
  return is_recomputed (l, c, o) && !(recomputes_ops (l) && keeps_products);
}

/* A backward that runs products again needs their weights in forward order. An executable has its
 * memory laid out: room for all weights of a unit, as it begins. */
static void
gather_unit (Build *b, XlaPass *x, const DpPass *p, guint o)
{
  const Chunk *c = p->c;
  uint32_t unit = xla_unit_of (b->l, c, o);
  guint first = o, last = o;
  while (first > 0 && xla_unit_of (b->l, c, first - 1) == unit)
    first--;
  while (last + 1 < c->operators->len && xla_unit_of (b->l, c, last + 1) == unit)
    last++;
  bool is_forward = p->type == LS_ACTION_F || xla_multiplies_again (b->l, c, first);
  build_barrier (b);
  for (guint i = first; i <= last; i++)
    if (xla_is_gathered (b, c, i))
      xla_weight_buffer (b, xla_last_op (b), c, i, false);
  for (guint i = 0; i <= last - first; i++)
    gather (b, x, c, is_forward ? first + i : last - i);
}

/* The unit that follows in the order of a pass; false: o's is the last. */
static bool
next_unit (const Lower *l, const DpPass *p, guint o, guint *ret_o)
{
  const Chunk *c = p->c;
  uint32_t unit = xla_unit_of (l, c, o);
  guint step = p->type == LS_ACTION_F ? 1 : G_MAXUINT, i = o;
  do
    i += step;
  while (i < c->operators->len && xla_unit_of (l, c, i) == unit);
  *ret_o = i;
  return i < c->operators->len;
}

/* A kernel that reads and writes so many bytes; none: no kernel. */
static void
copy (Build *b, uint64_t bytes, LsTag tag, const char *name)
{
  if (bytes == 0)
    return;
  LsKernel k = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, b->l->act, 1,
                                 bytes / ls_dtype_bytes (b->l->act), 2.0 * (double) bytes, 0);
  build_kernel (b, &k, tag);
}

static void
copy_weights (Build *b, const DpPass *p, guint o)
{
  const Chunk *c = p->c;
  guint step = p->type == LS_ACTION_F ? 1 : G_MAXUINT;
  uint64_t bytes = 0;
  for (guint i = o; i < c->operators->len && xla_unit_of (b->l, c, i) == xla_unit_of (b->l, c, o); i += step)
    bytes += xla_is_gathered (b, c, i) ? dp_param_bytes (b->l, xla_cut_numel (operator_at (c, i))) : 0;
  copy (b, bytes, p->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B, "gathered weights copy");
}

/* As the unit begins at o: gathers of its weights; pipelined, of those of the first turn, and of the next. */
static void
xla_gather_for (Build *b, XlaPass *x, const DpPass *p, guint o)
{
  guint next;
  bool is_pipelined = ls_strategy_loop_overlap (b->l->s) == LS_LOOP_OVERLAP_PIPELINED;
  if (!is_pipelined || !x->has_begun)
    gather_unit (b, x, p, o);
  else if (b->l->s->data.loop_copies == LS_LOOP_COPIES_WEIGHTS)
    copy_weights (b, p, o);
  x->has_begun = true;
  if (is_pipelined && next_unit (b->l, p, o, &next) && (p->type == LS_ACTION_F || is_layer (p->c, next)))
    gather_unit (b, x, p, next);
}

/* --- copies ----------------------------------------------------------------------------- */

/* By loop_copies: what operator o's forward keeps, into arrays of all layers; and out of them, what its
 * backward reads of the operator before it. */
static void
xla_copy_to_arrays (Build *b, const Chunk *c, guint o)
{
  if (b->l->s->data.loop_copies != LS_LOOP_COPIES_NONE)
    copy (b, recompute_product_bytes (b->l, c, o), LS_TAG_F, "kept output copy");
}

/* Kernels of flash attention read nothing but whole arrays. */
static void
xla_copy_from_arrays (Build *b, const Chunk *c, guint o)
{
  if (b->l->s->data.loop_copies != LS_LOOP_COPIES_NONE && o > 0 && ls_operator_is_flash (operator_at (c, o)))
    copy (b, recompute_product_bytes (b->l, c, o - 1), LS_TAG_B, "kept output slice");
}

static bool
reduces (const Lower *l, const DpPass *p)
{
  return dp_has_weights (p) && (p->is_last || l->s->data.grad_sync == LS_GRAD_SYNC_EACH);
}

/* --- reductions --------------------------------------------------------------------------- */

/* Its op, or NO_OP: nothing to reduce over. */
static uint16_t
reduce_over (Build *b, DpGroup group, LsStream stream, int coll, uint64_t numel, bool blocks,
             const char *name)
{
  const Lower *l = b->l;
  if (group.n == 1)
    return NO_OP;
  uint16_t op
      = build_coll (b, stream, group.slot, coll, numel * ls_dtype_bytes (l->act), l->act, LS_TAG_SYNC, name);
  if (blocks)
    build_join (b, op);
  return op;
}

/* Over slices: beside compute, or behind the reduction on its stream. */
static void
reduce_over_slices (Build *b, uint64_t numel, bool is_expert, const char *name)
{
  bool is_behind = ls_strategy_loop_overlap (b->l->s) != LS_LOOP_OVERLAP_GATHERS;
  reduce_over (b, dp_replica (b->l, is_expert), is_behind ? LS_STREAM_GATHER : LS_STREAM_DP,
               LS_COLL_ALL_REDUCE, numel, !b->l->s->data.overlap, name);
}

/* Compute waits for the first n reductions under way; their gradients are free. */
static void
finish_reductions (Build *b, XlaPass *x, guint n)
{
  for (guint i = 0; i < n; i++)
    build_join (b, g_array_index (x->reducing, Reduction, i).op);
  if (n > 0)
    build_barrier (b);
  for (guint i = 0; i < n; i++) {
    const Reduction *r = &g_array_index (x->reducing, Reduction, i);
    build_buffer (b, xla_last_op (b), r->buffer, LS_MEM_UNSHARDED, r->bytes, true);
  }
  g_array_remove_range (x->reducing, 0, n);
}

/* Behind the kernel that made the gradient. */
static void
reduce_weight (Build *b, XlaPass *x, const Chunk *c, guint o)
{
  const Lower *l = b->l;
  const LsOperator *at = operator_at (c, o);
  uint64_t numel = xla_cut_numel (at);
  DpGroup shard = dp_shard (l, at->params.is_expert);
  if (numel == 0)
    return;
  uint16_t id = xla_buffer_id (b, c, o, true);
  uint64_t bytes = numel * ls_dtype_bytes (l->act);
  build_buffer (b, xla_last_op (b), id, LS_MEM_UNSHARDED, bytes, false);
  bool blocks = ls_strategy_loop_overlap (l->s) == LS_LOOP_OVERLAP_GATHERS;
  Reduction r = { reduce_over (b, shard, LS_STREAM_GATHER, LS_COLL_REDUCE_SCATTER, numel, blocks,
                               "grad reduce-scatter"),
                  id, bytes };
  g_array_append_val (x->reducing, r);
  if (blocks)
    finish_reductions (b, x, 1);
  reduce_over_slices (b, dp_part (numel, shard.n), at->params.is_expert, "shard all-reduce");
}

static void
reduce_replicated (Build *b, uint64_t numel, bool is_expert)
{
  if (numel == 0)
    return;
  bool blocks = ls_strategy_loop_overlap (b->l->s) == LS_LOOP_OVERLAP_GATHERS;
  reduce_over (b, dp_shard (b->l, is_expert), LS_STREAM_GATHER, LS_COLL_ALL_REDUCE, numel, blocks,
               "small grad all-reduce");
  reduce_over_slices (b, numel, is_expert, "small grad all-reduce");
}

/* The end of a turn. */
static void
leave_unit (Build *b, XlaPass *x)
{
  bool is_pipelined = ls_strategy_loop_overlap (b->l->s) == LS_LOOP_OVERLAP_PIPELINED;
  finish_reductions (b, x, is_pipelined ? x->n_before : x->reducing->len);
  x->n_before = x->reducing->len;
}

/* --- passes -------------------------------------------------------------------------------- */

static char *
variant (const Lower *l, const DpPass *p)
{
  return reduces (l, p) ? g_strdup (" reduces") : NULL;
}

static void
begin (Build *b, DpPass *p)
{
  XlaPass *x = g_new0 (XlaPass, 1);
  x->gathered = dp_no_ops (p->c->operators->len);
  x->reducing = g_array_new (FALSE, FALSE, sizeof (Reduction));
  p->state = x;
}

/* In the order of the pass, or back, the operator is the last of its unit. */
static bool
ends_unit (const Build *b, const Chunk *c, guint o, bool is_forward)
{
  guint end = is_forward ? c->operators->len - 1 : 0, next = is_forward ? o + 1 : o - 1;
  return o == end || xla_unit_of (b->l, c, next) != xla_unit_of (b->l, c, o);
}

static void
before (Build *b, DpPass *p, guint o)
{
  XlaPass *x = p->state;
  if (p->type == LS_ACTION_B || p->type == LS_ACTION_I)
    xla_copy_from_arrays (b, p->c, o);
  bool gathers = p->type == LS_ACTION_F || (p->type != LS_ACTION_W && is_layer (p->c, o));
  if (gathers && ends_unit (b, p->c, o, p->type != LS_ACTION_F))
    xla_gather_for (b, x, p, o);
  if (p->type == LS_ACTION_F || !xla_multiplies_again (b->l, p->c, o))
    build_join (b, x->gathered[o]);
}

static void
before_again (Build *b, DpPass *p, guint o)
{
  const XlaPass *x = p->state;
  if (xla_multiplies_again (b->l, p->c, o))
    build_join (b, x->gathered[o]);
}

/* A weight is dropped behind its last use, in the pass that gathered it or later. */
static bool
drops (const Build *b, const DpPass *p, guint o)
{
  if (p->type == LS_ACTION_W || !xla_is_gathered (b, p->c, o))
    return false;
  return is_layer (p->c, o) || xla_lives_until_backward (b->l, p->c, o) == (p->type != LS_ACTION_F);
}

static void
after (Build *b, DpPass *p, guint o)
{
  XlaPass *x = p->state;
  const LsOperator *at = operator_at (p->c, o);
  if (p->type == LS_ACTION_F)
    xla_copy_to_arrays (b, p->c, o);
  if (drops (b, p, o))
    xla_weight_buffer (b, xla_last_op (b), p->c, o, true);
  if (!reduces (b->l, p))
    return;
  reduce_weight (b, x, p->c, o);
  *(at->params.is_expert ? &x->replicated_expert : &x->replicated)
      += at->params.is_replicated ? numel_of (at) : 0;
  if (!ends_unit (b, p->c, o, p->type == LS_ACTION_F))
    return;
  reduce_replicated (b, x->replicated, false);
  reduce_replicated (b, x->replicated_expert, true);
  x->replicated = x->replicated_expert = 0;
  leave_unit (b, x);
}

static void
end (Build *b, DpPass *p)
{
  XlaPass *x = p->state;
  finish_reductions (b, x, x->reducing->len);
  if (ls_strategy_loop_overlap (b->l->s) != LS_LOOP_OVERLAP_GATHERS)
    build_join_stream (b, LS_STREAM_GATHER);
  g_array_unref (x->reducing);
  g_free (x->gathered);
  g_clear_pointer (&p->state, g_free);
}

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  build_join_stream (b, LS_STREAM_DP);
}

/* The fp32 weights are those of the optimizer: no copy of 16 bits, two moments beside them. */
static void
static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  uint64_t n = dp_n_kept (l, pp_rank, DP_CUT_PARAMS);
  bytes[LS_MEM_PARAMETERS] = 4 * n;
  bytes[LS_MEM_OPTIMIZER] = l->s->opt.kind ? optimizer_state_bytes (l, pp_rank, 0) : 8 * n;
}

const DpBackend dp_backend_xla_fsdp = {
  .variant = variant,
  .begin = begin,
  .before = before,
  .after = after,
  .end = end,
  .before_again = before_again,
  .reduce_rest = reduce_rest,
  .static_memory = static_memory,
};
