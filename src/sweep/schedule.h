/* sweep/schedule.h — one pipeline schedule, from its name or a file, timed; or all of them
 * for the same job. */
#ifndef LS_SWEEP_SCHEDULE_H
#define LS_SWEEP_SCHEDULE_H

#include "base/diag.h"
#include "io/plot_bubbles.h"
#include "io/write_schedule.h"
#include "io/write_schedule_all.h"

typedef struct {
  LsTime value; /* picoseconds, or in units of LS_SCHEDULE_ONE */
  bool is_given, has_unit;
} LsScheduleTime;

typedef struct {
  char *schedule;         /* a name of parallel/sched.h, or a path */
  uint32_t pp, vpp;       /* 0: not given, as all below           */
  uint32_t n_micro_batches;
  uint32_t group, waves, pipes;
  int rounds;             /* LsRounds; -1: not given               */
  LsScheduleTime f, b, w, fb, comm; /* of a chunk; of all schedules: of a rank's share of the model */
  double memory_limit;    /* micro-batches of a rank's full activations */
} LsScheduleSpec;

void ls_schedule_spec_init (LsScheduleSpec *spec);
void ls_schedule_spec_clear (LsScheduleSpec *spec);
/* Sets one knob from text; key is a long flag of `lockstep schedule` without dashes.
 * LS_ERROR_USAGE; spec is then unchanged. */
bool ls_schedule_spec_set (LsScheduleSpec *spec, const char *key, const char *value, LsDiagList *diags);

/* The times that follow. f = 1 and b = 2 unless given; b is the full backward unless w is
 * given, then the input gradient; without w it splits in halves; fb = f + b unless given.
 * LS_ERROR_USAGE: some times have a unit and others do not. */
gboolean ls_schedule_spec_times (const LsScheduleSpec *spec, LsSchedTimes *ret_times, bool *ret_has_unit, GError **error);
/* Whether the schedule has the knobs that were given: LS_ERROR_CONFLICT. */
gboolean ls_schedule_spec_fits (const LsScheduleSpec *spec, const LsSched *sched, GError **error);
LsSchedShape ls_schedule_spec_shape (const LsScheduleSpec *spec, const LsSchedTimes *times);
bool ls_schedule_is_path (const char *text);

/* LS_ERROR_LIMIT: more than fits in memory, or in a time. */
gboolean ls_schedule_check_size (guint64 n_cells, const LsSchedTimes *times, GError **error);

typedef struct {
  LsScheduleView view; /* title, orders and eval are owned */
} LsScheduleRun;

/* LS_ERROR_USAGE: what is missing, an unknown name; LS_ERROR_INPUT: the file;
 * LS_ERROR_CONFLICT: the rule that is broken; LS_ERROR_LIMIT. Free with
 * ls_schedule_run_free(). */
LsScheduleRun *ls_schedule_run_new (const LsScheduleSpec *spec, GError **error);
void ls_schedule_run_free (LsScheduleRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsScheduleRun, ls_schedule_run_free)

/* sweep/schedule_all.c: every schedule for the spec's ranks, micro-batches and times, each
 * with the chunks that it needs, by default 2 where it leaves a choice: V chunks take a V-th
 * of the time each. A schedule that cannot be is refused in its row. Errors as above. Free
 * with ls_schedule_table_free(). */
LsScheduleTable *ls_schedule_all (const LsScheduleSpec *spec, GError **error);
void ls_schedule_table_free (LsScheduleTable *table); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsScheduleTable, ls_schedule_table_free)

/* Their bubbles over micro-batches and over stages. Searched orders are left out: a search
 * for each point takes too long. Free with ls_schedule_bubbles_free(). */
LsBubbles *ls_schedule_bubbles (const LsScheduleSpec *spec, GError **error);
void ls_schedule_bubbles_free (LsBubbles *bubbles); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsBubbles, ls_schedule_bubbles_free)

#endif
