/* lower/data/lower_dp_fsdp.c — PyTorch's two FSDPs: units, how long their parameters stay gathered, and the
 * walk over them.
 *
 * A unit is layers_per_unit layers of a chunk; the root unit has what is left: embedding,
 * final norm, head. Its parameters are gathered as one, its gradients reduced as one:
 *
 *     forward    root enters, then each unit enters and leaves
 *     backward   root enters, then each unit, from the last, enters and leaves; root leaves
 *     I and W    I as a backward that reduces nothing; W enters nothing, leaves to reduce
 *
 * With ends_apart (FSDP2) the embedding is a unit like those of layers, before them, and the root, which is
 * norm and head, enters a forward after the layers, stays, and leaves a backward before them. Where the head
 * shares the embedding's weight they are one unit, and nothing is apart.
 *
 * Parameters are fp32 shards, gradients are accumulated in fp32 shards, and there is no copy
 * of either: 4 + 4 bytes of each parameter on its owner, 8 with Adam's moments. A shard of gradients is there
 * from its first reduction to the optimizer's step (set_to_none). What is
 * computed with (16 bits) exists only while it is gathered: category `unsharded`. ZeRO's
 * table, (2 + 2 + 12) / n, has the same sum.
 *
 * How long they stay gathered: HOLD_PASS until the pass leaves the unit; HOLD_MB from the
 * forward of a micro-batch to its backward (the root always; zero 2); HOLD_STEP from the first
 * forward of the step to its last backward, where a pipeline or a backward that does not
 * reduce keeps them. Deviations: what is held for a step is counted from its begin to its end,
 * and with a pipeline HOLD_MB is HOLD_STEP. Padding is that of a unit to a multiple of the
 * group (FSDP2 pads every parameter). The shard cast to 16 bits before a gather, unit / n for
 * moments, is not counted.
 *
 * Experts are gathered and reduced with their unit, in collectives of their own.
 *
 * FSDP2: torch.distributed.fsdp.fully_shard (fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py
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
 * Deviation: with a pipeline and reshard_after_forward 1 a backward reshards too.
 *
 * FSDP1: torch.distributed.fsdp.FullyShardedDataParallel (fsdp/_runtime_utils.py, _flat_param.py 2.7): a
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
#include "lower/data/lower_dp_fsdp.h"
#include "lower/layers/lower_layers.h"
#include "strategy/shard.h"

#define FP32_BYTES 4

static const Unit *
unit_at (const Fsdp *f, guint unit)
{
  return &g_array_index (f->units, Unit, unit);
}

/* A unit is one array, of which each rank has a piece: FSDP1. */
static bool
is_flat (const Lower *l)
{
  return l->s->dp_kind == LS_DP_FSDP1;
}

Hold
fsdp_hold (const Lower *l, bool is_root)
{
  bool keeps = is_flat (l) ? l->s->zero_stage == 2 : l->s->data.reshard_after_forward == 0,
       is_for_long = l->mesh.pp > 1 || (is_flat (l) && keeps && l->s->data.grad_sync == LS_GRAD_SYNC_LAST);
  return !is_root && !keeps ? HOLD_PASS : is_for_long ? HOLD_STEP : HOLD_MB;
}

/* FSDP2: neighbours among which a unit stays sharded behind its forward; 0: all. */
static uint32_t
group_behind_forward (const Lower *l, const Fsdp *f, guint unit)
{
  bool is_cut = !is_flat (l) && unit != f->root && l->s->data.reshard_after_forward > 1;
  return is_cut ? l->s->data.reshard_after_forward : 0;
}

/* --- units -------------------------------------------------------------------------- */

static guint
unit_of (const Fsdp *f, const Lower *l, const Chunk *c, guint o)
{
  uint16_t layer = layer_of (c, o);
  if (layer == UINT16_MAX)
    return o < f->n_embedding ? 0 : f->root;
  return layer / l->s->data.layers_per_unit + (f->n_embedding > 0);
}

/* The first of a unit; UINT16_MAX: it has none. */
static uint16_t
layer_of_unit (const Fsdp *f, const Lower *l, guint unit)
{
  guint n_before = f->n_embedding > 0;
  bool has_layers = unit != f->root && unit >= n_before;
  return has_layers ? (uint16_t) ((unit - n_before) * l->s->data.layers_per_unit) : UINT16_MAX;
}

static bool
ends_are_apart (const Lower *l, const Chunk *c)
{
  return !is_flat (l) && l->s->data.ends_apart && c->n_layers > 0 && !l->model->tied_embeddings;
}

