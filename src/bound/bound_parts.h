/* bound/bound_parts.h — what the bound of a job is made of (private). */
#ifndef LS_BOUND_BOUND_PARTS_H
#define LS_BOUND_BOUND_PARTS_H

#include "job/hardware.h"
#include "model/operators.h"
#include "network/coll.h"
#include "strategy/strategy.h"

/* --- bound.c: what communication of the ranks of a pipeline takes at least -------------------- */

/* What is known of calls, for any jobs on clusters that outlive it, with one NCCL. One thread at a time. */
typedef struct BoundTimes BoundTimes;

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
/* The same over the experts of the rank with index 0, over the ranks that cut its experts, and over those
 * with the same parts of the same experts. */
LsTime bound_ep_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);
LsTime bound_etp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);
LsTime bound_edp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);

/* --- bound_parts.c: times of kernels alone --------------------------------------------------------- */

/* Those that are known, of clusters of the same kinds of GPUs. */
typedef struct BoundKernels BoundKernels;

BoundKernels *bound_kernels_new (const LsCalibration *calibration); /* lent */
void bound_kernels_free (BoundKernels *kernels);
/* Behind a change of the calibration. */
void bound_kernels_forget (BoundKernels *kernels);

/* On the fastest of the cluster's GPUs; in a CUDA graph it begins sooner. */
LsTime bound_kernel_time (BoundKernels *kernels, const LsClusterSpec *spec, bool is_in_graph,
                          const LsKernel *kernel);

/* --- bound_parts.c: what a stage of it takes ---------------------------------------------------------- */

/* Of FSDP's units of one layer each, for one pass. */
typedef struct {
  LsTime gather, most;           /* of parameters: of all units; of the one that takes longest */
  LsTime root;                   /* of what is in no layer                                     */
  LsTime reduce;                 /* of gradients                                               */
  LsTime copy_out, copy_in, add; /* FSDP2: out of a gather, into a reduction, to the gradients before */
} BoundUnits;

/* Of one micro-batch on one rank, at least. */
typedef struct {
  LsTime f, b;   /* b: with what runs again */
  LsTime reduce; /* what b takes longer where gradients are reduced once, in the last backward */
  uint64_t n_params, n_expert;                 /* the latter of the former: experts; those that learn */
  uint64_t n_frozen, n_frozen_experts, n_nf4;  /* that do not; the others of the first */
  uint64_t n_persistent, n_persistent_experts; /* of those that learn: never cut by DeepSpeed's ZeRO-3 */
  uint64_t n_most;                             /* of them in a layer, or beside all layers             */
  uint64_t kept;                               /* bytes from forward to backward */
  LsTime w;                                    /* of b: what a split backward does last, at most */
  BoundUnits units;
} BoundPart;

/* PART_LAYER + i: a layer of the i-th kind that the model has. */
enum { PART_EMBEDDING, PART_HEAD, PART_LAYER, N_BOUND_PARTS = PART_LAYER + LS_MAX_MODEL_KINDS };

typedef struct {
  const LsModel *model;
  const BoundComm *comm; /* with its strategy and cluster        */
  BoundKernels *kernels; /* with the attention kernel of the job */
  bool is_split;         /* backwards are I and W */
  bool has_head_weight;
} BoundParts;

/* As lower/lower_state.h cuts the model. */
LsShard bound_shard (const LsStrategy *s, const LsModel *m);
void bound_parts (const BoundParts *in, BoundPart ret_parts[N_BOUND_PARTS]);

/* --- bound_parts.c: what of it takes memory ------------------------------------------------------------ */

/* Of the strategy and how it cuts the model. */
typedef struct {
  const LsModel *model;
  const LsStrategy *s;
  LsShard shard;
  bool is_layer; /* else the embedding or the head */
} BoundCut;

/* Of a rank, by the sum of its parts: elements that its optimizer steps on; parameters, gradients where they
 * are kept, and the optimizer's state. */
uint64_t bound_n_owned (const LsModel *m, const LsStrategy *s, const BoundPart *sum);

/* --- bound.c: what data parallelism adds to them ------------------------------------------------- */

/* Of a rank: what its parts add up to, and those of its first layer. */
typedef struct {
  const BoundPart *sum, *first_layer;
  bool has_embedding;
} BoundRank;

#endif
