/* io/plot_pareto.h — configurations by memory, time and cost; those that nothing beats in all of
 * these are marked, and some of them named. */
#ifndef LS_IO_PLOT_PARETO_H
#define LS_IO_PLOT_PARETO_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
  double days;  /* for a trillion tokens */
  double gib;   /* of the fullest rank   */
  double cost;
  char *name;   /* NULL: something beats it in all three */
} LsParetoPoint;

typedef struct {
  char *title, *note;
  const char *chip; /* what an accelerator is called: "GPU"; static */
  bool is_money; /* cost, for a trillion tokens, is in dollars; else in hours of a chip */
  double capacity_gib;
  GArray *points; /* LsParetoPoint, the fastest first */
} LsParetoPlot;

void ls_pareto_plot_clear (LsParetoPlot *plot);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsParetoPlot, ls_pareto_plot_clear)

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_pareto (const LsParetoPlot *plot, const char *path, GError **error);

#endif
