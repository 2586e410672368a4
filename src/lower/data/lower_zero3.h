/* lower/data/lower_zero3.h — which parameters ZeRO-3 gathers and releases, and when, as
 * PartitionedParameterCoordinator of DeepSpeed does (partitioned_param_coordinator.py)
 * once it has recorded a forward and a backward (private).
 *
 * Problem. A rank has a part of each parameter; an operator needs all of its own whole.
 *
 * Model. The trace lists visits of operators that have parameters, of one forward, then its backward
 * (with what runs again). A queue lists their parameters in this order. At a visit:
 *
 *     fetch      its parameters that are not there are gathered, together
 *     wait       compute waits for all gathers so far
 *     queue      its parameters leave the queue, unless a prefetch took them out before
 *     prefetch   parameters are taken from the queue while those gathered so, which were not
 *                there, have fewer elements than both prefetch_bucket and what max_live_params
 *                leaves: the last may go beyond. They are gathered together
 *     release    behind the operator, its parameters go, unless they are persistent (at most
 *                persistence_threshold elements, never cut), a prefetch has passed over a
 *                later use of them, or fewer than max_reuse_distance elements are
 *                visited before their next use
 *
 * With collective_lists (DeepSpeed of spring 2021) a wait is for all that is under way, and nothing
 * is gathered ahead while something is.
 *
 * Worked example. Three operators of 10 elements, prefetch_bucket 15, nothing reused soon:
 * visit 0 fetches 0 and prefetches 1 and 2 (10 < 15); visits 1 and 2 fetch nothing.
 *
 * Deviations. Every trace is complete (DeepSpeed records in its first iteration). A module is an
 * operator: norms, matrix products, embeddings. Nothing is external: a tied
 * embedding is gathered for the logits as for any other use. */
#ifndef LS_LOWER_DATA_LOWER_ZERO3_H
#define LS_LOWER_DATA_LOWER_ZERO3_H

#include "lower/data/lower_deepspeed.h"

/* Parameters are numbered through the chunk: that many for each operator. */
#define ZERO3_PARAM(o, i) ((o) *LS_OPERATOR_MAX_PARAMS + (i))

/* Of Zero3.params: guint, numbers of parameters. */
typedef struct {
  guint first, n;
} Zero3List;

typedef struct {
  guint operator_;
  bool is_again; /* its forward runs again */
  Zero3List fetch, prefetch, release;
  guint n_waits; /* parameters of this visit that were under way */
} Zero3Visit;

typedef struct {
  GArray *visits;  /* Zero3Visit                                 */
  guint n_forward; /* of these, the first so many are of the forward */
  GArray *params;  /* guint, see Zero3List                       */
} Zero3;

Zero3 *zero3_new (Lower *l, const Chunk *c);
void zero3_free (Zero3 *z);

/* Elements that stay gathered, of experts or of others. */
uint64_t zero3_n_persistent (const Lower *l, uint32_t pp_rank, bool is_expert);
bool zero3_is_persistent (const Lower *l, uint64_t numel);
uint64_t zero3_numel (const Chunk *c, guint param);

#endif
