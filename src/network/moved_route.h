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
#include "network/algorithm.h"

/* A trunk by where it is: at the sender's host, group or pod, or at the receiver's. */
typedef struct {
  bool is_at_receiver;
  uint8_t tier;
  uint32_t local, share;
} LsMovedHop;

/* Of pairs that lie alike. */
typedef struct {
  uint32_t n_hops; /* UINT32_MAX: a trunk is elsewhere, and each pair has a route of its own */
  LsMovedHop *hops;
} LsMovedRoute;

typedef struct {
  const LsPlaces *at;
  GHashTable *known; /* how the hosts lie to each other, and the numbers of the GPUs there > LsMovedRoute */
} LsMovedRoutes;

/* at: borrowed; NULL: nothing may be added. */
void ls_moved_routes_init (LsMovedRoutes *r, const LsPlaces *at);
void ls_moved_routes_clear (LsMovedRoutes *r);

/* Adds what `blocks` of LS_HOP_WHOLE each load on the way from one GPU to another. */
void ls_moved_routes_add (LsMovedRoutes *r, const LsCluster *c, uint32_t from, uint32_t to, uint64_t blocks,
                          LsLoadList *loads);

#endif
