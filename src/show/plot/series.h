/* show/plot/series.h — colours and markers of gnuplot that tell series of points apart; both repeat. */
#ifndef LS_SHOW_PLOT_SERIES_H
#define LS_SHOW_PLOT_SERIES_H

#include <glib.h>

#define LS_N_SERIES_COLORS  9
#define LS_N_SERIES_MARKERS 5

/* Paul Tol, "Colour schemes", SRON/EPS/TN/09-002, "muted": people with impaired colour
 * vision tell them apart. Its sand, too pale for points, is the orange of "vibrant". */
static const guint32 ls_series_colors[LS_N_SERIES_COLORS]
    = { 0x332288, 0xcc6677, 0x117733, 0xee7733, 0x88ccee, 0x882255, 0x44aa99, 0x999933, 0xaa4499 };
/* Filled circle, square, triangle, diamond, triangle down; open is one less. */
static const int ls_series_markers[LS_N_SERIES_MARKERS] = { 7, 5, 9, 13, 11 };

#endif
