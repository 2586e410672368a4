/* exec/replay/op_begin.h — what begins an op, by its kind: one row each (private).
 *
 * The other half of plan/op_kind.h: how a replay treats a kind that stands in a stream. Kinds of the host
 * (LS_TAKES_HOST) have no row: rank.c issues them. */
#ifndef LS_EXEC_REPLAY_OP_BEGIN_H
#define LS_EXEC_REPLAY_OP_BEGIN_H

#include "exec/replay/motion.h"
#include "exec/replay/rank.h"
#include "exec/replay/state.h"

typedef struct {
  /* Of the head of a stream, issued, once all that it depends on is over: false if it waits for something
   * whose end is not known; else c->start may be put off, with its cause. NULL: it waits for nothing more. */
  bool (*may_begin) (Run *x, Rank *r, const Frame *f, uint16_t op, Candidate *c);
  /* Begins the op, head of the stream of c. Up to alone_until nothing else of the rank begins, nor can
   * anything outside touch it; 0: something may. False: not before the clock is at c->start. */
  bool (*begin) (Run *x, Rank *r, const Candidate *c, const XOp *op, LsTime alone_until);
  /* Of the SMs, what it holds, in 1 / LS_COEF_ONE. NULL: none. */
  uint64_t (*sm_share) (Run *x, const Rank *r, const LsOp *op);
} OpBegin;

extern const OpBegin op_begins[LS_N_OP_KINDS];

/* Of a record or wait. */
EventRecord *event_record (Run *x, Rank *r, const Frame *f, const LsOp *op);

#endif
