/* bound/bound_parts.c — what a layer, the embedding or the head takes at least on one rank: its passes as they
 * are lowered (lower/parts.h), and what its operators keep. */
#include "bound/bound_state.h"

#include <string.h>

#include "base/digest.h"
#include "compute/cost.h"
#include "lower/lower.h"
#include "strategy/shard.h"

/* ---- bound kernels ---- */

/* Times of kernels alone, each found once: candidates share most shapes. */

/* What a time follows from, besides the GPUs. */
typedef struct {
  const char *name; /* by place: one more of the same text is found anew */
  uint64_t m, n, k, batch;
  double flops, bytes;
  uint32_t kind, dtype, access, flags;
  uint64_t n_serial;
} Shape;

typedef struct {
  Shape shape;
  LsTime time;
} Known;

static Shape
shape_of (const LsKernel *k, bool is_in_graph)
{
  uint32_t flags = (uint32_t) is_in_graph | (uint32_t) k->by_blocks << 1 | (uint32_t) k->unaligned << 2
      | (uint32_t) k->masked << 3 | (uint32_t) k->attention << 4;
  return (Shape) { k->name,
                   k->m,
                   k->n,
                   k->k,
                   k->batch,
                   k->flops,
                   k->bytes,
                   (uint32_t) k->kind,
                   (uint32_t) k->dtype,
                   (uint32_t) k->access,
                   flags,
                   k->n_serial };
}

LS_DEFINE_BYTES_KEY (shape, Shape)

static LsTime
least_time (const LsCalibration *calibration, const LsClusterSpec *spec, bool is_in_graph, const LsKernel *k)
{
  LsTime least = LS_TIME_NEVER;
  for (uint32_t kind = 0; kind < ls_cluster_spec_n_kinds (spec); kind++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (spec, kind)->gpu;
    LsCalibration room;
    const LsCalibration *c = ls_calibration_of_kind (calibration, kind, gpu, &room);
    const LsKernelCost cost = ls_kernel_cost (c, gpu, k);
    LsTime saved = is_in_graph ? ls_around_graph_saves (&c->around, ls_time_from_s (cost.launch_s)) : 0;
    least = MIN (least, cost.alone - MAX (0, saved));
  }
  return least;
}

LsTime
bound_kernel_time (LsBounds *b, const LsClusterSpec *spec, bool is_in_graph, const LsKernel *k)
{
  const Shape shape = shape_of (k, is_in_graph);
  if (!b->kernels)
    b->kernels = g_hash_table_new_full (shape_hash, shape_equal, g_free, NULL);
  const Known *known = g_hash_table_lookup (b->kernels, &shape);
  if (!known) {
    const Known found = { shape, least_time (&b->chosen.calibration, spec, is_in_graph, k) };
    known = g_memdup2 (&found, sizeof found);
    g_hash_table_add (b->kernels, (gpointer) known);
  }
  return known->time;
}

/* ---- bound sizes ---- */

/* What a layer, the embedding or the head holds at least on one rank: parameters, and
 * bytes from a forward to its backward, as lower_operator.c and lower_recompute.c keep them; what a
 * rank holds of its parameters throughout, as lower_step.c cuts them. */

/* Whether it runs again as a part of what does. */
static bool
runs_again (const BoundParts *x, const LsOperator *o)
{
  bool is_in_moe = o->part == LS_MLP_PART_MOE || o->part == LS_MLP_PART_SHARED;
  uint32_t parts = (o->kept.is_core ? LS_RECOMPUTE_CORE : 0) | (is_in_moe ? LS_RECOMPUTE_MOE : 0)
      | (o->part == LS_MLP_PART_DENSE ? LS_RECOMPUTE_MLP : 0)
      | (o->part == LS_MLP_PART_SHARED ? LS_RECOMPUTE_SHARED : 0);
  return x->s->memory.recompute_parts & parts;
}

/* It may be made again from what the operator before it keeps; what is before a layer is not known. */
static bool
may_drop_input (const LsStrategy *s, const LsOperator *before)
{
  uint32_t parts = s->memory.recompute_parts;
  return (parts & LS_RECOMPUTE_NORM && (!before || before->kept.is_norm))
      || (parts & LS_RECOMPUTE_ACTIVATION && (!before || before->kept.is_activation));
}

