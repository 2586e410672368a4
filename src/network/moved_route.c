#include "network/moved_route.h"

#include "cluster/route.h"

#define ON_ITS_OWN UINT32_MAX

static gsize
n_known (const LsMovedRoutes *r)
{
  return r->known ? 4 * (gsize) r->at->gpus_per_host * r->at->gpus_per_host : 0;
}

void
ls_moved_routes_init (LsMovedRoutes *r, const LsPlaces *at, const uint32_t *gpus, uint32_t n_gpus)
{
  *r = (LsMovedRoutes) { .at = at };
  if (at)
    r->known = g_new0 (LsMovedRoute *, 4 * (gsize) at->gpus_per_host * at->gpus_per_host);
  r->has_rows = at && gpus && ls_place_loads_init (&r->rows, at, gpus, n_gpus);
}

void
ls_moved_routes_clear (LsMovedRoutes *r)
{
  for (gsize i = 0; i < n_known (r); i++) {
    g_free (r->known[i] ? r->known[i]->parts : NULL);
    g_free (r->known[i]);
  }
  g_clear_pointer (&r->known, g_free);
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

/* A part of one trunk. False: it is at neither. */
static bool
find_part (const LsPlaces *at, uint32_t host_from, uint32_t host_to, LsHop hop, LsMovedPart *ret)
{
  *ret = (LsMovedPart) { .share = hop.share, .n = 1 };
  uint32_t place = ls_places_find (at, hop.trunk, &ret->local[0]);
  ret->tier = (uint8_t) ls_places_tier (at, place);
  ret->is_at_receiver = place != ls_places_of_host (at, host_from, ret->tier);
  return !ret->is_at_receiver || place == ls_places_of_host (at, host_to, ret->tier);
}

/* To one that goes the same way, or as one more. */
static void
add_part (LsMovedRoute *r, const LsMovedPart *own)
{
  uint32_t i = 0;
  while (i < r->n_parts
         && (r->parts[i].is_at_receiver != own->is_at_receiver || r->parts[i].tier != own->tier
             || r->parts[i].share != own->share || r->parts[i].n == LS_MOST_OF_ROW))
    i++;
  if (i == r->n_parts)
    r->parts[r->n_parts++] = *own;
  else
    r->parts[i].local[r->parts[i].n++] = own->local[0];
}

static LsMovedRoute *
route_new (LsMovedRoutes *routes, const LsCluster *c, uint32_t from, uint32_t to)
{
  const LsPlaces *at = routes->at;
  LsRoute route;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &route);
  LsMovedRoute *r = g_new (LsMovedRoute, 1);
  *r = (LsMovedRoute) { 0, g_new (LsMovedPart, route.n_hops + 1) };
  bool ok = true;
  for (uint32_t i = 0; i < route.n_hops && ok; i++) {
    LsMovedPart own;
    ok = find_part (at, from / at->gpus_per_host, to / at->gpus_per_host, route.hop[i], &own);
    if (ok)
      add_part (r, &own);
  }
  for (uint32_t i = 0; routes->has_rows && ok && i < r->n_parts; i++)
    r->parts[i].row = ls_place_loads_row (&routes->rows, r->parts[i].tier, r->parts[i].local, r->parts[i].n);
  if (!ok)
    r->n_parts = ON_ITS_OWN;
  return r;
}

/* A GPU: its number in its host, and the places where that is. */
typedef struct {
  uint32_t number, place[3];
} End;

static End
end_of (const LsPlaces *at, uint32_t gpu)
{
  uint32_t host = gpu / at->gpus_per_host;
  return (End) { gpu - host * at->gpus_per_host,
                 { host, ls_places_group_of (at, host), ls_places_pod_of (at, host) } };
}

static const LsMovedRoute *
route_of (LsMovedRoutes *r, const LsCluster *c, uint32_t from, uint32_t to, const End *sender,
          const End *receiver)
{
  uint32_t per_host = r->at->gpus_per_host,
           relation = ls_places_relation (r->at, sender->place[0], receiver->place[0]);
  LsMovedRoute **known = &r->known[(relation * per_host + sender->number) * per_host + receiver->number];
  if (!*known)
    *known = route_new (r, c, from, to);
  return *known;
}

static void
add_own (const LsCluster *c, uint32_t from, uint32_t to, uint64_t blocks, LsLoadList *loads)
{
  LsRoute own;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &own);
  for (uint32_t i = 0; i < own.n_hops; i++)
    ls_load_list_add (loads, own.hop[i].trunk, blocks * own.hop[i].share);
}

void
ls_moved_routes_add (LsMovedRoutes *r, const LsCluster *c, uint32_t from, uint32_t to, uint64_t blocks,
                     LsLoadList *loads)
{
  const End sender = end_of (r->at, from), receiver = end_of (r->at, to);
  const LsMovedRoute *route = route_of (r, c, from, to, &sender, &receiver);
  if (route->n_parts == ON_ITS_OWN) {
    add_own (c, from, to, blocks, loads);
    return;
  }
  for (uint32_t i = 0; i < route->n_parts; i++) {
    const LsMovedPart *part = &route->parts[i];
    uint32_t place = (part->is_at_receiver ? receiver : sender).place[part->tier];
    if (r->has_rows)
      ls_place_loads_add (&r->rows, part->row, place, blocks * part->share);
    for (uint32_t k = 0; k < part->n && !r->has_rows; k++)
      ls_load_list_add (loads, ls_places_resource (r->at, place, part->local[k]), blocks * part->share);
  }
}
