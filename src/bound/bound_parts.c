/* bound/bound_parts.c — what a layer, the embedding or the head takes at least on one rank: its passes as
 * they are lowered (lower/parts.h); what ranks hold. */
#include "bound/bound_state.h"

#include <string.h>

#include "base/digest.h"
#include "compute/cost.h"
#include "strategy/shard.h"

/* Of a job whose parts are looked at. */
typedef struct {
  const LsModel *model;
  const LsStrategy *s;
  const BoundComm *comm; /* with its strategy and cluster */
  LsShard shard;
  bool is_layer; /* else the embedding or the head */
} BoundParts;

/* What parts of a job take, of all that have them in common. No gaps: hashed and compared as bytes. */
typedef struct {
  const LsModelParts *parts;
  const LsCluster *cluster; /* NULL: only sizes */
  uint32_t pp, sharded;     /* FSDP: ranks of a group */
  uint32_t grad_sync, is_fsdp2;
} Key;

typedef struct {
  Key key;
  BoundPart part[]; /* as many as were lowered */
} Entry;

/* ---- bound kernels ---- */

LsTime
bound_kernel_time (const LsBounds *b, const LsClusterSpec *spec, bool is_in_graph, const LsKernel *k)
{
  LsTime least = LS_TIME_NEVER;
  for (uint32_t kind = 0; kind < ls_cluster_spec_n_kinds (spec); kind++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (spec, kind)->gpu;
    LsCalibration room;
    const LsCalibration *c = ls_calibration_of_kind (&b->chosen.calibration, kind, gpu, &room);
    const LsKernelCost cost = ls_kernel_cost (c, gpu, k);
    LsTime saved = is_in_graph ? ls_around_graph_saves (&c->around, ls_time_from_s (cost.launch_s)) : 0;
    least = MIN (least, cost.alone - MAX (0, saved));
  }
  return least;
}

/* ---- bound sizes ---- */

/* What a rank holds of its parameters throughout, as lower_step.c cuts them. */

/* --- a rank --- */

/* Ranks that an element is cut over. */
typedef struct {
  uint64_t dense, expert;
} Cut;

static uint64_t
share (const BoundPart *p, Cut cut)
{
  return (p->size.n_params - p->size.n_expert) / cut.dense + p->size.n_expert / cut.expert;
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
  return s->zero_stage >= 1 ? share (p, cut_of (m, s)) : p->size.n_params;
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
           n = p->size.n_frozen - p->size.n_frozen_experts - p->size.n_nf4;
  return (n * size + ls_nf4_bytes (p->size.n_nf4)) / cut.dense + p->size.n_frozen_experts * size / cut.expert;
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
      + frozen_bytes (p, s, z >= 3 ? cut : whole) + (keeps_gradients ? p->size.n_params * grad_size : 0)
      + (uint64_t) ((double) share (p, z >= 1 ? cut : whole) * optimizer_bytes (s));
}

/* ---- bound passes ---- */

/* How long the compute stream of a rank takes for a pass of a part at least: the longest way through its ops
 * from where that stream begins it, as exec/shortcuts/plan_bound.h has it of segments. In a chunk only more
 * is waited for; another part begins where this one ends on that stream. */

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
  static const uint8_t groups[LS_N_SLOTS] /* + 1 */
      = {
          [LS_SLOT_TP] = GROUP_TP + 1, [LS_SLOT_EP] = GROUP_EXPERTS + 1, [LS_SLOT_ETP] = GROUP_EXPERT_TP + 1
        };
  const LsStrategy *s = x->s;
  bool is_hidden = s->mp.ep_overlap || (op->slot != LS_SLOT_TP && (s->experts.load || s->mp.delay_wgrad))
      || (op->slot == LS_SLOT_EP && x->shard.experts.sends_tokens_once);
  uint8_t group = is_hidden ? 0 : groups[op->slot];
  return group > 0 ? bound_time (x->comm, (BoundGroup) (group - 1), (LsCollKind) op->coll, op->bytes) : 0;
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
           others = p->size.n_params - p->size.n_expert;
  if (!kind->is_fsdp || kind->cuts_operators || s->data.zero_group > 0 || s->data.layers_per_unit != 1)
    return;
  LsTime gather = bound_time (x->comm, GROUP_COPIES, LS_COLL_ALL_GATHER, others * size);
  if (!x->is_layer) {
    p->root = gather;
    return;
  }
  p->gather = p->gather_most
      = gather + bound_time (x->comm, GROUP_EXPERT_COPIES, LS_COLL_ALL_GATHER, p->size.n_expert * size);
  p->unit_reduce = bound_time (x->comm, GROUP_COPIES, LS_COLL_REDUCE_SCATTER, others * reduced)
      + bound_time (x->comm, GROUP_EXPERT_COPIES, LS_COLL_REDUCE_SCATTER, p->size.n_expert * reduced);
  if (!kind->has_reshard)
    return;
  p->copy_out = copy_time (x, "gather-copy-out", p->size.n_params, 2 * size);
  p->copy_in = copy_time (x, "reduce-copy-in", p->size.n_params,
                          reduced + (is_whole ? reduced : MIN (grad, reduced)));
  p->add = copy_time (x, "grad-accumulate", p->size.n_params, grad + 2 * reduced);
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