/* Of selective recomputation of parts. */
static uint64_t
kept_beside_parts (const BoundParts *x, const LsOperator *o, const LsOperator *before)
{
  bool is_made_again = x->s->memory.recompute_parts & LS_RECOMPUTE_MLA_UP && o->kept.is_latent_up;
  if (is_made_again || runs_again (x, o))
    return 0;
  return o->kept.saved_bytes - (may_drop_input (x->s, before) ? o->kept.input_bytes : 0);
}

/* Bytes of a layer's operator that surely stay; of the input of layers that run again: below. before: NULL:
 * the first. again: where outputs are kept by operator, with what is made again, else NULL. */
static uint64_t
kept_bytes (const BoundParts *x, const LsOperator *o, const LsOperator *before, const LsOperator *again)
{
  const LsStrategy *s = x->s;
  bool is_even = !s->experts.load || !o->params.is_expert;
  if (!x->is_layer || !is_even || s->memory.offload_activations || s->recompute == LS_RECOMPUTE_FULL)
    return 0;
  if (s->recompute == LS_RECOMPUTE_NONE)
    return o->kept.saved_bytes;
  if (s->memory.recompute_parts & LS_RECOMPUTE_BY_OPERATORS)
    return again ? o->kept.saved_bytes - again->kept.saved_bytes : 0;
  return kept_beside_parts (x, o, before);
}

/* The input of each layer stays. */
static bool
keeps_input (const BoundParts *x)
{
  const LsStrategy *s = x->s;
  bool is_whole = s->recompute == LS_RECOMPUTE_FULL && s->memory.recompute_method == LS_RECOMPUTE_UNIFORM
      && s->memory.recompute_layers == 1;
  bool has_ops
      = s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_BY_OPERATORS;
  return x->is_layer && (is_whole || has_ops) && !s->memory.partition_activations
      && !s->memory.offload_activations;
}

static void
add_params (const LsOperator *o, BoundPart *p)
{
  for (uint32_t n = 0; n < o->params.n && o->params.is_frozen; n++) {
    p->n_frozen += o->params.numel[n];
    p->n_frozen_experts += o->params.is_expert ? o->params.numel[n] : 0;
    p->n_nf4 += o->params.is_nf4 && n == 0 ? o->params.numel[n] : 0;
  }
  for (uint32_t n = 0; n < o->params.n && !o->params.is_frozen; n++) {
    p->n_params += o->params.numel[n];
    p->n_expert += o->params.is_expert ? o->params.numel[n] : 0;
  }
}

/* All layers as the fastest: in the scaled number format. */
LsShard
bound_shard (const LsStrategy *s, const LsModel *m)
{
  LsShard shard = ls_strategy_shard (s, m);
  shard.fp8.bf16_first = shard.fp8.bf16_last = 0;
  shard.grad.is_fresh |= shard.grad.is_own; /* the first micro-batch's, the least that others take */
  return shard;
}

/* --- a rank --- */

/* Ranks that an element is cut over. */
typedef struct {
  uint64_t dense, expert;
} Cut;

static uint64_t
share (const BoundPart *p, Cut cut)
{
  return (p->n_params - p->n_expert) / cut.dense + p->n_expert / cut.expert;
}

static Cut
cut_of (const LsModel *m, const LsStrategy *s)
{
  uint64_t copies = (uint64_t) s->dp * s->cp,
           of_experts = m->moe.n_experts ? s->tp * copies / ((uint64_t) s->ep * s->experts.etp) : copies;
  return (Cut) { MAX (1, copies), MAX (1, of_experts) };
}

uint64_t
bound_n_owned (const LsModel *m, const LsStrategy *s, const BoundPart *p)
{
  return s->zero_stage >= 1 ? share (p, cut_of (m, s)) : p->n_params;
}