static void
add_params (const Lower *l, Unit *u, const LsOperator *o)
{
  for (uint32_t p = 0; p < o->params.n; p++)
    if (o->params.is_frozen)
      u->frozen[o->params.is_expert]
          += dp_frozen_bytes (l, o->params.numel[p], o->params.is_nf4 && p == 0 ? o->params.numel[p] : 0, 0);
    else
      u->numel[o->params.is_expert] += o->params.numel[p];
}

/* p NULL: outside of a pass. Free with fsdp_free(). */
static Fsdp *
fsdp_new (const Lower *l, const DpPass *p, const Chunk *c)
{
  uint32_t per_unit = l->s->data.layers_per_unit;
  Fsdp *f = g_new0 (Fsdp, 1);
  f->p = p;
  f->is_apart = ends_are_apart (l, c);
  while (f->is_apart && c->has_embedding && layer_of (c, f->n_embedding) == UINT16_MAX)
    f->n_embedding++;
  f->n = (c->n_layers + per_unit - 1) / per_unit + (f->n_embedding > 0);
  f->root = (c->has_embedding && !f->is_apart) || c->has_head ? f->n : NO_UNIT;
  f->units = g_array_sized_new (FALSE, TRUE, sizeof (Unit), f->n + 1);
  g_array_set_size (f->units, f->n + (f->root != NO_UNIT));
  for (guint o = c->operators->len; o-- > 0;) {
    Unit *u = &g_array_index (f->units, Unit, unit_of (f, l, c, o));
    add_params (l, u, operator_at (c, o));
    u->first = o;
  }
  f->gathered = dp_no_ops (f->units->len);
  f->free_ops = g_array_new (FALSE, FALSE, sizeof (Free));
  f->inside = f->copied = f->reducing = NO_UNIT;
  return f;
}

static void
fsdp_free (Fsdp *f)
{
  g_array_unref (f->units);
  g_array_unref (f->free_ops);
  g_free (f->gathered);
  g_free (f);
}

/* --- sizes ------------------------------------------------------------------------------ */

/* Elements that learn. */
static uint64_t
numel_of (const Unit *u)
{
  return u->numel[0] + u->numel[1];
}

/* Bytes of what is computed with. */
static uint32_t
param_size (const Lower *l)
{
  return (uint32_t) dp_param_bytes (l, 1);
}

/* Of all, as computed with, or in 4 bits. */
static uint64_t
unit_bytes (const Lower *l, const Fsdp *f, guint unit)
{
  const Unit *u = unit_at (f, unit);
  return numel_of (u) * param_size (l) + u->frozen[0] + u->frozen[1];
}

/* Bytes of what is kept, of each. */
static uint32_t
shard_size (const Lower *l)
{
  return ls_dtype_bytes (ls_strategy_weights (l->s));
}

/* Bytes of what autograd makes. */
static uint32_t
grad_size (const Lower *l)
{
  return ls_dtype_bytes (l->act);
}

/* Bytes of what is reduced. */
static uint32_t
reduce_size (const Lower *l)
{
  return ls_dtype_bytes ((LsDtype) l->s->opt.grad_dtype);
}

/* What one rank has of a unit, of others and of experts, padded. */
static uint64_t
shard_of (const Lower *l, const uint64_t n[2])
{
  return dp_part (n[0], dp_shard (l, false).n) + (n[1] > 0 ? dp_part (n[1], dp_shard (l, true).n) : 0);
}

/* Torch's factors for n ranks: before and after the sum (default_hooks.py, DefaultState). */
static uint32_t
predivide (uint32_t n)
{
  uint32_t factor = 1;
  while (n % factor == 0 && n / factor > factor)
    factor *= 2;
  return factor;
}

/* --- who does what --------------------------------------------------------------------- */

/* Whether a pass gathers a unit. */
static bool
gathers (const Lower *l, const Fsdp *f, guint unit)
{
  Hold how = fsdp_hold (l, unit == f->root);
  if (f->p->type == LS_ACTION_F)
    return how != HOLD_STEP || f->p->is_first;
  return how == HOLD_PASS && f->p->type != LS_ACTION_W;
}

/* Gradients are kept whole from one micro-batch to the next. */
static bool
accumulates_whole (const Lower *l)
{
  bool waits_for_pipe = !is_flat (l) && l->mesh.pp > 1;
  return l->s->data.grad_sync != LS_GRAD_SYNC_EACH && (l->n_micro_batches > 1 || waits_for_pipe);
}

/* FSDP2 with a pipeline reduces what is kept whole behind its last backward. */
static bool
reduces_behind (const Lower *l)
{
  return !is_flat (l) && l->mesh.pp > 1 && accumulates_whole (l);
}

static bool
reduces (const Lower *l, const DpPass *p)
{
  return dp_has_weights (p) && (p->is_last || l->s->data.grad_sync == LS_GRAD_SYNC_EACH)
      && !reduces_behind (l);
}

