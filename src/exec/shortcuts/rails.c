#include "exec/shortcuts/rails.h"

#include <string.h>

#include "cluster/route.h"

uint32_t
rails_number (const LsPlaces *at, const uint32_t *gpus, uint32_t n)
{
  uint32_t per_host = at->gpus_per_host, number = gpus[0] % per_host, step = per_host; /* of whole hosts */
  for (uint32_t i = 1; i < n; i++) {
    if (gpus[i] <= gpus[i - 1] || (gpus[i] - gpus[i - 1] != step && (gpus[i] - gpus[i - 1]) % per_host != 0))
      return NO_GPU_NUMBER;
    step = gpus[i] - gpus[i - 1];
  }
  return number;
}

static uint32_t *
locals_new (uint32_t n)
{
  uint32_t *local = g_new (uint32_t, n + 1);
  memset (local, 0xff, n * sizeof *local);
  return local;
}

/* False: another one stands for it already, or it for another. */
static bool
pair (Rails *r, const LsPlaces *at, uint32_t of, uint32_t by)
{
  uint32_t local, local_by, place = ls_places_find (at, of, &local),
                            place_by = ls_places_find (at, by, &local_by);
  uint32_t *known = &r->local[ls_places_tier (at, place)][local];
  if (place != place_by || (*known != NO_LOCAL && *known != local_by))
    return false;
  *known = local_by;
  return true;
}

static bool
pair_ways (Rails *r, const LsCluster *c, const LsPlaces *at, uint32_t from, uint32_t to, uint32_t moved)
{
  LsRoute way, by;
  ls_route (c, from, to, 0, &way);
  ls_route (c, from + moved, to + moved, 0, &by);
  bool are_alike = way.n_hops == by.n_hops && way.latency == by.latency;
  for (uint32_t i = 0; i < way.n_hops && are_alike; i++)
    are_alike = way.hop[i].share == by.hop[i].share
        && ls_cluster_resource_capacity (c, way.hop[i].trunk)
            == ls_cluster_resource_capacity (c, by.hop[i].trunk)
        && pair (r, at, way.hop[i].trunk, by.hop[i].trunk);
  return are_alike;
}

/* Two trunks, and one that stands for both: loads of the two would be one. */
static bool
is_one_to_one (const uint32_t *local, uint32_t n)
{
  g_autofree bool *stands = g_new0 (bool, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    if (local[i] == NO_LOCAL)
      continue;
    if (stands[local[i]])
      return false;
    stands[local[i]] = true;
  }
  return true;
}

bool
rails_find (Rails *r, const LsCluster *c, const LsPlaces *at, const uint32_t *gpus, uint32_t n, uint32_t to)
{
  uint32_t per_host = at->gpus_per_host, moved = to - gpus[0] % per_host,
           n_local[3] = { ls_places_n_at (at, 0), at->trunks_per_group, at->trunks_per_pod };
  bool is_seen[4] = { false }, ok = true;                      /* by how hosts lie, which are not the same */
  uint32_t n_left = 1 + (at->n_groups > 1) + (at->n_pods > 1); /* of ways to lie, not seen */
  for (int k = 0; k < 3; k++)
    r->local[k] = locals_new (n_local[k]);
  for (uint32_t i = 1; i < n && ok && n_left > 0; i++) {
    bool *seen = &is_seen[ls_places_relation (at, gpus[0] / per_host, gpus[i] / per_host)];
    if (*seen)
      continue;
    ok = pair_ways (r, c, at, gpus[0], gpus[i], moved) && pair_ways (r, c, at, gpus[i], gpus[0], moved);
    *seen = true;
    n_left--;
  }
  r->local[0][at->trunks_per_host + gpus[0] % per_host] = at->trunks_per_host + to;
  for (int k = 0; k < 3 && ok; k++)
    ok = is_one_to_one (r->local[k], n_local[k]);
  return ok;
}

void
rails_clear (Rails *r)
{
  for (int k = 0; k < 3; k++)
    g_clear_pointer (&r->local[k], g_free);
}
