#include "exec/replay/whole.h"

#include "exec/replay/state.h"

void
whole_is_itself (Whole *w, const Run *x)
{
  w->n_resources = ls_cluster_n_resources (x->cluster);
  w->capacity = run_capacities (x, x->arena);
}

void
whole_clear (Whole *w)
{
  ls_rank_classes_free (w->classes);
  place_classes_free (w->places);
}

uint32_t
run_uses (const Run *x, const LsLoad *loads, uint32_t n, uint32_t n_alike, LsFlowUse *ret_uses)
{
  if (x->hooks.uses)
    return x->hooks.uses (x, loads, n, n_alike, ret_uses);
  for (uint32_t i = 0; i < n; i++) {
    g_assert (loads[i].resource < x->whole->n_resources && loads[i].coef > 0);
    ret_uses[i] = (LsFlowUse) { .resource = loads[i].resource, .coef = loads[i].coef };
  }
  return n;
}

uint64_t
whole_weight_of_comm (const Whole *w, uint32_t comm)
{
  return w->comm_weight ? w->comm_weight[comm] : digest_of (comm);
}

/* To a rank at a distance. */
uint64_t
whole_weight_of_channel (const Whole *w, uint32_t channel)
{
  uint32_t rank = channel / 2;
  return w->channel_weight ? w->channel_weight[channel]
                           : digest_weight (ls_plan_peer (w->plan, rank, 1 - channel % 2) - rank, rank);
}

uint64_t
whole_weight_of_copy (const Whole *w, uint32_t rank)
{
  return w->copy_weight ? w->copy_weight[rank] : digest_weight (DIGEST_COPY, rank);
}

/* ---- what resources can carry ---- */

/* What resources can carry: links as they are, memory at least what kernels take.
 * What is ample (cluster/places.h) is said to carry a billionth more, so that no rounding of rates
 * (core/level.h) fills it before the ports below it. */

/* Of any rank of a job on nodes of that kind. */
static double
fastest_kernel (const Run *x, const XJob *job, uint32_t kind)
{
  double least_slow = 1;
  for (uint32_t r = 0; x->options.slow && r < job->plan->n_ranks; r++)
    least_slow = MIN (least_slow, x->options.slow[job->first_rank + r]);
  g_assert (least_slow > 0);
  return job->fastest_kernel[kind] / least_slow * (1 + 1e-6);
}

/* at: NULL: nothing is ample. */
static double
trunk_capacity (const Run *x, const LsPlaces *at, uint32_t resource)
{
  double capacity = ls_cluster_resource_capacity (x->cluster, resource);
  return at && ls_places_is_ample (at, x->cluster, resource) ? capacity * (1 + 0x1p-30) : capacity;
}

double
run_capacity (const Run *x, const LsPlaces *at, double fastest, uint32_t resource)
{
  return resource < at->n_trunks ? trunk_capacity (x, at, resource)
                                 : MAX (ls_cluster_resource_capacity (x->cluster, resource), fastest);
}

double
run_fastest_kernel (const Run *x)
{
  return fastest_kernel (x, x->jobs, 0);
}

double *
run_capacities (const Run *x, LsArena *arena)
{
  uint32_t n = ls_cluster_n_resources (x->cluster), n_trunks = x->cluster->n_trunks;
  double *capacity = ls_arena_new_array (arena, double, n);
  LsPlaces at;
  bool has_places = ls_places_init (&at, x->cluster);
  for (uint32_t i = 0; i < n_trunks; i++)
    capacity[i] = trunk_capacity (x, has_places ? &at : NULL, i);
  for (uint32_t i = n_trunks; i < n; i++)
    capacity[i] = ls_cluster_resource_capacity (x->cluster, i);
  for (const XJob *job = x->jobs; job < x->jobs + x->n_jobs; job++) {
    double fastest[LS_MAX_NODE_KINDS];
    for (uint32_t k = 0; k < LS_MAX_NODE_KINDS; k++)
      fastest[k] = fastest_kernel (x, job, k);
    for (uint32_t i = n_trunks; x->n_jobs == 1 && i < n; i++) {
      uint32_t host = ls_cluster_host_of (x->cluster, i - n_trunks);
      capacity[i] = MAX (capacity[i], fastest[ls_cluster_kind_of (x->cluster, host)]);
    }
    for (uint32_t r = 0; x->n_jobs > 1 && r < job->plan->n_ranks; r++) {
      uint32_t gpu = ls_plan_gpu (job->plan, r);
      double *own = &capacity[ls_cluster_hbm_resource (x->cluster, gpu)];
      *own = MAX (*own, fastest[ls_cluster_kind_of (x->cluster, ls_cluster_host_of (x->cluster, gpu))]);
    }
  }
  return capacity;
}
