/* ask/schedule_view.h — a pipeline schedule and what it costs.
 *
 *     bubble of makespan = 1 - ideal / makespan       of span = 1 - ideal / span
 *     bubble of ideal    = makespan / ideal - 1
 *
 * ideal is the time of the rank with most work, span the longest that a rank is there from
 * its first action to its last. */
#ifndef LS_ASK_SCHEDULE_VIEW_H
#define LS_ASK_SCHEDULE_VIEW_H

#include "schedules/sched_eval.h"

/* Times without a unit are kept as picoseconds, so many to 1: thousandths, and a 16th part
 * of whole numbers and less, stay whole. */
#define LS_SCHEDULE_ONE ((LsTime) 72072000)

/* All borrowed. */
typedef struct {
  const char *title; /* "1f1b: 4 ranks, 8 micro-batches" */
  const LsOrders *orders;
  const LsSchedEval *eval; /* of these orders */
  LsChunkTimes times;      /* of a chunk */
  LsTime comm;
  bool has_unit;    /* times are picoseconds; else LS_SCHEDULE_ONE is 1 */
  bool is_searched; /* its memory was limited by halves, see ls_schedule_peak() */
} LsScheduleView;

double ls_schedule_bubble (LsTime ideal, LsTime total); /* 1 - ideal / total; 0 if nothing takes time */
double ls_schedule_number (LsTime t, bool has_unit);    /* seconds, or what was given */
char *ls_schedule_time_text (LsTime t, bool has_unit);  /* "1.5 ms", "33"; newly allocated */
/* The most that a rank holds, in micro-batches of its full activations: all of one until the
 * end of B or W, or by halves, one until I and the other until W (schedules/sched_eval.h). */
typedef enum { LS_PEAK_TO_W, LS_PEAK_BY_HALVES } LsPeakCount;
double ls_schedule_peak (const LsSchedEval *eval, uint32_t rank, LsPeakCount count);
/* As its authors count: searched orders keep a limit by halves. */
LsPeakCount ls_schedule_count (bool is_searched);

#endif
