/* show/plot/plot_pareto.c — configurations by time, memory and cost. */
#include "base/order.h"
#include "show/plot/plots.h"

#include <math.h>

#include <lockstep/error.h>

/* Pixels. */
#define PANEL_WIDTH  640
#define PANEL_HEIGHT 470
#define TOP          92
#define LEFT         92
#define BOX          116 /* colour box, right of the panel */
#define NAMES        530
#define BOTTOM       66
#define WIDTH        (LEFT + PANEL_WIDTH + BOX + NAMES)
#define HEIGHT       (TOP + PANEL_HEIGHT + BOTTOM)

#define MAX_NAMED    14
#define MIN_APART    26.0 /* of named points, so that their numbers do not meet */
#define FAR_CAPACITY 2.0  /* times the most memory: from there it is not drawn */
#define LOG_FROM     4.0  /* slowest over fastest from which time is logarithmic */

typedef struct {
  const LsParetoPlot *plot;
  GArray *front; /* guint: points            */
  GArray *named; /* guint: of these, in order */
  double min_days, max_days, max_gib, min_cost, max_cost;
  bool is_far; /* the capacity */
} Plot;

static const LsParetoPoint *
point_at (const Plot *p, guint i)
{
  return &g_array_index (p->plot->points, LsParetoPoint, i);
}

/* --- which points have a name --------------------------------------------------------------- */

static bool
is_log (const Plot *p)
{
  return p->max_days > LOG_FROM * p->min_days;
}

static double
height_of (const Plot *p, double days)
{
  double share = is_log (p) ? log (days / p->min_days) / log (p->max_days / p->min_days)
                            : (days - p->min_days) / fmax (p->max_days - p->min_days, 1e-300);
  return share * PANEL_HEIGHT;
}

static double
pixels_apart (const Plot *p, guint i, guint k)
{
  const LsParetoPoint *a = point_at (p, i), *b = point_at (p, k);
  double x = (a->gib - b->gib) / p->max_gib * PANEL_WIDTH;
  return hypot (x, height_of (p, a->days) - height_of (p, b->days));
}

static double
pixels_from_named (const Plot *p, guint i)
{
  double nearest = INFINITY;
  for (guint k = 0; k < p->named->len; k++)
    nearest = fmin (nearest, pixels_apart (p, i, g_array_index (p->named, guint, k)));
  return nearest;
}

/* The fastest, then again and again that which is farthest from all that have one. */
static void
choose_named (Plot *p)
{
  for (guint n = 0; n < MIN (MAX_NAMED, p->front->len); n++) {
    guint best = g_array_index (p->front, guint, 0);
    for (guint i = 0; n > 0 && i < p->front->len; i++) {
      guint candidate = g_array_index (p->front, guint, i);
      if (pixels_from_named (p, candidate) > pixels_from_named (p, best))
        best = candidate;
    }
    if (n > 0 && pixels_from_named (p, best) < MIN_APART)
      break;
    g_array_append_val (p->named, best);
  }
  g_array_sort (p->named, ls_compare_uint32);
}

static void
plot_init (Plot *p)
{
  p->front = g_array_new (FALSE, FALSE, sizeof (guint));
  p->named = g_array_new (FALSE, FALSE, sizeof (guint));
  p->min_days = p->min_cost = INFINITY;
  for (guint i = 0; i < p->plot->points->len; i++) {
    const LsParetoPoint *point = point_at (p, i);
    p->min_days = fmin (p->min_days, point->days);
    p->max_days = fmax (p->max_days, point->days);
    p->max_gib = fmax (p->max_gib, point->gib);
    p->min_cost = fmin (p->min_cost, point->cost);
    p->max_cost = fmax (p->max_cost, point->cost);
    if (point->name)
      g_array_append_val (p->front, i);
  }
  p->is_far = p->plot->capacity_gib > FAR_CAPACITY * p->max_gib;
  if (!p->is_far)
    p->max_gib = fmax (p->max_gib, p->plot->capacity_gib);
  choose_named (p);
}

static const LsChart chart = {
  .width = WIDTH,
  .height = HEIGHT,
  .left = 24,
  .svg_fonts = "title_font = ',18'; small_font = ',11'",
  .png_fonts = "title_font = ',15'; small_font = ',8.5'",
  .has_symbols = true,
};

#include "show/plot_pareto_text.h"

gboolean
ls_plot_pareto (const LsParetoPlot *plot, const char *path, GError **error)
{
  Plot p = { .plot = plot };
  plot_init (&p);
  gboolean ok = p.front->len > 0
      ? ls_chart_draw (path, &chart, write_data, write_script, &p, error)
      : ls_fail (error, LS_ERROR_CONFLICT, "%s: nothing was simulated that could be drawn", path);
  g_array_unref (p.front);
  g_array_unref (p.named);
  return ok;
}
