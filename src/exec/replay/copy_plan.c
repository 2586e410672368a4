/* exec/replay/copy_plan.c — a copy to or from the memory of the host as a plan. */
#include "exec/replay/calls.h"

#include "cluster/route.h"
#include "core/maxmin.h"

const LsCollPlan *
ls_copy_plan (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, uint64_t bytes,
              LsNetworkFidelity network, LsArena *arena)
{
  LsRoute route;
  bool is_in_host = direction == LS_COPY_IN_HOST;
  if (direction == LS_COPY_TO_DEVICE || direction == LS_COPY_TO_HOST || is_in_host)
    ls_route_host_memory (c, gpu, direction == LS_COPY_TO_HOST || is_in_host, &route);
  else
    ls_route_nvme (c, gpu, direction == LS_COPY_TO_NVME, &route);
  LsPhase *phase = ls_arena_new_array (arena, LsPhase, 1);
  phase->loads = ls_arena_new_array (arena, LsLoad, route.n_hops + 1);
  phase->latency = is_in_host ? 0 : route.latency;
  phase->demand_bytes = (double) bytes;
  uint32_t first = is_in_host ? route.n_hops - 1 : 0,
           last = is_in_host ? first : route.n_hops; /* past it: the HBM */
  for (uint32_t i = first; i <= last; i++) {
    LsHop hop = i < route.n_hops ? route.hop[i] : (LsHop) { ls_cluster_hbm_resource (c, gpu), LS_HOP_WHOLE };
    double capacity = ls_cluster_resource_capacity (c, hop.trunk) * LS_HOP_WHOLE / hop.share;
    phase->loads[phase->n_loads++]
        = (LsLoad) { hop.trunk, (uint64_t) LS_COEF_ONE * hop.share / LS_HOP_WHOLE };
    phase->rate_cap = i == first ? capacity : MIN (phase->rate_cap, capacity);
  }
  if (network == LS_NETWORK_ALPHABETA)
    phase->n_loads = 0;
  LsCollPlan *plan = ls_arena_new_array (arena, LsCollPlan, 1);
  *plan = (LsCollPlan) {
    .algorithm = "copy", .protocol = "DMA", .n_phases = 1, .phases = phase, .n_periods = 1
  };
  return plan;
}
