#include "bound/bound.h"

#include <string.h>

#include "base/digest.h"
#include "bound/bound_state.h"
#include "exec/shortcuts/plan_bound.h"
#include "job/job_steps.h"
#include "schedules/sched.h"
#include "strategy/shard.h"

/* ---- what collectives of a job's stages take at least ---- */

/* A call of the groups of a mesh whose ranks lie node after node. No gaps: hashed and compared as bytes. */
typedef struct {
  const LsCluster *cluster;
  uint64_t bytes;
  LsMesh mesh;
  uint32_t kind, group;
} GroupKey;

LS_DEFINE_BYTES_KEY (group_key, GroupKey)

/* The i-th of those with the rank of a stage. */
static uint32_t
member (const LsMesh *mesh, uint32_t stage, BoundGroup group, uint32_t i)
{
  LsCoord at = { .pp = stage, .tp = group == GROUP_TP ? i : 0 };
  if (group == GROUP_NEXT || group == GROUP_PREVIOUS)
    at.pp = (stage + (group == GROUP_NEXT ? i : 1 - i)) % mesh->pp;
  if (group <= GROUP_COPIES)
    return ls_mesh_rank (mesh, group == GROUP_COPIES ? ls_mesh_at_copy (mesh, at, i) : at);
  LsExpertCoord expert = ls_mesh_expert_coord (mesh, ls_mesh_rank (mesh, at));
  *(group == GROUP_EXPERTS ? &expert.ep : group == GROUP_EXPERT_TP ? &expert.etp : &expert.edp) = i;
  return ls_mesh_expert_rank (mesh, expert);
}

/* Of the ranks of a group, in order of rank; as the replay may round its rates. */
static LsTime
fastest_of (const BoundComm *c, const LsMesh *mesh, LsCollKind kind, uint64_t bytes, uint32_t n,
            BoundGroup group)
{
  LsTime least = LS_TIME_NEVER;
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t stage = 0; stage < c->s->pp; stage++) {
    for (uint32_t i = 0; i < n; i++) {
      uint32_t rank = member (mesh, stage, group, i);
      gpus[i] = c->b->gpus ? c->b->gpus[rank] : ls_cluster_gpu_of (&c->cluster->spec, rank);
    }
    double time = (double) ls_call_time (c->b->calls, c->cluster, kind, bytes, gpus, n);
    least = MIN (least, (LsTime) (time * LS_RATE_ROUNDING));
  }
  return least;
}

static uint32_t
group_size (const LsStrategy *s, BoundGroup group)
{
  const uint32_t copies = s->cp * s->dp,
                 sizes[] = { [GROUP_NEXT] = MIN (2, s->pp),
                             [GROUP_PREVIOUS] = MIN (2, s->pp),
                             [GROUP_TP] = s->tp,
                             [GROUP_COPIES] = copies,
                             [GROUP_EXPERTS] = s->ep,
                             [GROUP_EXPERT_TP] = s->experts.etp,
                             [GROUP_EXPERT_COPIES] = s->tp * copies / MAX (1, s->ep * s->experts.etp) };
  return sizes[group];
}

/* Each mesh is asked once, unless its ranks are where somebody has put them. */
LsTime
bound_time (const BoundComm *c, BoundGroup group, LsCollKind kind, uint64_t bytes)
{
  uint32_t n = group_size (c->s, group);
  if (n == 1 || bytes == 0)
    return 0;
  GroupKey key;
  memset (&key, 0, sizeof key);
  key.cluster = c->cluster, key.bytes = bytes, key.mesh = ls_strategy_mesh (c->s);
  key.kind = (uint32_t) kind, key.group = group;
  const LsTime *known = c->b->gpus ? NULL : g_hash_table_lookup (c->b->groups, &key);
  if (known)
    return *known;
  LsTime least = fastest_of (c, &key.mesh, kind, bytes, n, group);
  if (!c->b->gpus)
    g_hash_table_insert (c->b->groups, g_memdup2 (&key, sizeof key), g_memdup2 (&least, sizeof least));
  return least;
}

