/* exec/replay/copy_plan.c — a copy to or from the memory of the host as a plan. */
#include "exec/replay/calls.h"

#include "core/maxmin.h"

void
ls_copy_route (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, LsRoute *ret_route)
{
  const LsCopyRow *row = &ls_copies[direction];
  (row->way == LS_COPY_BY_NVME ? ls_route_nvme : ls_route_host_memory) (c, gpu, row->is_out, ret_route);
  if (!row->is_in_host || ret_route->n_hops == 0)
    return;
  ret_route->hop[0] = ret_route->hop[ret_route->n_hops - 1];
  ret_route->n_hops = 1;
  ret_route->latency = 0;
}

const LsCollPlan *
ls_copy_plan (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, uint64_t bytes,
              LsNetworkFidelity network, LsArena *arena)
{
  LsRoute route;
  ls_copy_route (c, gpu, direction, &route);
  LsPhase *phase = ls_arena_new_array (arena, LsPhase, 1);
  phase->loads = ls_arena_new_array (arena, LsLoad, route.n_hops + 1);
  phase->latency = route.latency;
  phase->demand_bytes = (double) bytes;
  uint32_t n = route.n_hops + !ls_copies[direction].is_in_host; /* past the last hop: the HBM */
  for (uint32_t i = 0; i < n; i++) {
    LsHop hop = i < route.n_hops ? route.hop[i] : (LsHop) { ls_cluster_hbm_resource (c, gpu), LS_HOP_WHOLE };
    double capacity = ls_cluster_resource_capacity (c, hop.trunk) * LS_HOP_WHOLE / hop.share;
    phase->loads[phase->n_loads++]
        = (LsLoad) { hop.trunk, (uint64_t) LS_COEF_ONE * hop.share / LS_HOP_WHOLE };
    phase->rate_cap = i == 0 ? capacity : MIN (phase->rate_cap, capacity);
  }
  if (network == LS_NETWORK_ALPHABETA)
    phase->n_loads = 0;
  LsCollPlan *plan = ls_arena_new_array (arena, LsCollPlan, 1);
  *plan = (LsCollPlan) {
    .algorithm = "copy", .protocol = "DMA", .n_phases = 1, .phases = phase, .n_periods = 1
  };
  return plan;
}
