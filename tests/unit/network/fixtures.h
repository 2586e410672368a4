/* tests/unit/network/fixtures.h — NCCL constants in round numbers, and sums over
 * the loads of a plan. */
#ifndef LS_TESTS_NETWORK_FIXTURES_H
#define LS_TESTS_NETWORK_FIXTURES_H

#include "ls_test.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"
#include "built_cluster.h"

#include "core/maxmin.h"
#include "network/coll.h"

#define MIB (UINT64_C (1) << 20)

static const LsNccl round_nccl = {
  LS_TEST_NCCL_ALONE,
};

/* What ls_coll_plan() chooses. */
static inline LsCollPlan *
plan_of (const LsCluster *c, const LsNccl *nccl, LsCollKind kind, const uint32_t *gpus, uint32_t n,
         uint64_t bytes, LsNetworkFidelity fidelity, LsArena *arena)
{
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  return ls_coll_plan (c, nccl, &request, fidelity, arena);
}

/* By the algorithm of that name. */
static inline LsCollPlan *
plan_by (const LsCluster *c, const LsNccl *nccl, const char *algorithm, LsCollKind kind, const uint32_t *gpus,
         uint32_t n, uint64_t bytes, LsArena *arena)
{
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes, .algorithm = algorithm };
  return ls_coll_plan (c, nccl, &request, LS_NETWORK_FLOW, arena);
}

/* n GPUs: the first `per_node` of each node. */
static inline void
spread (uint32_t *gpus, uint32_t n, uint32_t per_node)
{
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = i / per_node * 8 + i % per_node;
}

/* Of the phase, bytes that cross a resource. */
static inline double
bytes_of (const LsPhase *phase, const LsLoad *load)
{
  return (double) load->coef / (double) LS_COEF_ONE * phase->demand_bytes;
}

/* Coefficient on the resource of that name, 0 where it is not loaded. */
static inline uint64_t
coef_on (const LsCluster *c, const LsPhase *phase, const char *name)
{
  for (uint32_t i = 0; i < phase->n_loads; i++) {
    g_autofree char *is = ls_cluster_resource_name (c, phase->loads[i].resource);
    if (g_strcmp0 (is, name) == 0)
      return phase->loads[i].coef;
  }
  return 0;
}

/* Bytes over all trunks whose name matches the glob. */
static inline double
bytes_on (const LsCluster *c, const LsPhase *phase, const char *glob)
{
  double sum = 0;
  for (uint32_t i = 0; i < phase->n_loads; i++) {
    g_autofree char *name = ls_cluster_resource_name (c, phase->loads[i].resource);
    if (g_pattern_match_simple (glob, name))
      sum += bytes_of (phase, &phase->loads[i]);
  }
  return sum;
}

#endif
