/* io/plot_heat.h — a figure over two axes, a cell for each pair of values: what is known of the
 * cell, and no more. A cell that was left out by a bound is hatched and shows that bound. */
#ifndef LS_IO_PLOT_HEAT_H
#define LS_IO_PLOT_HEAT_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
  LS_HEAT_NONE,    /* configurations of other cells are the same */
  LS_HEAT_ILLEGAL,
  LS_HEAT_NO_FIT,  /* some are legal, none fits                  */
  LS_HEAT_BOUND,   /* none was simulated                         */
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
  GArray *cells;        /* LsHeatCell: row by row, bottom up   */
} LsHeatMap;

void ls_heat_map_clear (LsHeatMap *map);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsHeatMap, ls_heat_map_clear)

/* path: NAME.svg or NAME.png; NAME.gp and NAME.dat are left beside it. Errors: those of
 * ls_picture_init() and ls_picture_draw(); LS_ERROR_CONFLICT: no cell has a value. */
gboolean ls_plot_heat (const LsHeatMap *map, const char *path, GError **error);

#endif
