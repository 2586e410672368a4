#include "lower/data/lower_fsdp.h"
#include "lower/layers/lower_layers.h"
#include "lower/lower_build.h"
#include "strategy/shard.h"

#define FP32_BYTES 4

/* --- units -------------------------------------------------------------------------- */

static guint
unit_of (const Fsdp *f, const Lower *l, const Chunk *c, guint o)
{
  uint16_t layer = layer_of (c, o);
  return layer == UINT16_MAX ? f->root : layer / l->s->data.layers_per_unit;
}

static void
add_params (const Lower *l, FsdpUnit *u, const LsOperator *o)
{
  for (uint32_t p = 0; p < o->params.n; p++)
    if (o->params.is_frozen)
      u->frozen[o->params.is_expert]
          += dp_frozen_bytes (l, o->params.numel[p], o->params.is_nf4 && p == 0 ? o->params.numel[p] : 0, 0);
    else
      u->numel[o->params.is_expert] += o->params.numel[p];
}

Fsdp *
fsdp_new (const Lower *l, const Chunk *c)
{
  uint32_t per_unit = l->s->data.layers_per_unit;
  Fsdp *f = g_new0 (Fsdp, 1);
  f->hooks = l->s->dp_kind == LS_DP_FSDP1 ? &fsdp1_hooks : &fsdp2_hooks;
  f->n = (c->n_layers + per_unit - 1) / per_unit;
  f->root = c->has_embedding || c->has_head ? f->n : FSDP_NONE;
  f->units = g_array_sized_new (FALSE, TRUE, sizeof (FsdpUnit), f->n + 1);
  g_array_set_size (f->units, f->n + (f->root != FSDP_NONE));
  for (guint o = c->operators->len; o-- > 0;) {
    FsdpUnit *u = &g_array_index (f->units, FsdpUnit, unit_of (f, l, c, o));
    add_params (l, u, operator_at (c, o));
    u->first = o;
  }
  if (f->root != FSDP_NONE)
    g_array_index (f->units, FsdpUnit, f->root).is_root = true;
  f->gathered = g_new (uint16_t, f->units->len);
  for (guint u = 0; u < f->units->len; u++)
    f->gathered[u] = NO_OP;
  f->free_ops = g_array_new (FALSE, FALSE, sizeof (FsdpFree));
  f->inside = f->copied = f->reducing = FSDP_NONE;
  return f;
}

void
fsdp_free (Fsdp *f)
{
  g_array_unref (f->units);
  g_array_unref (f->free_ops);
  g_free (f->gathered);
  g_free (f);
}

void
fsdp_static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  uint64_t n = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++)
    n += dp_part (dp_params_of_rank (l, pp_rank, is_expert), dp_shard (l, is_expert).n);
  uint32_t size = fsdp_shard_size (l);
  bytes[LS_MEM_PARAMETERS] = bytes[LS_MEM_GRADIENTS] = n * size;
  bytes[LS_MEM_OPTIMIZER] = l->s->opt.kind ? optimizer_state_bytes (l, pp_rank, 0) : n * 2 * size;
}

/* Adds to n[], of a rank each, the tensors that reach into its pieces of a chunk's units; all to the first
 * where a unit is no array. */
static void
count_in_chunk (const Lower *l, const Fsdp *f, const Chunk *c, bool is_expert, uint64_t *n)
{
  uint32_t n_pieces = f->hooks->is_flat ? dp_shard (l, is_expert).n : 1;
  g_autofree uint64_t *at_of_unit = g_new0 (uint64_t, f->units->len);
  for (guint i = 0; i < c->operators->len; i++) {
    const LsOperator *o = operator_at (c, i);
    if (o->params.is_frozen || o->params.is_expert != is_expert)
      continue;
    uint16_t unit = unit_of (f, l, c, i);
    uint64_t piece = (fsdp_unit (f, unit)->numel[is_expert] + n_pieces - 1) / n_pieces,
             *at = &at_of_unit[unit];
    for (uint32_t p = 0; p < o->params.n; *at += o->params.numel[p++])
      for (uint64_t rank = *at / piece; rank * piece < *at + o->params.numel[p]; rank++)
        n[rank]++;
  }
}

