/* exec/shortcuts/rails.h — what GPUs of one number in their hosts load, told by those of another number
 * (private to exec/).
 *
 * Problem. A communicator with one member in each of many hosts has GPU i of them all, and tensor parallelism
 * of 8 makes eight such, that differ in i alone. To plan one of 8,192 members takes a while.
 *
 * Equation. Where the ways between any two of its hosts are, from GPU i, as long and as wide as from GPU j,
 * trunk by trunk, and each trunk of the one always stands where the same one of the other does, all that is
 * loaded by i is loaded by j on the trunk that stands there. How hosts lie to each other is all that ways
 * depend on (cluster/places.h): hosts of one group, of one pod, of two pods.
 *
 * Worked example. dgx-h100: GPU 0 goes over its NIC to leaf 0 of the group, GPU 3 over its own to leaf 3. So
 * NIC 3 stands for NIC 0, leaf 3 for leaf 0. Where GPUs 0 and 1 have a NIC each, and GPU 2 none, 1 can stand
 * for 0, and 2 for neither. */
#ifndef LS_EXEC_SHORTCUTS_RAILS_H
#define LS_EXEC_SHORTCUTS_RAILS_H

#include <stdbool.h>

#include "cluster/places.h"

#define NO_LOCAL      UINT32_MAX
#define NO_GPU_NUMBER UINT32_MAX

/* Of hosts, groups and pods: by the number of a resource there, that of the one that stands for it, or
 * NO_LOCAL. */
typedef struct {
  uint32_t *local[3];
} Rails;

/* The number that all GPUs have in their hosts, of which no two are the same; NO_GPU_NUMBER: none. */
uint32_t rails_number (const LsPlaces *at, const uint32_t *gpus, uint32_t n);

/* GPU `to` of each host for these GPUs, of one number. Without faults. False: it cannot stand for them. Free
 * with rails_clear(), in any case. */
bool rails_find (Rails *r, const LsCluster *c, const LsPlaces *at, const uint32_t *gpus, uint32_t n,
                 uint32_t to);
void rails_clear (Rails *r);

static inline uint32_t
rails_local (const Rails *r, const LsPlaces *at, uint32_t place, uint32_t local)
{
  return r->local[ls_places_tier (at, place)][local];
}

#endif
