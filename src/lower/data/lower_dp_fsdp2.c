/* torch.distributed.fsdp.fully_shard (fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py
 * 2.7): every parameter is sharded by itself, so a unit is copied into one buffer before each
 * collective, and out of it behind a gather.
 *
 *     all_gather_copy_in   cast of the fp32 shards to 16 bits, copy into place   stream gather-in
 *     all_gather           behind that                                          stream gather
 *     (compute)            copy-out into parameters; copy-in of gradients, which also casts them
 *     reduce_scatter       reduce-scatter, cast to fp32, sum                     stream dp
 *     all_reduce           N@G: over replicas                                   stream replica
 *
 * Forward, unit i: gather; wait; both gather streams wait for copy-out i - 1, whose buffer is
 * then free; copy-out i; gathers of an explicit list; compute; reshard. The host runs ahead, so
 * gather i + 1 is issued while i computes and runs beside it: at most two buffers are alive.
 * Backward, unit i: gather unless prefetched; wait, copy-out, and both gather streams wait for
 * that; gather i - 1, or an explicit list; compute; reshard; compute waits for the reduce-scatter
 * of the unit before (one in flight), whose input is then free; copy-in; reduce-scatter.
 * Nothing stops the host.
 *
 * reshard_after_forward 0 keeps parameters for the backward; 1 does not; N keeps 1/N of them, so
 * that the backward gathers within groups of N neighbours. The root is always kept. With a
 * pipeline (distributed/pipelining/stage.py) backwards neither reshard nor reduce: gradients add
 * up unsharded in the reduced type, and all units reduce once behind the last micro-batch: of the step, or
 * (grad_sync flush) before each flush, where the next forward gathers anew and shards add up.
 *
 * NCCL averages in fp32 and bf16; fp16 is divided before and behind by kernels.
 *
 * Deviation: with a pipeline and reshard_after_forward 1 a backward reshards too. */
#include "lower/data/lower_fsdp.h"

static FsdpHold
hold (const Lower *l, bool is_root)
{
  if (!is_root && l->s->data.reshard_after_forward != 0)
    return HOLD_PASS;
  return l->mesh.pp > 1 ? HOLD_STEP : HOLD_MB;
}

/* Neighbours among which a unit stays sharded behind its forward; 0: all. */
static uint32_t
group_behind_forward (const Lower *l, const Fsdp *f, guint unit)
{
  bool is_cut = unit != f->root && l->s->data.reshard_after_forward > 1;
  return is_cut ? l->s->data.reshard_after_forward : 0;
}

/* --- parameters ---------------------------------------------------------------------------- */

static uint64_t
unit_bytes (const Lower *l, const Fsdp *f, guint unit)
{
  return fsdp_gathered_bytes (l, fsdp_unit (f, unit));
}

static void
gather (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  if (f->gathered[unit] != NO_OP || !fsdp_gathers (l, p, f, unit))
    return;
  const FsdpUnit *u = fsdp_unit (f, unit);
  uint32_t size = fsdp_param_size (l), n = p->type == LS_ACTION_F ? 0 : group_behind_forward (l, f, unit);
  uint64_t part = n > 0 ? dp_part (fsdp_numel (u), n) : fsdp_shard_numel (l, u);
  uint64_t frozen = n > 0 ? dp_part (u->frozen[0] + u->frozen[1], n) : fsdp_frozen_shard_bytes (l, u);
  guint first = b->ops->len;
  if (size < fsdp_shard_size (l) && part > 0) {
    uint32_t from = n > 0 ? size : fsdp_shard_size (l); /* what a forward left is in 16 bits already */
    fsdp_kernel (b, p, LS_STREAM_GATHER_IN, LS_FSDP_SHARD_CAST, part, part * (from + size), NULL, 0);
  }
  fsdp_kernel (b, p, LS_STREAM_GATHER_IN, LS_FSDP_GATHER_COPY_IN, part + frozen / size,
               2 * (part * size + frozen), NULL, 0);
  LsDep copied = { LS_DEP_STREAM, LS_STREAM_GATHER_IN };
  f->gathered[unit] = fsdp_collective (b, u, LS_STREAM_GATHER, LS_COLL_ALL_GATHER, n, size, unit, copied);
  fsdp_buffer (b, p, f, unit, FSDP_GATHERED, (uint16_t) first, unit_bytes (l, f, unit), false);
}

/* The gather streams wait for the copy out of a buffer, which is then free. */
static void
free_gathered (Build *b, const DpPass *p, Fsdp *f, guint unit, uint16_t copy_out)
{
  uint16_t op = fsdp_wait_op (b, LS_STREAM_GATHER_IN, copy_out);
  fsdp_wait_op (b, LS_STREAM_GATHER, copy_out);
  fsdp_buffer (b, p, f, unit, FSDP_GATHERED, op, unit_bytes (b->l, f, unit), true);
}

