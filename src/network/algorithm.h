/* network/algorithm.h — what coll_X.c files are made of (private to network/).
 *
 * A new algorithm is one file coll_X.c that defines an LsCollAlgorithm, and one
 * line in the registry of coll.c. */
#ifndef LS_NETWORK_ALGORITHM_H
#define LS_NETWORK_ALGORITHM_H

#include "network/coll.h"

/* The members of one call that live on one host, by ascending GPU. */
typedef struct {
  const uint32_t *gpus;
  uint32_t n;
} LsCollHost;

typedef struct {
  const LsCluster *cluster;
  const LsNccl *nccl;
  LsCollKind kind;
  const uint32_t *gpus; /* in communicator order */
  uint32_t n;
  uint64_t bytes;
  LsArena *arena;
  uint32_t n_hosts;
  LsCollHost *hosts; /* by ascending host */
} LsCollCall;

typedef struct {
  const char *name;
  bool (*applies) (const LsCollCall *call);
  void (*plan) (const LsCollCall *call, LsCollPlan *ret_plan);
} LsCollAlgorithm;

extern const LsCollAlgorithm ls_coll_ring, ls_coll_nvls, ls_coll_p2p;

/* --- loads: added in any order, then summed by resource and sorted --- */

typedef struct {
  GArray *items; /* LsLoad */
} LsLoadList;

LsLoadList ls_load_list_new (void);
void ls_load_list_add (LsLoadList *list, uint32_t resource, uint64_t coef);
/* coef on each trunk between the two GPUs. */
void ls_load_list_add_route (LsLoadList *list, const LsCluster *c, uint32_t from, uint32_t to, uint64_t coef);
/* Moves the sums into the phase and frees the list. */
void ls_load_list_finish (LsLoadList *list, LsArena *arena, LsPhase *phase);

/* --- what NCCL does, by numbers (nccl.c) --- */

/* Channels that a message of this size uses out of n: NCCL gives each at least
 * `bytes_per_channel`, and never takes fewer than one. */
uint32_t ls_nccl_channels (uint32_t n, uint64_t bytes, uint64_t bytes_per_channel);

/* Steps at which a member of a ring sends: 2(n-1) for all-reduce, else n-1. */
uint32_t ls_nccl_ring_sends (LsCollKind kind, uint32_t n);
LsTime ls_nccl_ring_latency (const LsCollCall *call);
double ls_nccl_hbm_per_wire (const LsNccl *nccl, LsCollKind kind);
/* The share of the bus bandwidth that a message of this many wire bytes reaches
 * for filling its pipeline of `stages` stages: 1 / (1 + R / (W + R)) with R =
 * stages * ramp_bytes. */
double ls_nccl_ramp (const LsNccl *nccl, uint32_t stages, double wire_bytes);

#endif
