#include "analysis/critical_link.h"

#include <math.h>

#include "cluster/route.h"
#include "core/maxmin.h"
#include "exec/calls.h"

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
  const LsCommunicator *comm = &l->plan->comms[id];
  g_autofree char *key = g_strdup_printf ("%u %u %u %u %" G_GUINT64_FORMAT " %u", id, op->coll, op->root,
                                          op->parts, op->bytes, op->algorithm);
  const LsCallLimit *known = g_hash_table_lookup (l->known, key);
  if (known)
    return *known;
  g_autofree uint32_t *ranks = ls_comm_ranks (comm);
  return remember (l, g_steal_pointer (&key), limit_of_ranks (l, collective_key (op), ranks, comm->n_ranks));
}

LsCallLimit
ls_limit_of_transfer (LsCallLimits *l, uint32_t from, uint32_t to, uint64_t bytes)
{
  if (!l->cluster || !l->nccl)
    return (LsCallLimit) { .link = NO_LINK };
  g_autofree char *key = g_strdup_printf ("%u>%u %" G_GUINT64_FORMAT, from, to, bytes);
  const LsCallLimit *known = g_hash_table_lookup (l->known, key);
  if (known)
    return *known;
  const uint32_t ranks[] = { from, to };
  return remember (l, g_steal_pointer (&key), limit_of_ranks (l, transfer_key (bytes), ranks, 2));
}

LsCallLimit
ls_limit_of_copy (LsCallLimits *l, uint32_t rank, const LsOp *op)
{
  LsCallLimit limit = { .link = NO_LINK };
  if (!l->cluster || op->recorded != LS_TIME_NEVER)
    return limit;
  LsRoute route = { 0 };
  uint32_t gpu = l->plan->gpu_of_rank[rank];
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
