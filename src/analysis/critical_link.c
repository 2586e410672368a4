/* analysis/critical_link.c — what a critical path went through: which link limits a call and how it is
 * run; sums by kind, op, link and rank. */
#include "analysis/critical_path.h"

#include <math.h>
#include <string.h>

#include "cluster/route.h"
#include "core/maxmin.h"
#include "exec/replay/calls.h"

/* --- a critical path added up: by kind, op, link and rank ---------------------------------------- */

void
ls_path_summary_free (LsPathSummary *s)
{
  if (!s)
    return;
  for (guint i = 0; i < s->links->len; i++)
    g_free (g_array_index (s->links, LsPathLink, i).name);
  g_array_unref (s->ops);
  g_array_unref (s->links);
  g_array_unref (s->ranks);
  g_array_unref (s->hops);
  g_free (s);
}

/* The place in an array of what has this key; a new one at its end for a new key. Takes key. */
static guint
place_of (GHashTable *places, char *key, GArray *rows)
{
  gpointer place;
  if (g_hash_table_lookup_extended (places, key, NULL, &place)) {
    g_free (key);
    return GPOINTER_TO_UINT (place);
  }
  g_hash_table_insert (places, key, GUINT_TO_POINTER (rows->len));
  g_array_set_size (rows, rows->len + 1); /* zeros */
  return rows->len - 1;
}

static void
add_op (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  const char *name = ls_path_name (path, piece);
  guint at = place_of (places, g_strdup_printf ("%d %s", (int) piece->kind, name), s->ops);
  LsPathOp *op = &g_array_index (s->ops, LsPathOp, at);
  op->name = name;
  op->kind = piece->kind;
  op->time += piece->to - piece->from;
  op->n++;
}

static void
add_link (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  if (piece->link == LS_PATH_NO_LINK)
    return;
  guint at = place_of (places, g_strdup_printf ("%u", piece->link), s->links);
  LsPathLink *link = &g_array_index (s->links, LsPathLink, at);
  if (!link->name)
    link->name = ls_cluster_resource_name (path->cluster, piece->link);
  link->n_alike = MAX (link->n_alike, piece->n_links);
  link->time += piece->to - piece->from;
  link->busy_s += piece->busy_s;
  link->n++;
}

static void
add_rank (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  const LsTimeline *t = path->timeline;
  guint at = place_of (places, g_strdup_printf ("%u", piece->rank), s->ranks);
  LsPathRank *rank = &g_array_index (s->ranks, LsPathRank, at);
  rank->rank = piece->rank;
  rank->stage = t->plan->programs[ls_plan_role (t->plan, piece->rank)].stage;
  rank->class = ls_timeline_representative (t, piece->rank);
  rank->n_class = ls_timeline_multiplicity (t, rank->class);
  rank->time += piece->to - piece->from;
}

static void
add_hop (LsPathSummary *s, const LsCriticalPath *path, const LsPathPiece *piece, const LsPathPiece *before)
{
  if (!before || before->rank == piece->rank)
    return;
  const LsPathHop hop
      = { before->rank, piece->rank, piece->from - path->timeline->window_start, ls_path_name (path, piece) };
  g_array_append_val (s->hops, hop);
}

static int
by_order (LsTime a, LsTime b, int otherwise)
{
  return a != b ? (a > b ? -1 : 1) : otherwise;
}

static int
by_op (const void *a, const void *b)
{
  const LsPathOp *x = a, *y = b;
  int order = strcmp (x->name, y->name);
  return by_order (x->time, y->time, order != 0 ? order : (int) x->kind - (int) y->kind);
}

static int
by_link (const void *a, const void *b)
{
  const LsPathLink *x = a, *y = b;
  return by_order (x->time, y->time, strcmp (x->name, y->name));
}

static int
by_rank (const void *a, const void *b)
{
  const LsPathRank *x = a, *y = b;
  return by_order (x->time, y->time, x->rank < y->rank ? -1 : x->rank > y->rank);
}

static GHashTable *
places_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

