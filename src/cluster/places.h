/* cluster/places.h — where the resources of a cluster lie, by arithmetic: every host has the same, every
 * group of hosts under one leaf of each rail, every pod.
 *
 *     host    its trunks, NIC ports included; the HBM of its GPUs
 *     group   up and down of its leaves, rail by rail
 *     pod     up and down of its spines
 *
 * Which trunks a flow crosses depends on the GPUs within their hosts, and on whether the two hosts, their
 * groups and their pods are the same: not on which ones they are. So what a collective loads on one set of
 * hosts, it loads on another that lies alike, place by place. That holds for trees of switches that spread
 * ideally, for hosts of one kind, and for those without faults.
 *
 * What goes up from a group or a pod has left a host through a NIC port, and what comes down enters one.
 * Where a trunk carries no less than all those ports together, they fill before it does: it is *ample*, and
 * nobody's rate depends on it. */
#ifndef LS_CLUSTER_PLACES_H
#define LS_CLUSTER_PLACES_H

#include "base/digest.h"
#include "cluster/cluster.h"

/* Places are numbered: hosts, then groups, then pods. */
typedef struct LsPlaces {
  uint32_t n_hosts, n_groups, n_pods;
  uint32_t gpus_per_host, hosts_per_group, groups_per_pod;
  uint32_t trunks_per_host, trunks_per_group, trunks_per_pod;
  uint32_t first_of_groups, first_of_pods; /* trunks */
  uint32_t n_trunks;
  double group_intake, pod_intake; /* bytes/s of the NIC ports below a trunk of a group, and of a pod */
} LsPlaces;

/* False: it is laid out in another way, nodes are of several kinds, switches hash, or links between switches
 * have failed. */
bool ls_places_init (LsPlaces *p, const LsCluster *c);
/* All of a cluster as one host, however it is laid out. */
LsPlaces ls_places_one (const LsCluster *c);

/* Ways from, to and in it are those of every other host, and so are its rates. */
bool ls_places_is_sound (const LsCluster *c, uint32_t host);

static inline uint32_t
ls_places_n (const LsPlaces *p)
{
  return p->n_hosts + p->n_groups + p->n_pods;
}

/* 0: a host, 1: a group, 2: a pod. */
static inline uint32_t
ls_places_tier (const LsPlaces *p, uint32_t place)
{
  return place < p->n_hosts ? 0 : place < p->n_hosts + p->n_groups ? 1 : 2;
}

/* The place of a group and of a pod. */
static inline uint32_t
ls_places_group_of (const LsPlaces *p, uint32_t host)
{
  return p->n_hosts + host / p->hosts_per_group;
}

static inline uint32_t
ls_places_pod_of (const LsPlaces *p, uint32_t host)
{
  return p->n_hosts + p->n_groups + host / p->hosts_per_group / p->groups_per_pod;
}

/* The place of a tier in which a host is: itself, its group, its pod. */
static inline uint32_t
ls_places_of_host (const LsPlaces *p, uint32_t host, uint32_t tier)
{
  return tier == 0 ? host : tier == 1 ? ls_places_group_of (p, host) : ls_places_pod_of (p, host);
}

/* How two hosts lie to each other: the first tier in which they are at one place; 3: none. */
static inline uint32_t
ls_places_relation (const LsPlaces *p, uint32_t host, uint32_t other)
{
  return host == other                                                ? 0
      : ls_places_group_of (p, host) == ls_places_group_of (p, other) ? 1
      : ls_places_pod_of (p, host) == ls_places_pod_of (p, other)     ? 2
                                                                      : 3;
}

/* Whether a trunk of a group or a pod is ample, and whether all of a place are; those of hosts never are. */
bool ls_places_is_ample (const LsPlaces *p, const LsCluster *c, uint32_t resource);
bool ls_places_are_ample (const LsPlaces *p, const LsCluster *c, uint32_t place);

/* Resources at a place, and one of them by its number there. */
uint32_t ls_places_n_at (const LsPlaces *p, uint32_t place);
uint32_t ls_places_resource (const LsPlaces *p, uint32_t place, uint32_t local);
/* Returns the place. */
uint32_t ls_places_find (const LsPlaces *p, uint32_t resource, uint32_t *ret_local);

/* How GPUs lie in a cluster, whichever they are.
 *
 * The hosts of a list of GPUs have numbers in the order in which the list comes to them, and so have the
 * groups and pods of these hosts (cluster/places.h). Two lists lie alike if their i-th GPUs are of one number
 * in hosts of one number, for all i, and if the groups and pods of these hosts agree. A host with faults is
 * like no other, and a group or pod is like those of the same rates. What the one list loads at a place, the
 * other loads at the place of the same number, in the same time.
 *
 * Worked example. 8 GPUs a host, 2 hosts a group. GPUs 0, 8, 16 are on hosts 0, 1, 2, the groups 0, 0, 1;
 * GPUs 33, 41, 49 on hosts 4, 5, 6, the groups 2, 2, 3: alike but for the GPU of the host. GPUs 8, 16, 24 are
 * on hosts 1, 2, 3, the groups 0, 1, 1: they lie in another way. */

#define LS_NO_PLACE UINT32_MAX

typedef struct {
  const LsCluster *cluster; /* borrowed */
  LsPlaces at;
  bool has_faults;
  LsSig *rates;     /* [groups, pods] of all that is there, as far as they were asked for; NULL: no faults */
  uint32_t *number; /* [places] of a place in the present list, or LS_NO_PLACE */
  GArray *places;   /* uint32_t, by number                                      */
  /* The hosts of the group looked at last, 0: none; the numbers of the group and its pod, in a word. */
  uint32_t first_of_group, n_of_group;
  uint64_t above;
} LsLie;

/* False: the cluster is not one of places, and there is nothing to clear. */
bool ls_lie_init (LsLie *l, const LsCluster *c);
/* In these places. */
void ls_lie_init_at (LsLie *l, const LsCluster *c, LsPlaces at);
void ls_lie_clear (LsLie *l);

/* Of n members. gpu_of: NULL, or their GPUs by what stands in members. Numbers all their places, until the
 * next call. */
LsSig ls_lie_of (LsLie *l, const uint32_t *gpu_of, const uint32_t *members, uint32_t n);
/* Numbers the places of a call before, by what that left in `places`. */
void ls_lie_restore (LsLie *l, const uint32_t *places, uint32_t n);

#endif
