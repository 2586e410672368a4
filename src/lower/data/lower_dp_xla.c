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
#include "lower/data/lower_xla_loop.h"
#include "lower/lower_step.h"

static bool
reduces (const Lower *l, const DpPass *p)
{
  bool has_weights = p->type == LS_ACTION_B || p->type == LS_ACTION_W;
  return has_weights && (p->is_last || l->s->grad_sync == LS_GRAD_SYNC_EACH);
}

static uint64_t
whole_numel (const LsOperator *o)
{
  uint64_t n = 0;
  for (uint32_t p = 0; p < o->n_params && o->param_replicated; p++)
    n += o->param_numel[p];
  return n;
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
               LS_COLL_ALL_REDUCE, numel, !b->l->s->dp_overlap, name);
}

/* Compute waits for the first n reductions under way; their gradients are free. */
static void
finish_reductions (Build *b, XlaPass *x, guint n)
{
  for (guint i = 0; i < n; i++)
    if (g_array_index (x->reducing, Reduction, i).op != NO_OP)
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
  DpGroup shard = dp_shard (l, at->is_expert);
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
  reduce_over_slices (b, dp_part (numel, shard.n), at->is_expert, "shard all-reduce");
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
  x->gathered = g_new (uint16_t, p->c->operators->len);
  for (guint o = 0; o < p->c->operators->len; o++)
    x->gathered[o] = NO_OP;
  x->reducing = g_array_new (FALSE, FALSE, sizeof (Reduction));
  p->state = x;
}

/* In the order of the pass, the operator is the first, or the last, of its unit. */
static bool
enters (const Build *b, const DpPass *p, guint o)
{
  const Chunk *c = p->c;
  guint end = p->type == LS_ACTION_F ? 0 : c->operators->len - 1,
        neighbour = p->type == LS_ACTION_F ? o - 1 : o + 1;
  return o == end || xla_unit_of (b->l, c, neighbour) != xla_unit_of (b->l, c, o);
}

static bool
leaves (const Build *b, const DpPass *p, guint o)
{
  const Chunk *c = p->c;
  guint end = p->type == LS_ACTION_F ? c->operators->len - 1 : 0,
        neighbour = p->type == LS_ACTION_F ? o + 1 : o - 1;
  return o == end || xla_unit_of (b->l, c, neighbour) != xla_unit_of (b->l, c, o);
}

static void
await (Build *b, const XlaPass *x, guint o)
{
  if (x->gathered[o] != NO_OP)
    build_join (b, x->gathered[o]);
}

static void
before (Build *b, DpPass *p, guint o)
{
  if (p->type == LS_ACTION_B || p->type == LS_ACTION_I)
    xla_copy_from_arrays (b, p->c, o);
  bool gathers = p->type == LS_ACTION_F || (p->type != LS_ACTION_W && !xla_is_outside (p->c, o));
  if (gathers && enters (b, p, o))
    xla_gather_for (b, p->state, p, o);
  if (p->type == LS_ACTION_F || !xla_multiplies_again (b->l, p->c, o))
    await (b, p->state, o);
}

static void
before_again (Build *b, DpPass *p, guint o)
{
  if (xla_multiplies_again (b->l, p->c, o))
    await (b, p->state, o);
}

/* A weight is dropped behind its last use, in the pass that gathered it or later. */
static bool
drops (const Build *b, const DpPass *p, guint o)
{
  if (p->type == LS_ACTION_W || !xla_is_gathered (b, p->c, o))
    return false;
  return !xla_is_outside (p->c, o) || xla_lives_until_backward (b->l, p->c, o) == (p->type != LS_ACTION_F);
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
  *(at->is_expert ? &x->replicated_expert : &x->replicated) += whole_numel (at);
  if (!leaves (b, p, o))
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

/* Gradients that are reduced once only are kept whole until then. */
static void
cuts (const Lower *l, bool is_expert, uint32_t *ret_params, uint32_t *ret_grads, uint32_t *ret_optimizer)
{
  bool are_whole = l->s->grad_sync != LS_GRAD_SYNC_EACH && l->n_micro_batches > 1;
  *ret_params = *ret_optimizer = dp_shard (l, is_expert).n;
  *ret_grads = are_whole ? 1 : dp_shard (l, is_expert).n;
}

/* The fp32 weights are those of the optimizer: no copy of 16 bits, two moments beside them. */
static void
static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  uint64_t n = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++)
    n += dp_part (dp_params_of_rank (l, pp_rank, is_expert), dp_shard (l, is_expert).n);
  bytes[LS_MEM_PARAMETERS] = 4 * n;
  bytes[LS_MEM_OPTIMIZER] = l->s->optimizer_kind ? optimizer_state_bytes (l, pp_rank, 0) : 8 * n;
}

const DpBackend dp_backend_xla_fsdp = {
  .name = "xla-fsdp",
  .variant = variant,
  .begin = begin,
  .before = before,
  .after = after,
  .end = end,
  .before_again = before_again,
  .reduce_rest = reduce_rest,
  .cuts = cuts,
  .static_memory = static_memory,
};