uint64_t
fsdp_n_tensors (const Lower *l, uint32_t pp_rank)
{
  uint64_t sum = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint32_t n_ranks = dp_shard (l, is_expert).n;
    g_autofree uint64_t *n = g_new0 (uint64_t, n_ranks);
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++) {
      const Chunk *c = chunk_at (l, pp_rank, i);
      Fsdp *f = fsdp_new (l, c);
      count_in_chunk (l, f, c, is_expert, n);
      fsdp_free (f);
    }
    for (uint32_t rank = 0; rank < n_ranks; rank++)
      most = MAX (most, n[rank]);
    sum += most;
  }
  return sum;
}

/* --- the walk ------------------------------------------------------------------------ */

static void
leave (Build *b, DpPass *p, Fsdp *f)
{
  guint unit = f->inside;
  f->inside = FSDP_NONE;
  if (unit != FSDP_NONE)
    f->hooks->leave (b, p, f, unit);
}

char *
fsdp_variant (const Lower *l, const DpPass *p)
{
  return g_strconcat (p->is_first ? " first" : "", p->is_last ? " last" : "", NULL);
}

void
fsdp_begin (Build *b, DpPass *p)
{
  Fsdp *f = p->state = fsdp_new (b->l, p->c);
  if (p->type != LS_ACTION_W)
    f->hooks->start (b, p, f);
}

void
fsdp_before (Build *b, DpPass *p, guint o)
{
  Fsdp *f = p->state;
  guint unit = unit_of (f, b->l, p->c, o);
  if (unit == f->inside)
    return;
  if (p->type == LS_ACTION_F)
    leave (b, p, f);
  if (unit == f->root)
    return;
  f->inside = unit;
  if (p->type != LS_ACTION_W)
    f->hooks->enter (b, p, f, unit);
}

void
fsdp_after (Build *b, DpPass *p, guint o)
{
  Fsdp *f = p->state;
  if (fsdp_has_gradients (p))
    fsdp_alloc_grads (b, p, f, o);
  if (p->type != LS_ACTION_F && f->inside != FSDP_NONE && o == fsdp_unit (f, f->inside)->first)
    leave (b, p, f);
}

void
fsdp_end (Build *b, DpPass *p)
{
  Fsdp *f = p->state;
  leave (b, p, f);
  if (p->type != LS_ACTION_F && f->root != FSDP_NONE)
    f->hooks->leave (b, p, f, f->root);
  f->hooks->finish (b, p, f);
  fsdp_free (f);
  p->state = NULL;
}

/* --- who does what --------------------------------------------------------------------- */

bool
fsdp_gathers (const Lower *l, const DpPass *p, const Fsdp *f, guint unit)
{
  FsdpHold hold = f->hooks->hold (l, unit == f->root);
  if (p->type == LS_ACTION_F)
    return hold != HOLD_STEP || p->is_first;
  return hold == HOLD_PASS && p->type != LS_ACTION_W;
}

bool
fsdp_has_gradients (const DpPass *p)
{
  return p->type == LS_ACTION_B || p->type == LS_ACTION_W;
}

bool
fsdp_reduces (const Lower *l, const DpPass *p)
{
  return fsdp_has_gradients (p) && (p->is_last || l->s->data.grad_sync == LS_GRAD_SYNC_EACH);
}

bool
fsdp_accumulates_whole (const Lower *l)
{
  bool waits_for_pipe = l->s->dp_kind == LS_DP_FSDP2 && l->mesh.pp > 1;
  return l->s->data.grad_sync != LS_GRAD_SYNC_EACH && (l->n_micro_batches > 1 || waits_for_pipe);
}

/* --- sizes ------------------------------------------------------------------------------ */

uint64_t
fsdp_numel (const FsdpUnit *u)
{
  return u->numel[0] + u->numel[1];
}

uint64_t
fsdp_gathered_bytes (const Lower *l, const FsdpUnit *u)
{
  return fsdp_numel (u) * fsdp_param_size (l) + u->frozen[0] + u->frozen[1];
}

uint64_t
fsdp_frozen_shard_bytes (const Lower *l, const FsdpUnit *u)
{
  return dp_part (u->frozen[0], dp_shard (l, false).n)
      + (u->frozen[1] > 0 ? dp_part (u->frozen[1], dp_shard (l, true).n) : 0);
}

