/* schedules/sched_replay.h — runs orders until nothing moves: each rank executes its list
 * in order as outputs arrive. Linear in the actions: a rank that must wait is woken by
 * the output that it lacks. Private to sched_eval.c and sched_check.c. */
#ifndef LS_SCHEDULES_SCHED_REPLAY_H
#define LS_SCHEDULES_SCHED_REPLAY_H

#include "schedules/sched_eval.h"

/* What a stage sends on for a micro-batch: activations, or gradients. */
typedef struct {
  bool is_gradient;
  uint16_t pipe, stage;
  uint32_t mb;
} LsStageOutput;

typedef struct {
  const LsOrders *orders;
  const LsLayout *l;
  const LsSchedTimes *times;
  LsSchedEval *eval; /* NULL: no times are kept */
  guint *next;       /* [rank] its next action */
  LsTime *free_at;   /* [rank] */
  LsTime *end;       /* [output]; -1: not yet */
  uint32_t *waiter;  /* [output] rank + 1; 0: nobody. One at most: an output goes to one stage, and
                        what its own rank waits for does not come */
  GArray *runnable;  /* uint32_t ranks */
} LsReplay;

gsize ls_output_index (const LsLayout *l, const LsStageOutput *o);
LsStageOutput ls_action_output (const LsLayout *l, uint32_t rank, const LsAction *a); /* not of a W */
/* What an action needs; returns how many. */
guint ls_action_needs (const LsLayout *l, uint32_t rank, const LsAction *a, LsStageOutput needs[2]);

/* Every action must be in range, there once and well paired. */
void ls_replay_init (LsReplay *r, const LsOrders *orders, const LsSchedTimes *times, LsSchedEval *eval);
void ls_replay_run (LsReplay *r);
void ls_replay_clear (LsReplay *r);

#endif
