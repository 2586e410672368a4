/* torch.distributed.fsdp.FullyShardedDataParallel (fsdp/_runtime_utils.py, _flat_param.py 2.7): a
 * unit is one flat parameter, so that it is gathered and reduced without copies into and out
 * of buffers; modules see views of it.
 *
 *     pre_unshard    cast of the fp32 shard to 16 bits              stream gather-in
 *     unshard        all-gather                                     stream gather
 *     post_backward  cast to the reduced type, division by about the root of n, padding if n does
 *                    not divide, reduce-scatter, the rest of the division, cast to fp32, sum
 *                                                                   stream dp
 *     all_reduce     HYBRID_SHARD: over replicas                    stream replica
 *
 * Collectives of a group run one after the other in the order of issue whatever their stream.
 *
 *     forward   root: unshard streams wait for compute. Unit i: gather; wait; with
 *               forward_prefetch gather i + 1; compute; zero 3 frees it
 *     backward  unit i: gather, unless prefetched; wait; `pre`: gather i - 1; compute; free;
 *               `post`: gather i - 1; reduce. The root at the very end
 *
 * The limiter: each time memory of a gather is freed an event is recorded on the compute
 * stream; before a gather, if two or more are queued, the host waits for the oldest. It stops
 * the host, not a stream.
 *
 * Autograd joins the gradients of the views in one kernel (the backward of split).
 *
 * zero 2 is SHARD_GRAD_OP: nothing is freed behind a forward, nor behind a backward that does
 * not reduce; zero 3 FULL_SHARD; N@G HYBRID_SHARD.
 *
 * Deviations. How many frees a pass finds queued is what they settle at where forwards and backwards
 * take turns. Those that a forward finds count, but the host does not wait for them: the unshard
 * stream waits for the backward before anyhow. zero 2, whose backward gathers nothing, throttles
 * nobody in its backward. */
#include "lower/data/lower_fsdp.h"

#define MAX_QUEUED 2 /* FreeEventQueue._max_num_inflight_all_gathers */

static FsdpHold
hold (const Lower *l, bool is_root)
{
  bool is_kept = is_root || l->s->zero_stage == 2;
  bool is_for_long = l->mesh.pp > 1 || (l->s->zero_stage == 2 && l->s->data.grad_sync == LS_GRAD_SYNC_LAST);
  return !is_kept ? HOLD_PASS : is_for_long ? HOLD_STEP : HOLD_MB;
}

/* --- the limiter -------------------------------------------------------------------------- */

/* The op whose end the oldest free waits for. */
static uint16_t
free_op (Build *b, FsdpFree oldest)
{
  if (!oldest.is_event)
    return oldest.op;
  return build_event (b, LS_OP_WAIT, LS_STREAM_GATHER, "wait for free", oldest.op, NULL);
}

static void
limit (Build *b, Fsdp *f)
{
  if (!b->l->s->data.limit_all_gathers || f->free_ops->len < MAX_QUEUED)
    return;
  FsdpFree oldest = g_array_index (f->free_ops, FsdpFree, 0);
  g_array_remove_index (f->free_ops, 0);
  if (oldest.has_passed)
    return;
  LsDep freed = { LS_DEP_END, free_op (b, oldest) };
  build_host_sync (b, LS_TAG_SYNC, "all-gather limiter", &freed, 1);
}

/* How many frees are queued behind one more gather. */
static guint
behind_gather (guint n_queued)
{
  return n_queued < MAX_QUEUED ? n_queued : n_queued - 1;
}

/* And behind a pass over n units that finds so many queued: the order of gathers and frees is
 * that of start(), enter() and leave(). */
static guint
behind_pass (const Lower *l, const Fsdp *f, bool is_forward, guint n_queued)
{
  bool is_early
      = is_forward ? l->s->data.forward_prefetch > 0 : l->s->data.backward_prefetch == LS_PREFETCH_PRE;
  if (is_forward && f->root != FSDP_NONE)
    n_queued = behind_gather (n_queued);
  for (guint i = 0; i < f->n; i++) {
    if (!is_early || i == 0)
      n_queued = behind_gather (n_queued);
    if (is_early && i + 1 < f->n)
      n_queued = behind_gather (n_queued);
    n_queued++;
  }
  return n_queued + (!is_forward && f->root != FSDP_NONE);
}

/* Frees that a forward finds queued, or its backward, when they take turns: what they then leave
 * is what they found. From none the number only grows until it is that. */