LS_DEFINE_BYTES_KEY (key, Key)

static Key
key_of (const LsStrategy *s, const LsCluster *cluster, const LsModelParts *parts)
{
  Key key;
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  memset (&key, 0, sizeof key);
  key.parts = parts;
  key.cluster = cluster;
  if (!cluster)
    return key;
  key.pp = s->pp;
  if (kind->is_fsdp && !kind->cuts_operators && s->data.zero_group == 0)
    key.sharded = s->dp * s->cp, key.grad_sync = (uint32_t) s->data.grad_sync,
    key.is_fsdp2 = kind->has_reshard;
  return key;
}

const BoundPart *
bound_parts (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, bool is_split)
{
  const LsModelParts *lowered
      = ls_parts_of (b->parts, s, b->variant, is_split ? LS_PARTS_LEAST_SPLIT : LS_PARTS_LEAST, NULL);
  const Key key = key_of (s, cluster, lowered);
  if (!b->entries)
    b->entries = g_hash_table_new_full (key_hash, key_equal, g_free, NULL);
  Entry *e = g_hash_table_lookup (b->entries, &key);
  if (e)
    return e->part;
  e = g_malloc0 (sizeof (Entry) + (LS_MODEL_LAYER + b->n_kinds) * sizeof (BoundPart));
  e->key = key;
  g_hash_table_add (b->entries, e);
  const BoundComm comm = { b, cluster, s };
  BoundParts x = { b->model, s, &comm, ls_strategy_shard (s, b->model), false };
  for (uint32_t i = 0; lowered && i < lowered->n; i++) {
    const LsPartPass *pass = lowered->part[i].pass;
    BoundPart *p = &e->part[i];
    p->size = lowered->part[i].size;
    x.is_layer = i >= LS_MODEL_LAYER;
    if (!cluster)
      continue;
    p->f = pass_time (&x, &pass[LS_PARTS_FORWARD]);
    p->b = pass_time (&x, &pass[LS_PARTS_BACKWARD]) + pass_time (&x, &pass[LS_PARTS_WEIGHTS]);
    add_units (&x, p);
  }
  return e->part;
}

/* ---- bound memory ---- */

/* What a rank holds at least: for a step, and of what is in flight.
 *
 * However layers lie. Where rank r of a pipeline holds w_r for each of its layers of a kind, and n of these
 * are spread over all ranks, the fullest holds at least n / (sum over r of 1 / w_r): if each held less, they
 * would have less than n layers. */

/* What those among them keep that are of this chunk. */
static uint64_t
n_of_chunk (const LsStrategy *s, uint64_t n_passes, uint32_t chunk)
{
  uint64_t round = (uint64_t) s->pp * s->vpp, rest = n_passes % round, from = (uint64_t) chunk * s->pp;
  return n_passes / round * s->pp + (rest > from ? MIN (rest - from, s->pp) : 0);
}

/* What it holds for the whole step, and of what is in flight. */
static uint64_t
rank_bytes (const LsBounds *b, const LsStrategy *s, const LsSched *sched, const BoundPart *sizes,
            uint32_t rank, uint32_t n_mb)
{
  const LsSchedShape shape = ls_strategy_sched_shape (s, n_mb);
  uint64_t n_passes = ls_sched_in_flight (sched, &shape, rank), kept = 0;
  BoundPart sum = { 0 };
  for (uint32_t c = 0; c < s->vpp; c++) {
    BoundPart p = bound_chunk (b, sizes, bound_stage (s, sched, rank, c), s->pp * s->vpp);
    bound_add (&sum, &p, 1);
    kept += p.size.kept * n_of_chunk (s, n_passes, c);
  }
  return bound_static_bytes (b->model, s, &sum) + kept;
}

uint64_t
ls_bound_memory (LsBounds *b, const LsStrategy *s, uint64_t variant)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  uint32_t n_mb = s->global_batch / (s->dp * s->micro_batch);
  uint64_t most = 0;
  if (sched->placement == LS_PLACE_PIPES)
    return 0;
  b->variant = variant;
  bound_find_chunks (b, s);
  const BoundPart *sizes = bound_parts (b, s, NULL, false);
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
  return bound_static_bytes (b->model, s, layer) + layer->size.kept * least;
}

uint64_t
ls_bound_memory_of_any_layers (LsBounds *b, const LsStrategy *s, uint64_t variant)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  const LsSchedShape shape = ls_strategy_sched_shape (s, s->global_batch / (s->dp * s->micro_batch));
  double most = 0;
  if (sched->placement == LS_PLACE_PIPES)
    return 0;
  b->variant = variant;
  const BoundPart *sizes = bound_parts (b, s, NULL, false);
  for (uint32_t k = 0; k < b->n_kinds; k++) {
    double n_on_all = 0; /* of a byte each */
    for (uint32_t r = 0; r < s->pp; r++)
      n_on_all
          += 1
          / (double) MAX (
                 1, layer_bytes (b, s, &sizes[LS_MODEL_LAYER + k], ls_sched_in_flight (sched, &shape, r)));
    most = MAX (most, b->n_of_kind[k][b->model->n_layers] / n_on_all);
  }
  return (uint64_t) (most * 0.999999); /* rounded sums */
}
