/* show/draw/drawn_items.h — what a drawing holds (private to show/draw/drawing*.c). */
#ifndef LS_SHOW_DRAW_DRAWN_ITEMS_H
#define LS_SHOW_DRAW_DRAWN_ITEMS_H

#include "show/draw/drawing.h"

typedef enum { LS_DRAWN_BOX, LS_DRAWN_LINE, LS_DRAWN_AREA } LsDrawnKind;

typedef struct {
  LsDrawnKind kind;
  bool has_edge, is_dashed;
  const char *paint;           /* static */
  double x, y, width, height;  /* of a box; of a line its width */
  double opacity, tint;        /* (0, 1] */
  guint first_point, n_points; /* of a line or an area */
  const char *tip;             /* NULL: none; of the drawing */
} LsDrawnItem;

typedef struct {
  double x, y, size;
  LsAlign align;
  const char *paint, *text;
} LsDrawnWord;

struct LsDrawing {
  char *title;
  double width, height;
  GArray *layers[LS_N_LAYERS]; /* LsDrawnItem */
  GArray *words;               /* LsDrawnWord */
  GArray *points;              /* LsXY     */
  GStringChunk *texts;
};

/* show/draw/drawing_gnuplot.c: an LsDrawing as .png or .gp. */
gboolean ls_drawing_plot (const LsDrawing *drawing, const char *path, GError **error);

#endif