/* At least, of an element; of other optimizers than Adam with its master weight. */
static double
optimizer_bytes (const LsStrategy *s)
{
  const LsAdamStates states = ls_strategy_adam (s);
  if (!s->opt.kind && s->data.narrow_shards && ls_dp_traits (s->dp_kind)->is_fsdp)
    return 2 * ls_dtype_bytes (ls_strategy_weights (s));
  if (!s->opt.kind)
    return ls_adam_bytes (&states, (LsDtype) s->dtype);
  bool has_master = s->dtype != LS_DTYPE_FP32 && ls_dp_traits (s->dp_kind)->keeps_gradients
      && !ls_master_is_the_weight (states.master);
  return ls_optimizer_least_state (s->opt.kind) + (has_master ? 4 : 0);
}

/* Weights that do not learn. */
static uint64_t
frozen_bytes (const BoundPart *p, const LsStrategy *s, Cut cut)
{
  uint64_t size = s->dtype == LS_DTYPE_FP32 ? 4
      : s->fp8.params                       ? 1
                                            : 2,
           n = p->n_frozen - p->n_frozen_experts - p->n_nf4;
  return (n * size + ls_nf4_bytes (p->n_nf4)) / cut.dense + p->n_frozen_experts * size / cut.expert;
}

static uint64_t
bound_static_bytes (const LsModel *m, const LsStrategy *s, const BoundPart *p)
{
  const Cut whole = { 1, 1 }, cut = cut_of (m, s);
  uint64_t z = s->zero_stage, grad_size = s->opt.grad_dtype == LS_DTYPE_FP32 ? 4 : 2;
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  if (s->data.zero_group > 0 || s->memory.offload != LS_OFFLOAD_NONE)
    return 0;
  bool keeps_gradients = kind->keeps_gradients && !ls_master_is_the_weight ((LsMaster) s->opt.master);
  bool is_gathered
      = kind->has_reshard && (z == 2 || s->data.reshard_after_forward == 0); /* until the backward */
  return share (p, z >= 3 && !is_gathered ? cut : whole) * (s->fp8.params ? 1 : 2)
      + frozen_bytes (p, s, z >= 3 ? cut : whole) + (keeps_gradients ? p->n_params * grad_size : 0)
      + (uint64_t) ((double) share (p, z >= 1 ? cut : whole) * optimizer_bytes (s));
}

/* ---- bound passes ---- */

/* How long the compute stream of a rank takes for a pass of a part at least: the longest way through its ops from
 * where that stream begins it, as exec/shortcuts/plan_bound.h has it of segments. In a chunk only more is waited
 * for; another part begins where this one ends on that stream. */

static LsTime
kernel_time (const BoundParts *x, const LsKernel *k)
{
  return bound_kernel_time (x->comm->b, &x->comm->cluster->spec, x->s->launch.cuda_graphs != LS_GRAPHS_NONE,
                            k);
}

/* Each is timed once, as parts number them. */
static LsTime
numbered_time (const BoundParts *x, uint32_t kernel)
{
  GArray *known = x->comm->b->of_parts; /* LsTime + 1; 0: not known */
  guint at = 2 * kernel + (x->s->launch.cuda_graphs != LS_GRAPHS_NONE);
  if (at >= known->len)
    g_array_set_size (known, at + 1);
  if (g_array_index (known, LsTime, at) == 0)
    g_array_index (known, LsTime, at) = kernel_time (x, ls_parts_kernel (x->comm->b->parts, kernel)) + 1;
  return g_array_index (known, LsTime, at) - 1;
}

/* Beside another pass its kernels hide it; gradients of weights that come later, exchanges of other layers. 0
 * of unequal exchanges, of what DeepEP does, and where bounds know no group. */
static LsTime
call_time (const BoundParts *x, const LsPartOp *op)
{
  const LsStrategy *s = x->s;
  bool is_of_tp = op->slot == LS_SLOT_TP, is_to_experts = op->slot == LS_SLOT_EP;
  if (s->mp.ep_overlap || (!is_of_tp && (s->experts.load || s->mp.delay_wgrad))
      || (is_to_experts && x->shard.experts.sends_tokens_once))
    return 0;
  return is_of_tp || is_to_experts || op->slot == LS_SLOT_ETP
      ? bound_time (x->comm,
                    is_of_tp            ? GROUP_TP
                        : is_to_experts ? GROUP_EXPERTS
                                        : GROUP_EXPERT_TP,
                    (LsCollKind) op->coll, op->bytes)
      : 0;
}