/* ---- bound data ---- */

/* What data parallelism adds to the passes of a rank at least: as lower_dp_megatron.c and lower_dp_fsdp.c
 * build it.
 *
 * FSDP. Of a pass that computes for t and gathers its units for g in all, one behind the other:
 *
 *     forward    max (t + copies out, g) behind the root's gather, as none begins before the pass does
 *     backward   max (t + copies, g less those ahead of it, what it reduces); gathers are ahead of what
 *                is computed by no more units than are prefetched (FSDP2; if it is one, it begins behind
 *                the copy of the one before), or a forward and its backward together take no less than
 *                the gathers of both (FSDP1)
 *
 * Megatron-LM, without interleaving. Stages but the first have one bucket of experts and one of all else:
 *
 *     forward    the first waits for both gathers, each where it is first needed, with nothing beside them
 *     backward   the last is over before all else is reduced; experts are reduced before that, from where
 *                their first layer is done
 *
 * The first stage has many buckets: what takes longer than the pass itself counts.
 *
 * Worked example. A backward of 30 ms, of which the first layer takes 8; experts' gradients take 40 ms to
 * reduce, all others 5: they are reduced 40 + 5 - 8 = 37 ms behind the backward. */

/* Of a rank: what its parts add up to, and those of its first layer. */
typedef struct {
  const BoundPart *sum, *first_layer;
  bool has_embedding;
} BoundRank;

/* --- FSDP ---------------------------------------------------------------------------------- */

static bool
is_fsdp2 (const LsStrategy *s)
{
  return ls_dp_traits (s->dp_kind)->has_reshard;
}

static bool
reduces_each (const LsStrategy *s)
{
  return s->data.grad_sync == LS_GRAD_SYNC_EACH;
}

/* What stays does so for a step. */
static bool
keeps_for_step (const LsStrategy *s)
{
  return s->pp > 1 || (!is_fsdp2 (s) && s->zero_stage == 2 && !reduces_each (s));
}

/* The first forward of a chunk in a step. */
static LsTime
bound_fsdp_forward (const LsStrategy *s, const BoundPart *chunk)
{
  return s->mp.ep_overlap ? 0 : chunk->root + MAX (chunk->copy_out, chunk->gather - chunk->f);
}

/* More than a backward computes. */
static LsTime
backward_time (const LsStrategy *s, const BoundPart *chunk, bool reduces)
{
  bool gathers = is_fsdp2 (s) ? s->data.reshard_after_forward == 1 : s->zero_stage == 3;
  LsTime n_ahead = MAX (1, s->data.backward_prefetch_units), copies = gathers ? chunk->copy_out : 0,
         left = is_fsdp2 (s) ? chunk->gather - n_ahead * chunk->gather_most
      : s->pp == 1           ? 2 * chunk->gather - MAX (chunk->f, chunk->gather)
                             : 0;
  LsTime copied_in = reduces ? chunk->copy_in : 0, time = copies + copied_in;
  if (gathers) /* one ahead begins behind the copy of the one before */
    time = MAX (time, left - chunk->b + (n_ahead == 1 ? copies : 0));
  if (reduces)
    time = MAX (time, chunk->unit_reduce - chunk->b);
  return s->mp.ep_overlap ? 0 : time;
}

/* Behind n_mb micro-batches of a chunk, what passes take longer than they compute. */
static LsTime
bound_fsdp_passes (const LsStrategy *s, const BoundPart *chunk, uint32_t n_mb)
{
  bool is_behind = is_fsdp2 (s) && s->pp > 1; /* all of a step is reduced behind its last backward */
  bool keeps_units = is_fsdp2 (s) ? s->data.reshard_after_forward == 0 : s->zero_stage == 2;
  LsTime n = n_mb, n_forwards = keeps_units && keeps_for_step (s) ? 1 : n, /* units stay to the backward */
      n_roots = keeps_for_step (s) ? 1 : n,
         n_reduced = reduces_each (s) ? n
      : is_behind                     ? 0
                                      : 1;
  LsTime root = s->mp.ep_overlap ? 0 : chunk->root;
  return n_roots * root + n_forwards * (bound_fsdp_forward (s, chunk) - root)
      + n_reduced * backward_time (s, chunk, true) + (n - n_reduced) * backward_time (s, chunk, false)
      + (reduces_each (s) ? 0 : n - 1) * chunk->add;
}

