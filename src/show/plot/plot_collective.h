/* show/plot/plot_collective.h — bus bandwidth over size or over GPUs.
 *
 * Of a table one panel: a line, its points told apart by algorithm and protocol, or a
 * line for each fidelity. Of a comparison a panel for each family: for each number of
 * GPUs a line simulated and points measured. Over GPUs one panel: a line for each size
 * (and fidelity), and marks where a node, a leaf and a pod are full. */
#ifndef LS_SHOW_PLOT_PLOT_COLLECTIVE_H
#define LS_SHOW_PLOT_PLOT_COLLECTIVE_H

#include "show/write_collective.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: no row has a size (over GPUs
 * a barrier shows its time). */
gboolean ls_plot_collective (const LsCollectiveTable *t, const char *path, GError **error);

#endif
