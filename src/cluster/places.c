#include "cluster/places.h"

#include <string.h>

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
  return is_tree && !c->kind_of_host && !x->layouts[0].interior->kind->traits.is_slice
      && !x->has_failed_switch_links;
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

bool
ls_lie_init (LsLie *l, const LsCluster *c)
{
  LsPlaces at;
  bool has_places = ls_places_init (&at, c);
  if (has_places)
    ls_lie_init_at (l, c, at);
  return has_places;
}

void
ls_lie_init_at (LsLie *l, const LsCluster *c, LsPlaces at)
{
  uint32_t n = ls_places_n (&at);
  *l = (LsLie) { .cluster = c, .at = at, .has_faults = ls_cluster_has_faults (&c->spec) };
  l->rates = l->has_faults ? g_new0 (LsSig, n - at.n_hosts) : NULL;
  l->number = g_new (uint32_t, n);
  memset (l->number, 0xff, n * sizeof *l->number);
  l->places = g_array_sized_new (FALSE, FALSE, sizeof (uint32_t), n);
}

void
ls_lie_clear (LsLie *l)
{
  g_free (l->rates);
  g_free (l->number);
  g_array_unref (l->places);
}

/* Its number in the present list; *ret_is_new: it had none. */
static uint32_t
number_of (LsLie *l, uint32_t place, bool *ret_is_new)
{
  *ret_is_new = l->number[place] == LS_NO_PLACE;
  if (*ret_is_new) {
    l->number[place] = l->places->len++; /* there is room for all */
    g_array_index (l->places, uint32_t, l->number[place]) = place;
  }
  return l->number[place];
}

/* Returns its number. */
static uint32_t
add_above (LsLie *l, uint32_t place, LsSig *key)
{
  bool is_new;
  uint32_t number = number_of (l, place, &is_new);
  if (!is_new || !l->has_faults)
    return number;
  LsSig *rates = &l->rates[place - l->at.n_hosts];
  uint32_t n = rates->a == 0 ? ls_places_n_at (&l->at, place) : 0; /* not known yet, but for those of none */
  for (uint32_t i = 0; i < n; i++)
    ls_sig_add_double (rates,
                       ls_cluster_resource_capacity (l->cluster, ls_places_resource (&l->at, place, i)));
  ls_sig_add_sig (key, *rates);
  return number;
}

static void
add_host (LsLie *l, uint32_t host, LsSig *key)
{
  if (l->has_faults && !ls_places_is_sound (l->cluster, host))
    ls_sig_add (key, UINT64_C (1) << 63 | host);
  if (l->at.trunks_per_group == 0 && l->at.trunks_per_pod == 0)
    return;
  if (host - l->first_of_group >= l->n_of_group) {
    uint64_t group = l->at.trunks_per_group > 0 ? add_above (l, ls_places_group_of (&l->at, host), key) : 0,
             pod = l->at.trunks_per_pod > 0 ? add_above (l, ls_places_pod_of (&l->at, host), key) : 0;
    l->above = group << 32 | pod;
    l->first_of_group = host - host % l->at.hosts_per_group;
    l->n_of_group = l->at.hosts_per_group;
  }
  ls_sig_add (key, l->above);
}

static void
forget_places (LsLie *l)
{
  for (guint i = 0; i < l->places->len; i++)
    l->number[g_array_index (l->places, uint32_t, i)] = LS_NO_PLACE;
  g_array_set_size (l->places, 0);
  l->n_of_group = 0;
}

void
ls_lie_restore (LsLie *l, const uint32_t *places, uint32_t n)
{
  forget_places (l);
  g_array_append_vals (l->places, places, n);
  for (uint32_t i = 0; i < n; i++)
    l->number[places[i]] = i;
}

/* GPUs of one host are digits of a word, by this base. Words have both high bits, other numbers have not. */
static void
add_gpu (const LsLie *l, uint32_t gpu, uint64_t *word, LsSig *key)
{
  uint64_t base = l->at.gpus_per_host + 1;
  if (*word > UINT64_MAX / 4 / base - 1) {
    ls_sig_add (key, UINT64_C (3) << 62 | *word);
    *word = 0;
  }
  *word = *word * base + gpu + 1;
}

static inline uint32_t
gpu_of_member (const uint32_t *gpu_of, const uint32_t *members, uint32_t i)
{
  return gpu_of ? gpu_of[members[i]] : members[i];
}

/* A sum over runs of members on one host: that of one does not wait for that of the one before. */
LsSig
ls_lie_of (LsLie *l, const uint32_t *gpu_of, const uint32_t *members, uint32_t n)
{
  LsSig key = { n, 0 };
  uint32_t per_host = l->at.gpus_per_host;
  forget_places (l);
  for (uint32_t i = 0, n_runs = 0; i < n; n_runs++) {
    uint32_t first = gpu_of_member (gpu_of, members, i), host = first / per_host;
    bool is_new;
    uint64_t word = 0;
    LsSig run = ls_sig_of ((uint64_t) n_runs << 32 | number_of (l, host, &is_new));
    if (is_new)
      add_host (l, host, &run);
    for (uint32_t gpu = first; gpu - host * per_host < per_host; gpu = gpu_of_member (gpu_of, members, i)) {
      add_gpu (l, gpu - host * per_host, &word, &run);
      if (++i == n)
        break;
    }
    ls_sig_add (&run, UINT64_C (3) << 62 | word);
    ls_sig_add_times (&key, 1, run);
  }
  return key;
}