/* --- parameters and gradients of a rank ------------------------------------------------------ */

/* Of experts, and of all else. */
static LsTime
data_time (const BoundComm *c, LsCollKind kind, const BoundPart *p, uint64_t size)
{
  return bound_time (c, GROUP_COPIES, kind, (p->size.n_params - p->size.n_expert) * size)
      + bound_time (c, GROUP_EXPERT_COPIES, kind, p->size.n_expert * size);
}

static LsTime
gathers_time (const BoundComm *c, const BoundPart *p)
{
  return data_time (c, LS_COLL_ALL_GATHER, p, c->s->fp8.params ? 1 : 2);
}

static LsTime
reductions_time (const BoundComm *c, LsCollKind kind, const BoundPart *p)
{
  return data_time (c, kind, p, c->s->opt.grad_dtype == LS_DTYPE_FP32 ? 4 : 2);
}

/* --- Megatron-LM --------------------------------------------------------------------------- */

static bool
is_sharded (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_MEGATRON && s->zero_stage > 0 && s->data.zero_group == 0
      && s->memory.offload == LS_OFFLOAD_NONE;
}

static bool
gathers_early (const LsStrategy *s)
{
  return is_sharded (s) && s->opt.cut != LS_OPTIMIZER_CUT_TENSORS && s->data.gather_overlap == 1;
}

/* What the first forward of a step takes longer, where Megatron-LM's loop gathers parameters for it. */
static LsTime
bound_first_gathers (const BoundComm *c, const BoundRank *rank)
{
  if (!gathers_early (c->s) || c->s->vpp > 1)
    return 0;
  LsTime time = gathers_time (c, rank->sum);
  return rank->has_embedding ? MAX (0, time - rank->sum->f) : time;
}

/* Behind the optimizer, where it gathers them there. */
static LsTime
bound_last_gathers (const BoundComm *c, const BoundRank *rank)
{
  return is_sharded (c->s) && !gathers_early (c->s) ? gathers_time (c, rank->sum) : 0;
}

static LsTime
megatron_reductions (const BoundComm *c, const BoundRank *rank)
{
  const LsStrategy *s = c->s;
  const BoundPart *p = rank->sum;
  LsCollKind kind = s->zero_stage > 0 && s->opt.cut != LS_OPTIMIZER_CUT_TENSORS ? LS_COLL_REDUCE_SCATTER
                                                                                : LS_COLL_ALL_REDUCE;
  if (s->data.zero_group > 0 || s->memory.offload != LS_OFFLOAD_NONE || (s->data.overlap && s->vpp > 1))
    return 0;
  const BoundPart dense = { .size.n_params = p->size.n_params - p->size.n_expert };
  LsTime others = reductions_time (c, kind, &dense), all = reductions_time (c, kind, p);
  if (!s->data.overlap)
    return all;
  if (rank->has_embedding)
    return MAX (0, all - p->b);
  return rank->first_layer->size.n_expert > 0 ? MAX (others, all - rank->first_layer->b) : others;
}

/* FSDP2 with a pipeline reduces unit by unit, each copied when the one before is reduced. One call for all
 * takes no longer. */
static LsTime
fsdp2_reductions (const BoundComm *c, const BoundPart *p)
{
  const LsStrategy *s = c->s;
  if (s->pp == 1 || reduces_each (s) || s->data.zero_group > 0)
    return 0;
  return p->copy_in + reductions_time (c, LS_COLL_REDUCE_SCATTER, p);
}

