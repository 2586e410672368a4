/* exec/shortcuts/plan_bound_sum.h — a rank in a bound of the step: what its ops take alone (private to
 * plan_bound*.c). */
#ifndef LS_EXEC_SHORTCUTS_PLAN_BOUND_SUM_H
#define LS_EXEC_SHORTCUTS_PLAN_BOUND_SUM_H

#include "exec/shortcuts/plan_bound.h"
#include "exec/extras.h"
#include "exec/known_calls.h"

/* A collective of a rank, or what it sends to a neighbour. */
typedef struct {
  CallKey key;
  uint8_t slot;
  LsTime alone, moving;
  double channels, stall; /* that it takes of a kernel's rate while it moves */
} BoundCall;

typedef struct {
  LsTime busy, moving;
  double channels, stall; /* the least of its collectives; 1: none */
} StreamSum;

/* Of a rank and a step. */
typedef struct {
  Run *x;
  LsCollMemo *memo;
  uint32_t rank;
  double slow;
  const XKind *kind;
  GArray *known;  /* BoundCall                                                         */
  LsTime *work;   /* [n_kernels + 1] on the compute stream; last: of recorded duration */
  LsTime slowed;  /* the same of those whose recorded duration holds a slowdown: not in work */
  LsTime kernels; /* on all streams                                                    */
  LsTime idle;
  StreamSum streams[LS_N_STREAMS];
} RankSum;

/* Of an op; 0 for what is not known. */
LsTime bound_op_alone (RankSum *r, const LsOp *op, const XOp *xop);
/* Of bytes sent to the neighbour of LS_SLOT_PREV or LS_SLOT_NEXT. */
LsTime bound_send_alone (RankSum *r, const LsTransfer *t);

#define BOUND_NEVER (-1) /* it does not follow from where a path begins */

/* How long after the compute stream begins a segment each stream is behind its last op that follows
 * from that, or BOUND_NEVER. is_longest: kernels of the compute stream at their slowest, and all else
 * alone. Returns the time of what the compute stream runs. */
LsTime bound_segment_path (RankSum *r, const XSegment *seg, bool is_longest, LsTime ret_end[LS_N_STREAMS]);

/* bound_round.c: sums: [n_roles] of the first rank of each role; NULL: it has none. */
LsTime bound_round (Run *x, RankSum *const *sums);

#endif
