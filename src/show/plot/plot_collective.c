/* show/plot/plot_collective.c — bus bandwidth over size, measured next to simulated, or over GPUs. */
#include "show/plot/plots.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/list.h"
#include "base/order.h"
#include "show/draw/drawing.h"

/* Pixels. */
#define MAX_COLUMNS  4
#define PANEL_WIDTH  400
#define PANEL_HEIGHT 250
#define ONLY_WIDTH   860 /* of a panel that is alone */
#define ONLY_HEIGHT  430
#define TOP          94
#define LEFT         76
#define GAP_X        54
#define GAP_Y        58
#define BOTTOM       62
#define KEY_WIDTH    220  /* legend, right of the panels */
#define LABEL_WIDTH  62   /* the widest of x: "512 KiB" with room beside it */
#define LOG_ROOM     1.25 /* between the outermost points and the frame, factor */

#define BASE_COLOR 0xbbbbbb

/* gnuplot's filled, then open, circle, square, triangle, diamond, triangle down. */
static const int markers[] = { 7, 5, 9, 13, 11, 6, 4, 8, 12, 10 };

/* Rows that look alike: one entry of the legend. */
typedef struct {
  char *label;
  guint64 order;
} Style;

/* A row and where it is drawn: those of one panel and style are a curve. */
typedef struct {
  guint panel, style;
  const LsCollectiveRow *row;
} Point;

typedef struct {
  const LsCollectiveTable *t;
  guint n_panels, n_columns, n_curves;
  int panel_width, panel_height;
  LsChart chart;
  GArray *styles; /* Style, by order, then as they come */
  GArray *points; /* Point, by panel, then style, then x */
} Plot;

/* --- axes ---------------------------------------------------------------------------- */

/* Bytes or, over GPUs, their number. */
static uint64_t
x_of (const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  return t->is_scaling ? row->n_ranks : row->bytes;
}

/* Whether a row has a place on the axis: a barrier has no size. */
static bool
is_drawn (const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  return x_of (t, row) > 0;
}

/* What has no size has no bandwidth, but a time. */
static bool
shows_time (const LsCollectiveTable *t)
{
  return t->rows[0].bytes == 0;
}

/* Powers of two around all rows. */
static void
find_powers (const LsCollectiveTable *t, int *ret_first, int *ret_last)
{
  uint64_t low = UINT64_MAX, high = 1;
  for (guint i = 0; i < t->n_rows; i++)
    if (is_drawn (t, &t->rows[i])) {
      low = MIN (low, x_of (t, &t->rows[i]));
      high = MAX (high, x_of (t, &t->rows[i]));
    }
  *ret_first = (int) floor (log2 ((double) low));
  *ret_last = MAX ((int) ceil (log2 ((double) high)), *ret_first + 1);
}

/* Each power of two labelled, or so many that neighbours do not touch. */
static int
step_of_tics (int first, int last, int width)
{
  int n_labels = width / LABEL_WIDTH, step = 1;
  while ((last - first) / step >= n_labels)
    step = step == 1 ? 2 : step == 2 ? 5 : step + 5;
  return step;
}

/* GB/s; one GPU alone has no bandwidth, and no place on the axis. */
static void
find_ratios (const LsCollectiveTable *t, double *ret_low, double *ret_high)
{
  double low = INFINITY, high = 0;
  for (guint i = 0; i < t->n_rows; i++) {
    double y = ls_collective_busbw (&t->rows[i]) / 1e9;
    low = y > 0 ? fmin (low, y) : low;
    high = fmax (high, y);
  }
  *ret_low = high > 0 ? low / LOG_ROOM : 1;
  *ret_high = high > 0 ? high * LOG_ROOM : 10;
}

/* --- what is drawn ------------------------------------------------------------------ */

static char *label_of (const LsCollectiveTable *t, const LsCollectiveRow *row);

static const LsSortKey by_order[] = { { LS_RISING (Style, order) }, { 0 } };

static guint
find_style (const GArray *styles, const char *label)
{
  guint i = 0;
  while (i < styles->len && strcmp (g_array_index (styles, Style, i).label, label) != 0)
    i++;
  return i;
}