/* --- ops -------------------------------------------------------------------------------- */

/* As some software launches it. */
static LsAccess
access_of (const Lower *l, LsFsdpCopy copy)
{
  const LsRecipe *r = ls_recipe_find (l->shard.recipes, LS_RECIPE_FSDP, l->model);
  const LsRecipeKernel *listed = r ? ls_recipe_kernel_named (r->forward, ls_fsdp_copies[copy]) : NULL;
  return listed ? (LsAccess) listed->access : LS_ACCESS_NONE;
}

/* A kernel that moves `bytes` on any stream, behind dep, if that is not NULL; tag of the pass. */
static uint16_t
move (Build *b, const Fsdp *f, LsStream stream, LsFsdpCopy copy, uint64_t numel, uint64_t bytes,
      const LsDep *dep)
{
  LsTag tag = !f->p ? LS_TAG_OPTIMIZER : f->p->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B;
  LsKernel k = ls_kernel_stream (ls_fsdp_copies[copy], LS_KERNEL_ELEMENTWISE,
                                 ls_dtype_between (b->l->shard.dtype), 1, numel, (double) bytes, 0);
  k.access = access_of (b->l, copy);
  return build_kernel_on (b, stream, &k, tag, dep, dep ? 1 : 0);
}

/* A stream waits for what the compute stream has done so far; no duration. */
static uint16_t
wait_compute (Build *b, LsStream stream)
{
  return build_behind (b, LS_STREAM_COMPUTE,
                       ls_op_blank (LS_OP_RECORD, stream, LS_TAG_SYNC, "wait for compute"));
}

static uint16_t
wait_op (Build *b, LsStream stream, uint16_t op)
{
  return build_event (b, LS_OP_RECORD, stream, "wait for event", LS_EVENT_NONE, &(LsDep) { LS_DEP_END, op });
}

static uint16_t
collective (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, uint32_t element_size,
            guint unit, const LsDep *dep)
{
  const char *name = coll == LS_COLL_ALL_GATHER ? "unit all-gather"
      : coll == LS_COLL_REDUCE_SCATTER          ? "unit reduce-scatter"
                                                : "unit all-reduce";
  uint16_t op = build_coll_after (b, stream, slot, coll, bytes,
                                  element_size == FP32_BYTES ? LS_DTYPE_FP32 : b->l->shard.dtype, LS_TAG_SYNC,
                                  name, dep);
  g_array_index (b->ops, LsOp, op).unit = (uint16_t) unit;
  return op;
}

/* The collectives of a unit on a stream, one behind the other, over its shards' group or over n
 * neighbours in it (n 0: all). Waits for dep. Returns the last op; dep's if the group is 1. */
static uint16_t
collectives (Build *b, const Fsdp *f, guint unit, LsStream stream, int coll, uint32_t n,
             uint32_t element_size, LsDep dep)
{
  const Unit *u = unit_at (f, unit);
  uint16_t last = NO_OP;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    DpGroup group = n > 0 ? (DpGroup) { LS_SLOT_SHARD, n } : dp_shard (b->l, is_expert);
    uint64_t bytes = dp_part (u->numel[is_expert], group.n) * group.n * element_size;
    bytes += coll == LS_COLL_ALL_GATHER ? dp_part (u->frozen[is_expert], group.n) * group.n : 0;
    if (bytes > 0 && group.n > 1)
      last = collective (b, stream, group.slot, coll, bytes, element_size, unit, &dep);
  }
  if (last != NO_OP)
    return last;
  return build_event (b, LS_OP_RECORD, stream, "nothing to gather or reduce", LS_EVENT_NONE, &dep);
}

/* Deviation: where backwards of several chunks reduce (FSDP1, grad_sync each), they are always there. */
static bool
shards_come_and_go (const Lower *l)
{
  return (l->mesh.pp == 1 && l->n_chunks == 1) || reduces_behind (l);
}

/* A rank's part of a unit's gradients: no event says that another stream than the reduction's uses it. */
static void
hold_shard (Build *b, const Fsdp *f, guint unit, uint16_t op, bool is_free)
{
  uint16_t id = (uint16_t) (UINT16_MAX - 1 - b->l->n_chunks - f->n_before - unit);
  uint64_t bytes = shard_of (b->l, unit_at (f, unit)->numel) * shard_size (b->l);
  if (shards_come_and_go (b->l))
    build_buffer_at (b, op, id, LS_MEM_GRADIENTS, bytes, is_free, LS_AT_ISSUE);
}

/* Behind a reduce-scatter on stream dp: all-reduce over replicas on a stream of its own, then
 * kernels: division, cast to fp32, sum with what is there. */
