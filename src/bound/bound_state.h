/* bound/bound_state.h — what bounds remember (private). */
#ifndef LS_BOUND_BOUND_STATE_H
#define LS_BOUND_BOUND_STATE_H

#include "bound/bound.h"
#include "bound/bound_parts.h"
#include "schedules/sched.h"

/* What a part depends on. No gaps: hashed and compared as bytes. */
typedef struct {
  const LsCluster *cluster;
  uint64_t variant;
  uint32_t tp, pp, cp, ep, etp, micro_batch, seq;
  uint32_t sharded, grad_sync, p2p; /* FSDP: ranks of a group */
  uint32_t sp, tp_overlap, is_fresh, is_cast, is_split, is_paired, has_head_weight, recompute,
      recompute_parts, is_fsdp, is_fsdp2;
} Key;

typedef struct {
  Key key;
  BoundPart part[N_BOUND_PARTS];
  LsTime message; /* to a neighbour */
} Entry;

/* What of them memory follows from: times are 0, and so is in the key what only they depend on. */
typedef struct {
  Key key;
  BoundPart part[N_BOUND_PARTS];
} Sizes;

struct LsBounds {
  const LsModel *model;
  const LsHardware *hardware;
  LsHardware chosen;     /* as the last job runs it              */
  BoundKernels *kernels; /* on it                                */
  int attention_kernel;
  uint32_t n_gpus;
  GHashTable *entries;   /* Key -> Entry                        */
  GHashTable *sizes;     /* Key -> Sizes                        */
  GHashTable *optimizer; /* CountKey -> LsTime *                */
  uint64_t variant;      /* of the strategy at hand             */
  const uint32_t *gpus;  /* of its ranks; NULL: node after node */
  BoundTimes *times;
  uint32_t n_kinds;                        /* of layers */
  uint32_t *n_of_kind[LS_MAX_MODEL_KINDS]; /* [n_layers + 1] of the i-th among the first so many */
  uint32_t *layers, *first;                /* scratch: layers of each chunk, and before it */
  Entry *last;
  Sizes *last_sizes;
};

/* --- bound.c --- */

/* Layers of each chunk, and before it. */
void bound_find_chunks (LsBounds *b, const LsStrategy *s);
/* The sum of the parts of a chunk, n of them in model order. */
BoundPart bound_chunk (const LsBounds *b, const BoundPart *part, uint32_t stage, uint32_t n);

/* --- bound_parts.c --- */

GHashTable *bound_sizes_table_new (void);
/* What sizes follow from. */
void bound_fill_key (Key *key, const LsBounds *b, const LsStrategy *s, const LsCluster *cluster,
                     const LsSched *sched);
void bound_add_sizes (BoundPart *to, const BoundPart *p);

/* Which stage the chunk of a rank is (schedules/sched.h). */
static inline uint32_t
bound_stage (const LsStrategy *s, const LsSched *sched, uint32_t rank, uint32_t chunk)
{
  bool is_back = sched->placement == LS_PLACE_WAVE && chunk % 2 == 1;
  return chunk * s->pp + (is_back ? s->pp - 1 - rank : rank);
}

#endif
