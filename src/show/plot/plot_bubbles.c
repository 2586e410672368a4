/* show/plot/plot_bubbles.c — bubbles of schedules over micro-batches and stages. */
#include "base/order.h"
#include "show/plot/plots.h"

#include <stdbool.h>

#include <lockstep/error.h>

#include "show/draw/drawing.h"

#define WIDTH       1180 /* pixels */
#define HEIGHT      520
#define PANEL_WIDTH 410
#define LEFT        76
#define GAP         76
#define TOP         84
#define BOTTOM      60

typedef struct {
  const LsBubbles *b;
  LsChart chart;
} Plot;

static const LsBubbleCurve *
curve_at (const Plot *p, guint panel, guint i)
{
  return &g_array_index (p->b->panels[panel], LsBubbleCurve, i);
}

/* Where there are points: uint32_t, ascending. */
static GArray *
places_of (const Plot *p, guint panel)
{
  GArray *xs = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (guint i = 0; i < p->b->panels[panel]->len; i++)
    for (guint k = 0; k < curve_at (p, panel, i)->points->len; k++)
      g_array_append_val (xs, g_array_index (curve_at (p, panel, i)->points, LsBubblePoint, k).x);
  g_array_sort (xs, ls_compare_uint32);
  for (guint i = xs->len; i-- > 1;)
    if (g_array_index (xs, uint32_t, i) == g_array_index (xs, uint32_t, i - 1))
      g_array_remove_index (xs, i);
  return xs;
}

static bool
is_same (const GArray *a, const GArray *b)
{
  bool is_equal = a->len == b->len;
  for (guint i = 0; is_equal && i < a->len; i++) {
    const LsBubblePoint *x = &g_array_index (a, LsBubblePoint, i), *y = &g_array_index (b, LsBubblePoint, i);
    is_equal = x->x == y->x && x->bubble == y->bubble;
  }
  return is_equal;
}

/* Curves that others cover are wider, so that they show behind them. */
static guint
n_above (const Plot *p, guint panel, guint i)
{
  guint n = 0;
  for (guint k = i + 1; k < p->b->panels[panel]->len; k++)
    n += is_same (curve_at (p, panel, i)->points, curve_at (p, panel, k)->points);
  return n;
}

#include "show/plot_bubbles_text.h"

gboolean
ls_plot_bubbles (const LsBubbles *b, const char *path, GError **error)
{
  const LsChart chart = { .width = WIDTH,
                          .height = HEIGHT,
                          .left = LEFT,
                          .svg_fonts = "title_font = ',16'",
                          .png_fonts = "title_font = ',13'" };
  Plot p = { b, chart };
  if (b->panels[0]->len + b->panels[1]->len == 0)
    return ls_fail (error, LS_ERROR_CONFLICT, "%s: no schedule can be drawn", path);
  return ls_chart_draw (path, &chart, write_data, write_script, &p, error);
}
