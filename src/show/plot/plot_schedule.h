/* show/plot/plot_schedule.h — a pipeline schedule as in the papers: a row per rank, boxes with the
 * number of the micro-batch, a colour for each kind of work, later chunks lighter. A
 * forward and a backward that run together share a box, one above the other. */
#ifndef LS_SHOW_PLOT_PLOT_SCHEDULE_H
#define LS_SHOW_PLOT_PLOT_SCHEDULE_H

#include "show/write_schedule.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(). */
gboolean ls_plot_schedule (const LsScheduleView *v, const char *path, GError **error);

#endif
