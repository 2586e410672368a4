/* show/plot/plot_heat.c — a figure over two axes of a sweep. */
#include "show/plot/plots.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

/* Pixels. */
#define CELL_WIDTH  92
#define CELL_HEIGHT 48
#define MIN_WIDTH   560 /* of all cells: the title and the legend need it */
#define TOP         78
#define LEFT        60  /* beside the longest value of the axis */
#define LETTER      7.6 /* wide at most, on the whole */
#define RIGHT       128 /* colour box */
#define BOTTOM      132 /* values, name, legend */

#define N_DIGITS 3
#define LOG_FROM 8.0 /* largest over smallest value from which colours follow the logarithm */

typedef struct {
  const LsHeatMap *map;
  guint n[2];
  int left;
  LsChart chart;
  double lo, hi;             /* of the values */
  double unit;               /* of the colour box, so that its tics are short */
  guint best;                /* cell */
  bool has_bounds, has_open; /* cells that were left out; values that a bound may beat */
} Plot;

static gboolean
plot_init (Plot *p)
{
  p->lo = INFINITY;
  p->hi = 0;
  for (int a = 0; a < 2; a++)
    p->n[a] = p->map->labels[a]->len;
  for (guint i = 0; i < p->map->cells->len; i++) {
    const LsHeatCell *cell = &g_array_index (p->map->cells, LsHeatCell, i);
    double value = cell->value;
    p->has_bounds |= cell->kind == LS_HEAT_BOUND;
    if (cell->kind != LS_HEAT_VALUE)
      continue;
    p->has_open |= !isnan (cell->bound);
    if (p->hi == 0 || (p->map->is_more_better ? value > p->hi : value < p->lo))
      p->best = i;
    p->lo = fmin (p->lo, value);
    p->hi = fmax (p->hi, value);
  }
  gsize longest = 0;
  for (guint i = 0; i < p->n[1]; i++)
    longest = MAX (longest, strlen (g_ptr_array_index (p->map->labels[1], i)));
  p->left = LEFT + (int) (LETTER * (double) longest);
  p->chart = (LsChart) {
    .width = p->left + MAX (CELL_WIDTH * (int) p->n[0], MIN_WIDTH) + RIGHT,
    .height = TOP + CELL_HEIGHT * (int) p->n[1] + BOTTOM,
    .left = 24,
    .has_symbols = true,
    .title = p->map->title,
    .note = p->map->note,
  };
  p->unit = p->hi >= 1e4 ? 1e3 : 1;
  return p->hi > 0;
}

/* --- figures ----------------------------------------------------------------------------- */

/* So many digits, away from what would claim more than is known: direction -1 down, 1 up. */
static double
round_digits (double value, int direction)
{
  if (value <= 0)
    return value;
  double unit = pow (10, floor (log10 (value)) - N_DIGITS + 1);
  double n = value / unit;
  return unit * (direction < 0 ? floor (n) : direction > 0 ? ceil (n) : round (n));
}

/* "2.16", "121k" */
static char *
figure (double value, int direction)
{
  static const struct {
    double unit;
    const char *suffix;
  } units[] = { { 1e9, "G" }, { 1e6, "M" }, { 1e4, "k" }, { 1, "" } };
  double rounded = round_digits (value, direction);
  guint u = 0;
  while (u + 1 < G_N_ELEMENTS (units) && rounded < units[u].unit)
    u++;
  double shown = rounded / (units[u].unit == 1e4 ? 1e3 : units[u].unit);
  int n_decimals = shown > 0 ? CLAMP (N_DIGITS - 1 - (int) floor (log10 (shown) + 1e-9), 0, 9) : 0;
  char format[8], buffer[G_ASCII_DTOSTR_BUF_SIZE];
  g_snprintf (format, sizeof format, "%%.%df", n_decimals);
  return g_strconcat (g_ascii_formatd (buffer, sizeof buffer, format, shown), units[u].suffix, NULL);
}

static bool
is_log (const Plot *p)
{
  return p->hi > LOG_FROM * p->lo;
}

/* Words are dark on the bright half of the colours, where the best are. */
static guint32
text_color (const Plot *p, const LsHeatCell *cell)
{
  if (cell->kind == LS_HEAT_VALUE) {
    double at = is_log (p) ? log (cell->value / p->lo) / log (p->hi / p->lo)
                           : (cell->value - p->lo) / fmax (p->hi - p->lo, 1e-300);
    return (p->map->is_more_better ? at : 1 - at) > 0.5 ? 0x000000 : 0xffffff;
  }
  return cell->kind == LS_HEAT_BOUND ? 0x222222 : 0x888888;
}

static const char *
kind_name (LsHeatKind kind)
{
  return kind == LS_HEAT_VALUE  ? "simulated"
      : kind == LS_HEAT_BOUND   ? "not simulated"
      : kind == LS_HEAT_NO_FIT  ? "do not fit"
      : kind == LS_HEAT_ILLEGAL ? "illegal"
                                : "as other cells";
}

#include "show/plot_heat_text.h"

gboolean
ls_plot_heat (const LsHeatMap *map, const char *path, GError **error)
{
  Plot plot = { .map = map };
  if (!plot_init (&plot))
    return ls_fail (error, LS_ERROR_CONFLICT, "%s: nothing was simulated that could be drawn", path);
  return ls_chart_draw (path, &plot.chart, write_data, write_script, &plot, error);
}
