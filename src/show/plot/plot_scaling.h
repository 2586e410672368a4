/* show/plot/plot_scaling.h — step time, tokens/s and MFU of the best configuration over the number of
 * GPUs, and over the global batch, beside ideal scaling (sweep/sweep_scaling.c). */
#ifndef LS_SHOW_PLOT_PLOT_SCALING_H
#define LS_SHOW_PLOT_PLOT_SCALING_H

#include "show/write_sweep.h"

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: no two groups have a best. */
gboolean ls_plot_scaling (const LsSweepReport *report, const char *path, GError **error);

#endif