static void
finish_reduction (Build *b, const Fsdp *f, guint unit, uint16_t scattered, uint32_t divisor)
{
  const Lower *l = b->l;
  const Unit *u = unit_at (f, unit);
  uint32_t r = reduce_size (l), kept = shard_size (l);
  uint64_t numel = shard_of (l, u->numel);
  LsStream stream = LS_STREAM_DP;
  DpGroup replica = dp_replica (l, false);
  if (replica.n > 1 && u->numel[0] > 0) {
    LsDep dep = { LS_DEP_END, scattered };
    stream = LS_STREAM_REPLICA;
    collective (b, stream, replica.slot, LS_COLL_ALL_REDUCE, dp_part (u->numel[0], dp_shard (l, false).n) * r,
                r, unit, &dep);
  }
  if (divisor > 1)
    move (b, f, stream, LS_FSDP_GRAD_POSTDIVIDE, numel, numel * 2 * r, NULL);
  if (r != kept)
    scattered = move (b, f, stream, LS_FSDP_GRAD_SHARD_CAST, numel, numel * (r + kept), NULL);
  bool is_behind_another = f->p && !f->p->is_first && !accumulates_whole (l);
  if (is_behind_another || f->adds)
    move (b, f, stream, LS_FSDP_GRAD_SHARD_ACCUMULATE, numel, numel * 3 * kept, NULL);
  else
    hold_shard (b, f, unit, scattered, false);
}

/* --- buffers of category unsharded --------------------------------------------------- */

typedef enum {
  PARAMS,   /* what is computed with                          */
  GATHERED, /* FSDP2: where the collective writes             */
  GRADS,    /* FSDP1: the flat gradient                       */
  REDUCED,  /* what the reduce-scatter reads                  */
  PART,     /* FSDP2: kept when it was resharded to a group   */
  N_BUFFERS
} Buffer;

/* Behind those of activations: a block of units per kind, then gradients by operator. */
static uint16_t
buffer_id (Build *b, const Fsdp *f, guint block, guint index)
{
  guint id = buffer_base (f->p->c) + block * f->units->len + index;
  b->is_too_long |= id + f->units->len + b->l->n_chunks >= UINT16_MAX;
  return (uint16_t) id;
}

static void
buffer (Build *b, const Fsdp *f, guint unit, Buffer what, uint16_t op, uint64_t bytes, bool is_free)
{
  if (f->p)
    build_buffer (b, op, buffer_id (b, f, what, unit), LS_MEM_UNSHARDED, bytes, is_free);
}

/* Gradients of an operator, as autograd makes them. */
static void
hold_grads (Build *b, const Fsdp *f, guint o, uint16_t op, bool is_free)
{
  uint64_t bytes = trained_params (operator_at (f->p->c, o)) * grad_size (b->l);
  build_buffer (b, op, buffer_id (b, f, N_BUFFERS, o), LS_MEM_UNSHARDED, bytes, is_free);
}

/* Those of all of a unit. */
static void
free_grads (Build *b, const Fsdp *f, guint unit, uint16_t op)
{
  for (guint o = unit_at (f, unit)->first; f->p && o < f->p->c->operators->len; o++)
    if (unit_of (f, b->l, f->p->c, o) == unit)
      hold_grads (b, f, o, op, true);
    else if (unit != f->root)
      break;
}

/* --- parameters ---------------------------------------------------------------------------- */

static void
gather (Build *b, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  const Unit *u = unit_at (f, unit);
  if (f->gathered[unit] != NO_OP || !gathers (l, f, unit))
    return;
  uint32_t size = param_size (l), n = f->p->type == LS_ACTION_F ? 0 : group_behind_forward (l, f, unit),
           from = n > 0 ? size : shard_size (l); /* what a forward left is in 16 bits already */
  uint64_t part = n > 0 ? dp_part (numel_of (u), n) : shard_of (l, u->numel),
           frozen = n > 0 ? dp_part (u->frozen[0] + u->frozen[1], n) : shard_of (l, u->frozen);
  guint first = b->ops->len;
  uint16_t within = b->layer; /* it is the unit's, also where it goes out ahead */
  b->layer = layer_of_unit (f, l, unit);
  if (size < shard_size (l) && part > 0)
    move (b, f, LS_STREAM_GATHER_IN, LS_FSDP_SHARD_CAST, part, part * (from + size), NULL);
  if (is_flat (l)) {
    fsdp_limit (b, f);
    first = b->ops->len;
  } else
    move (b, f, LS_STREAM_GATHER_IN, LS_FSDP_GATHER_COPY_IN, part + frozen / size, 2 * (part * size + frozen),
          NULL);
  LsDep ready = { LS_DEP_STREAM, LS_STREAM_GATHER_IN };
  f->gathered[unit] = collectives (b, f, unit, LS_STREAM_GATHER, LS_COLL_ALL_GATHER, n, size, ready);
  if (!is_flat (l) || fsdp_hold (l, unit == f->root) != HOLD_STEP)
    buffer (b, f, unit, is_flat (l) ? PARAMS : GATHERED, (uint16_t) first, unit_bytes (l, f, unit), false);
  b->layer = within;
}

