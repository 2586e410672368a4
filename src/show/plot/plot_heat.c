#include "show/plot/plots.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "show/plot/picture.h"

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
  const LsPicture *picture;
  guint n[2];
  int width, height, left;
  double lo, hi; /* of the values */
  double unit;   /* of the colour box, so that its tics are short */
  guint best;    /* cell */
} Plot;

static const LsHeatCell *
cell_at (const Plot *p, guint i)
{
  return &g_array_index (p->map->cells, LsHeatCell, i);
}

static gboolean
plot_init (Plot *p)
{
  p->lo = INFINITY;
  p->hi = 0;
  for (int a = 0; a < 2; a++)
    p->n[a] = p->map->labels[a]->len;
  for (guint i = 0; i < p->map->cells->len; i++) {
    double value = cell_at (p, i)->value;
    if (cell_at (p, i)->kind != LS_HEAT_VALUE)
      continue;
    if (p->hi == 0 || (p->map->is_more_better ? value > p->hi : value < p->lo))
      p->best = i;
    p->lo = fmin (p->lo, value);
    p->hi = fmax (p->hi, value);
  }
  gsize longest = 0;
  for (guint i = 0; i < p->n[1]; i++)
    longest = MAX (longest, strlen (g_ptr_array_index (p->map->labels[1], i)));
  p->left = LEFT + (int) (LETTER * (double) longest);
  p->width = p->left + MAX (CELL_WIDTH * (int) p->n[0], MIN_WIDTH) + RIGHT;
  p->height = TOP + CELL_HEIGHT * (int) p->n[1] + BOTTOM;
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

static char *
bound_text (const Plot *p, const LsHeatCell *cell)
{
  g_autofree char *text = figure (cell->bound, p->map->is_more_better ? 1 : -1);
  return g_strconcat (p->map->is_more_better ? "≤ " : "≥ ", text, NULL);
}

static char *
cell_text (const Plot *p, const LsHeatCell *cell)
{
  if (cell->kind == LS_HEAT_BOUND)
    return bound_text (p, cell);
  if (cell->kind != LS_HEAT_VALUE)
    return g_strdup (cell->kind == LS_HEAT_NO_FIT        ? "does not fit"
                         : cell->kind == LS_HEAT_ILLEGAL ? "illegal"
                                                         : "");
  g_autofree char *value = figure (cell->value, 0);
  if (isnan (cell->bound))
    return g_steal_pointer (&value);
  g_autofree char *bound = bound_text (p, cell);
  return g_strconcat (value, "\\n", bound, NULL);
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

/* --- data -------------------------------------------------------------------------------- */

/* Block 0: cells with a value, then those of each other kind; each has one out of sight. */
static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Across, up (from 0), figure, words, their colour and lines. A block for each kind of cell.\n",
         out);
  for (int kind = LS_HEAT_VALUE; kind >= LS_HEAT_NONE; kind--) {
    fprintf (out, "%s# %s\n-9 -9 NaN \"\" 0 1\n", kind == LS_HEAT_VALUE ? "" : "\n\n",
             kind == LS_HEAT_VALUE         ? "simulated"
                 : kind == LS_HEAT_BOUND   ? "not simulated"
                 : kind == LS_HEAT_NO_FIT  ? "do not fit"
                 : kind == LS_HEAT_ILLEGAL ? "illegal"
                                           : "as other cells");
    for (guint i = 0; i < p->map->cells->len; i++) {
      const LsHeatCell *cell = cell_at (p, i);
      g_autofree char *text = cell_text (p, cell);
      char value[G_ASCII_DTOSTR_BUF_SIZE];
      if ((int) cell->kind == kind)
        fprintf (out, "%u %u %s \"%s\" %u %d\n", i % p->n[0], i / p->n[0],
                 kind == LS_HEAT_VALUE ? g_ascii_formatd (value, sizeof value, "%.6g", cell->value / p->unit)
                                       : "NaN",
                 text, text_color (p, cell), 1 + (kind == LS_HEAT_VALUE && !isnan (cell->bound)));
    }
  }
  return TRUE;
}

/* --- script ------------------------------------------------------------------------------- */

static void
write_frame (FILE *out, const Plot *p)
{
  g_autofree char *title = ls_gnuplot_quote (p->map->title), *note = ls_gnuplot_quote (p->map->note);
  fprintf (out,
           "set label 1 %s at screen %.6f, screen %.6f left noenhanced font title_font\n"
           "set label 2 %s at screen %.6f, screen %.6f left noenhanced textcolor rgb '#555555'\n",
           title, 24.0 / p->width, 1 - 26.0 / p->height, note, 24.0 / p->width, 1 - 50.0 / p->height);
  ls_picture_write_margins (out, (double) p->left / p->width,
                            (double) (p->left + CELL_WIDTH * (int) p->n[0]) / p->width,
                            1 - (double) TOP / p->height, (double) BOTTOM / p->height);
  fprintf (out, "set xrange [-0.5:%u - 0.5]\nset yrange [-0.5:%u - 0.5]\nset border 0\n", p->n[0], p->n[1]);
  for (int a = 0; a < 2; a++) {
    g_autofree char *name = ls_gnuplot_quote (p->map->names[a]);
    fprintf (out, "set %clabel %s noenhanced\nset %ctics scale 0 (", 'x' + a, name, 'x' + a);
    for (guint i = 0; i < p->n[a]; i++) {
      g_autofree char *label = ls_gnuplot_quote (g_ptr_array_index (p->map->labels[a], i));
      fprintf (out, "%s%s %u", i > 0 ? ", " : "", label, i);
    }
    fputs (")\n", out);
  }
  fprintf (out,
           "set key at screen %.6f, screen %.6f left top Left reverse vertical maxrows 3 samplen 1.6 spacing "
           "1.3 width 2 noenhanced\n",
           24.0 / p->width, (BOTTOM - 64.0) / p->height);
}

