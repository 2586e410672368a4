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

#include <glib.h>
#include <stdbool.h>

#include "sweep/sweep.h"

typedef struct {
  char *name;  /* NULL: something beats it in all three */
  double days; /* for a trillion tokens */
  double gib;  /* of the fullest rank   */
  double cost;
} LsParetoPoint;

typedef struct {
  char *title, *note;
  const char *chip; /* what an accelerator is called: "GPU"; static */
  bool is_money;    /* cost, for a trillion tokens, is in dollars; else in hours of a chip */
  double capacity_gib;
  GArray *points; /* LsParetoPoint, the fastest first */
} LsParetoPlot;

void ls_pareto_plot_clear (LsParetoPlot *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsParetoPlot, ls_pareto_plot_clear)

typedef enum {
  LS_HEAT_NONE, /* configurations of other cells are the same */
  LS_HEAT_ILLEGAL,
  LS_HEAT_NO_FIT, /* some are legal, none fits                  */
  LS_HEAT_BOUND,  /* none was simulated                         */
  LS_HEAT_VALUE,
} LsHeatKind;

typedef struct {
  LsHeatKind kind;
  double value; /* of VALUE: the best that was simulated            */
  double bound; /* what was not simulated cannot beat this; NAN: all was, or it cannot beat the value */
} LsHeatCell;

typedef struct {
  char *title, *note;
  char *names[2];       /* of the axes: across, up             */
  GPtrArray *labels[2]; /* char *, of their values             */
  char *figure;         /* "step time (s)"                     */
  bool is_more_better;
  GArray *cells; /* LsHeatCell: row by row, bottom up   */
} LsHeatMap;

void ls_heat_map_clear (LsHeatMap *m);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsHeatMap, ls_heat_map_clear)

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