/* Behind the last backward, before the optimizer: what is left to reduce. */
static LsTime
bound_reductions (const BoundComm *c, const BoundRank *rank)
{
  if (ls_dp_traits (c->s->dp_kind)->reduces_at_the_end)
    return fsdp2_reductions (c, rank->sum);
  return c->s->dp_kind == LS_DP_MEGATRON ? megatron_reductions (c, rank) : 0;
}

/* --- messages between stages ------------------------------------------------------------------ */

/* One between neighbours, whichever is fastest (lower/pipeline/lower_p2p.c). */
static LsTime
message_time (const BoundComm *c)
{
  const LsStrategy *s = c->s;
  const LsShard shard = ls_strategy_shard (s, c->b->model);
  bool scatters = (s->mp.p2p == LS_P2P_SCATTER_GATHER || s->mp.p2p == LS_P2P_DEEPSPEED) && !shard.sp;
  uint64_t bytes = ls_boundary_bytes (c->b->model, &shard) / (scatters ? s->tp : 1);
  return MIN (bound_time (c, GROUP_NEXT, LS_COLL_SEND_RECV, bytes),
              bound_time (c, GROUP_PREVIOUS, LS_COLL_SEND_RECV, bytes));
}

/* Groups of messages between the first forward and the end of the last send of a rank, for which compute
 * waits (lower/pipeline/lower_pipe.c): one behind each forward that another rank needs, and behind each
 * backward of the cool-down; without interleaving behind each backward. */
static uint64_t
n_blocking (const LsStrategy *s, const LsSched *sched, uint32_t rank, uint32_t n_mb)
{
  const LsSchedShape shape = ls_strategy_sched_shape (s, n_mb);
  bool is_batched = s->mp.p2p == LS_P2P_BATCHED || s->mp.p2p == LS_P2P_SCATTER_GATHER;
  if (!is_batched || sched->recipe != LS_RECIPE_MEGATRON || s->pp == 1)
    return 0;
  uint64_t n_sent = (uint64_t) n_mb * (s->vpp - (rank + 1 == s->pp ? 1 : 0));
  uint64_t n_back = s->vpp > 1 ? sched->n_warmup (&shape, rank) : n_mb;
  return n_sent + (rank > 0 ? n_back : 0);
}

/* A number of parameters, and a variant. */
typedef struct {
  uint64_t n, of;
} CountKey;

LS_DEFINE_BYTES_KEY (count, CountKey)

static void
count_kinds (LsBounds *b)
{
  const LsModel *m = b->model;
  uint32_t first[LS_MAX_MODEL_KINDS];
  b->n_kinds = ls_model_first_of_kinds (m, first);
  for (uint32_t k = 0; k < b->n_kinds; k++) {
    uint32_t *n_of = b->n_of_kind[k] = g_new0 (uint32_t, m->n_layers + 1);
    uint32_t kind = ls_model_layer_kind (m, first[k]);
    for (uint32_t i = 0; i < m->n_layers; i++)
      n_of[i + 1] = n_of[i] + (ls_model_layer_kind (m, i) == kind);
  }
}

LsBounds *
ls_bounds_new (const LsModel *m, const LsHardware *hardware)
{
  LsBounds *b = g_new0 (LsBounds, 1);
  b->model = m;
  b->hardware = hardware;
  b->chosen = *hardware;
  b->optimizer = g_hash_table_new_full (count_hash, count_equal, g_free, g_free);
  b->calls = ls_call_times_new (&hardware->nccl, true);
  b->parts = ls_parts_memo_new (m);
  b->of_parts = g_array_new (FALSE, TRUE, sizeof (LsTime));
  b->ends = g_array_new (FALSE, FALSE, sizeof (LsTime));
  b->groups = g_hash_table_new_full (group_key_hash, group_key_equal, g_free, g_free);
  count_kinds (b);
  b->layers = g_new0 (uint32_t, LS_MAX_CHUNKS);
  b->first = g_new0 (uint32_t, LS_MAX_CHUNKS + 1);
  return b;
}

