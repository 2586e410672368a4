/* ask/schedule.h — one pipeline schedule, from its name or a file, timed; or all of them
 * for the same job. */
#ifndef LS_ASK_SCHEDULE_H
#define LS_ASK_SCHEDULE_H

#include <glib.h>
#include <stdint.h>

#include "base/diag.h"
#include "schedules/sched_eval.h"

/* --- what it costs ---------------------------------------------------------------------------------- */

/* A pipeline schedule and what it costs.
 *
 *     bubble of makespan = 1 - ideal / makespan       of span = 1 - ideal / span
 *     bubble of ideal    = makespan / ideal - 1
 *
 * ideal is the time of the rank with most work, span the longest that a rank is there from
 * its first action to its last. */

/* Times without a unit are kept as picoseconds, so many to 1: thousandths, and a 16th part
 * of whole numbers and less, stay whole. */
#define LS_SCHEDULE_ONE ((LsTime) 72072000)

/* title, orders, eval and assumptions are owned. */
typedef struct {
  const char *title; /* "1f1b: 4 ranks, 8 micro-batches" */
  const LsOrders *orders;
  const LsSchedEval *eval; /* of these orders */
  LsChunkTimes times;      /* of a chunk */
  LsTime comm;
  bool has_unit;       /* times are picoseconds; else LS_SCHEDULE_ONE is 1 */
  bool is_searched;    /* its memory was limited by halves, see ls_schedule_peak() */
  GArray *assumptions; /* LsAssumption (job/assumptions.h): the times; NULL: one of several */
} LsScheduleView;

double ls_schedule_bubble (LsTime ideal, LsTime total); /* 1 - ideal / total; 0 if nothing takes time */
LsTime ls_schedule_shortest (const LsScheduleView *v);  /* action that takes time; LS_TIME_NEVER: none */
double ls_schedule_number (LsTime t, bool has_unit);    /* seconds, or what was given */
char *ls_schedule_time_text (LsTime t, bool has_unit);  /* "1.5 ms", "33"; newly allocated */
/* Whether a rank has such an action, or one that begins a pair. */
bool ls_schedule_has (const LsOrders *orders, LsActionType type, bool is_paired);
/* The most that a rank holds, in micro-batches of its full activations: all of one until the
 * end of B or W, or by halves, one until I and the other until W (schedules/sched_eval.h). */
typedef enum { LS_PEAK_TO_W, LS_PEAK_BY_HALVES } LsPeakCount;
double ls_schedule_peak (const LsSchedEval *eval, uint32_t rank, LsPeakCount count);
/* As its authors count: searched orders keep a limit by halves. */
LsPeakCount ls_schedule_count (bool is_searched);

/* --- by name or from a file -------------------------------------------------------------------------- */

typedef struct {
  uint32_t x;    /* micro-batches, or stages (ranks) */
  double bubble; /* of the span, 0 to 1 */
} LsBubblePoint;

typedef struct {
  const char *schedule; /* static */
  guint line;           /* its colour and mark, the same in both panels */
  GArray *points;       /* LsBubblePoint, ascending in x */
} LsBubbleCurve;

typedef struct {
  char *title;
  char *notes[2];    /* what is fixed in each panel */
  GArray *panels[2]; /* LsBubbleCurve: over micro-batches, over stages */
} LsBubbles;

typedef struct {
  const char *schedule;
  const char *refusal; /* NULL, or the rule that the job breaks: then no figures */
  uint32_t vpp;        /* chunks of a rank, of one replica */
  LsTime makespan, span, ideal;
  double to_w, by_halves; /* the most of a rank, as of ls_schedule_peak()    */
  bool is_searched;
  double copies;        /* of a rank's share of the parameters that it keeps */
  double communication; /* boundaries between ranks that are crossed, over those of 1f1b; NaN: none */
} LsScheduleRow;

typedef struct {
  char *title;
  bool has_unit;       /* as of LsScheduleView */
  double memory_limit; /* micro-batches of a rank's full activations, by halves; 0: none */
  GArray *rows;        /* LsScheduleRow */
  GArray *assumptions; /* LsAssumption, as of LsScheduleView */
  GPtrArray *views;    /* LsScheduleView, one a row, of schedules that were named; NULL: all there are */
} LsScheduleTable;

/* A searched order keeps the limit; a fixed one may not. */
bool ls_schedule_row_fits (const LsScheduleTable *t, const LsScheduleRow *row);

typedef struct {
  LsTime value; /* picoseconds, or in units of LS_SCHEDULE_ONE */
  bool is_given, has_unit;
} LsScheduleTime;

typedef struct {
  char *schedule;   /* names of schedules/sched.h with commas between, or a path */
  uint32_t pp, vpp; /* 0: not given, as all below           */
  uint32_t n_micro_batches;
  uint32_t group, waves, pipes;
  int rounds;                       /* LsRounds; -1: not given               */
  LsScheduleTime f, b, w, fb, comm; /* of a chunk; of all schedules: of a rank's share of the model */
  double memory_limit;              /* micro-batches of a rank's full activations */
} LsScheduleSpec;

void ls_schedule_spec_init (LsScheduleSpec *spec);
void ls_schedule_spec_clear (LsScheduleSpec *spec);
/* Sets one knob from text; key is a long flag of `lockstep schedule` without dashes.
 * LS_ERROR_USAGE; spec is then unchanged. */
bool ls_schedule_spec_set (LsScheduleSpec *spec, const char *key, const char *value, LsDiagList *diags);

bool ls_schedule_is_list (const char *text); /* of names, more than one */

/* LS_ERROR_USAGE: what is missing, an unknown name; LS_ERROR_INPUT: the file;
 * LS_ERROR_CONFLICT: the rule that is broken; LS_ERROR_LIMIT. Free with
 * ls_schedule_view_free(). */
LsScheduleView *ls_schedule_view_new (const LsScheduleSpec *spec, GError **error);
void ls_schedule_view_free (LsScheduleView *view); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsScheduleView, ls_schedule_view_free)

/* ask/schedule.c: every schedule, or those that the spec names, for its ranks, micro-batches
 * and times, each with the chunks that it needs, by default 2 where it leaves a choice: V chunks
 * take a V-th of the time each. Of all schedules one that cannot be is refused in its row. Errors
 * as above; of those that are named LS_ERROR_CONFLICT also if one cannot be, or if none of them
 * heeds a knob. Free with ls_schedule_table_free(). */
LsScheduleTable *ls_schedule_all (const LsScheduleSpec *spec, GError **error);
void ls_schedule_table_free (LsScheduleTable *table); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsScheduleTable, ls_schedule_table_free)

/* Their bubbles over micro-batches and over stages. Searched orders are left out: a search
 * for each point takes too long. Free with ls_schedule_bubbles_free(). */
LsBubbles *ls_schedule_bubbles (const LsScheduleSpec *spec, GError **error);
void ls_schedule_bubbles_free (LsBubbles *bubbles); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsBubbles, ls_schedule_bubbles_free)

#endif
