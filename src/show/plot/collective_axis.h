/* show/plot/collective_axis.h — the axes of a chart of collectives: sizes, or numbers of GPUs with a thin
 * line where a node, a leaf and a pod are full; bus bandwidth or time (private to
 * show/plot/plot_collective.c). */
#ifndef LS_SHOW_PLOT_COLLECTIVE_AXIS_H
#define LS_SHOW_PLOT_COLLECTIVE_AXIS_H

#include <stdio.h>

#include "show/write_collective.h"

/* Bytes or, over GPUs, their number. */
uint64_t ls_collective_x (const LsCollectiveTable *t, const LsCollectiveRow *row);
/* Whether a row has a place on the axis: a barrier has no size. */
gboolean ls_collective_is_drawn (const LsCollectiveTable *t, const LsCollectiveRow *row);

/* What has no size has no bandwidth, but a time. */
gboolean ls_collective_shows_time (const LsCollectiveTable *t);

/* Writes range, tics and lines; width in pixels of a panel. */
void ls_collective_write_axis (FILE *out, const LsCollectiveTable *t, int width);
/* Of y, bus bandwidth: logarithmic. Over GPUs what counts is the ratio of neighbours, and
 * sizes lie far apart. */
void ls_collective_write_ratios (FILE *out, const LsCollectiveTable *t);

#endif