static LsTime
op_time (const BoundParts *x, const LsPartOp *op)
{
  if (ls_op_takes (op->kind, LS_TAKES_GPU))
    return numbered_time (x, op->kernel);
  return ls_op_has (op->kind, LS_HAS_CALL) ? call_time (x, op) : 0;
}

#define LONG_AGO (-1) /* what does not follow from where the pass begins */

static LsTime
pass_time (const BoundParts *x, const LsPartPass *pass)
{
  GArray *ends = x->comm->b->ends;
  LsTime tail[LS_N_STREAMS];
  g_array_set_size (ends, MAX (ends->len, pass->n_ops));
  LsTime *end = (LsTime *) (gpointer) ends->data;
  for (int s = 0; s < LS_N_STREAMS; s++)
    tail[s] = s == LS_STREAM_COMPUTE ? 0 : LONG_AGO;
  for (uint32_t i = 0; i < pass->n_ops; i++) {
    const LsPartOp *op = &pass->ops[i];
    end[i] = LONG_AGO;
    if (ls_op_is_of_host (op->kind))
      continue;
    LsTime start = tail[op->stream];
    for (uint16_t d = 0; d < op->n_deps; d++) {
      const LsDep dep = op->deps[d];
      if (dep.kind != LS_DEP_ISSUE)
        start = MAX (start, dep.kind == LS_DEP_END ? end[dep.index] : tail[dep.index]);
    }
    if (start != LONG_AGO)
      tail[op->stream] = end[i] = start + op_time (x, op);
  }
  return tail[LS_STREAM_COMPUTE];
}

/* --- with what FSDP gathers, adds and copies (lower_dp_fsdp.c) ------------------------------------ */

static LsTime
copy_time (const BoundParts *x, const char *name, uint64_t numel, uint64_t bytes_each)
{
  const LsRecipe *r = ls_recipe_find (x->shard.recipes, LS_RECIPE_FSDP, x->model);
  const LsRecipeKernel *listed = r ? ls_recipe_kernel_named (r->forward, name) : NULL;
  LsKernel k = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, ls_dtype_between (x->shard.dtype), 1, numel,
                                 (double) (numel * bytes_each), 0);
  k.access = listed ? (LsAccess) listed->access : LS_ACCESS_NONE;
  return numel > 0 ? kernel_time (x, &k) : 0;
}

/* Of a layer that is a unit, or of what is in none. */
static void
add_units (const BoundParts *x, BoundPart *p)
{
  const LsStrategy *s = x->s;
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  bool is_whole = s->data.grad_sync != LS_GRAD_SYNC_EACH && s->pp > 1;
  uint64_t reduced = ls_dtype_bytes ((LsDtype) s->opt.grad_dtype),
           grad = ls_dtype_bytes (ls_dtype_between (x->shard.dtype)), size = s->fp8.params ? 1 : 2,
           others = p->n_params - p->n_expert;
  if (!kind->is_fsdp || kind->cuts_operators || s->data.zero_group > 0 || s->data.layers_per_unit != 1)
    return;
  LsTime gather = bound_time (x->comm, GROUP_COPIES, LS_COLL_ALL_GATHER, others * size);
  if (!x->is_layer) {
    p->root = gather;
    return;
  }
  p->gather = p->gather_most
      = gather + bound_time (x->comm, GROUP_EXPERT_COPIES, LS_COLL_ALL_GATHER, p->n_expert * size);
  p->unit_reduce = bound_time (x->comm, GROUP_COPIES, LS_COLL_REDUCE_SCATTER, others * reduced)
      + bound_time (x->comm, GROUP_EXPERT_COPIES, LS_COLL_REDUCE_SCATTER, p->n_expert * reduced);
  if (!kind->has_reshard)
    return;
  p->copy_out = copy_time (x, "gather-copy-out", p->n_params, 2 * size);
  p->copy_in
      = copy_time (x, "reduce-copy-in", p->n_params, reduced + (is_whole ? reduced : MIN (grad, reduced)));
  p->add = copy_time (x, "grad-accumulate", p->n_params, grad + 2 * reduced);
}

