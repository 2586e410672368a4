/* A drawing as gnuplot draws it: for PNG, and as a script with its data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "show/draw/drawing.h"
#include "show/draw/palette.h"
#include "show/plot/picture.h"

#define POINTS_PER_PIXEL 0.79 /* of PNG: 9.5 points are as large as 12 pixels (show/plot/picture.c) */

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

/* Numbers with a point whatever the locale. */
static void
write_number (FILE *out, double value, const char *after)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, "%s%s", g_ascii_formatd (text, sizeof text, "%.2f", value), after);
}

static void
write_item (FILE *out, const LsDrawing *d, const LsDrawnItem *item)
{
  if (item->kind == LS_DRAWN_BOX) {
    write_number (out, item->x, " ");
    write_number (out, item->x + item->width, " ");
    write_number (out, item->y, " ");
    write_number (out, item->y + item->height, " ");
    fprintf (out, "0x%06x\n",
             ls_palette_tint (ls_palette_find (item->paint)->light, item->tint * item->opacity));
    return;
  }
  for (guint i = 0; i < item->n_points; i++) {
    const LsXY *at = &g_array_index (d->points, LsXY, item->first_point + i);
    write_number (out, at->x, " ");
    write_number (out, at->y, "\n");
  }
  fputc ('\n', out);
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Of boxes: left, right, top, bottom, colour; of lines and areas: x, y.\n", out);
  for (guint k = 0; k < p->blocks->len; k++) {
    const Block *b = &g_array_index (p->blocks, Block, k);
    const GArray *items = p->d->layers[b->layer];
    for (guint i = 0; i < items->len; i++)
      if (is_in (b, &g_array_index (items, LsDrawnItem, i), i))
        write_item (out, p->d, &g_array_index (items, LsDrawnItem, i));
    fputs ("\n\n", out);
  }
  if (p->blocks->len == 0)
    fputs ("0 0\n", out); /* gnuplot wants something to plot */
  return TRUE;
}

static void
write_words (FILE *out, const GArray *words)
{
  static const char *const aligns[] = { [LS_LEFT] = "left", [LS_CENTER] = "center", [LS_RIGHT] = "right" };
  for (guint i = 0; i < words->len; i++) {
    const LsDrawnWord *w = &g_array_index (words, LsDrawnWord, i);
    g_autofree char *text = ls_gnuplot_quote (w->text);
    fprintf (out, "set label %s at ", text);
    write_number (out, w->x, ",");
    write_number (out, w->y, "");
    fprintf (out, " %s front noenhanced font sprintf(',%%g', ", aligns[w->align]);
    write_number (out, w->size, " * scale)");
    fprintf (out, " textcolor rgb 0x%06x\n", ls_palette_find (w->paint)->light);
  }
}

static void
write_block (FILE *out, const Block *b, guint k)
{
  guint32 color = ls_palette_find (b->paint)->light;
  fprintf (out, "%sdata index %u ", k > 0 ? ", \\\n     " : "", k);
  if (b->kind == LS_DRAWN_BOX && b->has_edge)
    fprintf (
        out,
        "using 1:3:1:2:3:4:5 with boxxyerror fillstyle solid 1.0 border rgb 0x%06x fillcolor rgb variable",
        ls_palette_find ("edge")->light);
  else if (b->kind == LS_DRAWN_BOX)
    fputs ("using 1:3:1:2:3:4:5 with boxxyerror fillstyle solid 1.0 noborder fillcolor rgb variable", out);
  else if (b->kind == LS_DRAWN_AREA)
    fprintf (out, "with filledcurves closed fillstyle solid 1.0 noborder fillcolor rgb 0x%06x", color);
  else {
    fputs ("with lines linewidth ", out);
    write_number (out, b->width, "");
    fprintf (out, "%s linecolor rgb 0x%06x", b->is_dashed ? " dashtype 2" : "", color);
  }
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  int width = (int) ceil (p->d->width), height = (int) ceil (p->d->height);
  char scale[G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *png
      = g_strdup_printf ("scale = %s", g_ascii_formatd (scale, sizeof scale, "%.2f", POINTS_PER_PIXEL));
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (p->picture, out, width, height, "scale = 1.0", png);
  ls_picture_write_data_name (p->picture, out);
  fprintf (out,
           "unset border\nunset tics\nunset key\n"
           "set lmargin 0\nset rmargin 0\nset tmargin 0\nset bmargin 0\n"
           "set xrange [0:%d]\nset yrange [%d:0]\n",
           width, height);
  write_words (out, p->d->words);
  fputs ("plot ", out);
  for (guint k = 0; k < p->blocks->len; k++)
    write_block (out, &g_array_index (p->blocks, Block, k), k);
  fputs (p->blocks->len > 0 ? "\n" : "data with dots linecolor rgb 0xffffff\n", out);
  return TRUE;
}

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
