/* bound/bound_memory.c — what a rank holds at least: for a step, and of what is in flight.
 *
 * However layers lie. Where rank r of a pipeline holds w_r for each of its layers of a kind, and n of these
 * are spread over all ranks, the fullest holds at least n / (sum over r of 1 / w_r): if each held less, they
 * would have less than n layers. */
#include "bound/bound_state.h"

#include <string.h>

#include "base/digest.h"
#include "strategy/shard.h"

LS_DEFINE_BYTES_KEY (key, Key)

GHashTable *
bound_sizes_table_new (void)
{
  return g_hash_table_new_full (key_hash, key_equal, NULL, g_free);
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
  key->tp = s->tp, key->cp = s->cp, key->ep = s->ep, key->etp = s->etp;
  key->micro_batch = s->micro_batch, key->seq = s->seq, key->sp = s->sp;
  key->is_fresh = shard.grad_is_fresh, key->is_cast = shard.grad_is_cast;
  key->has_head_weight = !b->model->tied_embeddings || !ends_where_it_begins;
  key->recompute = (uint32_t) s->recompute, key->recompute_parts = s->recompute_parts;
}

static const Sizes *
sizes_of (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, const LsSched *sched)
{
  Key key;
  bound_fill_key (&key, b, s, cluster, sched);
  if (b->last_sizes && key_equal (&b->last_sizes->key, &key))
    return b->last_sizes;
  b->last_sizes = g_hash_table_lookup (b->sizes, &key);
  if (b->last_sizes)
    return b->last_sizes;
  Sizes *sizes = g_new0 (Sizes, 1);
  sizes->key = key;
  bound_sizes (b->model, s, key.has_head_weight != 0, sizes->part);
  g_hash_table_insert (b->sizes, &sizes->key, sizes);
  return b->last_sizes = sizes;
}

/* What those among them keep that are of this chunk. */
static uint64_t
n_of_chunk (const LsStrategy *s, uint64_t n_passes, uint32_t chunk)
{
  uint64_t round = (uint64_t) s->pp * s->vpp, rest = n_passes % round, from = (uint64_t) chunk * s->pp;
  return n_passes / round * s->pp + (rest > from ? MIN (rest - from, s->pp) : 0);
}

void
bound_add_sizes (BoundPart *to, const BoundPart *p)
{
  to->n_params += p->n_params;
  to->n_expert += p->n_expert;
  to->n_most = MAX (to->n_most, p->n_most);
  to->n_persistent += p->n_persistent;
  to->n_persistent_experts += p->n_persistent_experts;
  to->n_frozen += p->n_frozen;
  to->n_frozen_experts += p->n_frozen_experts;
  to->n_nf4 += p->n_nf4;
}

/* What it holds for the whole step, and of what is in flight. */
static uint64_t
rank_bytes (const LsBounds *b, const LsStrategy *s, const LsSched *sched, const Sizes *sizes, uint32_t rank,
            uint32_t n_mb)
{
  const LsSchedShape shape = ls_strategy_sched_shape (s, n_mb);
  uint64_t n_passes = ls_sched_in_flight (sched, &shape, rank), kept = 0;
  BoundPart sum = { 0 };
  for (uint32_t c = 0; c < s->vpp; c++) {
    BoundPart p = bound_chunk (b, sizes->part, bound_stage (s, sched, rank, c), s->pp * s->vpp);
    bound_add_sizes (&sum, &p);
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
  const Sizes *sizes = sizes_of (b, s, cluster, sched);
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
  const Sizes *sizes = sizes_of (b, s, cluster, sched);
  for (uint32_t k = 0; k < b->n_kinds; k++) {
    double n_on_all = 0; /* of a byte each */
    for (uint32_t r = 0; r < s->pp; r++)
      n_on_all
          += 1
          / (double) MAX (
                 1, layer_bytes (b, s, &sizes->part[PART_LAYER + k], ls_sched_in_flight (sched, &shape, r)));
    most = MAX (most, b->n_of_kind[k][b->model->n_layers] / n_on_all);
  }
  return (uint64_t) (most * 0.999999); /* rounded sums */
}