LsPathSummary *
ls_path_summary_new (const LsCriticalPath *path)
{
  g_autoptr (GHashTable) ops = places_new (), links = places_new (), ranks = places_new ();
  LsPathSummary *s = g_new0 (LsPathSummary, 1);
  s->ops = g_array_new (FALSE, TRUE, sizeof (LsPathOp));
  s->links = g_array_new (FALSE, TRUE, sizeof (LsPathLink));
  s->ranks = g_array_new (FALSE, TRUE, sizeof (LsPathRank));
  s->hops = g_array_new (FALSE, TRUE, sizeof (LsPathHop));
  const LsPathPiece *pieces = (const LsPathPiece *) (gpointer) path->pieces->data;
  for (guint i = 0; i < path->pieces->len; i++) {
    s->step += pieces[i].to - pieces[i].from;
    s->by_kind[pieces[i].kind] += pieces[i].to - pieces[i].from;
    add_op (s, ops, path, &pieces[i]);
    add_link (s, links, path, &pieces[i]);
    add_rank (s, ranks, path, &pieces[i]);
    add_hop (s, path, &pieces[i], i > 0 ? &pieces[i - 1] : NULL);
  }
  g_assert_cmpint (s->step, ==, path->timeline->window_end - path->timeline->window_start);
  g_array_sort (s->ops, by_op);
  g_array_sort (s->links, by_link);
  g_array_sort (s->ranks, by_rank);
  return s;
}

/* --- which link limits a call, and how it is run ------------------------------------------------- */

#define NO_LINK UINT32_MAX
#define ALIKE   1e-9 /* relative: sums of the same terms in another order */

struct LsCallLimits {
  const LsPlan *plan;
  const LsCluster *cluster;
  const LsNccl *nccl;
  GHashTable *known; /* char * to LsCallLimit * */
};

LsCallLimits *
ls_call_limits_new (const LsPlan *plan, const LsCluster *cluster, const LsNccl *nccl)
{
  LsCallLimits *l = g_new (LsCallLimits, 1);
  *l = (LsCallLimits) { plan, cluster, nccl,
                        g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free) };
  return l;
}

void
ls_call_limits_free (LsCallLimits *l)
{
  if (!l)
    return;
  g_hash_table_unref (l->known);
  g_free (l);
}

/* Seconds by resource. */
typedef struct {
  GArray *resources; /* uint32_t, ascending within each phase */
  double *busy_s;    /* [n_resources] */
} Busy;

static void
add_busy (Busy *b, uint32_t resource, double seconds)
{
  if (b->busy_s[resource] == 0)
    g_array_append_val (b->resources, resource);
  b->busy_s[resource] += seconds;
}

/* The lowest of those that need longest. */
static LsCallLimit
longest (const Busy *b, LsTime latency)
{
  LsCallLimit limit = { .latency = latency, .link = NO_LINK };
  for (guint i = 0; i < b->resources->len; i++)
    limit.busy_s = fmax (limit.busy_s, b->busy_s[g_array_index (b->resources, uint32_t, i)]);
  for (guint i = 0; i < b->resources->len; i++) {
    uint32_t resource = g_array_index (b->resources, uint32_t, i);
    if (b->busy_s[resource] < limit.busy_s * (1 - ALIKE))
      continue;
    limit.link = MIN (limit.link, resource);
    limit.n_links++;
  }
  return limit;
}

static LsCallLimit
limit_of_plan (const LsCluster *c, const LsCollPlan *plan)
{
  LsTime latency = 0;
  g_autofree double *busy_s = g_new0 (double, ls_cluster_n_resources (c));
  Busy busy = { g_array_new (FALSE, FALSE, sizeof (uint32_t)), busy_s };
  for (uint32_t p = 0; p < plan->n_phases; p++) {
    const LsPhase *phase = &plan->phases[p];
    latency += phase->latency;
    for (uint32_t i = 0; phase->demand_bytes > 0 && i < phase->n_loads; i++) {
      double flows = (double) phase->loads[i].coef / (double) LS_COEF_ONE;
      double capacity = ls_cluster_resource_capacity (c, phase->loads[i].resource);
      if (flows > 0 && capacity > 0)
        add_busy (&busy, phase->loads[i].resource, phase->demand_bytes * flows / capacity);
    }
  }
  LsCallLimit limit = longest (&busy, latency);
  g_array_unref (busy.resources);
  return limit;
}

