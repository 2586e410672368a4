#include "network/moved_route.h"

#include "cluster/route.h"

#define ON_ITS_OWN UINT32_MAX

static void
free_route (gpointer route)
{
  g_free (((LsMovedRoute *) route)->hops);
  g_free (route);
}

void
ls_moved_routes_init (LsMovedRoutes *r, const LsPlaces *at, const uint32_t *gpus, uint32_t n_gpus)
{
  *r = (LsMovedRoutes) { .at = at,
                         .known = at ? g_hash_table_new_full (NULL, NULL, NULL, free_route) : NULL };
  r->has_rows = at && gpus && ls_place_loads_init (&r->rows, at, gpus, n_gpus);
}

void
ls_moved_routes_clear (LsMovedRoutes *r)
{
  g_clear_pointer (&r->known, g_hash_table_unref);
  ls_place_loads_clear (&r->rows);
}

void
ls_moved_routes_finish (LsMovedRoutes *r, LsLoadList *loads, LsArena *arena, LsPhase *phase)
{
  if (!r->has_rows) {
    ls_load_list_finish (loads, arena, phase);
    return;
  }
  bool is_all = loads->n == 0;
  ls_place_loads_finish (&r->rows, arena, phase);
  for (uint32_t i = 0; i < phase->n_loads && !is_all; i++)
    ls_load_list_add (loads, phase->loads[i].resource, phase->loads[i].coef);
  if (is_all)
    ls_load_list_clear (loads);
  else
    ls_load_list_finish (loads, arena, phase);
}

/* False: it is at neither. */
static bool
find_hop (const LsPlaces *at, uint32_t host_from, uint32_t host_to, LsHop hop, LsMovedHop *ret)
{
  uint32_t place = ls_places_find (at, hop.trunk, &ret->local);
  ret->tier = (uint8_t) ls_places_tier (at, place);
  ret->share = hop.share;
  ret->is_at_receiver = place != ls_places_of_host (at, host_from, ret->tier);
  return !ret->is_at_receiver || place == ls_places_of_host (at, host_to, ret->tier);
}

static LsMovedRoute *
route_new (LsMovedRoutes *routes, const LsCluster *c, uint32_t from, uint32_t to)
{
  const LsPlaces *at = routes->at;
  LsRoute route;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &route);
  LsMovedRoute *r = g_new (LsMovedRoute, 1);
  *r = (LsMovedRoute) { route.n_hops, g_new (LsMovedHop, route.n_hops + 1) };
  for (uint32_t i = 0; i < route.n_hops; i++)
    if (!find_hop (at, from / at->gpus_per_host, to / at->gpus_per_host, route.hop[i], &r->hops[i]))
      r->n_hops = ON_ITS_OWN;
  for (uint32_t i = 0; routes->has_rows && r->n_hops != ON_ITS_OWN && i < r->n_hops; i++)
    r->hops[i].row = ls_place_loads_row (&routes->rows, r->hops[i].tier, r->hops[i].local);
  return r;
}

static const LsMovedRoute *
route_of (LsMovedRoutes *r, const LsCluster *c, uint32_t from, uint32_t to)
{
  uint32_t per_host = r->at->gpus_per_host,
           relation = ls_places_relation (r->at, from / per_host, to / per_host);
  gsize key = ((gsize) relation * per_host + from % per_host) * per_host + to % per_host;
  LsMovedRoute *known = g_hash_table_lookup (r->known, GSIZE_TO_POINTER (key));
  if (!known)
    g_hash_table_insert (r->known, GSIZE_TO_POINTER (key), known = route_new (r, c, from, to));
  return known;
}

void
ls_moved_routes_add (LsMovedRoutes *r, const LsCluster *c, uint32_t from, uint32_t to, uint64_t blocks,
                     LsLoadList *loads)
{
  const LsMovedRoute *route = route_of (r, c, from, to);
  uint32_t host_from = from / r->at->gpus_per_host, host_to = to / r->at->gpus_per_host;
  LsRoute own;
  if (route->n_hops == ON_ITS_OWN)
    ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &own);
  for (uint32_t i = 0; route->n_hops == ON_ITS_OWN && i < own.n_hops; i++)
    ls_load_list_add (loads, own.hop[i].trunk, blocks * own.hop[i].share);
  for (uint32_t i = 0; route->n_hops != ON_ITS_OWN && i < route->n_hops; i++) {
    const LsMovedHop *hop = &route->hops[i];
    uint32_t place = ls_places_of_host (r->at, hop->is_at_receiver ? host_to : host_from, hop->tier);
    if (r->has_rows)
      ls_place_loads_add (&r->rows, hop->row, place, blocks * hop->share);
    else
      ls_load_list_add (loads, ls_places_resource (r->at, place, hop->local), blocks * hop->share);
  }
}
