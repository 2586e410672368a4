/* show/write_schedule.h — a pipeline schedule and what it costs, for people and for programs.
 *
 *     bubble of makespan = 1 - ideal / makespan       of span = 1 - ideal / span
 *     bubble of ideal    = makespan / ideal - 1
 *
 * ideal is the time of the rank with most work, span the longest that a rank is there from its first action
 * to its last. */
#ifndef LS_SHOW_WRITE_SCHEDULE_H
#define LS_SHOW_WRITE_SCHEDULE_H

#include "ask/schedule.h"

typedef struct {
  bool color;  /* ANSI escapes */
  bool ascii;  /* no block characters */
  guint width; /* columns to fill at most */
} LsScheduleText;

/* Newly allocated, ending in a newline. JSON has the names of the manual's formats; CSV is
 * PyTorch's text format, a line per rank. */
char *ls_schedule_to_text (const LsScheduleView *v, const LsScheduleText *text);
char *ls_schedule_to_json (const LsScheduleView *v);
char *ls_schedule_to_csv (const LsScheduleView *v);

/* Schedules beside each other. Whether a row fits is told where there is a limit. */
char *ls_schedule_all_to_text (const LsScheduleTable *t);
char *ls_schedule_all_to_json (const LsScheduleTable *t);
char *ls_schedule_all_to_csv (const LsScheduleTable *t);

/* --- write_schedule.c ------------------------------------------------------------------------------ */

/* A pipeline schedule drawn with characters: a row per rank, time to the right.
 *
 * Where there is room an action is a box with its letter (lower case on chunks 1, 3, ..) and micro-batch, in
 * colour a box of its colour with the micro-batch. Where there is not, a column is a slice of time: a letter
 * where one kind of work has four fifths of what is done in it, else a mixture, lighter where the rank is
 * idle for more than half of it. Of more than MAX_ROWS ranks every n-th is shown. */

void ls_schedule_chart (const LsScheduleView *v, const LsScheduleText *text, GString *out);

#endif
