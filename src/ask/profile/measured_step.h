/* ask/profile/measured_step.h — one step cut out of a profile.
 *
 * Which ops are the step's:
 *
 *   ProfilerStep#N   those whose launch lies in the annotation, which is on the host; of an op
 *                    without a launch its own start counts
 *   FROM:TO          those that start in that range, counted from the first event of the
 *                    trace that is a step, a kernel or a copy
 *   by periodicity   the sequence of kernel names repeats (all of it, with the shortest
 *                    period): those of one period, which begins behind the optimizer
 *
 * The step begins with its first op on the GPU and lasts to the first of the next step.
 * Without a next step it lasts to the end of its last op, which leaves out what the GPU waited
 * for after it; a range lasts as it says. Unless told which, it is the last that has a next one.
 *
 * The period: the shortest p with name[i] = name[i + p] throughout (Knuth, Morris, Pratt 1977),
 * which layers, that repeat too, do not have, and of which two fit. */
#ifndef LS_ASK_PROFILE_MEASURED_STEP_H
#define LS_ASK_PROFILE_MEASURED_STEP_H

#include "analysis/reconcile.h"
#include "data/measured/read_kineto.h"

typedef struct {
  LsStepSide *side;   /* names are borrowed from the trace */
  char *what;         /* "ProfilerStep#12", "2500us:7500us" */
  bool is_open;       /* no next step: its end is that of its last op */
  GArray *chosen;     /* guint: its ops as places in the trace's, by start                       */
  int64_t start, end; /* of the step, in the trace's ns                                        */
  int64_t host_end;   /* where its annotation on the host ends; LS_KINETO_NONE: there is none  */
  int64_t
      next_launch; /* of the first op of the next step; LS_KINETO_NONE: there is none, or it is not known */
  int64_t thread;  /* that has the annotation; -1: not known                                */
} LsMeasuredStep;

/* which: NULL, "12", or "FROM:TO" with units. LS_ERROR_USAGE: not of these; LS_ERROR_INPUT:
 * no such step, none found, nothing in it. */
gboolean ls_measured_step_cut (const LsKineto *k, const char *which, LsMeasuredStep *ret_step,
                               GError **error);
void ls_measured_step_clear (LsMeasuredStep *step);
/* Whether `which` can be meant, before a file is read. */
gboolean ls_measured_step_check (const char *which, GError **error);

#endif