uint32_t
fsdp_param_size (const Lower *l)
{
  return (uint32_t) dp_param_bytes (l, 1);
}

uint32_t
fsdp_shard_size (const Lower *l)
{
  return ls_dtype_bytes (ls_strategy_weights (l->s));
}

uint32_t
fsdp_grad_size (const Lower *l)
{
  return ls_dtype_bytes (l->act);
}

uint32_t
fsdp_reduce_size (const Lower *l)
{
  return ls_dtype_bytes ((LsDtype) l->s->opt.grad_dtype);
}

uint64_t
fsdp_shard_numel (const Lower *l, const FsdpUnit *u)
{
  return dp_part (u->numel[0], dp_shard (l, false).n)
      + (u->numel[1] > 0 ? dp_part (u->numel[1], dp_shard (l, true).n) : 0);
}

uint32_t
fsdp_predivide (uint32_t n)
{
  uint32_t factor = 1;
  while (n % factor == 0 && n / factor > factor)
    factor *= 2;
  return factor;
}

uint32_t
fsdp_n_averaged (const Lower *l)
{
  return dp_all (l, false).n;
}

/* --- ops -------------------------------------------------------------------------------- */

static LsTag
tag_of (const DpPass *p)
{
  return !p ? LS_TAG_OPTIMIZER : p->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B;
}

/* As some software launches it. */
static LsAccess
access_of (const Lower *l, LsFsdpCopy copy)
{
  const LsRecipe *r = ls_recipe_find (l->shard.recipes, LS_RECIPE_FSDP, l->model);
  const LsRecipeKernel *listed = r ? ls_recipe_kernel_named (r->forward, ls_fsdp_copies[copy]) : NULL;
  return listed ? (LsAccess) listed->access : LS_ACCESS_NONE;
}

uint16_t
fsdp_kernel (Build *b, const DpPass *p, LsStream stream, LsFsdpCopy copy, uint64_t numel, uint64_t bytes,
             const LsDep *deps, uint16_t n_deps)
{
  LsKernel k = ls_kernel_stream (ls_fsdp_copies[copy], LS_KERNEL_ELEMENTWISE,
                                 ls_dtype_between (b->l->shard.dtype), 1, numel, (double) bytes, 0);
  k.access = access_of (b->l, copy);
  return build_kernel_on (b, stream, &k, tag_of (p), deps, n_deps);
}

uint16_t
fsdp_wait_compute (Build *b, LsStream stream)
{
  return build_behind (b, LS_STREAM_COMPUTE,
                       ls_op_blank (LS_OP_RECORD, stream, LS_TAG_SYNC, "wait for compute"));
}

uint16_t
fsdp_wait_op (Build *b, LsStream stream, uint16_t op)
{
  return build_event (b, LS_OP_RECORD, stream, "wait for event", LS_EVENT_NONE, &(LsDep) { LS_DEP_END, op });
}

static const char *
name_of (int coll)
{
  return coll == LS_COLL_ALL_GATHER    ? "unit all-gather"
      : coll == LS_COLL_REDUCE_SCATTER ? "unit reduce-scatter"
                                       : "unit all-reduce";
}

static uint16_t
collective (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, uint32_t element_size,
            guint unit, const LsDep *dep)
{
  const Lower *l = b->l;
  LsOp op = ls_op_blank (LS_OP_COLLECTIVE, stream, LS_TAG_SYNC, name_of (coll));
  op.host = LS_HOST_COMM;
  op.slot = (uint8_t) slot;
  op.coll = (uint8_t) coll;
  op.bytes = bytes;
  op.dtype = (uint8_t) (element_size == FP32_BYTES ? LS_DTYPE_FP32 : l->shard.dtype);
  op.unit = (uint16_t) unit;
  return build_op (b, op, dep, 1);
}