void
bound_add (BoundPart *to, const BoundPart *p, uint64_t n)
{
  for (guint i = 0; i < G_N_ELEMENTS (to->sums); i++)
    to->sums[i] += n * p->sums[i];
  if (n == 0)
    return;
  to->gather_most = MAX (to->gather_most, p->gather_most);
  to->root = MAX (to->root, p->root); /* all of it is gathered as one */
}

/* All but times, which are 0. */
static BoundPart
part_sizes (const BoundParts *x, const GArray *operators)
{
  g_autoptr (GArray) again = x->is_layer ? ls_layer_again (x->model, x->s, &x->shard, operators) : NULL;
  BoundPart p = { .kept = keeps_input (x) ? ls_boundary_bytes (x->model, &x->shard) : 0 };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    p.kept += kept_bytes (x, o, i > 0 ? o - 1 : NULL, again ? &g_array_index (again, LsOperator, i) : NULL);
    add_params (o, &p);
  }
  return p;
}

static void
find_sizes (BoundParts *x, BoundPart ret_parts[LS_N_MODEL_PARTS])
{
  const LsModel *m = x->model;
  g_autoptr (GArray) operators = ls_operators_new ();
  x->is_layer = false;
  ls_operators_embedding (m, &x->shard, operators);
  ret_parts[LS_MODEL_EMBEDDING] = part_sizes (x, operators);
  g_array_set_size (operators, 0);
  ls_operators_head (m, &x->shard, x->has_head_weight, operators);
  ret_parts[LS_MODEL_HEAD] = part_sizes (x, operators);
  x->is_layer = true;
  uint32_t first[LS_MAX_MODEL_KINDS], n_kinds = ls_model_first_of_kinds (m, first);
  for (uint32_t k = 0; k < n_kinds; k++) {
    g_array_set_size (operators, 0);
    ls_operators_layer (m, &x->shard, first[k], operators);
    ret_parts[LS_MODEL_LAYER + k] = part_sizes (x, operators);
  }
}

void
bound_find_times (BoundParts *x, bool is_split, BoundPart parts[LS_N_MODEL_PARTS])
{
  LsBounds *b = x->comm->b;
  const LsModelParts *lowered
      = ls_parts_of (b->parts, x->s, b->variant, is_split ? LS_PARTS_LEAST_SPLIT : LS_PARTS_LEAST, NULL);
  for (uint32_t i = 0; i < LS_MODEL_LAYER + b->n_kinds; i++) {
    for (int k = LS_PARTS_FORWARD; lowered && k < LS_N_PARTS_PASSES; k++)
      *(k == LS_PARTS_FORWARD ? &parts[i].f : &parts[i].b) += pass_time (x, &lowered->pass[i][k]);
    x->is_layer = i >= LS_MODEL_LAYER;
    add_units (x, &parts[i]);
  }
}

/* ---- bound memory ---- */

/* What a rank holds at least: for a step, and of what is in flight.
 *
 * However layers lie. Where rank r of a pipeline holds w_r for each of its layers of a kind, and n of these
 * are spread over all ranks, the fullest holds at least n / (sum over r of 1 / w_r): if each held less, they
 * would have less than n layers. */

LS_DEFINE_BYTES_KEY (key, Key)

Entry *
bound_entry (Entries *entries, const Key *key, bool *ret_is_new)
{
  *ret_is_new = false;
  if (entries->last && key_equal (&entries->last->key, key))
    return entries->last;
  if (!entries->all)
    entries->all = g_hash_table_new_full (key_hash, key_equal, NULL, g_free);
  entries->last = g_hash_table_lookup (entries->all, key);
  if (entries->last)
    return entries->last;
  *ret_is_new = true;
  entries->last = g_new0 (Entry, 1);
  entries->last->key = *key;
  g_hash_table_insert (entries->all, &entries->last->key, entries->last);
  return entries->last;
}