static LsCallLimit
limit_of_ranks (const LsCallLimits *l, CallKey key, const uint32_t *ranks, uint32_t n)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollRequest request = call_request (l->plan, key, ranks, n, NULL, arena);
  const LsCollPlan *plan = ls_coll_plan (l->cluster, l->nccl, &request, LS_NETWORK_FLOW, arena);
  LsCallLimit limit = limit_of_plan (l->cluster, plan);
  limit.algorithm = plan->algorithm;
  limit.protocol = plan->protocol;
  return limit;
}

/* Takes key. */
static LsCallLimit
remember (LsCallLimits *l, char *key, LsCallLimit limit)
{
  g_hash_table_insert (l->known, key, g_memdup2 (&limit, sizeof limit));
  return limit;
}

LsCallLimit
ls_limit_of_call (LsCallLimits *l, uint32_t rank, const LsOp *op)
{
  if (!l->cluster || !l->nccl)
    return (LsCallLimit) { .link = NO_LINK };
  uint32_t id = ls_plan_comm_of (l->plan, rank, op->slot);
  const LsCommunicator comm = ls_plan_communicator (l->plan, id);
  g_autofree char *key
      = g_strdup_printf ("%u %u %u %u %" G_GUINT64_FORMAT " %u %u %u %u", id, op->coll, op->root, op->parts,
                         op->bytes, op->algorithm, op->max_ctas, op->is_light, op->carries_scores);
  const LsCallLimit *known = g_hash_table_lookup (l->known, key);
  if (known)
    return *known;
  g_autofree uint32_t *ranks = ls_comm_ranks (&comm);
  return remember (l, g_steal_pointer (&key), limit_of_ranks (l, collective_key (op), ranks, comm.n_ranks));
}

LsCallLimit
ls_limit_of_transfer (LsCallLimits *l, uint32_t from, uint32_t to, const LsTransfer *t)
{
  if (!l->cluster || !l->nccl)
    return (LsCallLimit) { .link = NO_LINK };
  g_autofree char *key = g_strdup_printf ("%u>%u %" G_GUINT64_FORMAT " %u", from, to, t->bytes, t->max_ctas);
  const LsCallLimit *known = g_hash_table_lookup (l->known, key);
  if (known)
    return *known;
  const uint32_t ranks[] = { from, to };
  return remember (l, g_steal_pointer (&key),
                   limit_of_ranks (l, transfer_key (t->bytes, t->max_ctas), ranks, 2));
}

LsCallLimit
ls_limit_of_copy (LsCallLimits *l, uint32_t rank, const LsOp *op)
{
  LsCallLimit limit = { .link = NO_LINK };
  if (!l->cluster || op->recorded != LS_TIME_NEVER)
    return limit;
  LsRoute route = { 0 };
  uint32_t gpu = ls_plan_gpu (l->plan, rank);
  bool is_nvme = op->root == LS_COPY_FROM_NVME || op->root == LS_COPY_TO_NVME;
  if (is_nvme)
    ls_route_nvme (l->cluster, gpu, op->root == LS_COPY_TO_NVME, &route);
  else
    ls_route_host_memory (l->cluster, gpu, op->root != LS_COPY_TO_DEVICE, &route);
  bool is_in_host = op->root == LS_COPY_IN_HOST;
  limit.latency = is_in_host ? 0 : route.latency;
  for (uint32_t i = is_in_host ? route.n_hops - 1 : 0; i < route.n_hops; i++) {
    double capacity = ls_cluster_resource_capacity (l->cluster, route.hop[i].trunk);
    double busy_s = (double) op->bytes * route.hop[i].share / LS_HOP_WHOLE / capacity;
    limit.n_links += busy_s == limit.busy_s;
    if (busy_s <= limit.busy_s)
      continue;
    limit.busy_s = busy_s;
    limit.link = route.hop[i].trunk;
    limit.n_links = 1;
  }
  return limit;
}
