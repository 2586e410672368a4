#include "bound/bound.h"

#include <string.h>

#include "base/digest.h"
#include "bound/bound_state.h"
#include "job/job_steps.h"
#include "lower/lower.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/dp_traits.h"

/* A number of parameters, and a variant. */
typedef struct {
  uint64_t n, of;
} CountKey;

LS_DEFINE_BYTES_KEY (key, Key)

static guint
count_hash (gconstpointer key)
{
  const CountKey *k = key;
  return (guint) ((k->n ^ k->n >> 32) * 31 + k->of);
}

static gboolean
count_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (CountKey)) == 0;
}

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
  b->entries = g_hash_table_new_full (key_hash, key_equal, NULL, g_free);
  b->sizes = bound_sizes_table_new ();
  b->optimizer = g_hash_table_new_full (count_hash, count_equal, g_free, g_free);
  b->times = bound_times_new (&hardware->nccl);
  b->kernels = bound_kernels_new (&b->chosen.calibration);
  count_kinds (b);
  b->layers = g_new0 (uint32_t, LS_MAX_CHUNKS);
  b->first = g_new0 (uint32_t, LS_MAX_CHUNKS + 1);
  return b;
}

void
ls_bounds_free (LsBounds *b)
{
  if (!b)
    return;
  g_hash_table_unref (b->entries);
  g_hash_table_unref (b->sizes);
  g_hash_table_unref (b->optimizer);
  bound_times_free (b->times);
  bound_kernels_free (b->kernels);
  for (uint32_t i = 0; i < b->n_kinds; i++)
    g_free (b->n_of_kind[i]);
  g_free (b->layers);
  g_free (b->first);
  g_free (b);
}

/* --- parts ------------------------------------------------------------------------------ */

/* As lower/pipeline/lower_p2p.c. */
static uint64_t
message_bytes (const LsBounds *b, const LsStrategy *s)
{
  const LsShard shard = bound_shard (s, b->model);
  bool scatters = (s->p2p == LS_P2P_SCATTER_GATHER || s->p2p == LS_P2P_DEEPSPEED) && !shard.sp;
  return ls_boundary_bytes (b->model, &shard) / (scatters ? s->tp : 1);
}

/* Weight gradients may be behind what others wait for. */
static bool
is_split (const LsStrategy *s, const LsSched *sched)
{
  return sched->is_split || s->delay_wgrad;
}

/* What times follow from. */
static void
fill_key_of_times (Key *key, const LsBounds *b, const LsStrategy *s, const LsCluster *cluster,
                   const LsSched *sched)
{
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  bound_fill_key (key, b, s, cluster, sched);
  key->pp = s->pp, key->tp_overlap = s->tp_overlap, key->is_split = is_split (s, sched);
  key->is_paired = (uint32_t) s->ep_overlap;
  key->p2p = (uint32_t) s->p2p;
  key->is_fsdp = kind->is_fsdp, key->is_fsdp2 = kind->has_reshard;
  if ((kind->cuts_operators || kind->is_fsdp) && s->zero_group == 0)
    key->sharded = s->dp * s->cp, key->grad_sync = (uint32_t) s->grad_sync;
}

static const Entry *
entry_of (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, const LsSched *sched)
{
  Key key;
  fill_key_of_times (&key, b, s, cluster, sched);
  if (b->last && key_equal (&b->last->key, &key))
    return b->last;
  b->last = g_hash_table_lookup (b->entries, &key);
  if (b->last)
    return b->last;
  Entry *e = g_new0 (Entry, 1);
  e->key = key;
  const BoundComm comm = { b->times, cluster, s, b->gpus };
  const BoundParts in = { b->model, &comm, b->kernels, key.is_split != 0, key.has_head_weight != 0 };
  bound_parts (&in, e->part);
  e->message = bound_send_time (&comm, message_bytes (b, s));
  g_hash_table_insert (b->entries, &e->key, e);
  return b->last = e;
}

/* --- a rank ------------------------------------------------------------------------------ */

static void
add_units (BoundUnits *to, const BoundUnits *u, LsTime n)
{
  to->gather += n * u->gather;
  to->most = MAX (to->most, n > 0 ? u->most : 0);
  to->reduce += n * u->reduce;
  to->copy_out += n * u->copy_out;
  to->copy_in += n * u->copy_in;
  to->add += n * u->add;
}