/* The gather streams wait for the copy out of a buffer, which is then free. */
static void
free_gathered (Build *b, Fsdp *f, guint unit, uint16_t copy_out)
{
  uint16_t op = wait_op (b, LS_STREAM_GATHER_IN, copy_out);
  wait_op (b, LS_STREAM_GATHER, copy_out);
  buffer (b, f, unit, GATHERED, op, unit_bytes (b->l, f, unit), true);
}

static void
free_copied (Build *b, Fsdp *f)
{
  if (f->copied != NO_UNIT)
    free_gathered (b, f, f->copied, f->copy_out);
  f->copied = NO_UNIT;
}

/* FSDP2: out of the buffer of a gather. */
static void
copy_out (Build *b, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  uint64_t bytes = unit_bytes (l, f, unit);
  bool is_forward = f->p->type == LS_ACTION_F;
  uint16_t op
      = move (b, f, LS_STREAM_COMPUTE, LS_FSDP_GATHER_COPY_OUT, bytes / param_size (l), 2 * bytes, NULL);
  if (fsdp_hold (l, unit == f->root) != HOLD_STEP)
    buffer (b, f, unit, PARAMS, op, bytes, false);
  uint32_t n = is_forward ? 0 : group_behind_forward (l, f, unit);
  if (n > 0)
    buffer (b, f, unit, PART, op, dp_part (bytes, n), true);
  bool is_end = f->is_apart && unit == f->root; /* its model is done when the loss has its peak */
  if (is_forward && !is_end) {
    f->copied = unit;
    f->copy_out = op;
  } else
    free_gathered (b, f, unit, op);
}

static void
unshard (Build *b, Fsdp *f, guint unit)
{
  gather (b, f, unit);
  if (f->gathered[unit] == NO_OP)
    return;
  if (f->p->type == LS_ACTION_F)
    free_copied (b, f);
  build_join (b, f->gathered[unit]);
  if (!is_flat (b->l))
    copy_out (b, f, unit);
}

static void
reshard (Build *b, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  bool is_forward = f->p->type == LS_ACTION_F;
  Hold how = fsdp_hold (l, unit == f->root);
  if (f->p->type == LS_ACTION_W || how == HOLD_STEP || (how == HOLD_MB && is_forward))
    return;
  uint32_t n = is_forward ? group_behind_forward (l, f, unit) : 0;
  if (n > 0) {
    uint64_t part = dp_part (unit_bytes (l, f, unit), n);
    uint16_t kept
        = move (b, f, LS_STREAM_COMPUTE, LS_FSDP_RESHARD_COPY, part / param_size (l), 2 * part, NULL);
    buffer (b, f, unit, PART, kept, part, false);
  }
  uint16_t op = dp_last_compute (b);
  buffer (b, f, unit, PARAMS, op, unit_bytes (l, f, unit), true);
  if (is_flat (l))
    fsdp_note_free (b, f, unit, op);
}

/* --- gradients ------------------------------------------------------------------------------ */

/* FSDP1: one flat gradient out of those of the views. */
static void
flatten (Build *b, Fsdp *f, guint unit)
{
  uint64_t numel = numel_of (unit_at (f, unit)), bytes = numel * grad_size (b->l);
  uint16_t op = move (b, f, LS_STREAM_COMPUTE, LS_FSDP_FLAT_GRAD, numel, 2 * bytes, NULL);
  free_grads (b, f, unit, op);
  if (accumulates_whole (b->l) && !f->p->is_first)
    move (b, f, LS_STREAM_COMPUTE, LS_FSDP_FLAT_GRAD_ACCUMULATE, numel, 3 * bytes, NULL);
}

static void
reduce_flat (Build *b, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  uint32_t size = grad_size (l), r = reduce_size (l), n = dp_all (l, false).n, factor = predivide (n);
  uint64_t numel = numel_of (unit_at (f, unit));
  uint16_t from = dp_last_compute (b), begin = wait_compute (b, LS_STREAM_DP);
  buffer (b, f, unit, GRADS, from, numel * size, false);
  if (r != size) {
    uint16_t op = move (b, f, LS_STREAM_DP, LS_FSDP_GRAD_CAST, numel, numel * (size + r), NULL);
    buffer (b, f, unit, REDUCED, op, numel * r, false);
  }
  if (unit_at (f, unit)->numel[0] % dp_shard (l, false).n != 0)
    move (b, f, LS_STREAM_DP, LS_FSDP_GRAD_PAD, numel, numel * 2 * r, NULL);
  if (factor > 1)
    move (b, f, LS_STREAM_DP, LS_FSDP_GRAD_PREDIVIDE, numel, numel * 2 * r, NULL);
  LsDep ready = { LS_DEP_END, begin };
  uint16_t scattered = collectives (b, f, unit, LS_STREAM_DP, LS_COLL_REDUCE_SCATTER, 0, r, ready);
  buffer (b, f, unit, GRADS, scattered, numel * size, true);
  if (r != size)
    buffer (b, f, unit, REDUCED, scattered, numel * r, true);
  finish_reduction (b, f, unit, scattered, n / factor);
}

