/* sweep/sweep_charts.h — what charts of a sweep hold.
 *
 * Heat map. A cell holds all configurations with its two values. It shows the best that was
 * simulated and fits, which is run once more to be sure of that, and beside it how good those may
 * be that a bound left out, if better. A cell of which none was simulated shows only the bound.
 * Values that no legal configuration has are left out. All cells must be of one number of GPUs and
 * one global batch each: with several of them, that is one of the axes.
 *
 * Pareto chart. All that were simulated and fit; needs a sweep with a front. */
#ifndef LS_SWEEP_SWEEP_CHARTS_H
#define LS_SWEEP_SWEEP_CHARTS_H

#include "io/plot_heat.h"
#include "io/plot_pareto.h"
#include "sweep/sweep.h"

/* "tp,pp" (NULL: that), across and up; "step", "tokens" or "mfu" (NULL: "step"). Before the sweep
 * runs. LS_ERROR_USAGE. */
gboolean ls_sweep_spec_set_heat (LsSweepSpec *spec, const char *axes, const char *figure, GError **error);

/* Whether the charts that are asked for can be drawn of the space, which is filled:
 * LS_ERROR_USAGE. */
gboolean ls_sweep_spec_check_charts (const LsSweepSpec *spec, GError **error);

/* Of a sweep that was asked for it. Clear them. */
void ls_sweep_run_heat_map (LsSweepRun *x, LsHeatMap *ret_map);
void ls_sweep_run_pareto (const LsSweepRun *x, LsParetoPlot *ret_plot);

#endif
