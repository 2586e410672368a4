/* bound/bound_parts.c — what a layer, the embedding or the head takes at least on one rank: as
 * lower/layers/lower_operator.c, lower_tp_overlap.c, lower_recompute.c and lower_dp_xla.c build it.
 *
 * With XLA's FSDP it is the longest way through a layer, in which two streams take turns: compute, and the
 * gathers and reductions of weights.
 *
 * Worked example. Two operators of 1 ms forwards, whose weights take 0.8 and 1.5 ms to gather: the first
 * begins at 0.8, the second when both are there, at 2.3 ms, and not at 1.8: f = 3.3 ms. */
#include "bound/bound_parts.h"

#include "lower/lower.h"
#include "strategy/dp_traits.h"
#include "strategy/shard.h"

#define COUNT_BYTES 8 /* as lower_experts.c */

typedef struct {
  BoundCut cut;
  const LsCluster *cluster;
  const BoundComm *comm;
  BoundKernels *kernels;
  bool is_split;
} Parts;

static LsTime
kernel_time (const Parts *x, const LsKernel *k)
{
  return bound_kernel_time (x->kernels, &x->cluster->spec, x->cut.s->cuda_graphs != LS_GRAPHS_NONE, k);
}

static LsTime
kernels_time (const Parts *x, const LsKernel *k, uint32_t n)
{
  LsTime sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += kernel_time (x, &k[i]);
  return sum;
}

/* Attention that is cut over cp, on the rank with index 0: what it computes in each step (lower_cp.c). */
static LsTime
context_time (const Parts *x, const LsOperator *o, bool is_backward)
{
  const LsShard *shard = &x->cut.shard;
  bool is_ring = shard->cp_kind == LS_CP_RING || ls_context_is_pytorchs (shard);
  LsContextPlace place = { .layer_kind = o->layer_kind };
  LsTime sum = 0;
  for (; place.step < (is_ring ? shard->cp : 1); place.step++) {
    LsContextStep s;
    ls_context_step (x->cut.model, shard, place, &s);
    const LsKernel *merge = is_backward ? &s.merge_grad : &s.merge;
    sum += s.is_idle ? 0 : kernel_time (x, is_backward ? &s.bwd : &s.fwd);
    sum += s.is_idle || merge->bytes <= 0 ? 0 : kernel_time (x, merge);
  }
  return sum;
}

/* Beside another pass its kernels hide it. */
static LsTime
tp_time (const Parts *x, LsCollKind kind, uint64_t bytes)
{
  return x->cut.s->ep_overlap ? 0 : bound_tp_time (x->comm, kind, bytes);
}

/* In pieces beside the moves of a ring (lower_tp_overlap.c): tp pieces of g and tp - 1 moves of m, the
 * first piece before the last moves, or the last behind them. */
static LsTime
pieces_time (const Parts *x, const LsKernel *k, uint32_t n)
{
  uint32_t tp = x->cut.s->tp;
  uint64_t bytes = ls_boundary_bytes (x->cut.model, &x->cut.shard);
  LsTime sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (k[i].kind != LS_KERNEL_GEMM) {
      sum += kernel_time (x, &k[i]);
      continue;
    }
    LsKernel part = ls_kernel_gemm_part (&k[i], tp);
    LsTime piece = kernel_time (x, &part),
           move = tp_time (x, LS_COLL_COPY_PERMUTE, ls_dtype_cast_bytes (k[i].dtype, bytes));
    sum += piece + (tp - 1) * MAX (piece, move);
  }
  return sum;
}

static uint64_t
full_bytes (const Parts *x, const LsOperator *o)
{
  uint64_t bytes = o->tp_bytes > 0
      ? o->tp_bytes
      : ls_boundary_bytes (x->cut.model, &x->cut.shard) * (x->cut.shard.sp ? x->cut.s->tp : 1);
  bool has_nvfp4 = ls_formats_have (&x->cut.shard.formats, LS_FORMAT_NVFP4);
  return ls_dtype_cast_bytes (has_nvfp4 ? LS_DTYPE_NVFP4 : x->cut.shard.dtype, bytes); /* some are in fp8 */
}

static bool
is_pipelined (const Parts *x, const LsOperator *o)
{
  bool is_linear = (o->tp == LS_TP_COLUMN || o->tp == LS_TP_ROW) && o->tp_bytes == 0;
  return x->cut.s->tp_overlap && x->cut.s->tp_overlap_kind == LS_TP_OVERLAP_RING && x->cut.shard.sp
      && is_linear && x->cut.is_layer;
}