static guint
n_found (const Lower *l, const Fsdp *f, bool is_forward)
{
  guint at_forward = 0, at_backward, next = 0;
  if (!l->s->data.limit_all_gathers || hold (l, false) != HOLD_PASS)
    return 0;
  do {
    at_forward = next;
    at_backward = behind_pass (l, f, true, at_forward);
    next = behind_pass (l, f, false, at_backward);
  } while (next != at_forward);
  return is_forward ? at_forward : at_backward;
}

/* The last units that a forward frees, which its backward's limiter still finds queued. */
static guint
n_left_over (const Lower *l, const Fsdp *f)
{
  return MIN (f->n, n_found (l, f, false));
}

static void
note_free (Build *b, const DpPass *p, Fsdp *f, guint unit, uint16_t op)
{
  FsdpFree freed = { .op = op };
  g_array_append_val (f->free_ops, freed);
  if (p->type != LS_ACTION_F || unit + n_left_over (b->l, f) < f->n || unit == f->root)
    return;
  build_event (b, LS_OP_RECORD, LS_STREAM_COMPUTE, "freed", event_params (b->l, f->n - 1 - unit), NULL);
}

static void
recall_frees (const Lower *l, const DpPass *p, Fsdp *f)
{
  FsdpFree passed = { .has_passed = true };
  guint n_passed = n_found (l, f, p->type == LS_ACTION_F);
  if (p->type != LS_ACTION_F)
    n_passed -= n_left_over (l, f);
  for (guint i = 0; i < n_passed; i++)
    g_array_append_val (f->free_ops, passed);
  if (p->type == LS_ACTION_F)
    return;
  for (guint i = n_left_over (l, f); i-- > 0;) {
    FsdpFree freed = { .is_event = true, .op = event_params (l, i) };
    g_array_append_val (f->free_ops, freed);
  }
}

/* --- parameters ---------------------------------------------------------------------------- */

static void
gather (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  if (f->gathered[unit] != NO_OP || !fsdp_gathers (l, p, f, unit))
    return;
  const FsdpUnit *u = fsdp_unit (f, unit);
  uint32_t size = fsdp_param_size (l);
  uint64_t shard = fsdp_shard_numel (l, u);
  uint32_t kept = fsdp_shard_size (l);
  if (size < kept && shard > 0)
    fsdp_kernel (b, p, LS_STREAM_GATHER_IN, LS_FSDP_SHARD_CAST, shard, shard * (kept + size), NULL, 0);
  limit (b, f);
  LsDep ready = { LS_DEP_STREAM, LS_STREAM_GATHER_IN };
  guint first = b->ops->len;
  f->gathered[unit] = fsdp_collective (b, u, LS_STREAM_GATHER, LS_COLL_ALL_GATHER, 0, size, unit, ready);
  if (hold (l, unit == f->root) != HOLD_STEP)
    fsdp_buffer (b, p, f, unit, FSDP_PARAMS, (uint16_t) first, fsdp_gathered_bytes (l, u), false);
}

static void
unshard (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  gather (b, p, f, unit);
  if (f->gathered[unit] != NO_OP)
    build_join (b, f->gathered[unit]);
}

static void
reshard (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  FsdpHold how = hold (l, unit == f->root);
  if (p->type == LS_ACTION_W || how == HOLD_STEP || (how == HOLD_MB && p->type == LS_ACTION_F))
    return;
  uint16_t op = dp_last_compute (b);
  fsdp_buffer (b, p, f, unit, FSDP_PARAMS, op, fsdp_gathered_bytes (l, fsdp_unit (f, unit)), true);
  note_free (b, p, f, unit, op);
}

/* --- gradients ------------------------------------------------------------------------------ */

/* One flat gradient out of those of the views. */
static void
flatten (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  uint64_t numel = fsdp_numel (fsdp_unit (f, unit)), bytes = numel * fsdp_grad_size (l);
  uint16_t op = fsdp_kernel (b, p, LS_STREAM_COMPUTE, LS_FSDP_FLAT_GRAD, numel, 2 * bytes, NULL, 0);
  fsdp_free_grads (b, p, f, unit, op);
  if (fsdp_accumulates_whole (l) && !p->is_first)
    fsdp_kernel (b, p, LS_STREAM_COMPUTE, LS_FSDP_FLAT_GRAD_ACCUMULATE, numel, 3 * bytes, NULL, 0);
}

