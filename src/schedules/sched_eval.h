/* schedules/sched_eval.h — when each action of an order happens, how long ranks wait and
 * how many activations they hold.
 *
 * Equations. Each rank executes its list in order; an action starts when the rank is
 * free and its inputs have arrived, and takes the time of its type on its stage:
 *
 *     F (s, k)      needs F (s - 1, k)
 *     B, I (s, k)   need F (s, k) and B or I (s + 1, k)
 *     W (s, k)      needs I (s, k)
 *
 * within a pipe, for stage s and micro-batch k. What comes from another rank arrives
 * comm after its end. A pair starts when both its actions could and ends both at once.
 *
 * Example: p = 2, m = 2, 1F1B, F = 1, B = 2
 *
 *     rank 0   F0 F1 .  .  B0 B0 .  B1 B1      busy 6, idle for 3 of the makespan, 9
 *     rank 1   .  F0 B0 B0 F1 B1 B1 .  .       last - first = 7 - 1
 *
 * Activations: a chunk's are held from its F to the end of its B. Where the backward is
 * split, two conventions: `held` counts them in full until W, `split` frees one half at
 * I and the other at W. Both follow from the order alone.
 *
 * Deviation: sends take no time of a rank, and links are not shared; `lockstep run` has
 * both. Reference: the zero-bubble papers' measure of time is the span (Qi et al., Zero
 * Bubble Pipeline Parallelism, ICLR 2024). */
#ifndef LS_SCHEDULES_SCHED_EVAL_H
#define LS_SCHEDULES_SCHED_EVAL_H

#include "base/diag.h"
#include "schedules/sched.h"

typedef struct {
  LsTime start, end;
} LsActionTime;

typedef struct {
  LsTime first, last;  /* of its first action, of its last; both 0 if it has none */
  LsTime busy;         /* last - first - busy: idle between its actions */
  uint32_t held_peak;  /* chunks */
  uint32_t split_peak; /* half chunks */
} LsRankEval;

typedef struct {
  uint32_t n_ranks;
  LsActionTime **times; /* [n_ranks][actions of the rank] */
  LsRankEval *ranks;    /* [n_ranks] */
  LsTime makespan;      /* end of the last action; the first starts at 0 */
  LsTime span;          /* the largest last - first */
  LsTime ideal;         /* the largest busy */
  double per_chunk;     /* micro-batches of a rank's full activations in a chunk's */
} LsSchedEval;

/* The orders must be able to run (schedules/sched_eval.h). Free with ls_sched_eval_free. */
LsSchedEval *ls_orders_eval (const LsOrders *orders, const LsSchedTimes *times);
void ls_sched_eval_free (LsSchedEval *eval); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSchedEval, ls_sched_eval_free)

/* --- runs orders until nothing moves: each rank executes its list in order as outputs arrive ----- */

/* Linear in the actions: a rank that must wait is woken by
 * the output that it lacks. Private to sched_eval.c. */

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

/* What is wrong with an order that cannot run. */

/* Where orders that were read from a file stand, a line each. */
typedef struct {
  const char *file;
  char *const *texts;        /* [rank] the line */
  const int *const *columns; /* [rank][action], then the end of the line */
} LsOrderPlaces;

/* Adds a diagnostic for each action that is out of range, on the wrong rank, there twice
 * or wrongly paired, for each that is missing, and if there is none of these, one for a
 * cycle of ranks that wait for each other. The pointer is "/RANK/ACTION", counted from 0,
 * with the rank's number of actions for what is missing. They are LS_ERROR_INPUT and located
 * if places are given, else LS_ERROR_CONFLICT. TRUE if the order can run. */
gboolean ls_orders_check (const LsOrders *orders, const LsOrderPlaces *places, LsDiagList *diags);

#endif
