/* bound/bound_state.h — what bounds are made of, and what they remember (private). */
#ifndef LS_BOUND_BOUND_STATE_H
#define LS_BOUND_BOUND_STATE_H

#include <stddef.h>

#include "bound/bound.h"
#include "job/hardware.h"
#include "model/operators.h"
#include "network/coll.h"
#include "schedules/sched.h"
#include "strategy/strategy.h"

/* --- bound.c: what communication of the ranks of a stage takes at least ----------------------- */

/* Of a job: borrows all. */
typedef struct {
  LsBounds *b;
  const LsCluster *cluster;
  const LsStrategy *s; /* resolved */
} BoundComm;

/* Ranks with tp, cp and dp index 0, or with the experts of the rank with index 0: of a stage and the next, or
 * the other way round; over tp; with the same parameters; over experts; that cut its experts; with the same
 * parts of the same experts. */
typedef enum {
  GROUP_NEXT,
  GROUP_PREVIOUS,
  GROUP_TP,
  GROUP_COPIES,
  GROUP_EXPERTS,
  GROUP_EXPERT_TP,
  GROUP_EXPERT_COPIES
} BoundGroup;

/* Of the groups of each stage the fastest; 0 for nothing to do. */
LsTime bound_time (const BoundComm *c, BoundGroup group, LsCollKind kind, uint64_t bytes);

/* --- bound_parts.c: times of kernels alone --------------------------------------------------------- */

/* On the fastest of the cluster's GPUs; in a CUDA graph it begins sooner. */
LsTime bound_kernel_time (const LsBounds *b, const LsClusterSpec *spec, bool is_in_graph,
                          const LsKernel *kernel);

/* --- bound_parts.c: what a stage of it takes ---------------------------------------------------------- */

/* Of one micro-batch on one rank, at least. What stands in sums adds up over layers and chunks. */
typedef struct {
  union {
    struct {
      LsTime f, b; /* b: with what runs again */
      LsPartSizes size;
      /* Of FSDP's units of one layer each, for one pass: of parameters, of gradients; FSDP2: out of a gather,
       * into a reduction, to the gradients before. */
      LsTime gather, unit_reduce, copy_out, copy_in, add;
    };
    uint64_t sums[13];
  };
  LsTime gather_most, root; /* of the unit that takes longest; of what is in no layer */
} BoundPart;
G_STATIC_ASSERT (offsetof (BoundPart, gather_most) == sizeof ((BoundPart *) 0)->sums);

/* n of them. */
void bound_add (BoundPart *to, const BoundPart *p, uint64_t n);

/* As lower/parts.h numbers them, remembered; cluster NULL: times are 0; is_split: backwards are I and W. */
const BoundPart *bound_parts (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, bool is_split);

/* Of a rank, by the sum of its parts: elements that its optimizer steps on; parameters, gradients where they
 * are kept, and the optimizer's state. */
uint64_t bound_n_owned (const LsModel *m, const LsStrategy *s, const BoundPart *sum);

/* --- what is remembered ------------------------------------------------------------------------------ */

struct LsBounds {
  const LsModel *model;
  const LsHardware *hardware;
  LsHardware chosen; /* as the last job runs it              */
  LsPartsMemo *parts;
  GArray *of_parts; /* LsTime + 1: of kernels of parts, without and in a CUDA graph; 0: not known */
  GArray *ends;     /* LsTime: scratch */
  int attention_kernel;
  uint32_t n_gpus;
  GHashTable *entries;   /* what bound_parts() remembers; NULL: nothing */
  GHashTable *optimizer; /* CountKey -> LsTime *                */
  uint64_t variant;      /* of the strategy at hand             */
  const uint32_t *gpus;  /* of its ranks; NULL: node after node (cluster/cluster.h) */
  LsCallTimes *calls;
  GHashTable *groups;                      /* of calls, as bound_time() knows them */
  uint32_t n_kinds;                        /* of layers */
  uint32_t *n_of_kind[LS_MAX_MODEL_KINDS]; /* [n_layers + 1] of the i-th among the first so many */
  uint32_t *layers, *first;                /* scratch: layers of each chunk, and before it */
};

/* --- bound.c --- */

/* Layers of each chunk, and before it. */
void bound_find_chunks (LsBounds *b, const LsStrategy *s);
/* The sum of the parts of a chunk, n of them in model order. */
BoundPart bound_chunk (const LsBounds *b, const BoundPart *part, uint32_t stage, uint32_t n);

/* Which stage the chunk of a rank is (schedules/sched.h). */
static inline uint32_t
bound_stage (const LsStrategy *s, const LsSched *sched, uint32_t rank, uint32_t chunk)
{
  bool is_back = sched->placement == LS_PLACE_WAVE && chunk % 2 == 1;
  return chunk * s->pp + (is_back ? s->pp - 1 - rank : rank);
}

#endif