/* On a stream of its own, where kernels of others hide its collectives. */
static bool
is_beside (const LsOperator *o)
{
  return o->beside == LS_BESIDE_DISPATCH || o->beside == LS_BESIDE_COMBINE;
}

/* Tokens go to their experts, and to all ranks that cut these, or their results come back: lower_experts.c.
 * Where parts are unequal and where something runs beside it, it counts as nothing; of what DeepEP does only
 * what is over ranks that cut experts counts. */
static LsTime
exchange_time (const Parts *x, const LsOperator *o, bool is_dispatch, bool counts_tokens)
{
  const LsStrategy *s = x->cut.s;
  if (o->ep == LS_EP_NONE || s->expert_load || s->ep_overlap || s->delay_wgrad
      || x->cut.shard.shared_is_beside)
    return 0;
  LsTime t
      = bound_etp_time (x->comm, is_dispatch ? LS_COLL_ALL_GATHER : LS_COLL_REDUCE_SCATTER, o->etp_bytes);
  if (s->ep == 1 || x->cut.shard.sends_tokens_once)
    return t;
  if (counts_tokens)
    t += bound_ep_time (x->comm, LS_COLL_ALL_GATHER,
                        (uint64_t) COUNT_BYTES * x->cut.model->n_experts * s->ep);
  return t + bound_ep_time (x->comm, LS_COLL_ALL_TO_ALL, is_dispatch ? o->to_ep_bytes : o->ep_bytes);
}

/* As build_forward_operator (). */
static LsTime
forward_time (const Parts *x, const LsOperator *o)
{
  bool sp = x->cut.shard.sp;
  if (is_beside (o))
    return kernels_time (x, o->fwd, o->n_fwd);
  if (is_pipelined (x, o) && !o->context_parallel)
    return pieces_time (x, o->fwd, o->n_fwd);
  LsTime t = o->context_parallel ? context_time (x, o, false) : kernels_time (x, o->fwd, o->n_fwd);
  if (o->tp == LS_TP_COLUMN && sp)
    t += tp_time (x, LS_COLL_ALL_GATHER, full_bytes (x, o));
  if (o->tp == LS_TP_VOCAB || (o->tp == LS_TP_ROW && !sp))
    t += tp_time (x, LS_COLL_ALL_REDUCE, full_bytes (x, o));
  else if (o->tp == LS_TP_ROW)
    t += tp_time (x, LS_COLL_REDUCE_SCATTER, full_bytes (x, o));
  else if (o->tp == LS_TP_REDUCE)
    t += tp_time (x, LS_COLL_ALL_REDUCE, o->reduce_bytes);
  return t + exchange_time (x, o, o->ep == LS_EP_DISPATCH, o->ep == LS_EP_DISPATCH);
}

/* As build_backward_operator () of a whole backward; of a split one without "||". */
static LsTime
backward_time (const Parts *x, const LsOperator *o)
{
  if (is_beside (o))
    return kernels_time (x, o->igrad, o->n_igrad) + kernels_time (x, o->wgrad, o->n_wgrad);
  bool sp = x->cut.shard.sp, gathers_input = sp && !x->cut.shard.sp_save_gathered && o->n_wgrad > 0,
       gathers_grad = sp && (o->tp == LS_TP_ROW || o->tp == LS_TP_VOCAB) && o->n_igrad + o->n_wgrad > 0;
  bool pieces = gathers_grad && is_pipelined (x, o);
  LsTime i = o->context_parallel ? context_time (x, o, true)
      : pieces                   ? pieces_time (x, o->igrad, o->n_igrad)
                                 : kernels_time (x, o->igrad, o->n_igrad);
  LsTime w = kernels_time (x, o->wgrad, o->n_wgrad), beside_i = 0, beside_w = 0;
  if (gathers_grad && !pieces)
    i += tp_time (x, LS_COLL_ALL_GATHER, full_bytes (x, o));
  if (o->tp == LS_TP_COLUMN && !x->is_split) {
    beside_i = gathers_input ? tp_time (x, LS_COLL_ALL_GATHER, full_bytes (x, o)) : 0;
    beside_w = tp_time (x, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, full_bytes (x, o));
  }
  return MAX (i, beside_i) + MAX (w, beside_w) + exchange_time (x, o, o->ep == LS_EP_COMBINE, false);
}

/* --- with what XLA's FSDP gathers and reduces (lower_dp_xla.c) ----------------------------------- */

