/* show/draw/drawing.h — a drawing of boxes, lines and words, for what is no chart of curves.
 *
 * Pixels, from the top left corner. What has a tip tells it under the pointer. As NAME.svg it is written
 * here: colours are classes of one style sheet, and a reader's dark mode is followed. As NAME.png gnuplot
 * draws it, and as NAME.gp its script is left for editing.
 *
 * A drawing has layers, one above the other, and words above all. In a layer of a PNG areas lie below boxes
 * and boxes below lines; in SVG what is added later lies above.
 *
 * Reference. W3C, Scalable Vector Graphics 1.1, 2011. */
#ifndef LS_SHOW_DRAW_DRAWING_H
#define LS_SHOW_DRAW_DRAWING_H

#include <glib.h>
#include <lockstep/units.h>
#include <stdbool.h>

typedef struct LsDrawing LsDrawing;

typedef enum { LS_LAYER_GROUND, LS_LAYER_LINES, LS_LAYER_BOXES, LS_LAYER_OVER, LS_N_LAYERS } LsLayer;
typedef enum { LS_LEFT, LS_CENTER, LS_RIGHT } LsAlign;

typedef struct {
  double x, y;
} LsXY;

typedef struct {
  double x, y, width, height;
} LsRect;

typedef enum { LS_DRAWN_BOX, LS_DRAWN_LINE, LS_DRAWN_AREA } LsDrawnKind;

/* paint: a name of show/draw/palette.c. */
typedef struct {
  LsDrawnKind kind;
  bool has_edge, is_dashed; /* a line around it, and round corners */
  const char *paint;
  double x, y, width, height;  /* of a box; of a line its width */
  double opacity;              /* 0: 1 */
  double tint;                 /* share of the paint, the rest white, on any ground; 0: 1 */
  guint first_point, n_points; /* of a line or an area */
  const char *tip;             /* NULL: none */
} LsDrawnItem;

typedef struct {
  LsLayer layer;
  const char *paint;
  double width;
  bool is_dashed;
  const char *tip;
} LsStroke;

LsDrawing *ls_drawing_new (const char *title);
void ls_drawing_free (LsDrawing *drawing); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsDrawing, ls_drawing_free)

void ls_drawing_resize (LsDrawing *drawing, double width, double height);

void ls_drawing_box (LsDrawing *drawing, LsLayer layer, LsDrawnItem box);
/* A box in its full colour. */
void ls_drawing_rect (LsDrawing *drawing, LsLayer layer, LsRect rect, const char *paint, bool has_edge,
                      const char *tip);
void ls_drawing_line (LsDrawing *drawing, const LsXY *points, guint n, const LsStroke *stroke);
void ls_drawing_segment (LsDrawing *drawing, LsXY from, LsXY to, const LsStroke *stroke);
/* A quadratic Bezier curve. */
void ls_drawing_curve (LsDrawing *drawing, LsXY from, LsXY control, LsXY to, const LsStroke *stroke);
/* A segment with a head at `to`. */
void ls_drawing_arrow (LsDrawing *drawing, LsXY from, LsXY to, const LsStroke *stroke);
/* A filled polygon, in the layer of boxes. */
void ls_drawing_area (LsDrawing *drawing, const LsXY *points, guint n, const char *paint, const char *tip);
/* y: the middle of the line; size in pixels. */
void ls_drawing_text (LsDrawing *drawing, double x, double y, double size, LsAlign align, const char *paint,
                      const char *text);

/* About how wide a text is; size of the letters in pixels. */
double ls_text_width (const char *text, double size);

/* The file as SVG, newly allocated. */
char *ls_drawing_to_svg (const LsDrawing *drawing);
/* By the suffix of path. Errors as of show/plot/plots.h; .svg needs no gnuplot. */
gboolean ls_drawing_write (const LsDrawing *drawing, const char *path, GError **error);
/* Whether a drawing of that name could be written; creates nothing. The same errors. */
gboolean ls_drawing_check (const char *path, GError **error);

/* --- what a drawing holds ------------------------------------------------------------------------ */

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

/* --- axes and legends ---------------------------------------------------------------------------- */

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

/* --- palette.c --------------------------------------------------------------------------------------- */

/* 0xrrggbb. */
typedef struct {
  const char *name; /* "forward": of classes in SVG and of variables in CSS */
  guint32 light, dark;
} LsPaint;

#define LS_N_SERIES_PAINTS 9

/* NULL: none of that name. */
const LsPaint *ls_palette_find (const char *name);
/* Of the i-th of things that have no colour of their own; they repeat. */
const LsPaint *ls_palette_series (guint i);
/* The name of the paint that is read best on a colour: black or white. */
const char *ls_palette_ink (guint32 color);
/* `share` of b, the rest a; of 0xffffff a tint of b. */
guint32 ls_palette_mix (guint32 a, guint32 b, double share);
/* A style sheet with a variable for each, newly allocated: ":root{--forward:#4477aa;...}". */
char *ls_palette_to_css (void);

#endif