void
bound_fill_key (Key *key, const LsBounds *b, const LsStrategy *s, const LsCluster *cluster,
                const LsSched *sched)
{
  const LsShard shard = bound_shard (s, b->model);
  bool ends_where_it_begins = s->pp == 1 || (sched->placement == LS_PLACE_WAVE && s->vpp % 2 == 0);
  memset (key, 0, sizeof *key);
  key->cluster = cluster;
  key->variant = b->variant;
  key->tp = s->tp, key->cp = s->cp, key->ep = s->ep, key->etp = s->experts.etp;
  key->micro_batch = s->micro_batch, key->seq = s->seq, key->sp = s->sp;
  key->is_fresh = shard.grad.is_fresh, key->is_cast = shard.grad.is_cast;
  key->has_head_weight = !b->model->tied_embeddings || !ends_where_it_begins;
  key->recompute = (uint32_t) s->recompute, key->recompute_parts = s->memory.recompute_parts;
}

const Entry *
bound_sizes_of (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, const LsSched *sched)
{
  Key key;
  bool is_new;
  bound_fill_key (&key, b, s, cluster, sched);
  Entry *sizes = bound_entry (&b->sizes, &key, &is_new);
  BoundParts in = { b->model, s, NULL, bound_shard (s, b->model), key.has_head_weight != 0 };
  if (is_new)
    find_sizes (&in, sizes->part);
  return sizes;
}

/* What those among them keep that are of this chunk. */
static uint64_t
n_of_chunk (const LsStrategy *s, uint64_t n_passes, uint32_t chunk)
{
  uint64_t round = (uint64_t) s->pp * s->vpp, rest = n_passes % round, from = (uint64_t) chunk * s->pp;
  return n_passes / round * s->pp + (rest > from ? MIN (rest - from, s->pp) : 0);
}

/* What it holds for the whole step, and of what is in flight. */
static uint64_t
rank_bytes (const LsBounds *b, const LsStrategy *s, const LsSched *sched, const Entry *sizes, uint32_t rank,
            uint32_t n_mb)
{
  const LsSchedShape shape = ls_strategy_sched_shape (s, n_mb);
  uint64_t n_passes = ls_sched_in_flight (sched, &shape, rank), kept = 0;
  BoundPart sum = { 0 };
  for (uint32_t c = 0; c < s->vpp; c++) {
    BoundPart p = bound_chunk (b, sizes->part, bound_stage (s, sched, rank, c), s->pp * s->vpp);
    bound_add (&sum, &p, 1);
    kept += p.kept * n_of_chunk (s, n_passes, c);
  }
  return bound_static_bytes (b->model, s, &sum) + kept;
}

uint64_t
ls_bound_memory (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  uint32_t n_mb = s->global_batch / (s->dp * s->micro_batch);
  uint64_t most = 0;
  if (sched->placement == LS_PLACE_PIPES)
    return 0;
  b->variant = variant;
  bound_find_chunks (b, s);
  const Entry *sizes = bound_sizes_of (b, s, cluster, sched);
  for (uint32_t r = 0; r < s->pp; r++)
    most = MAX (most, rank_bytes (b, s, sched, sizes, r, n_mb));
  return most;
}

/* Of one layer of a kind on a rank, in the chunk where it holds least. */
static uint64_t
layer_bytes (const LsBounds *b, const LsStrategy *s, const BoundPart *layer, uint64_t n_passes)
{
  uint64_t least = UINT64_MAX;
  for (uint32_t c = 0; c < s->vpp; c++)
    least = MIN (least, n_of_chunk (s, n_passes, c));
  return bound_static_bytes (b->model, s, layer) + layer->kept * least;
}

uint64_t
ls_bound_memory_of_any_layers (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  const LsSchedShape shape = ls_strategy_sched_shape (s, s->global_batch / (s->dp * s->micro_batch));
  double most = 0;
  if (sched->placement == LS_PLACE_PIPES)
    return 0;
  b->variant = variant;
  const Entry *sizes = bound_sizes_of (b, s, cluster, sched);
  for (uint32_t k = 0; k < b->n_kinds; k++) {
    double n_on_all = 0; /* of a byte each */
    for (uint32_t r = 0; r < s->pp; r++)
      n_on_all += 1
          / (double) MAX (1,
                          layer_bytes (b, s, &sizes->part[LS_MODEL_LAYER + k],
                                       ls_sched_in_flight (sched, &shape, r)));
    most = MAX (most, b->n_of_kind[k][b->model->n_layers] / n_on_all);
  }
  return (uint64_t) (most * 0.999999); /* rounded sums */
}