/* Chunks in model order: n of them. */
BoundPart
bound_chunk (const LsBounds *b, const BoundPart *part, uint32_t stage, uint32_t n)
{
  uint32_t first = b->first[stage], n_layers = b->layers[stage];
  BoundPart p = { 0 };
  for (uint32_t i = 0; i < b->n_kinds; i++) {
    uint64_t n_layers_of = b->n_of_kind[i][first + n_layers] - b->n_of_kind[i][first];
    const BoundPart *l = &part[PART_LAYER + i];
    p.f += (LsTime) n_layers_of * l->f;
    p.b += (LsTime) n_layers_of * l->b;
    p.reduce += (LsTime) n_layers_of * l->reduce;
    p.n_params += n_layers_of * l->n_params;
    p.n_expert += n_layers_of * l->n_expert;
    p.n_frozen += n_layers_of * l->n_frozen;
    p.n_frozen_experts += n_layers_of * l->n_frozen_experts;
    p.n_nf4 += n_layers_of * l->n_nf4;
    p.kept += n_layers_of * l->kept;
    p.n_most = MAX (p.n_most, l->n_params);
    p.n_persistent += n_layers_of * l->n_persistent;
    p.n_persistent_experts += n_layers_of * l->n_persistent_experts;
    p.w += (LsTime) n_layers_of * l->w;
    add_units (&p.units, &l->units, (LsTime) n_layers_of);
  }
  for (int end = 0; end < 2; end++) {
    const BoundPart *q = &part[end ? PART_HEAD : PART_EMBEDDING];
    if (stage != (end ? n - 1 : 0))
      continue;
    p.f += q->f;
    p.b += q->b;
    p.w += q->w;
    p.reduce += q->reduce;
    p.n_params += q->n_params;
    p.n_most = MAX (p.n_most, q->n_params);
    p.n_persistent += q->n_persistent;
    p.n_frozen += q->n_frozen;
    p.units.root = MAX (p.units.root, q->units.root); /* both are gathered as one */
  }
  return p;
}

/* Of kernels that every rank runs behind the norm: clip, Adam, weight copy; nothing of other optimizers. */
static LsTime
optimizer_time (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t n_params)
{
  if (!ls_dp_traits (s->dp_kind)->keeps_gradients || n_params == 0 || s->offload != LS_OFFLOAD_NONE
      || s->optimizer_kind)
    return 0;
  const CountKey key = { n_params, b->variant };
  LsTime *known = g_hash_table_lookup (b->optimizer, &key);
  if (known)
    return *known;
  g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  const LsStepped stepped = ls_strategy_optimizer_kernels (s, n_params, kernels);
  ls_optimizer_as_launched (s->recipes, b->model, stepped, kernels); /* launches: at least one */
  LsTime sum = 0;
  bool is_behind = !s->grad_norm;
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernel *k = &g_array_index (kernels, LsKernel, i);
    if (is_behind && k->kind != LS_KERNEL_REDUCTION)
      sum += bound_kernel_time (b->kernels, &cluster->spec, false, k);
    is_behind |= k->kind == LS_KERNEL_REDUCTION;
  }
  g_hash_table_insert (b->optimizer, g_memdup2 (&key, sizeof key), g_memdup2 (&sum, sizeof sum));
  return sum;
}

typedef struct {
  BoundPart sum, first; /* all chunks of a rank; chunk 0 */
  LsTime fsdp;          /* what FSDP adds to its passes  */
} RankParts;

static RankParts
rank_parts (const LsBounds *b, const LsStrategy *s, const LsSched *sched, const Entry *e, uint32_t rank,
            uint32_t n_mb)
{
  RankParts r = { 0 };
  for (uint32_t c = 0; c < s->vpp; c++) {
    BoundPart p = bound_chunk (b, e->part, bound_stage (s, sched, rank, c), s->pp * s->vpp);
    if (c == 0)
      r.first = p;
    r.sum.f += p.f;
    r.sum.b += p.b;
    r.sum.w += p.w;
    r.sum.reduce += p.reduce;
    r.sum.units.copy_in += p.units.copy_in;
    bound_add_sizes (&r.sum, &p);
    r.fsdp += bound_fsdp_passes (s, &p, n_mb);
  }
  return r;
}

/* Groups of messages between the first forward and the end of the last send of a rank, for which compute
 * waits (lower_megatron.c): one behind each forward that another rank needs, and behind each backward of
 * the cool-down; without interleaving behind each backward. */
static uint64_t
n_blocking (const LsStrategy *s, const LsSched *sched, uint32_t rank, uint32_t n_mb)
{
  const LsSchedShape shape = ls_strategy_sched_shape (s, n_mb);
  bool is_batched = s->p2p == LS_P2P_BATCHED || s->p2p == LS_P2P_SCATTER_GATHER;
  if (!is_batched || sched->recipe != LS_RECIPE_MEGATRON || s->pp == 1)
    return 0;
  uint64_t n_sent = (uint64_t) n_mb * (s->vpp - (rank + 1 == s->pp ? 1 : 0));
  uint64_t n_back = s->vpp > 1 ? sched->n_warmup (&shape, rank) : n_mb;
  return n_sent + (rank > 0 ? n_back : 0);
}

