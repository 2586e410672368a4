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
  uint32_t dp_kind, zero_stage, n_copies; /* some cast gradients, some begin them anew */
  uint32_t placement, ends_together;      /* a weight that embedding and head share   */
} Key;

typedef struct {
  Key key;
  bool is_known; /* else such a job cannot be lowered */
  LsPartTimes times;
} Entry;

struct LsLayouts {
  const LsModel *model;
  const LsHardware *hardware;
  GHashTable *entries; /* Key -> Entry */
  LsCallTimes *call_times;
};

LS_DEFINE_BYTES_KEY (key, Key)

LsLayouts *
ls_layouts_new (const LsModel *m, const LsHardware *hardware)
{
  LsLayouts *l = g_new (LsLayouts, 1);
  *l = (LsLayouts) { m, hardware, g_hash_table_new_full (key_hash, key_equal, NULL, g_free),
                     ls_call_times_new (&hardware->nccl) };
  return l;
}

void
ls_layouts_free (LsLayouts *l)
{
  if (!l)
    return;
  g_hash_table_unref (l->entries);
  ls_call_times_free (l->call_times);
  g_free (l);
}

static void
fill_key (Key *key, const LsStrategy *s, const LsCluster *cluster)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  memset (key, 0, sizeof *key);
  key->cluster = cluster;
  key->global_batch = s->lengths ? s->global_batch : 0;
  key->gpus = s->gpus, key->tp = s->tp, key->cp = s->cp, key->ep = s->ep, key->etp = s->etp;
  key->micro_batch = s->micro_batch, key->seq = s->seq, key->sp = s->sp, key->tp_overlap = s->tp_overlap;
  key->recompute = (uint32_t) s->recompute, key->recompute_parts = s->recompute_parts;
  key->dp_kind = (uint32_t) s->dp_kind, key->zero_stage = s->zero_stage, key->n_copies = s->dp * s->cp;
  key->placement = (uint32_t) sched->placement, key->ends_together = s->vpp % 2 == 0;
}

/* As a job is timed in job/job.c. */
static bool
time_parts (const LsLayouts *l, const LsStrategy *s, const LsCluster *cluster, LsPartTimes *ret_times)
{
  LsHardware chosen;
  if (!ls_hardware_for_job (l->hardware, s->attention_kernel, s->gpus, &chosen, NULL))
    return false;
  g_autofree uint32_t *gpus = ls_job_gpus (s, cluster, NULL);
  if (!gpus)
    return false;
  LsCostSources of = { &chosen, cluster, s, l->call_times, gpus };
  const LsLowerCosts costs = ls_lower_costs (&of);
  return ls_part_times (l->model, s, &costs, ret_times, NULL);
}

bool
ls_layouts_balance (LsLayouts *l, LsStrategy *s, const LsCluster *cluster, uint64_t variant)
{
  Key key;
  if (!ls_chunks_want_balance (s, l->model))
    return true;
  fill_key (&key, s, cluster);
  key.variant = variant;
  Entry *e = g_hash_table_lookup (l->entries, &key);
  if (!e) {
    e = g_new0 (Entry, 1);
    e->key = key;
    e->is_known = time_parts (l, s, cluster, &e->times);
    g_hash_table_insert (l->entries, &e->key, e);
  }
  if (e->is_known)
    ls_strategy_set_balanced (s, l->model, &e->times);
  return e->is_known;
}