LsPartsMemo *
ls_bounds_parts (LsBounds *b)
{
  return b->parts;
}

void
ls_bounds_free (LsBounds *b)
{
  if (!b)
    return;
  g_clear_pointer (&b->entries, g_hash_table_unref);
  g_hash_table_unref (b->optimizer);
  ls_call_times_free (b->calls);
  ls_parts_memo_unref (b->parts);
  g_array_unref (b->of_parts);
  g_array_unref (b->ends);
  g_hash_table_unref (b->groups);
  for (uint32_t i = 0; i < b->n_kinds; i++)
    g_free (b->n_of_kind[i]);
  g_free (b->layers);
  g_free (b->first);
  g_free (b);
}

/* --- parts ------------------------------------------------------------------------------ */

/* Weight gradients may be behind what others wait for. */
static bool
is_split (const LsStrategy *s, const LsSched *sched)
{
  return sched->is_split || s->mp.delay_wgrad;
}

/* --- a rank ------------------------------------------------------------------------------ */

/* Chunks in model order: n of them. */
BoundPart
bound_chunk (const LsBounds *b, const BoundPart *part, uint32_t stage, uint32_t n)
{
  uint32_t first = b->first[stage], n_layers = b->layers[stage];
  BoundPart p = { 0 };
  for (uint32_t i = 0; i < b->n_kinds; i++)
    bound_add (&p, &part[LS_MODEL_LAYER + i], b->n_of_kind[i][first + n_layers] - b->n_of_kind[i][first]);
  bound_add (&p, &part[LS_MODEL_EMBEDDING], stage == 0);
  bound_add (&p, &part[LS_MODEL_HEAD], stage == n - 1);
  return p;
}

/* Of kernels that every rank runs behind the norm: clip, Adam, weight copy; nothing of other optimizers. */
static LsTime
optimizer_time (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t n_params)
{
  if (!ls_dp_traits (s->dp_kind)->keeps_gradients || n_params == 0 || s->memory.offload != LS_OFFLOAD_NONE
      || s->opt.kind)
    return 0;
  const CountKey key = { n_params, b->variant };
  LsTime *known = g_hash_table_lookup (b->optimizer, &key);
  if (known)
    return *known;
  g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  const LsStepped stepped = ls_strategy_optimizer_kernels (s, n_params, kernels);
  ls_optimizer_as_launched (s->use.recipes, b->model, stepped, kernels); /* launches: at least one */
  LsTime sum = 0;
  bool is_behind = !s->opt.grad_norm;
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernel *k = &g_array_index (kernels, LsKernel, i);
    if (is_behind && k->kind != LS_KERNEL_REDUCTION)
      sum += bound_kernel_time (b, &cluster->spec, false, k);
    is_behind |= k->kind == LS_KERNEL_REDUCTION;
  }
  g_hash_table_insert (b->optimizer, g_memdup2 (&key, sizeof key), g_memdup2 (&sum, sizeof sum));
  return sum;
}

/* What all chunks of a rank add up to; the first of them; what FSDP adds to their passes. */
static BoundPart
rank_parts (const LsBounds *b, const LsStrategy *s, const LsSched *sched, const BoundPart *parts,
            uint32_t rank, uint32_t n_mb, BoundPart *ret_first, LsTime *ret_fsdp)
{
  BoundPart sum = { 0 };
  for (uint32_t c = 0; c < s->vpp; c++) {
    BoundPart p = bound_chunk (b, parts, bound_stage (s, sched, rank, c), s->pp * s->vpp);
    if (c == 0)
      *ret_first = p;
    bound_add (&sum, &p, 1);
    *ret_fsdp += bound_fsdp_passes (s, &p, n_mb);
  }
  return sum;
}

