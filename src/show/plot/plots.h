/* show/plot/plots.h — charts of curves and points. Each is drawn by gnuplot into path, NAME.svg or NAME.png.
 * Of NAME.gp script and data are left, to be edited and drawn again with `gnuplot NAME.gp`. On failure, there
 * is no new file. Texts are lines of UTF-8. Errors: those of ls_chart_draw(), and as
 * named. */
#ifndef LS_SHOW_PLOT_PLOTS_H
#define LS_SHOW_PLOT_PLOTS_H

#include "ask/collective/collective_table.h"
#include "ask/schedule.h"
#include "calibrate/fit_report.h"
#include "sweep/sweep_charts.h"
#include "sweep/sweep_report.h"
#include "validate/validate.h"

/* Bubbles of pipeline schedules over micro-batches and over stages. LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_bubbles (const LsBubbles *b, const char *path, GError **error);

/* Bus bandwidth over size or over GPUs. Of a table one panel: a line, its points told apart by algorithm and
 * protocol, or a line for each fidelity. Of a comparison a panel for each family: for each number of GPUs a
 * line simulated and points measured. Over GPUs one panel: a line for each size (and fidelity), and marks
 * where a node, a leaf and a pod are full. LS_ERROR_CONFLICT: no row has a size (over GPUs a barrier shows
 * its time). */
gboolean ls_plot_collective (const LsCollectiveTable *t, const char *path, GError **error);

/* A figure over two axes, a cell for each pair of values: what is known of the cell, and no more. A cell that
 * was left out by a bound is hatched and shows that bound. LS_ERROR_CONFLICT: no cell has a value. */
gboolean ls_plot_heat (const LsHeatMap *map, const char *path, GError **error);

/* Configurations by memory, time and cost; those that nothing beats in all of these are marked, and some of
 * them named. LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_pareto (const LsParetoPlot *plot, const char *path, GError **error);

/* Step time, tokens/s and MFU of the best configuration over the number of GPUs, and over the global batch,
 * beside ideal scaling (sweep/sweep_report.c). Of another objective what counts, the goodput, and days and
 * cost to the loss in their place. LS_ERROR_CONFLICT: no two groups have a best. */
gboolean ls_plot_scaling (const LsSweepReport *report, const char *path, GError **error);

/* Predicted over measured time of the kernels of a fit, both axes logarithmic: on the line they agree, inside
 * the band they differ by 10 % at most. A colour for each class; open marks were held out. */
gboolean ls_plot_calibration (const LsFitReport *report, const char *path, GError **error);

/* The same of step times; below, the errors over the same axis. A colour and a mark for each family; refused
 * rows are not there. LS_ERROR_FAILED: no row was simulated. */
gboolean ls_plot_scores (const LsScores *scores, const char *path, GError **error);

#endif
