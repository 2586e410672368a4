/* show/plot/plot_heat.h — a figure over two axes, a cell for each pair of values: what is known of the
 * cell, and no more. A cell that was left out by a bound is hatched and shows that bound. */
#ifndef LS_SHOW_PLOT_PLOT_HEAT_H
#define LS_SHOW_PLOT_PLOT_HEAT_H

#include "sweep/sweep_charts.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: no cell has a value. */
gboolean ls_plot_heat (const LsHeatMap *map, const char *path, GError **error);

#endif