/* Of the first chunk of a rank; of one without layers the embedding, which has no experts. */
static const BoundPart *
first_layer (const LsBounds *b, const Entry *e, uint32_t rank)
{
  uint32_t first = b->first[rank];
  for (uint32_t i = 0; i < b->n_kinds && b->layers[rank] > 0; i++)
    if (b->n_of_kind[i][first + 1] > b->n_of_kind[i][first])
      return &e->part[PART_LAYER + i];
  return &e->part[PART_EMBEDDING];
}

/* Of the stages, in each step: the norm that all wait for. */
static bool
has_barrier (const LsStrategy *s)
{
  return s->grad_norm && !s->post_validation;
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
  if (b->attention_kernel == s->attention_kernel && b->n_gpus == s->gpus)
    return;
  b->attention_kernel = s->attention_kernel;
  b->n_gpus = s->gpus;
  ls_hardware_for_job (b->hardware, s, s->gpus, &b->chosen);
  bound_kernels_forget (b->kernels);
}

LsTime
ls_bound_step (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  g_autofree uint32_t *gpus = s->allocation ? ls_job_gpus (s, cluster, NULL) : NULL;
  b->variant = variant;
  b->gpus = gpus;
  choose_hardware (b, s);
  bound_find_chunks (b, s);
  const Entry *e = entry_of (b, s, cluster, sched);
  uint32_t n_mb = s->global_batch / (s->dp * s->micro_batch);
  bool is_loop = sched->placement == LS_PLACE_LOOP, has_pipes = sched->placement == LS_PLACE_PIPES;
  bool comes_back = is_loop && !is_split (s, sched)
      && ls_sched_is_flushed (sched); /* the last B of rank 0 is behind all of a step */
  bool comes_back_apart = is_loop && sched->is_split && !s->delay_wgrad && ls_sched_is_flushed (sched)
      && has_barrier (s) && !ls_dp_traits (s->dp_kind)->cuts_operators;
  const BoundComm comm = { b->times, cluster, s, gpus };
  LsTime fill = 0, drain = 0, drain_apart = 0, all = 0, first_optimizer = 0, first_reduction = 0, first_w = 0;
  LsTime step = 0;
  for (uint32_t r = 0; r < s->pp; r++) {
    RankParts p = rank_parts (b, s, sched, e, r, n_mb);
    const BoundRank rank = { &p.sum, first_layer (b, e, r), r == 0 };
    uint64_t n_messages = n_blocking (s, sched, r, n_mb);
    LsTime gathers = is_loop ? bound_first_gathers (&comm, &rank) : 0, message = e->message,
           own_messages = (LsTime) n_messages * message;
    LsTime work = n_mb * (p.sum.f + p.sum.b) + own_messages + gathers
        + (has_pipes ? 0 : p.sum.reduce + p.fsdp + bound_zero3_passes (&comm, &p.sum, n_mb));
    uint64_t n_owned = bound_n_owned (b->model, s, &p.sum);
    LsTime optimizer
        = has_pipes ? 0 : optimizer_time (b, s, cluster, n_owned) + bound_last_gathers (&comm, &rank);
    LsTime reduction = has_pipes ? 0 : bound_reductions (&comm, &rank);
    if (r == 0)
      first_optimizer = optimizer, first_reduction = reduction, first_w = p.first.w;
    LsTime tail = comes_back ? first_reduction : 0;
    LsTime own = optimizer + work + reduction, chain = first_optimizer + fill + work + drain + tail;
    if (has_barrier (s)) {
      own = optimizer + work + MAX (drain + tail, reduction);
      chain = first_optimizer + fill + work + MAX (drain + tail, reduction);
    } else if (!comes_back)
      chain = 0;
    if (comes_back_apart)
      chain = MAX (chain,
                   first_optimizer + fill + n_mb * (p.sum.f + p.sum.b - p.sum.w) + own_messages + gathers
                       + drain_apart + first_w + first_reduction);
    all += work;
    step = MAX (step, has_pipes ? all / s->pp : MAX (own, chain));
    LsTime sent_back = r > 0 || n_messages == 0 ? message : 0;
    fill += is_loop ? p.first.f + bound_fsdp_forward (s, &p.first) + gathers + message : 0;
    drain += comes_back ? p.first.b + sent_back : 0;
    drain_apart += p.first.b - p.first.w + sent_back;
  }
  b->gpus = NULL;
  return step;
}

LsLowerBound
ls_bound (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  return (LsLowerBound) { ls_bound_step (b, s, cluster, variant), ls_bound_memory (b, s, cluster, variant) };
}
