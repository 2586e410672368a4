/* A drawing as gnuplot draws it: for PNG, and as a script with its data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "show/draw/drawing.h"
#include "show/draw/palette.h"
#include "show/plot/picture.h"

#define POINTS_PER_PIXEL "0.79" /* of PNG: 9.5 points are as large as 12 pixels (show/plot/picture.c) */

/* What one element of the plot draws: items of a layer that look alike. */
typedef struct {
  int layer;
  LsDrawnKind kind;
  bool has_edge, is_dashed;
  const char *paint; /* of lines and areas; boxes bring their colour */
  double width;      /* of lines */
  guint only;        /* of areas: the item; else G_MAXUINT */
} Block;

typedef struct {
  const LsDrawing *d;
  const LsPicture *picture;
  GArray *blocks; /* Block */
} Plot;

static bool
is_in (const Block *b, const LsDrawnItem *item, guint i)
{
  if (b->kind != item->kind || b->has_edge != item->has_edge)
    return false;
  if (item->kind == LS_DRAWN_AREA)
    return b->only == i;
  return item->kind == LS_DRAWN_BOX
      || (b->paint == item->paint && b->width == item->width && b->is_dashed == item->is_dashed);
}

static void
add_block (Plot *p, int layer, const LsDrawnItem *item, guint i, guint first)
{
  for (guint k = first; k < p->blocks->len; k++)
    if (is_in (&g_array_index (p->blocks, Block, k), item, i))
      return;
  const Block block = { layer,
                        item->kind,
                        item->has_edge,
                        item->is_dashed,
                        item->paint,
                        item->width,
                        item->kind == LS_DRAWN_AREA ? i : G_MAXUINT };
  g_array_append_val (p->blocks, block);
}

/* Areas, then boxes, then lines of each layer. */
static void
find_blocks (Plot *p)
{
  static const LsDrawnKind kinds[] = { LS_DRAWN_AREA, LS_DRAWN_BOX, LS_DRAWN_LINE };
  for (int layer = 0; layer < LS_N_LAYERS; layer++) {
    guint first = p->blocks->len;
    for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
      for (guint i = 0; i < p->d->layers[layer]->len; i++) {
        const LsDrawnItem *item = &g_array_index (p->d->layers[layer], LsDrawnItem, i);
        if (item->kind == kinds[k])
          add_block (p, layer, item, i, first);
      }
  }
}

#include "show/drawing_gnuplot_text.h"

gboolean
ls_drawing_plot (const LsDrawing *d, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot plot = { d, &picture, g_array_new (FALSE, FALSE, sizeof (Block)) };
  find_blocks (&plot);
  gboolean ok = ls_picture_draw (&picture, write_data, write_script, &plot, error);
  g_array_unref (plot.blocks);
  return ok;
}