/* FSDP2: what was reduced last has been read; the compute stream waits for that. */
static void
free_reduced (Build *b, Fsdp *f, uint16_t op)
{
  if (f->reducing != NO_UNIT)
    buffer (b, f, f->reducing, REDUCED, op, numel_of (unit_at (f, f->reducing)) * reduce_size (b->l), true);
  f->reducing = NO_UNIT;
}

static void
reduce_params (Build *b, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  uint32_t r = reduce_size (l), size = accumulates_whole (l) ? r : grad_size (l),
           n = l->shard.dtype == LS_DTYPE_FP16 ? dp_all (l, false).n : 1, factor = predivide (n);
  uint64_t numel = numel_of (unit_at (f, unit));
  if (f->reducing != NO_UNIT)
    build_join (b, f->reduce_op);
  uint16_t copy = move (b, f, LS_STREAM_COMPUTE, LS_FSDP_REDUCE_COPY_IN, numel, numel * (size + r), NULL);
  free_reduced (b, f, copy);
  buffer (b, f, unit, REDUCED, copy, numel * r, false);
  if (!accumulates_whole (l))
    free_grads (b, f, unit, copy);
  LsDep copied = { LS_DEP_END, copy };
  if (factor > 1)
    move (b, f, LS_STREAM_DP, LS_FSDP_GRAD_PREDIVIDE, numel, numel * 2 * r, &copied);
  f->reduce_op = collectives (b, f, unit, LS_STREAM_DP, LS_COLL_REDUCE_SCATTER, 0, r, copied);
  f->reducing = unit;
  finish_reduction (b, f, unit, f->reduce_op, n / factor);
}

/* FSDP2: adds what a micro-batch made to what is kept whole. */
static void
accumulate (Build *b, Fsdp *f, guint unit)
{
  uint64_t numel = numel_of (unit_at (f, unit));
  uint32_t size = grad_size (b->l), r = reduce_size (b->l);
  uint16_t op = dp_last_compute (b);
  if (!f->p->is_first)
    op = move (b, f, LS_STREAM_COMPUTE, LS_FSDP_GRAD_ACCUMULATE, numel, numel * (size + 2 * r), NULL);
  else if (r != size)
    op = move (b, f, LS_STREAM_COMPUTE, LS_FSDP_GRAD_CAST, numel, numel * (size + r), NULL);
  free_grads (b, f, unit, op);
}

/* FSDP2: compute waits for the last reductions. */
static void
finish_reductions (Build *b, Fsdp *f)
{
  if (f->reducing == NO_UNIT)
    return;
  build_join_stream (b, LS_STREAM_DP);
  build_join_stream (b, LS_STREAM_REPLICA);
  build_barrier (b);
  free_reduced (b, f, (uint16_t) (b->ops->len - 1));
}

/* --- passes ---------------------------------------------------------------------------------- */

/* Units that a pass gathers ahead. */
static guint
n_ahead (const Lower *l, const DpPass *p)
{
  if (p->type == LS_ACTION_F)
    return l->s->data.forward_prefetch;
  return is_flat (l) ? l->s->data.backward_prefetch == LS_PREFETCH_PRE
                     : MAX (1, l->s->data.backward_prefetch_units);
}

/* Of n units from `unit` on, forwards or backwards. */
static void
prefetch (Build *b, Fsdp *f, guint unit, guint n)
{
  bool is_forward = f->p->type == LS_ACTION_F;
  for (guint i = 0; i < n && (is_forward ? unit + i < f->n : unit >= i); i++)
    gather (b, f, is_forward ? unit + i : unit - i);
}

/* Of a pass; the root enters. */
static void
start (Build *b, Fsdp *f)
{
  bool is_forward = f->p->type == LS_ACTION_F;
  if (is_forward) {
    wait_compute (b, LS_STREAM_GATHER_IN);
    wait_compute (b, LS_STREAM_GATHER);
  }
  if (is_flat (b->l))
    fsdp_recall_frees (b->l, f);
  if (f->root == NO_UNIT || (f->is_apart && is_forward))
    return;
  unshard (b, f, f->root);
  if (f->n > 0)
    prefetch (b, f, is_forward ? 0 : f->n - 1, n_ahead (b->l, f->p));
}

