/* network/moved_route.h — routes between many pairs of GPUs, each found once for all pairs that lie alike
 * (private to network/).
 *
 * Which trunks a flow crosses depends on the numbers of its GPUs in their hosts, and on whether the hosts,
 * their groups and their pods are the same (cluster/places.h). So the route of the first pair is that of the
 * next one that lies so, with each trunk at the same place of the other host, group or pod. That holds
 * without faults. */
#ifndef LS_NETWORK_MOVED_ROUTE_H
#define LS_NETWORK_MOVED_ROUTE_H

#include "cluster/places.h"
#include "network/place_loads.h"

/* Trunks that carry the same share of a flow at one place: the sender's host, group or pod, or the
 * receiver's. */
typedef struct {
  bool is_at_receiver;
  uint8_t tier;
  uint32_t share;
  uint32_t n, local[LS_MOST_OF_ROW];
  uint32_t row; /* of LsPlaceLoads */
} LsMovedPart;

/* Of pairs that lie alike. */
typedef struct {
  uint32_t n_parts; /* UINT32_MAX: a trunk is elsewhere, and each pair has a route of its own */
  LsMovedPart *parts;
} LsMovedRoute;

typedef struct {
  const LsPlaces *at;
  bool
      has_rows; /* of places, where loads that are at hosts, groups and pods are added up; else in the list */
  LsPlaceLoads rows;
  LsMovedRoute **known; /* [4 * GPUs of a host squared] by how hosts lie to each other, and by the numbers of
                           the GPUs there; NULL: none is known */
} LsMovedRoutes;

/* at: borrowed; NULL: nothing may be added. gpus: between which messages go; NULL: few are loaded of many. */
void ls_moved_routes_init (LsMovedRoutes *r, const LsPlaces *at, const uint32_t *gpus, uint32_t n_gpus);
void ls_moved_routes_clear (LsMovedRoutes *r);
/* All that was added, and what is in the list besides, which is freed: as ls_load_list_finish(). */
void ls_moved_routes_finish (LsMovedRoutes *r, LsLoadList *loads, LsArena *arena, LsPhase *phase);

/* Adds what `blocks` of LS_HOP_WHOLE each load on the way from one GPU to another. */
void ls_moved_routes_add (LsMovedRoutes *r, const LsCluster *c, uint32_t from, uint32_t to, uint64_t blocks,
                          LsLoadList *loads);

#endif
