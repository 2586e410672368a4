#include "sweep/layouts.h"

#include <string.h>

#include "base/digest.h"
#include "job/job_steps.h"
#include "schedules/sched.h"
#include "strategy/shard.h"

/* What the times of parts depend on among what configurations differ in. No gaps: hashed and compared as
 * bytes. */
typedef struct {
  const LsCluster *cluster;
  uint64_t variant;
  uint64_t global_batch; /* of which documents have a mean; 0: they fill sequences */
  uint32_t gpus, tp, cp, ep, etp, micro_batch, seq, sp, tp_overlap, recompute, recompute_parts;
  uint32_t grad_is_cast, grad_is_fresh;
  uint32_t n_copies;                 /* 0: the groups of the first rank lie alike with any */
  uint32_t placement, ends_together; /* a weight that embedding and head share             */
} Key;

typedef struct {
  Key key;
  bool is_known; /* else such a job cannot be lowered          */
  guint number;  /* of the first entry with these times        */
  LsPartTimes times;
} Entry;

/* A collective of the group of the first rank, where ranks are in the usual order. */
typedef struct {
  const LsCluster *cluster;
  uint64_t bytes;
  uint32_t tp, cp, ep, etp;
  int slot, coll;
} CallKey;

/* What the layers of chunks depend on, of one model. */
typedef struct {
  const LsSched *pipes; /* NULL: its chunks are as many as the strategy says */
  uint32_t pp, vpp, placement, rule;
  guint number; /* of an entry */
} ChunksKey;

typedef struct {
  ChunksKey key;
  uint32_t *layers; /* [pp * vpp] */
} Chunks;

struct LsLayouts {
  const LsModel *model;
  const LsHardware *hardware;
  GHashTable *entries; /* Key -> Entry                                 */
  GHashTable *times;   /* Entry -> itself, one for each set of times   */
  GHashTable *chunks;  /* ChunksKey -> Chunks                          */
  GHashTable *calls;   /* CallKey -> LsTime *                          */
  LsCallTimes *call_times;
};

LS_DEFINE_BYTES_KEY (key, Key)
LS_DEFINE_BYTES_KEY (chunks_key, ChunksKey)
LS_DEFINE_BYTES_KEY (call_key, CallKey)

static guint
times_hash (gconstpointer entry)
{
  return ls_hash_bytes (&((const Entry *) entry)->times, sizeof (LsPartTimes));
}

static gboolean
times_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (&((const Entry *) a)->times, &((const Entry *) b)->times, sizeof (LsPartTimes)) == 0;
}

static void
chunks_free (gpointer chunks)
{
  g_free (((Chunks *) chunks)->layers);
  g_free (chunks);
}

LsLayouts *
ls_layouts_new (const LsModel *m, const LsHardware *hardware)
{
  LsLayouts *l = g_new (LsLayouts, 1);
  *l = (LsLayouts) { m,
                     hardware,
                     g_hash_table_new_full (key_hash, key_equal, NULL, g_free),
                     g_hash_table_new (times_hash, times_equal),
                     g_hash_table_new_full (chunks_key_hash, chunks_key_equal, NULL, chunks_free),
                     g_hash_table_new_full (call_key_hash, call_key_equal, g_free, g_free),
                     ls_call_times_new (&hardware->nccl) };
  return l;
}

void
ls_layouts_free (LsLayouts *l)
{
  if (!l)
    return;
  g_hash_table_unref (l->times);
  g_hash_table_unref (l->entries);
  g_hash_table_unref (l->chunks);
  g_hash_table_unref (l->calls);
  ls_call_times_free (l->call_times);
  g_free (l);
}

/* Ranks in the usual order have tp, cp, ep and etp, whose groups are timed, before all else. */
static bool
is_in_usual_order (const LsStrategy *s)
{
  return !s->layout.rank_order && !s->layout.allocation;
}

