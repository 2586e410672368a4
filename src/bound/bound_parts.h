/* bound/bound_parts.h — what the bound of a job is made of (private). */
#ifndef LS_BOUND_BOUND_PARTS_H
#define LS_BOUND_BOUND_PARTS_H

#include "job/hardware.h"
#include "model/operators.h"
#include "network/call_times.h"
#include "strategy/strategy.h"

/* --- bound_comm.c: what communication of the ranks of a pipeline takes at least -------------------- */

/* What is known of calls, for any jobs on clusters that outlive it, with one NCCL. One thread at a time. */
typedef struct BoundTimes BoundTimes;
BoundTimes *bound_times_new (const LsNccl *nccl); /* borrowed */
void bound_times_free (BoundTimes *times);

/* Of a job: borrows all. */
typedef struct {
  BoundTimes *times;
  const LsCluster *cluster;
  const LsStrategy *s;  /* resolved                                               */
  const uint32_t *gpus; /* of its ranks; NULL: node after node (cluster/segment.h) */
} BoundComm;

/* Of the groups with tp, cp and dp index 0 of each stage the fastest; 0 for nothing to do. */
LsTime bound_tp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);
/* The same over the ranks with the same parameters. */
LsTime bound_dp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);
/* The same over the experts of the rank with index 0. */
LsTime bound_ep_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);
/* On the fastest of the cluster's GPUs; in a CUDA graph it begins sooner. */
LsTime bound_kernel_time (const LsCalibration *calibration, const LsClusterSpec *spec, bool is_in_graph,
                          const LsKernel *kernel);
/* From a stage to the next, or back from the last to the first, whichever is fastest. */
LsTime bound_send_time (const BoundComm *c, uint64_t bytes);

/* --- bound_parts.c: what a stage of it takes ---------------------------------------------------------- */

/* Of one micro-batch on one rank, at least. */
typedef struct {
  LsTime f, b;   /* b: with what runs again */
  LsTime reduce; /* what b takes longer where gradients are reduced once, in the last backward */
  uint64_t n_params, n_expert;                /* the latter of the former: experts; those that learn */
  uint64_t n_frozen, n_frozen_experts, n_nf4; /* that do not; the others of the first */
  uint64_t kept;                              /* bytes from forward to backward */
  /* Of FSDP2's units of one layer: their gathers, what adds gradients of a micro-batch to those before, what
   * copies them to where they are reduced. */
  LsTime gather, add, copy;
} BoundPart;

/* PART_LAYER + i: a layer of the i-th kind that the model has. */
enum { PART_EMBEDDING, PART_HEAD, PART_LAYER, N_BOUND_PARTS = PART_LAYER + LS_MAX_MODEL_KINDS };

typedef struct {
  const LsModel *model;
  const LsHardware *hardware; /* with the attention kernel of the job */
  const BoundComm *comm;      /* with its strategy and cluster        */
  bool is_split;              /* backwards are I and W */
  bool has_head_weight;
} BoundParts;

/* As lower/lower_state.h cuts the model. */
LsShard bound_shard (const LsStrategy *s, const LsModel *m);
void bound_parts (const BoundParts *in, BoundPart ret_parts[N_BOUND_PARTS]);

#endif