static void
free_copied (Build *b, const DpPass *p, Fsdp *f)
{
  if (f->copied != FSDP_NONE)
    free_gathered (b, p, f, f->copied, f->copy_out);
  f->copied = FSDP_NONE;
}

static void
wait_for_unshard (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  if (f->gathered[unit] == NO_OP)
    return;
  uint64_t bytes = unit_bytes (l, f, unit);
  bool is_forward = p->type == LS_ACTION_F;
  if (is_forward)
    free_copied (b, p, f);
  build_join (b, f->gathered[unit]);
  uint16_t op = fsdp_kernel (b, p, LS_STREAM_COMPUTE, LS_FSDP_GATHER_COPY_OUT, bytes / fsdp_param_size (l),
                             2 * bytes, NULL, 0);
  if (hold (l, unit == f->root) != HOLD_STEP)
    fsdp_buffer (b, p, f, unit, FSDP_PARAMS, op, bytes, false);
  uint32_t n = is_forward ? 0 : group_behind_forward (l, f, unit);
  if (n > 0)
    fsdp_buffer (b, p, f, unit, FSDP_PART, op, dp_part (bytes, n), true);
  if (is_forward) {
    f->copied = unit;
    f->copy_out = op;
  } else
    free_gathered (b, p, f, unit, op);
}

static void
unshard (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  gather (b, p, f, unit);
  wait_for_unshard (b, p, f, unit);
}

static void
reshard (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  FsdpHold how = hold (l, unit == f->root);
  if (p->type == LS_ACTION_W || how == HOLD_STEP || (how == HOLD_MB && p->type == LS_ACTION_F))
    return;
  uint32_t n = p->type == LS_ACTION_F ? group_behind_forward (l, f, unit) : 0;
  uint64_t bytes = unit_bytes (l, f, unit);
  if (n > 0) {
    uint64_t part = dp_part (bytes, n);
    uint16_t op = fsdp_kernel (b, p, LS_STREAM_COMPUTE, LS_FSDP_RESHARD_COPY, part / fsdp_param_size (l),
                               2 * part, NULL, 0);
    fsdp_buffer (b, p, f, unit, FSDP_PART, op, part, false);
  }
  fsdp_buffer (b, p, f, unit, FSDP_PARAMS, dp_last_compute (b), bytes, true);
}

/* --- gradients ------------------------------------------------------------------------------ */

/* What was reduced last has been read; the compute stream waits for that. */
static void
free_reduced (Build *b, const DpPass *p, Fsdp *f, uint16_t op)
{
  if (f->reducing != FSDP_NONE)
    fsdp_buffer (b, p, f, f->reducing, FSDP_REDUCED, op,
                 fsdp_numel (fsdp_unit (f, f->reducing)) * fsdp_reduce_size (b->l), true);
  f->reducing = FSDP_NONE;
}

/* p NULL: behind the last micro-batch of a pipeline. */
static void
reduce (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  const FsdpUnit *u = fsdp_unit (f, unit);
  uint32_t size = fsdp_accumulates_whole (l) ? fsdp_reduce_size (l) : fsdp_grad_size (l),
           r = fsdp_reduce_size (l);
  uint32_t n = l->shard.dtype == LS_DTYPE_FP16 ? fsdp_n_averaged (l) : 1, before = fsdp_predivide (n);
  uint64_t numel = fsdp_numel (u);
  if (f->reducing != FSDP_NONE)
    build_join (b, f->reduce_op);
  uint16_t copy
      = fsdp_kernel (b, p, LS_STREAM_COMPUTE, LS_FSDP_REDUCE_COPY_IN, numel, numel * (size + r), NULL, 0);
  free_reduced (b, p, f, copy);
  fsdp_buffer (b, p, f, unit, FSDP_REDUCED, copy, numel * r, false);
  if (!fsdp_accumulates_whole (l))
    fsdp_free_grads (b, p, f, unit, copy);
  LsDep copied = { LS_DEP_END, copy };
  if (before > 1)
    fsdp_kernel (b, p, LS_STREAM_DP, LS_FSDP_GRAD_PREDIVIDE, numel, numel * 2 * r, &copied, 1);
  f->reduce_op = fsdp_collective (b, u, LS_STREAM_DP, LS_COLL_REDUCE_SCATTER, 0, r, unit, copied);
  f->reducing = unit;
  fsdp_finish_reduction (b, p, f, unit, f->reduce_op, n / before);
}