static void
fill_key (Key *key, const LsStrategy *s, const LsModel *m, const LsCluster *cluster)
{
  const LsShard shard = ls_strategy_shard (s, m);
  const LsSched *sched = ls_sched_find (s->schedule);
  memset (key, 0, sizeof *key);
  key->cluster = cluster;
  key->global_batch = s->docs.lengths ? s->global_batch : 0;
  key->gpus = s->gpus, key->tp = s->tp, key->cp = s->cp, key->ep = s->ep, key->etp = s->experts.etp;
  key->micro_batch = s->micro_batch, key->seq = s->seq, key->sp = s->sp, key->tp_overlap = s->mp.tp_overlap;
  key->recompute = (uint32_t) s->recompute, key->recompute_parts = s->memory.recompute_parts;
  key->grad_is_cast = shard.grad_is_cast, key->grad_is_fresh = shard.grad_is_fresh;
  key->n_copies = is_in_usual_order (s) ? 0 : s->dp * s->cp;
  key->placement = (uint32_t) sched->placement;
  key->ends_together = m->tied_embeddings && s->vpp % 2 == 0;
}

/* Costs of a job, with calls that were timed before. */
typedef struct {
  LsLowerCosts own;
  CallKey key; /* of all its calls */
  GHashTable *calls;
} KnownCosts;

static LsTime
known_kernel (const LsKernel *kernel, void *data)
{
  const LsLowerCosts *own = &((const KnownCosts *) data)->own;
  return own->kernel (kernel, own->data);
}

static LsTime
known_collective (int slot, int coll, uint64_t bytes, void *data)
{
  KnownCosts *costs = data;
  CallKey *key = &costs->key;
  key->slot = slot, key->coll = coll, key->bytes = bytes;
  LsTime *known = g_hash_table_lookup (costs->calls, key);
  if (!known) {
    LsTime time = costs->own.collective (slot, coll, bytes, costs->own.data);
    known = g_memdup2 (&time, sizeof time);
    g_hash_table_insert (costs->calls, g_memdup2 (key, sizeof *key), known);
  }
  return *known;
}

/* As a job is timed in job/job.c. */
static bool
time_parts (const LsLayouts *l, const LsStrategy *s, const LsCluster *cluster, LsPartTimes *ret_times)
{
  LsHardware chosen;
  ls_hardware_for_job (l->hardware, s, s->gpus, &chosen);
  g_autofree uint32_t *gpus = ls_job_gpus (s, cluster, NULL);
  if (!gpus)
    return false;
  LsCostSources of = { &chosen, cluster, s, l->call_times, gpus };
  KnownCosts known = { ls_lower_costs (&of), { .cluster = cluster }, l->calls };
  CallKey *key = &known.key;
  key->tp = s->tp, key->cp = s->cp, key->ep = s->ep, key->etp = s->experts.etp;
  const LsLowerCosts costs = { known_kernel, known_collective, known.own.send, &known };
  return ls_part_times (l->model, s, is_in_usual_order (s) ? &costs : &known.own, ret_times, NULL);
}

static void
set_balanced (LsLayouts *l, LsStrategy *s, const Entry *e)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  ChunksKey key;
  memset (&key, 0, sizeof key);
  key.number = e->number, key.rule = (uint32_t) s->layout.layer_rule, key.pp = s->pp, key.vpp = s->vpp,
  key.placement = (uint32_t) sched->placement;
  key.pipes = sched->placement == LS_PLACE_PIPES ? sched : NULL;
  const Chunks *known = g_hash_table_lookup (l->chunks, &key);
  if (known) {
    ls_strategy_set_layers (s, known->layers);
    return;
  }
  ls_strategy_set_balanced (s, l->model, &e->times);
  Chunks *c = g_new (Chunks, 1);
  c->key = key;
  c->layers = g_memdup2 (s->layout.layers_per_chunk, s->layout.n_layers_per_chunk * sizeof *c->layers);
  g_hash_table_insert (l->chunks, &c->key, c);
}

bool
ls_layouts_balance (LsLayouts *l, LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  Key key;
  if (!ls_chunks_want_balance (s, l->model))
    return true;
  fill_key (&key, s, l->model, cluster);
  key.variant = variant;
  Entry *e = g_hash_table_lookup (l->entries, &key);
  if (!e) {
    e = g_new0 (Entry, 1);
    e->key = key;
    e->is_known = time_parts (l, s, cluster, &e->times);
    e->number = g_hash_table_size (l->entries);
    const Entry *same = g_hash_table_lookup (l->times, e);
    if (same)
      e->number = same->number;
    else
      g_hash_table_add (l->times, e);
    g_hash_table_insert (l->entries, &e->key, e);
  }
  if (e->is_known)
    set_balanced (l, s, e);
  return e->is_known;
}