/* Of the first chunk of a rank; of one without layers the embedding, which has no experts. */
static const BoundPart *
first_layer (const LsBounds *b, const BoundPart *parts, uint32_t rank)
{
  uint32_t first = b->first[rank];
  for (uint32_t i = 0; i < b->n_kinds && b->layers[rank] > 0; i++)
    if (b->n_of_kind[i][first + 1] > b->n_of_kind[i][first])
      return &parts[LS_MODEL_LAYER + i];
  return &parts[LS_MODEL_EMBEDDING];
}

void
bound_find_chunks (LsBounds *b, const LsStrategy *s)
{
  uint32_t n = s->pp * s->vpp;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean is_legal = ls_chunk_layers (s, b->model, b->layers, diags);
  g_assert (is_legal); /* it is resolved */
  for (uint32_t i = 0; i < n; i++)
    b->first[i + 1] = b->first[i] + b->layers[i];
}

static void
choose_hardware (LsBounds *b, const LsStrategy *s)
{
  if (b->attention_kernel == s->use.attention_kernel && b->n_gpus == s->gpus)
    return;
  b->attention_kernel = s->use.attention_kernel;
  b->n_gpus = s->gpus;
  ls_hardware_for_job (b->hardware, s, s->gpus, &b->chosen);
  g_array_set_size (b->of_parts, 0);
}

LsTime
ls_bound_step (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  g_autofree uint32_t *gpus = s->layout.allocation ? ls_job_gpus (s, cluster, NULL) : NULL;
  b->variant = variant;
  b->gpus = gpus;
  choose_hardware (b, s);
  bound_find_chunks (b, s);
  const BoundPart *parts = bound_parts (b, s, cluster, is_split (s, sched));
  uint32_t n_mb = s->global_batch / (s->dp * s->micro_batch);
  bool is_loop = sched->placement == LS_PLACE_LOOP, has_pipes = sched->placement == LS_PLACE_PIPES;
  bool comes_back = is_loop && !is_split (s, sched)
      && ls_sched_is_flushed (sched); /* the last B of rank 0 is behind all of a step */
  const BoundComm comm = { b, cluster, s };
  LsTime fill = 0, drain = 0, all = 0, first_optimizer = 0, first_reduction = 0, step = 0,
         message = message_time (&comm);
  for (uint32_t r = 0; r < s->pp; r++) {
    BoundPart first = { 0 };
    LsTime fsdp = 0;
    const BoundPart sum = rank_parts (b, s, sched, parts, r, n_mb, &first, &fsdp);
    const BoundRank rank = { &sum, first_layer (b, parts, r), r == 0 };
    uint64_t n_messages = n_blocking (s, sched, r, n_mb);
    LsTime gathers = is_loop ? bound_first_gathers (&comm, &rank) : 0,
           work = n_mb * (sum.f + sum.b) + (LsTime) n_messages * message + gathers + (has_pipes ? 0 : fsdp);
    uint64_t n_owned = bound_n_owned (b->model, s, &sum);
    LsTime optimizer
        = has_pipes ? 0 : optimizer_time (b, s, cluster, n_owned) + bound_last_gathers (&comm, &rank);
    LsTime reduction = has_pipes ? 0 : bound_reductions (&comm, &rank);
    if (r == 0)
      first_optimizer = optimizer, first_reduction = reduction;
    LsTime tail = comes_back ? first_reduction : 0;
    LsTime own = optimizer + work + reduction, chain = first_optimizer + fill + work + drain + tail;
    if (s->opt.grad_norm && !s->opt.post_validation) { /* the norm that all stages wait for, in each step */
      own = optimizer + work + MAX (drain + tail, reduction);
      chain = first_optimizer + fill + work + MAX (drain + tail, reduction);
    } else if (!comes_back)
      chain = 0;
    all += work;
    step = MAX (step, has_pipes ? all / s->pp : MAX (own, chain));
    fill += is_loop ? first.f + bound_fsdp_forward (s, &first) + gathers + message : 0;
    drain += comes_back ? first.b + (r > 0 || n_messages == 0 ? message : 0) : 0;
  }
  b->gpus = NULL;
  return step;
}