static void
enter (Build *b, Fsdp *f, guint unit)
{
  bool is_forward = f->p->type == LS_ACTION_F;
  unshard (b, f, unit);
  if (is_forward || unit > 0)
    prefetch (b, f, is_forward ? unit + 1 : unit - 1, n_ahead (b->l, f->p));
}

/* The root is behind the last unit of a backward: nothing is gathered behind it. */
static void
leave (Build *b, Fsdp *f, guint unit)
{
  const Lower *l = b->l;
  LsActionType type = f->p->type;
  if (dp_has_weights (f->p) && is_flat (l))
    flatten (b, f, unit);
  else if (dp_has_weights (f->p) && accumulates_whole (l))
    accumulate (b, f, unit);
  reshard (b, f, unit);
  bool is_post = is_flat (l) && l->s->data.backward_prefetch == LS_PREFETCH_POST;
  if (is_post && type != LS_ACTION_F && type != LS_ACTION_W && unit != f->root && unit > 0)
    prefetch (b, f, unit - 1, 1);
  if (reduces (l, f->p))
    (is_flat (l) ? reduce_flat : reduce_params) (b, f, unit);
}

/* Behind the last; the root has left. */
static void
finish (Build *b, Fsdp *f)
{
  if (!is_flat (b->l)) {
    free_copied (b, f);
    finish_reductions (b, f);
  } else if (reduces (b->l, f->p)) {
    build_join_stream (b, LS_STREAM_DP);
    build_join_stream (b, LS_STREAM_REPLICA);
  }
}

/* --- the walk: hooks of the backend ------------------------------------------------------------- */

static void
leave_inside (Build *b, Fsdp *f)
{
  guint unit = f->inside;
  f->inside = NO_UNIT;
  if (unit != NO_UNIT)
    leave (b, f, unit);
}

/* Once: a forward enters it, where it is apart; a backward leaves it. */
static void
pass_root (Build *b, Fsdp *f)
{
  if (f->root == NO_UNIT || f->has_passed)
    return;
  (f->p->type == LS_ACTION_F ? unshard : leave) (b, f, f->root);
  f->has_passed = true;
}

static char *
variant (const Lower *l, const DpPass *p)
{
  return g_strconcat (p->is_first ? " first" : "", p->is_last ? " last" : "", NULL);
}

static void
begin (Build *b, DpPass *p)
{
  p->state = fsdp_new (b->l, p, p->c);
  if (p->type != LS_ACTION_W)
    start (b, p->state);
}

static void
before (Build *b, DpPass *p, guint o)
{
  Fsdp *f = p->state;
  guint unit = unit_of (f, b->l, p->c, o);
  if (unit == f->inside)
    return;
  if (p->type == LS_ACTION_F)
    leave_inside (b, f);
  bool is_root = unit == f->root;
  if (f->is_apart && is_root == (p->type == LS_ACTION_F))
    pass_root (b, f);
  if (is_root)
    return;
  f->inside = unit;
  if (p->type != LS_ACTION_W)
    enter (b, f, unit);
}

static void
after (Build *b, DpPass *p, guint o)
{
  Fsdp *f = p->state;
  if (dp_has_weights (p) && trained_params (operator_at (p->c, o)) > 0)
    hold_grads (b, f, o, dp_last_compute (b), false);
  if (p->type != LS_ACTION_F && f->inside != NO_UNIT && o == unit_at (f, f->inside)->first)
    leave_inside (b, f);
}

static void
end (Build *b, DpPass *p)
{
  Fsdp *f = p->state;
  leave_inside (b, f);
  if (p->type != LS_ACTION_F)
    pass_root (b, f);
  finish (b, f);
  fsdp_free (f);
  p->state = NULL;
}

/* --- a step --------------------------------------------------------------------------------------- */

/* Bytes of a chunk that are held for the step. */
static uint64_t
held_bytes (const Lower *l, const Chunk *c)
{
  Fsdp *f = fsdp_new (l, NULL, c);
  uint64_t bytes = 0, size = is_flat (l) ? grad_size (l) : reduce_size (l);
  for (guint u = 0; u < f->units->len; u++) {
    if (fsdp_hold (l, u == f->root) == HOLD_STEP)
      bytes += unit_bytes (l, f, u);
    if (accumulates_whole (l))
      bytes += numel_of (unit_at (f, u)) * size;
  }
  fsdp_free (f);
  return bytes;
}

