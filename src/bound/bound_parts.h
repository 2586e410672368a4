/* bound/bound_parts.h — what the bound of a job is made of (private to bound.c). */
#ifndef LS_BOUND_BOUND_PARTS_H
#define LS_BOUND_BOUND_PARTS_H

#include "bound/bound_comm.h"
#include "model/operators.h"

/* Of one micro-batch on one rank, at least. */
typedef struct {
  LsTime f, b;   /* b: with what runs again */
  LsTime reduce; /* what b takes longer where gradients are reduced once, in the last backward */
  uint64_t n_params, n_expert; /* the latter of the former: experts */
  uint64_t kept;               /* bytes from forward to backward */
} BoundPart;

/* PART_LAYER + kind: a layer of that kind. */
enum { PART_EMBEDDING, PART_HEAD, PART_LAYER, N_BOUND_PARTS = PART_LAYER + LS_N_LAYER_KINDS };

typedef struct {
  const LsModel *model;
  const LsHardware *hardware; /* with the attention kernel of the job */
  const BoundComm *comm;      /* with its strategy and cluster        */
  bool is_split;              /* backwards are I and W */
  bool has_head_weight;
} BoundParts;

/* As lower/lower_state.h cuts the model. */
LsShard bound_shard (const LsStrategy *s);
void bound_parts (const BoundParts *in, BoundPart ret_parts[N_BOUND_PARTS]);

#endif
