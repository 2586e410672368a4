#include "cluster/places.h"

#include "cluster/faults.h"
#include "cluster/index.h"

bool
ls_places_init (LsPlaces *p, const LsCluster *c)
{
  const LsTopoIndex *x = c->index;
  *p = (LsPlaces) { .n_hosts = c->spec.n_nodes,
                    .gpus_per_host = c->spec.gpus_per_node,
                    .trunks_per_host = x->layouts[0].n_trunks,
                    .first_of_groups = x->fabric->first_trunk,
                    .n_trunks = x->fabric->first_trunk + x->fabric->n_trunks };
  bool is_tree = x->fabric->kind->groups && x->fabric->kind->groups (x->fabric, p);
  return is_tree && !c->kind_of_host && c->spec.interior != LS_INTERIOR_TORUS && !x->has_failed_switch_links;
}

LsPlaces
ls_places_one (const LsCluster *c)
{
  return (LsPlaces) { .n_hosts = 1,
                      .n_groups = 1,
                      .n_pods = 1,
                      .gpus_per_host = c->n_gpus,
                      .hosts_per_group = 1,
                      .groups_per_pod = 1,
                      .trunks_per_host = c->n_trunks,
                      .first_of_groups = c->n_trunks,
                      .first_of_pods = c->n_trunks,
                      .n_trunks = c->n_trunks };
}

bool
ls_places_is_sound (const LsCluster *c, uint32_t host)
{
  return !ls_faults_of_node (c, host);
}

bool
ls_places_is_ample (const LsPlaces *p, const LsCluster *c, uint32_t resource)
{
  if (resource < p->first_of_groups || resource >= p->n_trunks)
    return false;
  double intake = resource < p->first_of_pods ? p->group_intake : p->pod_intake;
  return ls_cluster_resource_capacity (c, resource) >= intake * (1 - 0x1p-40);
}

bool
ls_places_are_ample (const LsPlaces *p, const LsCluster *c, uint32_t place)
{
  bool are_ample = place >= p->n_hosts;
  for (uint32_t i = 0; i < ls_places_n_at (p, place) && are_ample; i++)
    are_ample = ls_places_is_ample (p, c, ls_places_resource (p, place, i));
  return are_ample;
}

uint32_t
ls_places_n_at (const LsPlaces *p, uint32_t place)
{
  if (place < p->n_hosts)
    return p->trunks_per_host + p->gpus_per_host;
  return place < p->n_hosts + p->n_groups ? p->trunks_per_group : p->trunks_per_pod;
}

uint32_t
ls_places_resource (const LsPlaces *p, uint32_t place, uint32_t local)
{
  if (place < p->n_hosts)
    return local < p->trunks_per_host ? place * p->trunks_per_host + local
                                      : p->n_trunks + place * p->gpus_per_host + (local - p->trunks_per_host);
  place -= p->n_hosts;
  return place < p->n_groups ? p->first_of_groups + place * p->trunks_per_group + local
                             : p->first_of_pods + (place - p->n_groups) * p->trunks_per_pod + local;
}

uint32_t
ls_places_find (const LsPlaces *p, uint32_t resource, uint32_t *ret_local)
{
  if (resource >= p->n_trunks) {
    uint32_t gpu = resource - p->n_trunks;
    *ret_local = p->trunks_per_host + gpu % p->gpus_per_host;
    return gpu / p->gpus_per_host;
  }
  if (resource < p->first_of_groups) {
    *ret_local = resource % p->trunks_per_host;
    return resource / p->trunks_per_host;
  }
  if (resource < p->first_of_pods) {
    *ret_local = (resource - p->first_of_groups) % p->trunks_per_group;
    return p->n_hosts + (resource - p->first_of_groups) / p->trunks_per_group;
  }
  *ret_local = (resource - p->first_of_pods) % p->trunks_per_pod;
  return p->n_hosts + p->n_groups + (resource - p->first_of_pods) / p->trunks_per_pod;
}