static void
step_held (Build *b, uint32_t pp_rank, bool is_free)
{
  uint16_t op = dp_last_compute (b);
  for (uint32_t c = 0; c < b->l->n_chunks; c++)
    build_buffer (b, op, (uint16_t) (UINT16_MAX - 1 - c), LS_MEM_UNSHARDED,
                  held_bytes (b->l, chunk_at (b->l, pp_rank, c)), is_free);
}

static void
step_begin (Build *b, uint32_t pp_rank)
{
  step_held (b, pp_rank, false);
}

/* FSDP2 with a pipeline: all units, in the order of modules, the root first. is_first: for the first time in
 * the step. */
static void
reduce_flush (Build *b, uint32_t pp_rank, bool is_first)
{
  Lower *l = b->l;
  guint n_before = 0;
  for (uint32_t c = 0; reduces_behind (l) && c < l->n_chunks; c++) {
    Fsdp *f = fsdp_new (l, NULL, chunk_at (l, pp_rank, c));
    f->adds = !is_first;
    f->n_before = n_before;
    n_before += f->units->len;
    for (guint i = 0; i < f->units->len; i++)
      reduce_params (b, f, f->root == NO_UNIT ? i : i == 0 ? f->root : i - 1);
    finish_reductions (b, f);
    fsdp_free (f);
  }
}

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  reduce_flush (b, pp_rank, b->l->s->data.grad_sync != LS_GRAD_SYNC_FLUSH || b->l->n_flushes <= 1);
  step_held (b, pp_rank, true);
}

/* The step forgets gradients. */
static void
step_end (Build *b, uint32_t pp_rank)
{
  guint n_before = 0;
  for (uint32_t c = 0; c < b->l->n_chunks; c++) {
    Fsdp *f = fsdp_new (b->l, NULL, chunk_at (b->l, pp_rank, c));
    f->n_before = n_before;
    n_before += f->units->len;
    for (guint unit = 0; unit < f->units->len; unit++)
      hold_shard (b, f, unit, dp_last_compute (b), true);
    fsdp_free (f);
  }
}

static void
static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  uint64_t n = dp_n_kept (l, pp_rank, DP_CUT_PARAMS);
  uint32_t size = shard_size (l);
  bytes[LS_MEM_PARAMETERS] = n * size;
  bytes[LS_MEM_GRADIENTS] = shards_come_and_go (l) ? 0 : n * size;
  bytes[LS_MEM_OPTIMIZER] = l->s->opt.kind ? optimizer_state_bytes (l, pp_rank, 0) : n * 2 * size;
}

/* Adds to n[], of a rank each, the tensors that reach into its pieces of a chunk's units; all to the first
 * where a unit is no array. */
static void
count_in_chunk (const Lower *l, const Fsdp *f, const Chunk *c, bool is_expert, uint64_t *n)
{
  uint32_t n_pieces = is_flat (l) ? dp_shard (l, is_expert).n : 1;
  g_autofree uint64_t *at_of_unit = g_new0 (uint64_t, f->units->len);
  for (guint i = 0; i < c->operators->len; i++) {
    const LsOperator *o = operator_at (c, i);
    if (o->params.is_frozen || o->params.is_expert != is_expert)
      continue;
    guint unit = unit_of (f, l, c, i);
    uint64_t piece = (unit_at (f, unit)->numel[is_expert] + n_pieces - 1) / n_pieces, *at = &at_of_unit[unit];
    for (uint32_t p = 0; p < o->params.n; *at += o->params.numel[p++])
      for (uint64_t rank = *at / piece; rank * piece < *at + o->params.numel[p]; rank++)
        n[rank]++;
  }
}

/* Tensors that the optimizer of a rank steps on. Of flat units those that reach into its piece
 * (use_orig_params; torch/distributed/fsdp/_flat_param.py, _get_shard_metadata (): the others have no
 * gradient there), on the rank that has most of them. */
static uint64_t
n_tensors (const Lower *l, uint32_t pp_rank)
{
  uint64_t sum = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint32_t n_ranks = dp_shard (l, is_expert).n;
    g_autofree uint64_t *n = g_new0 (uint64_t, n_ranks);
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++) {
      const Chunk *c = chunk_at (l, pp_rank, i);
      Fsdp *f = fsdp_new (l, NULL, c);
      count_in_chunk (l, f, c, is_expert, n);
      fsdp_free (f);
    }
    for (uint32_t rank = 0; rank < n_ranks; rank++)
      most = MAX (most, n[rank]);
    sum += most;
  }
  return sum;
}

const DpBackend dp_backend_fsdp = {
  .steps_on_shards = true,
  .variant = variant,
  .begin = begin,
  .before = before,
  .after = after,
  .end = end,
  .step_begin = step_begin,
  .reduce_flush = reduce_flush,
  .reduce_rest = reduce_rest,
  .step_end = step_end,
  .n_tensors = n_tensors,
  .static_memory = static_memory,
};