/* viridis (N. Smith and S. van der Walt, matplotlib) at 0, 1/8, .. 1: the best is bright. People
 * with impaired colour vision tell it apart, and it prints in grey. */
static void
write_palette (FILE *out, const Plot *p)
{
  static const char *const viridis[]
      = { "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725" };
  guint n = G_N_ELEMENTS (viridis);
  fputs ("set palette defined (", out);
  for (guint i = 0; i < n; i++)
    fprintf (out, "%s%u '%s'", i > 0 ? ", " : "", i, viridis[p->map->is_more_better ? i : n - 1 - i]);
  char lo[G_ASCII_DTOSTR_BUF_SIZE], hi[G_ASCII_DTOSTR_BUF_SIZE];
  double end = p->hi > p->lo ? p->hi : p->hi * 1.001;
  g_autofree char *text = g_strconcat (p->map->figure, p->unit > 1 ? " (thousands)" : "", NULL),
                  *name = ls_gnuplot_quote (text);
  fprintf (out, ")\n%sset cbrange [%s:%s]\nset cbtics out nomirror\nset cblabel %s noenhanced offset 1.2\n",
           is_log (p) ? "set logscale cb\n" : "", g_ascii_formatd (lo, sizeof lo, "%.6g", p->lo / p->unit),
           g_ascii_formatd (hi, sizeof hi, "%.6g", end / p->unit), name);
  fprintf (out, "set colorbox user origin screen %.6f, screen %.6f size screen %.6f, screen %.6f noborder\n",
           (double) (p->left + CELL_WIDTH * (int) p->n[0] + 22) / p->width, (double) BOTTOM / p->height,
           16.0 / p->width, (double) (CELL_HEIGHT * (int) p->n[1]) / p->height);
}

static bool
has_kind (const Plot *p, LsHeatKind kind)
{
  bool is_there = false;
  for (guint i = 0; i < p->map->cells->len; i++)
    is_there |= cell_at (p, i)->kind == kind;
  return is_there;
}

static bool
has_open (const Plot *p)
{
  bool is_there = false;
  for (guint i = 0; i < p->map->cells->len; i++)
    is_there |= cell_at (p, i)->kind == LS_HEAT_VALUE && !isnan (cell_at (p, i)->bound);
  return is_there;
}

#define BOX "data index %d using 1:2:($1-.485):($1+.485):($2-.47):($2+.47)"

static void
write_cells (FILE *out, const Plot *p)
{
  const char *sign = p->map->is_more_better ? "≤" : "≥";
  g_autofree char *open = g_strdup_printf (has_open (p) ? "title 'best that was simulated; %s: what a bound "
                                                          "left out cannot beat this'"
                                                        : "title 'best, simulated'",
                                           sign);
  fprintf (out, "plot " BOX ":3 with boxxyerror fillstyle solid noborder fillcolor palette notitle, \\\n", 0);
  fprintf (out, "  keyentry with boxes fillstyle solid noborder fillcolor rgb '#5ec962' %s, \\\n", open);
  fprintf (out,
           "  " BOX " with boxxyerror fillstyle pattern 4 noborder linecolor rgb '#b9cbe0' notitle, \\\n", 1);
  if (has_kind (p, LS_HEAT_BOUND))
    fprintf (out,
             "  keyentry with boxes fillstyle pattern 4 border linecolor rgb '#b9cbe0' title 'not simulated: "
             "no configuration beats the bound shown', \\\n");
  fprintf (out, "  " BOX " with boxxyerror fillstyle solid noborder linecolor rgb '#e3e3e3' notitle, \\\n",
           2);
  fprintf (out, "  " BOX " with boxxyerror fillstyle solid noborder linecolor rgb '#f3f3f3' notitle, \\\n",
           3);
  fprintf (out,
           "  for [k=0:4] data index k using 1:($2 + .16 * ($6 - 1)):4:5 with labels textcolor rgb variable "
           "notitle\n");
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\nset encoding utf8\n", out);
  ls_picture_write_terminal (p->picture, out, p->width, p->height, "title_font = ',18'",
                             "title_font = ',15'");
  ls_picture_write_data_name (p->picture, out);
  write_frame (out, p);
  write_palette (out, p);
  guint x = p->best % p->n[0], y = p->best / p->n[0];
  fprintf (out,
           "set object 1 rectangle from %u - .485, %u - .47 to %u + .485, %u + .47 front fillstyle empty "
           "border linecolor rgb '#cc3311' linewidth 3\n",
           x, y, x, y);
  write_cells (out, p);
  return TRUE;
}

gboolean
ls_plot_heat (const LsHeatMap *map, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot plot = { .map = map, .picture = &picture };
  if (!plot_init (&plot)) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s: nothing was simulated that could be drawn", path);
    return FALSE;
  }
  return ls_picture_draw (&picture, write_data, write_script, &plot, error);
}