static void
collect_styles (Plot *p)
{
  for (guint i = 0; i < p->t->n_rows; i++) {
    const LsCollectiveRow *row = &p->t->rows[i];
    Style style = { label_of (p->t, row), p->styles->len };
    if (p->t->is_comparison)
      style.order = (guint64) row->n_ranks << 32 | row->n_nodes;
    if (is_drawn (p->t, row) && find_style (p->styles, style.label) == p->styles->len)
      g_array_append_val (p->styles, style);
    else
      g_free (style.label);
  }
  ls_sort_by (p->styles, by_order);
}

static guint
panel_of (const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  guint panel = 0;
  for (; t->is_comparison && panel < t->n_families; panel++) {
    g_autofree char *name = g_strconcat (row->cluster, "/", row->op, NULL);
    if (strcmp (t->families[panel].name, name) == 0)
      break;
  }
  return panel;
}

static gint
by_place (gconstpointer a, gconstpointer b, gpointer table)
{
  const Point *x = a, *y = b;
  LS_SMALLER_FIRST (x->panel, y->panel);
  LS_SMALLER_FIRST (x->style, y->style);
  return LS_ORDER (x_of (table, x->row), x_of (table, y->row));
}

static bool
begins_curve (const Plot *p, guint i)
{
  const Point *point = &g_array_index (p->points, Point, i);
  return i == 0 || point[-1].panel != point->panel || point[-1].style != point->style;
}

static void
collect_points (Plot *p)
{
  for (guint i = 0; i < p->t->n_rows; i++) {
    const LsCollectiveRow *row = &p->t->rows[i];
    g_autofree char *label = label_of (p->t, row);
    const Point point = { panel_of (p->t, row), find_style (p->styles, label), row };
    if (is_drawn (p->t, row))
      g_array_append_val (p->points, point);
  }
  g_array_sort_with_data (p->points, by_place, (gpointer) p->t);
  for (guint i = 0; i < p->points->len; i++)
    p->n_curves += begins_curve (p, i);
}

static void
plot_init (Plot *p)
{
  p->styles = ls_list_new (sizeof (Style), ls_clear_text);
  p->points = g_array_new (FALSE, FALSE, sizeof (Point));
  collect_styles (p);
  collect_points (p);

  p->n_panels = p->t->is_comparison ? p->t->n_families : 1;
  p->n_columns = 1;
  while (p->n_columns < MAX_COLUMNS && p->n_columns * p->n_columns < p->n_panels)
    p->n_columns++;
  guint n_lines = (p->n_panels + p->n_columns - 1) / p->n_columns;
  p->panel_width = p->n_panels == 1 ? ONLY_WIDTH : PANEL_WIDTH;
  p->panel_height = p->n_panels == 1 ? ONLY_HEIGHT : PANEL_HEIGHT;
  p->chart = (LsChart) {
    .width = LEFT + (int) p->n_columns * (p->panel_width + GAP_X) - GAP_X + KEY_WIDTH,
    .height = TOP + (int) n_lines * (p->panel_height + GAP_Y) - GAP_Y + BOTTOM,
    .left = LEFT,
    .title = p->t->title,
  };
}

/* Numbers of GPUs and sizes are an order, algorithms and fidelities are series. */
static guint32
color_of (const Plot *p, guint style)
{
  if (!p->t->is_comparison && !p->t->is_scaling)
    return ls_palette_series (style)->light;
  return ls_viridis_at ((double) style / MAX (p->styles->len - 1, 1));
}

/* Fidelities often agree: those drawn first are wider, so that they show behind others. */
static int
n_above (const Plot *p, guint style)
{
  guint n = p->t->n_networks;
  return p->t->is_comparison ? 0 : (int) (n - 1 - style % n);
}

/* A table of one fidelity is one line, whatever its algorithms. */
static bool
has_base (const Plot *p)
{
  return !p->t->is_comparison && !p->t->is_scaling && p->t->n_networks == 1;
}

static bool
is_log (const Plot *p)
{
  return p->t->is_scaling && !shows_time (p->t);
}

#include "show/plot_collective_text.h"

gboolean
ls_plot_collective (const LsCollectiveTable *t, const char *path, GError **error)
{
  Plot p = { .t = t };
  plot_init (&p);
  g_autofree char *note = p.n_curves > 0 ? note_of (&p) : NULL;
  p.chart.note = note;
  gboolean ok = p.n_curves > 0
      ? ls_chart_draw (path, &p.chart, write_data, write_script, &p, error)
      : ls_fail (error, LS_ERROR_CONFLICT, "%s: there is nothing with a size to draw", path);
  g_array_unref (p.styles);
  g_array_unref (p.points);
  return ok;
}