/* Of an operator in a unit. */
typedef struct {
  LsTime f, b, w;
  LsTime gather, reduce; /* of its weight */
  bool runs_again;
  LsTime again; /* if so, what does takes */
} UnitOp;

static bool
is_cut (const Parts *x, const LsOperator *o)
{
  return ls_dp_traits (x->cut.s->dp_kind)->cuts_operators && x->cut.s->zero_group == 0 && !o->is_expert
      && !o->param_replicated;
}

/* A turn of the loop is a layer, or as many as run again together. */
static bool
is_unit (const Parts *x)
{
  bool is_grouped
      = x->cut.s->recompute == LS_RECOMPUTE_FULL && x->cut.s->recompute_method == LS_RECOMPUTE_UNIFORM;
  return !x->cut.is_layer || !is_grouped || x->cut.s->recompute_layers == 1;
}

/* again: what of it does where outputs are kept by operator, else NULL. */
static UnitOp
unit_op (const Parts *x, const LsOperator *o, const LsOperator *again, bool is_last)
{
  bool is_even = (!x->cut.s->expert_load || !o->is_expert) /* else ranks differ, */
      && !(x->cut.s->lengths && ls_operator_is_flash (o)); /* or micro-batches do */
  UnitOp u = { .runs_again = again || bound_runs_again (&x->cut, o, is_last) };
  uint64_t numel = 0;
  if (is_even) {
    u.f = forward_time (x, o);
    u.b = backward_time (x, o);
    u.w = kernels_time (x, o->wgrad, o->n_wgrad);
    u.again = again ? forward_time (x, again) : u.f;
  }
  for (uint32_t i = 0; i < o->n_params && is_cut (x, o); i++)
    numel += o->param_numel[i];
  int overlap = ls_strategy_loop_overlap (x->cut.s);
  if (is_unit (x) && overlap != LS_LOOP_OVERLAP_PIPELINED)
    u.gather = bound_dp_time (x->comm, LS_COLL_ALL_GATHER, numel * (x->cut.s->fp8_params ? 1 : 2));
  if (overlap == LS_LOOP_OVERLAP_GATHERS)
    u.reduce = bound_dp_time (x->comm, LS_COLL_REDUCE_SCATTER, numel * 2);
  return u;
}

/* Gathers begin as the unit does, one behind the other; each operator waits for its own. */
static LsTime
unit_forward (const UnitOp *ops, guint n)
{
  LsTime t = 0, gathered = 0;
  for (guint i = 0; i < n; i++) {
    gathered += ops[i].gather;
    t = MAX (t, gathered) + ops[i].f;
  }
  return t;
}

/* What runs again waits for its weights in the order of the forward, else operators do in that of the
 * backward. Of recomputation by operators and by block neither is sure. Compute waits for a reduction,
 * and that for all gathers of the layer, which are before it on their stream. */
static LsTime
unit_backward (const Parts *x, const UnitOp *ops, guint n, bool reduces)
{
  const LsStrategy *s = x->cut.s;
  bool is_full = s->recompute == LS_RECOMPUTE_FULL;
  bool has_ops = s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts & LS_RECOMPUTE_BY_OPERATORS;
  bool is_backwards = x->cut.is_layer && !is_full && !has_ops;
  LsTime t = 0, gathered = 0, all = 0;
  for (guint i = 0; i < n; i++) {
    gathered += x->cut.is_layer && is_full ? ops[i].gather : 0;
    all += x->cut.is_layer && !x->is_split ? ops[i].gather : 0;
    if (ops[i].runs_again)
      t = MAX (t, gathered) + ops[i].again;
  }
  gathered = 0;
  for (guint i = n; i-- > 0;) {
    gathered += is_backwards ? ops[i].gather : 0;
    t = MAX (t, is_backwards ? gathered : 0) + ops[i].b;
    if (reduces && ops[i].reduce > 0)
      t = all = MAX (t, all) + ops[i].reduce;
  }
  return t;
}

/* --- with what FSDP gathers, adds and copies (lower_fsdp.c, lower_dp_fsdp2.c) --------------------- */

static LsTime
copy_time (const Parts *x, const char *name, uint64_t numel, uint64_t bytes_each)
{
  const LsRecipe *r = ls_recipe_find (x->cut.shard.recipes, LS_RECIPE_FSDP, x->cut.model);
  const LsRecipeKernel *listed = r ? ls_recipe_kernel_named (r->forward, name) : NULL;
  LsKernel k = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, ls_dtype_between (x->cut.shard.dtype), 1, numel,
                                 (double) (numel * bytes_each), 0);
  k.access = listed ? (LsAccess) listed->access : LS_ACCESS_NONE;
  return numel > 0 ? kernel_time (x, &k) : 0;
}

