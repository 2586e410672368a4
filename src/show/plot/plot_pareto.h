/* show/plot/plot_pareto.h — configurations by memory, time and cost; those that nothing beats in all of
 * these are marked, and some of them named. */
#ifndef LS_SHOW_PLOT_PLOT_PARETO_H
#define LS_SHOW_PLOT_PLOT_PARETO_H

#include "sweep/sweep_charts.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_pareto (const LsParetoPlot *plot, const char *path, GError **error);

#endif