/* Adds what a micro-batch made to what is kept whole. */
static void
accumulate (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  uint64_t numel = fsdp_numel (fsdp_unit (f, unit));
  uint32_t size = fsdp_grad_size (l), r = fsdp_reduce_size (l);
  uint16_t op = dp_last_compute (b);
  if (!p->is_first)
    op = fsdp_kernel (b, p, LS_STREAM_COMPUTE, LS_FSDP_GRAD_ACCUMULATE, numel, numel * (size + 2 * r), NULL,
                      0);
  else if (r != size)
    op = fsdp_kernel (b, p, LS_STREAM_COMPUTE, LS_FSDP_GRAD_CAST, numel, numel * (size + r), NULL, 0);
  fsdp_free_grads (b, p, f, unit, op);
}

/* --- passes ---------------------------------------------------------------------------------- */

/* Of n units from `unit` on, forwards or backwards. */
static void
prefetch (Build *b, const DpPass *p, Fsdp *f, guint unit, guint n)
{
  bool is_forward = p->type == LS_ACTION_F;
  for (guint i = 0; i < n && (is_forward ? unit + i < f->n : unit >= i); i++)
    gather (b, p, f, is_forward ? unit + i : unit - i);
}

static guint
n_ahead (const Lower *l, const DpPass *p)
{
  return p->type == LS_ACTION_F ? l->s->data.forward_prefetch : MAX (1, l->s->data.backward_prefetch_units);
}

static void
start (Build *b, DpPass *p, Fsdp *f)
{
  bool is_forward = p->type == LS_ACTION_F;
  if (is_forward) {
    fsdp_wait_compute (b, LS_STREAM_GATHER_IN);
    fsdp_wait_compute (b, LS_STREAM_GATHER);
  }
  if (f->root == FSDP_NONE)
    return;
  unshard (b, p, f, f->root);
  if (f->n > 0)
    prefetch (b, p, f, is_forward ? 0 : f->n - 1, n_ahead (b->l, p));
}

static void
enter (Build *b, DpPass *p, Fsdp *f, guint unit)
{
  unshard (b, p, f, unit);
  bool is_forward = p->type == LS_ACTION_F;
  if (is_forward || unit > 0)
    prefetch (b, p, f, is_forward ? unit + 1 : unit - 1, n_ahead (b->l, p));
}

static bool
reduces_in_pass (const Lower *l, const DpPass *p)
{
  return fsdp_reduces (l, p) && !(l->mesh.pp > 1 && fsdp_accumulates_whole (l));
}

static void
leave (Build *b, DpPass *p, Fsdp *f, guint unit)
{
  if (fsdp_has_gradients (p) && fsdp_accumulates_whole (b->l))
    accumulate (b, p, f, unit);
  reshard (b, p, f, unit);
  if (!reduces_in_pass (b->l, p))
    return;
  reduce (b, p, f, unit);
}

/* Compute waits for the last reductions. */
static void
finish_reductions (Build *b, const DpPass *p, Fsdp *f)
{
  if (f->reducing == FSDP_NONE)
    return;
  build_join_stream (b, LS_STREAM_DP);
  build_join_stream (b, LS_STREAM_REPLICA);
  build_barrier (b);
  free_reduced (b, p, f, (uint16_t) (b->ops->len - 1));
}

static void
finish (Build *b, DpPass *p, Fsdp *f)
{
  free_copied (b, p, f);
  finish_reductions (b, p, f);
}

const FsdpHooks fsdp2_hooks
    = { .hold = hold, .start = start, .enter = enter, .leave = leave, .finish = finish };

/* --- the backend --------------------------------------------------------------------------------- */

/* With a pipeline: all units, in the order of modules, the root first. adds: not for the first time in the
 * step. */
static void
reduce_units (Build *b, uint32_t pp_rank, bool adds)
{
  Lower *l = b->l;
  for (uint32_t c = 0; l->mesh.pp > 1 && fsdp_accumulates_whole (l) && c < l->n_chunks; c++) {
    Fsdp *f = fsdp_new (l, chunk_at (l, pp_rank, c));
    f->adds = adds;
    for (guint i = 0; i < f->units->len; i++)
      reduce (b, NULL, f, f->root == FSDP_NONE ? i : i == 0 ? f->root : i - 1);
    finish_reductions (b, NULL, f);
    fsdp_free (f);
  }
}

static void
reduce_flush (Build *b, uint32_t pp_rank, bool is_first)
{
  reduce_units (b, pp_rank, !is_first);
}

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  reduce_units (b, pp_rank, b->l->s->data.grad_sync == LS_GRAD_SYNC_FLUSH && b->l->n_flushes > 1);
  fsdp_step_held (b, pp_rank, dp_last_compute (b), true);
}

const DpBackend dp_backend_fsdp2 = FSDP_BACKEND ("fsdp2", reduce_flush, reduce_rest);
