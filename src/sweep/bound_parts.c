/* sweep/bound_parts.c — what a layer, the embedding or the head takes at least on one rank: as
 * parallel/lower_operator.c, lower_tp_overlap.c and lower_recompute.c build it. */
#include "sweep/bound_parts.h"

#include "exec/least.h"
#include "model/operators.h"
#include "network/coll.h"

typedef struct {
  const LsModel *model;
  const LsHardware *hardware;
  const LsStrategy *s;
  const LsCluster *cluster;
  LsShard shard;
  bool is_split, counts_tp, is_layer;
} Parts;

static LsTime
kernel_time (const Parts *x, const LsKernel *k)
{
  return ls_kernel_cost (&x->hardware->calibration, &x->cluster->spec.gpu, k).alone;
}

/* In pieces beside its collective (lower_tp_overlap.c), or whole. */
static LsTime
kernels_time (const Parts *x, const LsKernel *k, uint32_t n, bool is_pipelined)
{
  LsTime sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    LsKernel piece = k[i];
    uint32_t n_pieces = is_pipelined && k[i].kind == LS_KERNEL_GEMM ? x->s->tp : 1;
    if (n_pieces > 1)
      piece = ls_kernel_gemm_part (&k[i], n_pieces);
    sum += kernel_time (x, &piece) * n_pieces;
  }
  return sum;
}

/* Of the groups of a node the fastest. */
static LsTime
tp_time (const Parts *x, LsCollKind kind, uint64_t bytes)
{
  uint32_t n = x->s->tp, n_groups = x->cluster->spec.gpus_per_node / n;
  LsTime least = LS_TIME_NEVER;
  if (!x->counts_tp || bytes == 0)
    return 0;
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t g = 0; g < n_groups; g++) {
    for (uint32_t i = 0; i < n; i++)
      gpus[i] = g * n + i;
    g_autoptr (LsArena) arena = ls_arena_new ();
    const LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
    const LsCollPlan *plan = ls_coll_plan (x->cluster, &x->hardware->nccl, &request, LS_NETWORK_FLOW, arena);
    LsTime time = ls_coll_time_alone (x->cluster, plan);
    least = MIN (least, time);
  }
  return (LsTime) ((double) least * LS_RATE_ROUNDING);
}

static uint64_t
full_bytes (const Parts *x, const LsOperator *o)
{
  uint64_t bytes = o->tp_bytes > 0 ? o->tp_bytes : ls_boundary_bytes (x->model, &x->shard) * (x->shard.sp ? x->s->tp : 1);
  return x->shard.dtype == LS_DTYPE_FP8 ? bytes / 2 : bytes; /* some are gathered in fp8 */
}

static bool
is_pipelined (const Parts *x, const LsOperator *o)
{
  bool is_linear = (o->tp == LS_TP_COLUMN || o->tp == LS_TP_ROW) && o->tp_bytes == 0;
  return x->s->tp_overlap && x->s->tp_overlap_kind == LS_TP_OVERLAP_RING && x->shard.sp && is_linear && x->is_layer;
}

/* As build_forward_operator (). */
static LsTime
forward_time (const Parts *x, const LsOperator *o)
{
  bool sp = x->shard.sp, pieces = is_pipelined (x, o);
  LsTime t = o->context_parallel ? 0 : kernels_time (x, o->fwd, o->n_fwd, pieces);
  if (pieces)
    return t;
  if (o->tp == LS_TP_COLUMN && sp)
    t += tp_time (x, LS_COLL_ALL_GATHER, full_bytes (x, o));
  if (o->tp == LS_TP_VOCAB || (o->tp == LS_TP_ROW && !sp))
    t += tp_time (x, LS_COLL_ALL_REDUCE, full_bytes (x, o));
  else if (o->tp == LS_TP_ROW)
    t += tp_time (x, LS_COLL_REDUCE_SCATTER, full_bytes (x, o));
  else if (o->tp == LS_TP_REDUCE)
    t += tp_time (x, LS_COLL_ALL_REDUCE, o->reduce_bytes);
  return t;
}

/* As build_backward_operator () of a whole backward; of a split one without "||". */
static LsTime
backward_time (const Parts *x, const LsOperator *o)
{
  bool sp = x->shard.sp, gathers_grad = (o->tp == LS_TP_ROW || o->tp == LS_TP_VOCAB) && sp;
  bool pieces = gathers_grad && is_pipelined (x, o);
  LsTime i = o->context_parallel ? 0 : kernels_time (x, o->igrad, o->n_igrad, pieces);
  LsTime w = kernels_time (x, o->wgrad, o->n_wgrad, false), beside_i = 0, beside_w = 0;
  if (gathers_grad && !pieces)
    i += tp_time (x, LS_COLL_ALL_GATHER, full_bytes (x, o));
  if (o->tp == LS_TP_COLUMN && !x->is_split) {
    beside_i = sp && !x->shard.sp_save_gathered ? tp_time (x, LS_COLL_ALL_GATHER, full_bytes (x, o)) : 0;
    beside_w = tp_time (x, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, full_bytes (x, o));
  }
  return MAX (i, beside_i) + MAX (w, beside_w);
}

/* Full recomputation of whole layers; the inside of attention. */
static bool
runs_again (const Parts *x, const LsOperator *o)
{
  if (!x->is_layer || x->s->recompute == LS_RECOMPUTE_NONE)
    return false;
  if (x->s->recompute == LS_RECOMPUTE_SELECTIVE)
    return o->attention_core && !(x->s->recompute_parts & LS_RECOMPUTE_OP) && (x->s->recompute_parts & LS_RECOMPUTE_CORE);
  bool may_stop_before = x->s->recompute_early_stop && o->saved_bytes == o->input_bytes;
  return x->s->recompute_method == LS_RECOMPUTE_UNIFORM && !may_stop_before;
}

