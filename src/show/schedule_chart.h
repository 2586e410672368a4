/* show/schedule_chart.h — a pipeline schedule drawn with characters: a row per rank, time to
 * the right.
 *
 * Where there is room an action is a box with its letter (lower case on chunks 1, 3, ..) and
 * micro-batch, in colour a box of its colour with the micro-batch. Where there is not, a
 * column is a slice of time: a letter where one kind of work has four fifths of what is
 * done in it, else a mixture, lighter where the rank is idle for more than half of it. Of more
 * than MAX_ROWS ranks every n-th is shown. */
#ifndef LS_SHOW_SCHEDULE_CHART_H
#define LS_SHOW_SCHEDULE_CHART_H

#include "show/write_schedule.h"

void ls_schedule_chart (const LsScheduleView *v, const LsScheduleText *text, GString *out);

#endif
