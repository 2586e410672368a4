/* show/draw/axis.h — axes and legends of a drawing. */
#ifndef LS_SHOW_DRAW_AXIS_H
#define LS_SHOW_DRAW_AXIS_H

#include <lockstep/units.h>

#include "show/draw/drawing.h"

typedef struct {
  double from, to;  /* in the unit that the name says */
  const char *name; /* "time (ms)"                    */
} LsDrawnAxis;

/* The unit in which a time is a number from 1 up: "ms"; of *ret_unit picoseconds. */
const char *ls_axis_unit (LsTime largest, LsTime *ret_unit);

/* Ticks, their values and the name, from y down; how high that is. */
double ls_draw_axis_below (LsDrawing *d, double left, double right, double y, const LsDrawnAxis *axis);
/* With lines across the picture, to its right end; the name is above. */
void ls_draw_axis_left (LsDrawing *d, double left, double right, double top, double bottom,
                        const LsDrawnAxis *axis);

typedef struct {
  const char *paint, *name;
} LsLegendEntry;

/* Above all that is there, which moves down to make room: a title, a note below it (NULL: none) and a legend
 * of those entries that the drawing has, in as many lines as they need. Returns by how much it moved. */
double ls_draw_head (LsDrawing *d, double left, double right, const char *title, const char *note,
                     const LsLegendEntry *entries, guint n);

#endif