static bool
is_flash (const LsOperator *o)
{
  return o->context_parallel || (o->n_igrad > 0 && o->igrad[0].kind == LS_KERNEL_ATTENTION_BWD);
}

/* Bytes of a layer's operator that surely stay; of the input of layers that run again: below. */
static uint64_t
kept_bytes (const Parts *x, const LsOperator *o)
{
  const LsStrategy *s = x->s;
  if (!x->is_layer || s->offload_activations || s->recompute == LS_RECOMPUTE_FULL)
    return 0;
  if (s->recompute == LS_RECOMPUTE_NONE)
    return o->saved_bytes;
  if (s->recompute_parts == LS_RECOMPUTE_CORE)
    return o->attention_core ? 0 : o->saved_bytes;
  return s->recompute_parts == LS_RECOMPUTE_OP && is_flash (o) ? o->saved_bytes : 0;
}

/* The input of each layer stays. */
static bool
keeps_input (const Parts *x)
{
  const LsStrategy *s = x->s;
  bool is_whole = s->recompute == LS_RECOMPUTE_FULL && s->recompute_method == LS_RECOMPUTE_UNIFORM && s->recompute_layers == 1;
  bool has_ops = s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts == LS_RECOMPUTE_OP;
  return x->is_layer && (is_whole || has_ops) && !s->partition_activations && !s->offload_activations;
}

/* Of recomputation that keeps every other product: what is no product, attention or
 * communication, and before the last product of the layer. */
static LsTime
again_beside_products (const Parts *x, const GArray *operators)
{
  guint last = 0;
  LsTime t = 0;
  for (guint i = 0; i < operators->len; i++)
    last = g_array_index (operators, LsOperator, i).n_products > 0 ? i : last;
  for (guint i = 0; i < last; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    t += o->n_products == 0 && !is_flash (o) ? kernels_time (x, o->fwd, o->n_fwd, false) : 0;
  }
  return t;
}

static void
add_operators (const Parts *x, const GArray *operators, BoundPart *ret_part)
{
  BoundPart p = { 0 };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    bool is_even = !x->s->expert_load || !o->is_expert; /* else ranks differ */
    LsTime f = is_even ? forward_time (x, o) : 0;
    p.f += f;
    p.b += (is_even ? backward_time (x, o) : 0) + (runs_again (x, o) ? f : 0);
    p.kept += is_even ? kept_bytes (x, o) : 0;
    for (uint32_t n = 0; n < o->n_params; n++) {
      p.n_params += o->param_numel[n];
      p.n_expert += o->is_expert ? o->param_numel[n] : 0;
    }
  }
  if (keeps_input (x))
    p.kept += ls_boundary_bytes (x->model, &x->shard);
  if (x->is_layer && x->s->recompute == LS_RECOMPUTE_SELECTIVE && x->s->recompute_parts == LS_RECOMPUTE_OP)
    p.b += again_beside_products (x, operators);
  *ret_part = p;
}

/* As lower_init (). */
static LsShard
shard_of (const LsStrategy *s)
{
  return (LsShard) {
    .tp = s->tp, .sp = s->sp && s->tp > 1, .micro_batch = s->micro_batch, .seq = s->seq,
    .attention = (LsAttention) s->attention, .qkv_layout = (LsQkvLayout) s->qkv_layout, .loss = (LsLoss) s->loss,
    .train_metrics = s->train_metrics, .dtype = (LsDtype) s->dtype, .grad_dtype = (LsDtype) s->grad_dtype,
    .cp = s->cp, .cp_kind = (LsCpKind) s->cp_kind, .cp_balance = s->cp_balance, .sp_save_gathered = s->sp_save_gathered,
    .ep = s->ep, .etp = s->etp, .expert_capacity = s->expert_capacity, .fp8_recipe = (LsFp8Recipe) s->fp8_recipe,
    .apex_norm = s->apex_norm, .grad_is_fused = s->grad_fusion,
    .grad_is_fresh = s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2,
  };
}

void
bound_parts (const BoundParts *in, BoundPart ret_parts[N_BOUND_PARTS])
{
  const LsModel *m = in->model;
  const LsClusterSpec *spec = &in->cluster->spec;
  Parts x = { .model = m, .hardware = in->hardware, .s = in->s, .cluster = in->cluster, .shard = shard_of (in->s), .is_split = in->is_split };
  x.counts_tp = in->s->tp > 1 && spec->interior != LS_INTERIOR_TORUS && spec->gpus_per_node % in->s->tp == 0
                && (!spec->faults || spec->faults->len == 0);
  g_autoptr (GArray) operators = g_array_new (FALSE, FALSE, sizeof (LsOperator));
  ls_operators_embedding (m, &x.shard, operators);
  add_operators (&x, operators, &ret_parts[PART_EMBEDDING]);
  g_array_set_size (operators, 0);
  ls_operators_head (m, &x.shard, in->has_head_weight, operators);
  add_operators (&x, operators, &ret_parts[PART_HEAD]);
  x.is_layer = true;
  for (uint32_t i = 0, seen = 0; i < m->n_layers && seen < 3; i++) {
    bool has_experts = ls_model_has_experts (m, i);
    if (seen & (has_experts ? 2 : 1))
      continue;
    seen |= has_experts ? 2 : 1;
    g_array_set_size (operators, 0);
    ls_operators_layer (m, &x.shard, i, operators);
    add_operators (&x, operators, &ret_parts[has_experts ? PART_EXPERTS : PART_DENSE]);
  }
}
