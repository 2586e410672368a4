/* show/plot/plot_timeline.h — one training step as a picture: a row for each rank (or for
 * one rank of each role, beyond 64 ranks), a bar of compute, below it strips of
 * exposed communication; what stays empty is idle. */
#ifndef LS_SHOW_PLOT_PLOT_TIMELINE_H
#define LS_SHOW_PLOT_PLOT_TIMELINE_H

#include "exec/timeline.h"

/* path: NAME.svg or NAME.png. Leaves NAME.gp and NAME.dat beside it, to be edited
 * and drawn again with `gnuplot NAME.gp`; on failure, no new file. title: UTF-8, one
 * line. Errors: those of ls_picture_check(); LS_ERROR_IO: cannot be written, or gnuplot
 * failed. */
gboolean ls_plot_timeline (const LsTimeline *t, const char *title, const char *path, GError **error);

#endif