uint16_t
fsdp_collective (Build *b, const FsdpUnit *u, LsStream stream, int coll, uint32_t n, uint32_t element_size,
                 guint unit, LsDep dep)
{
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

void
fsdp_finish_reduction (Build *b, const DpPass *p, const Fsdp *f, guint unit, uint16_t scattered,
                       uint32_t divisor)
{
  const Lower *l = b->l;
  const FsdpUnit *u = fsdp_unit (f, unit);
  uint32_t r = fsdp_reduce_size (l), kept = fsdp_shard_size (l);
  uint64_t numel = fsdp_shard_numel (l, u);
  LsStream stream = LS_STREAM_DP;
  DpGroup replica = dp_replica (l, false);
  if (replica.n > 1 && u->numel[0] > 0) {
    LsDep dep = { LS_DEP_END, scattered };
    stream = LS_STREAM_REPLICA;
    collective (b, stream, replica.slot, LS_COLL_ALL_REDUCE, dp_part (u->numel[0], dp_shard (l, false).n) * r,
                r, unit, &dep);
  }
  if (divisor > 1)
    fsdp_kernel (b, p, stream, LS_FSDP_GRAD_POSTDIVIDE, numel, numel * 2 * r, NULL, 0);
  if (r != kept)
    fsdp_kernel (b, p, stream, LS_FSDP_GRAD_SHARD_CAST, numel, numel * (r + kept), NULL, 0);
  bool is_behind_another = p && !p->is_first && !fsdp_accumulates_whole (l);
  if (is_behind_another || f->adds)
    fsdp_kernel (b, p, stream, LS_FSDP_GRAD_SHARD_ACCUMULATE, numel, numel * 3 * kept, NULL, 0);
}

/* --- buffers ------------------------------------------------------------------------------- */

/* Behind those of activations: a block of units per kind, then gradients by operator. */
static uint16_t
buffer_id (Build *b, const Chunk *c, const Fsdp *f, guint block, guint index)
{
  guint id = buffer_base (c) + block * f->units->len + index;
  b->is_too_long |= id > UINT16_MAX;
  return (uint16_t) id;
}

void
fsdp_buffer (Build *b, const DpPass *p, const Fsdp *f, guint unit, FsdpBuffer what, uint16_t op,
             uint64_t bytes, bool is_free)
{
  if (p)
    build_buffer (b, op, buffer_id (b, p->c, f, what, unit), LS_MEM_UNSHARDED, bytes, is_free);
}

void
fsdp_alloc_grads (Build *b, const DpPass *p, const Fsdp *f, guint o)
{
  uint64_t bytes = trained_params (operator_at (p->c, o)) * fsdp_grad_size (b->l);
  if (bytes > 0)
    build_buffer (b, dp_last_compute (b), buffer_id (b, p->c, f, FSDP_N_BUFFERS, o), LS_MEM_UNSHARDED, bytes,
                  false);
}

void
fsdp_free_grads (Build *b, const DpPass *p, const Fsdp *f, guint unit, uint16_t op)
{
  for (guint o = 0; p && o < p->c->operators->len; o++)
    if (unit_of (f, b->l, p->c, o) == unit)
      build_buffer (b, op, buffer_id (b, p->c, f, FSDP_N_BUFFERS, o), LS_MEM_UNSHARDED,
                    trained_params (operator_at (p->c, o)) * fsdp_grad_size (b->l), true);
}

/* Bytes of a chunk that are held for the step. */
static uint64_t
held_bytes (const Lower *l, const Chunk *c)
{
  Fsdp *f = fsdp_new (l, c);
  uint64_t bytes = 0, grad_size = l->s->dp_kind == LS_DP_FSDP2 ? fsdp_reduce_size (l) : fsdp_grad_size (l);
  for (guint u = 0; u < f->units->len; u++) {
    uint64_t numel = fsdp_numel (fsdp_unit (f, u));
    if (f->hooks->hold (l, u == f->root) == HOLD_STEP)
      bytes += fsdp_gathered_bytes (l, fsdp_unit (f, u));
    if (fsdp_accumulates_whole (l))
      bytes += numel * grad_size;
  }
  fsdp_free (f);
  return bytes;
}

void
fsdp_step_held (Build *b, uint32_t pp_rank, uint16_t op, bool is_free)
{
  for (uint32_t c = 0; c < b->l->n_chunks; c++)
    build_buffer (b, op, (uint16_t) (UINT16_MAX - 1 - c), LS_MEM_UNSHARDED,
                  held_bytes (b->l, chunk_at (b->l, pp_rank, c)), is_free);
}

void
fsdp_step_begin (Build *b, uint32_t pp_rank)
{
  fsdp_step_held (b, pp_rank, dp_last_compute (b), false);
}
