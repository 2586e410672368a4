/* show/plot/series.h — markers of gnuplot that tell series of points apart, beside their colours
 * (show/draw/palette.h); they repeat. */
#ifndef LS_SHOW_PLOT_SERIES_H
#define LS_SHOW_PLOT_SERIES_H

#include "show/draw/palette.h"

#define LS_N_SERIES_MARKERS 5

/* Filled circle, square, triangle, diamond, triangle down; open is one less. */
static const int ls_series_markers[LS_N_SERIES_MARKERS] = { 7, 5, 9, 13, 11 };

#endif