/* Of a layer that is a unit, or of what is in none. */
static BoundUnits
units_of (const Parts *x, const BoundPart *p)
{
  const LsStrategy *s = x->cut.s;
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  bool is_whole = s->grad_sync != LS_GRAD_SYNC_EACH && s->pp > 1;
  uint64_t reduced = ls_dtype_bytes ((LsDtype) s->grad_dtype),
           grad = ls_dtype_bytes (ls_dtype_between (x->cut.shard.dtype)), size = s->fp8_params ? 1 : 2,
           others = p->n_params - p->n_expert;
  BoundUnits u = { 0 };
  if (!kind->is_fsdp || kind->cuts_operators || s->zero_group > 0 || s->layers_per_unit != 1)
    return u;
  LsTime gather = bound_dp_time (x->comm, LS_COLL_ALL_GATHER, others * size);
  if (!x->cut.is_layer) {
    u.root = gather;
    return u;
  }
  u.gather = u.most = gather + bound_edp_time (x->comm, LS_COLL_ALL_GATHER, p->n_expert * size);
  u.reduce = bound_dp_time (x->comm, LS_COLL_REDUCE_SCATTER, others * reduced)
      + bound_edp_time (x->comm, LS_COLL_REDUCE_SCATTER, p->n_expert * reduced);
  if (!kind->has_reshard)
    return u;
  u.copy_out = copy_time (x, "gather-copy-out", p->n_params, 2 * size);
  u.copy_in
      = copy_time (x, "reduce-copy-in", p->n_params, reduced + (is_whole ? reduced : MIN (grad, reduced)));
  u.add = copy_time (x, "grad-accumulate", p->n_params, grad + 2 * reduced);
  return u;
}

/* The last operator that keeps something; 0: none does. */
static guint
last_that_saves (const GArray *operators)
{
  guint last = 0;
  for (guint i = 0; i < operators->len; i++)
    last = g_array_index (operators, LsOperator, i).saved_bytes > 0 ? i : last;
  return last;
}

static void
add_operators (const Parts *x, const GArray *operators, BoundPart *ret_part)
{
  const LsStrategy *s = x->cut.s;
  g_autoptr (GArray) again
      = x->cut.is_layer ? ls_layer_again (x->cut.model, s, &x->cut.shard, operators) : NULL;
  g_autofree UnitOp *ops = g_new0 (UnitOp, operators->len + 1);
  guint last_saving = last_that_saves (operators);
  BoundPart p = bound_operators_sizes (&x->cut, operators, again);
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    ops[i] = unit_op (x, o, again ? &g_array_index (again, LsOperator, i) : NULL, i >= last_saving);
    p.w += ops[i].w;
  }
  bool reduces_each = s->grad_sync == LS_GRAD_SYNC_EACH;
  p.f = unit_forward (ops, operators->len);
  p.b = unit_backward (x, ops, operators->len, reduces_each);
  p.reduce = reduces_each ? 0 : unit_backward (x, ops, operators->len, true) - p.b;
  p.units = units_of (x, &p);
  *ret_part = p;
}

void
bound_parts (const BoundParts *in, BoundPart ret_parts[N_BOUND_PARTS])
{
  const LsModel *m = in->model;
  const LsStrategy *strategy = in->comm->s;
  Parts x = { .cut = { m, strategy, bound_shard (strategy, m), false },
              .cluster = in->comm->cluster,
              .comm = in->comm,
              .kernels = in->kernels,
              .is_split = in->is_split };
  g_autoptr (GArray) operators = g_array_sized_new (FALSE, FALSE, sizeof (LsOperator), LS_OPERATORS_USUAL);
  ls_operators_embedding (m, &x.cut.shard, operators);
  add_operators (&x, operators, &ret_parts[PART_EMBEDDING]);
  g_array_set_size (operators, 0);
  ls_operators_head (m, &x.cut.shard, in->has_head_weight, operators);
  add_operators (&x, operators, &ret_parts[PART_HEAD]);
  x.cut.is_layer = true;
  uint32_t first[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (m, first);
  for (uint32_t k = 0; k < n_kinds; k++) {
    g_array_set_size (operators, 0);
    ls_operators_layer (m, &x.cut.shard, first[k], operators);
    add_operators (&x, operators, &ret_parts[PART_LAYER + k]);
  }
}
