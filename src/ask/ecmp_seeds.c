#include "ask/ecmp_seeds.h"

#include <math.h>

#include <lockstep/error.h>

#include "base/order.h"
#include "base/parallel.h"
#include "job/sensitivity_scale.h"

/* --- how crowded links are --------------------------------------------------------------- */

/* Links of one direction between two tiers of switches. */
typedef struct {
  uint32_t from, to; /* LsNodeKind */
  guint n;
  double sum, most;
  uint32_t busiest;
} Tier;

static bool
is_switch (uint32_t kind)
{
  return kind >= LS_NODE_LEAF;
}

static Tier *
tier_of (GArray *tiers, uint32_t from, uint32_t to)
{
  for (guint i = 0; i < tiers->len; i++) {
    Tier *t = &g_array_index (tiers, Tier, i);
    if (t->from == from && t->to == to)
      return t;
  }
  const Tier tier = { .from = from, .to = to };
  g_array_append_val (tiers, tier);
  return &g_array_index (tiers, Tier, tiers->len - 1);
}

/* Links of one trunk carry the same. */
static void
find_crowding (const LsTimeline *t, const LsCluster *c, LsEcmpDraw *draw)
{
  g_autoptr (GArray) tiers = g_array_new (FALSE, FALSE, sizeof (Tier));
  g_autofree bool *is_seen = g_new0 (bool, c->n_trunks + 1);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    uint32_t from = g_array_index (c->nodes, LsTopoNode, link->from).kind,
             to = g_array_index (c->nodes, LsTopoNode, link->to).kind;
    if (!is_switch (from) || !is_switch (to) || is_seen[link->trunk] || link->trunk >= t->n_resources)
      continue;
    is_seen[link->trunk] = true;
    Tier *tier = tier_of (tiers, from, to);
    double bytes = ls_timeline_bytes (t, link->trunk);
    tier->n++;
    tier->sum += bytes;
    if (bytes > tier->most) {
      tier->most = bytes;
      tier->busiest = link->trunk;
    }
  }
  for (guint i = 0; i < tiers->len; i++) {
    const Tier *tier = &g_array_index (tiers, Tier, i);
    double crowding = tier->sum > 0 ? tier->most * tier->n / tier->sum : 0;
    if (crowding <= draw->crowding)
      continue;
    draw->crowding = crowding;
    g_free (draw->busiest);
    draw->busiest = ls_cluster_resource_name (c, tier->busiest);
  }
}

/* --- running ----------------------------------------------------------------------------- */

/* Run 0 is the one with ideal spreading. */
typedef struct {
  const LsJobResult *r;
  LsRunOptions options;
  LsEcmpDraw *draws; /* [n + 1] */
  GError **errors;
} Runs;

static void
run_one (guint i, gpointer data)
{
  Runs *runs = data;
  LsHardware changed = { runs->r->cluster->spec, runs->r->hardware->calibration, runs->r->hardware->nccl };
  changed.spec.network.routing = i == 0 ? LS_ROUTING_IDEAL : LS_ROUTING_ECMP;
  changed.spec.network.seed = i == 0 ? 0 : i - 1;
  g_autoptr (LsCluster) cluster = NULL;
  g_autoptr (LsTimeline) t = ls_rerun (runs->r, &changed, &runs->options, &cluster, &runs->errors[i]);
  runs->draws[i].seed = changed.spec.network.seed;
  if (!t)
    return;
  runs->draws[i].step_s = ls_rerun_step_s (t);
  find_crowding (t, cluster, &runs->draws[i]);
}

static int
compare_draws (const void *a, const void *b)
{
  const LsEcmpDraw *x = a, *y = b;
  return x->step_s != y->step_s ? LS_ORDER (x->step_s, y->step_s) : LS_ORDER (x->seed, y->seed);
}

LsEcmpTable *
ls_ecmp_table_new (const LsJobSpec *spec, const LsJobResult *r, guint n_seeds, guint n_threads,
                   GError **error)
{
  g_assert (n_seeds > 0 && n_seeds <= LS_ECMP_MAX_SEEDS);
  const LsClusterSpec *c = &r->cluster->spec;
  if (c->n_nodes < 2 || c->interior == LS_INTERIOR_TORUS || ls_is_dragonfly (c)) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "no switch of a fabric chooses a link here: %s",
                 c->interior == LS_INTERIOR_TORUS ? "chips of a torus have links to each other"
                     : c->n_nodes < 2             ? "the job is on one node"
                                                  : "those of a dragonfly go by load, not by hash");
    return NULL;
  }
  g_autoptr (LsEcmpTable) table = g_new (LsEcmpTable, 1);
  *table = (LsEcmpTable) { .n = n_seeds, .draws = g_new0 (LsEcmpDraw, n_seeds + 1) };
  g_autofree GError **errors = g_new0 (GError *, n_seeds + 1);
  Runs runs = { .r = r, .draws = table->draws, .errors = errors };
  if (!ls_rerun_options (spec, r, &runs.options, error))
    return NULL;
  ls_parallel (n_seeds + 1, n_threads, run_one, &runs, NULL);
  if (ls_parallel_first_error (errors, n_seeds + 1, error) <= n_seeds)
    return NULL;
  table->ideal = table->draws[0];
  memmove (table->draws, table->draws + 1, n_seeds * sizeof *table->draws);
  table->draws[n_seeds] = (LsEcmpDraw) { 0 };
  qsort (table->draws, n_seeds, sizeof *table->draws, compare_draws);
  return g_steal_pointer (&table);
}

void
ls_ecmp_table_free (LsEcmpTable *table)
{
  if (!table)
    return;
  g_free (table->ideal.busiest);
  for (guint i = 0; i <= table->n; i++)
    g_free (table->draws[i].busiest);
  g_free (table->draws);
  g_free (table);
}

const LsEcmpDraw *
ls_ecmp_quantile (const LsEcmpTable *table, double share)
{
  double at = ceil (share * table->n) - 1;
  return &table->draws[(guint) CLAMP (at, 0, table->n - 1)];
}
