/* cluster/lie.h — how GPUs lie in a cluster, whichever they are.
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
#ifndef LS_CLUSTER_LIE_H
#define LS_CLUSTER_LIE_H

#include "base/digest.h"
#include "cluster/places.h"

#define LS_NO_PLACE UINT32_MAX

typedef struct {
  const LsCluster *cluster; /* borrowed */
  LsPlaces at;
  bool has_faults;
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