static void
reduce (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  const FsdpUnit *u = fsdp_unit (f, unit);
  uint32_t size = fsdp_grad_size (l), r = fsdp_reduce_size (l);
  uint32_t n = fsdp_n_averaged (l), before = fsdp_predivide (n);
  uint64_t numel = fsdp_numel (u);
  uint16_t from = dp_last_compute (b), begin = fsdp_wait_compute (b, LS_STREAM_DP);
  fsdp_buffer (b, p, f, unit, FSDP_GRADS, from, numel * size, false);
  if (r != size) {
    uint16_t op = fsdp_kernel (b, p, LS_STREAM_DP, LS_FSDP_GRAD_CAST, numel, numel * (size + r), NULL, 0);
    fsdp_buffer (b, p, f, unit, FSDP_REDUCED, op, numel * r, false);
  }
  if (u->numel[0] % dp_shard (l, false).n != 0)
    fsdp_kernel (b, p, LS_STREAM_DP, LS_FSDP_GRAD_PAD, numel, numel * 2 * r, NULL, 0);
  if (before > 1)
    fsdp_kernel (b, p, LS_STREAM_DP, LS_FSDP_GRAD_PREDIVIDE, numel, numel * 2 * r, NULL, 0);
  LsDep ready = { LS_DEP_END, begin };
  uint16_t scattered = fsdp_collective (b, u, LS_STREAM_DP, LS_COLL_REDUCE_SCATTER, 0, r, unit, ready);
  fsdp_buffer (b, p, f, unit, FSDP_GRADS, scattered, numel * size, true);
  if (r != size)
    fsdp_buffer (b, p, f, unit, FSDP_REDUCED, scattered, numel * r, true);
  fsdp_finish_reduction (b, p, f, unit, scattered, n / before);
}

/* --- passes ---------------------------------------------------------------------------------- */

static void
prefetch (Build *b, const DpPass *p, Fsdp *f, guint unit)
{
  if (unit < f->n)
    gather (b, p, f, unit);
}

/* The unit that the backward comes to behind this one. */
static guint
before_it (const Fsdp *f, guint unit)
{
  return unit == 0 ? FSDP_NONE : unit - 1; /* the root is behind the last */
}

static void
start (Build *b, DpPass *p, Fsdp *f)
{
  bool is_forward = p->type == LS_ACTION_F;
  if (is_forward) {
    fsdp_wait_compute (b, LS_STREAM_GATHER_IN);
    fsdp_wait_compute (b, LS_STREAM_GATHER);
  }
  recall_frees (b->l, p, f);
  if (f->root == FSDP_NONE)
    return;
  unshard (b, p, f, f->root);
  if (is_forward && b->l->s->data.forward_prefetch > 0)
    prefetch (b, p, f, 0);
  else if (!is_forward && b->l->s->data.backward_prefetch == LS_PREFETCH_PRE)
    prefetch (b, p, f, f->n - 1);
}

static void
enter (Build *b, DpPass *p, Fsdp *f, guint unit)
{
  unshard (b, p, f, unit);
  if (p->type == LS_ACTION_F && b->l->s->data.forward_prefetch > 0)
    prefetch (b, p, f, unit + 1);
  else if (p->type != LS_ACTION_F && b->l->s->data.backward_prefetch == LS_PREFETCH_PRE)
    prefetch (b, p, f, before_it (f, unit));
}

static void
leave (Build *b, DpPass *p, Fsdp *f, guint unit)
{
  if (fsdp_has_gradients (p))
    flatten (b, p, f, unit);
  reshard (b, p, f, unit);
  if (p->type == LS_ACTION_F)
    return;
  if (p->type != LS_ACTION_W && b->l->s->data.backward_prefetch == LS_PREFETCH_POST && unit != f->root)
    prefetch (b, p, f, before_it (f, unit));
  if (fsdp_reduces (b->l, p))
    reduce (b, p, f, unit);
}

static void
finish (Build *b, DpPass *p, Fsdp *f)
{
  if (!fsdp_reduces (b->l, p))
    return;
  build_join_stream (b, LS_STREAM_DP);
  build_join_stream (b, LS_STREAM_REPLICA);
}

const FsdpHooks fsdp1_hooks
    = { .is_flat = true, .hold = hold, .start = start, .enter = enter, .leave = leave, .finish = finish };

/* --- the backend --------------------------------------------------------------------------------- */

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  fsdp_step_held (b, pp_rank, dp_last_compute (b), true);
}

const DpBackend dp_backend_fsdp1 = FSDP_BACKEND ("fsdp1", NULL, reduce_rest);
