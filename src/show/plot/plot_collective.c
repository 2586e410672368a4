#include "show/plot/plots.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <lockstep/error.h>

#include "show/draw/palette.h"
#include "show/plot/collective_axis.h"
#include "show/plot/picture.h"

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
#define KEY_WIDTH    220 /* legend, right of the panels */

/* Numbers of GPUs and sizes are an order: viridis (N. Smith and S. van der Walt, matplotlib) at 0,
 * 0.2, .. 0.8. Algorithms and fidelities are series. People with impaired colour vision tell both apart. */
static const guint32 ordered[] = { 0x440154, 0x414487, 0x2a788e, 0x22a884, 0x7ad151 };
#define BASE_COLOR 0xbbbbbb

/* gnuplot's filled, then open, circle, square, triangle, diamond, triangle down. */
static const int markers[] = { 7, 5, 9, 13, 11, 6, 4, 8, 12, 10 };

/* Rows that look alike: one entry of the legend. */
typedef struct {
  char *label;
  guint64 order;
} Style;

typedef struct {
  guint panel, style;
  GArray *rows; /* const LsCollectiveRow *, by x */
} Curve;

typedef struct {
  const LsCollectiveTable *t;
  const LsPicture *picture;
  guint n_panels, n_columns;
  int width, height, panel_width, panel_height;
  GArray *styles; /* Style, by order, then as they come */
  GArray *curves; /* Curve, by panel, then style        */
} Plot;

/* --- what is drawn ------------------------------------------------------------------ */

static char *
label_of_size (const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  g_autofree char *size = row->bytes > 0 ? ls_format_bytes (row->bytes) : g_strdup (row->op);
  return t->n_networks > 1 ? g_strdup_printf ("%s, %s", size, row->network) : g_steal_pointer (&size);
}

static char *
label_of (const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  if (t->is_scaling)
    return label_of_size (t, row);
  if (!t->is_comparison)
    return t->n_networks > 1 ? g_strdup (row->network)
                             : g_strdup_printf ("%s %s", row->algorithm, row->protocol);
  return row->n_nodes == 1 ? g_strdup_printf ("%u %s", row->n_ranks, row->chips)
                           : g_strdup_printf ("%u %s, %u nodes", row->n_ranks, row->chips, row->n_nodes);
}

static gint
by_order (gconstpointer a, gconstpointer b)
{
  guint64 x = ((const Style *) a)->order, y = ((const Style *) b)->order;
  return (x > y) - (x < y);
}

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
    if (ls_collective_is_drawn (p->t, row) && find_style (p->styles, style.label) == p->styles->len)
      g_array_append_val (p->styles, style);
    else
      g_free (style.label);
  }
  g_array_sort (p->styles, by_order);
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

static Curve *
curve_of (Plot *p, guint panel, guint style)
{
  for (guint i = 0; i < p->curves->len; i++) {
    Curve *curve = &g_array_index (p->curves, Curve, i);
    if (curve->panel == panel && curve->style == style)
      return curve;
  }
  Curve curve = { panel, style, g_array_new (FALSE, FALSE, sizeof (LsCollectiveRow *)) };
  g_array_append_val (p->curves, curve);
  return &g_array_index (p->curves, Curve, p->curves->len - 1);
}

static gint
by_panel_and_style (gconstpointer a, gconstpointer b)
{
  const Curve *x = a, *y = b;
  return x->panel != y->panel ? (x->panel > y->panel) - (x->panel < y->panel)
                              : (x->style > y->style) - (x->style < y->style);
}

static gint
by_x (gconstpointer a, gconstpointer b, gpointer table)
{
  uint64_t x = ls_collective_x (table, *(const LsCollectiveRow *const *) a);
  uint64_t y = ls_collective_x (table, *(const LsCollectiveRow *const *) b);
  return (x > y) - (x < y);
}

static void
collect_curves (Plot *p)
{
  for (guint i = 0; i < p->t->n_rows; i++) {
    const LsCollectiveRow *row = &p->t->rows[i];
    if (!ls_collective_is_drawn (p->t, row))
      continue;
    g_autofree char *label = label_of (p->t, row);
    Curve *curve = curve_of (p, panel_of (p->t, row), find_style (p->styles, label));
    g_array_append_val (curve->rows, row);
  }
  g_array_sort (p->curves, by_panel_and_style);
  for (guint i = 0; i < p->curves->len; i++)
    g_array_sort_with_data (g_array_index (p->curves, Curve, i).rows, by_x, (gpointer) p->t);
}

static void
style_clear (gpointer data)
{
  g_free (((Style *) data)->label);
}

static void
curve_clear (gpointer data)
{
  g_array_unref (((Curve *) data)->rows);
}

static void
plot_init (Plot *p)
{
  p->styles = g_array_new (FALSE, FALSE, sizeof (Style));
  g_array_set_clear_func (p->styles, style_clear);
  p->curves = g_array_new (FALSE, FALSE, sizeof (Curve));
  g_array_set_clear_func (p->curves, curve_clear);
  collect_styles (p);
  collect_curves (p);

  p->n_panels = p->t->is_comparison ? p->t->n_families : 1;
  p->n_columns = 1;
  while (p->n_columns < MAX_COLUMNS && p->n_columns * p->n_columns < p->n_panels)
    p->n_columns++;
  guint n_lines = (p->n_panels + p->n_columns - 1) / p->n_columns;
  p->panel_width = p->n_panels == 1 ? ONLY_WIDTH : PANEL_WIDTH;
  p->panel_height = p->n_panels == 1 ? ONLY_HEIGHT : PANEL_HEIGHT;
  p->width = LEFT + (int) p->n_columns * (p->panel_width + GAP_X) - GAP_X + KEY_WIDTH;
  p->height = TOP + (int) n_lines * (p->panel_height + GAP_Y) - GAP_Y + BOTTOM;
}

static void
plot_clear (Plot *p)
{
  g_array_unref (p->styles);
  g_array_unref (p->curves);
}

static guint32
mix (guint32 a, guint32 b, double share)
{
  guint32 out = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    double x = (a >> shift) & 255, y = (b >> shift) & 255;
    out |= (guint32) (x + (y - x) * share + 0.5) << shift;
  }
  return out;
}

static guint32
color_of (const Plot *p, guint style)
{
  if (!p->t->is_comparison && !p->t->is_scaling)
    return ls_palette_series (style)->light;
  double at = (double) style / MAX (p->styles->len - 1, 1) * (G_N_ELEMENTS (ordered) - 1);
  guint below = MIN ((guint) at, G_N_ELEMENTS (ordered) - 2);
  return mix (ordered[below], ordered[below + 1], at - below);
}

/* Fidelities often agree: those drawn first are wider, so that they show behind others. */
static int
n_above (const Plot *p, guint style)
{
  guint n = p->t->n_networks;
  return p->t->is_comparison ? 0 : (int) (n - 1 - style % n);
}

/* --- data --------------------------------------------------------------------------- */

static void
write_number (FILE *out, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, " %s", isnan (value) ? "NaN" : g_ascii_formatd (buffer, sizeof buffer, "%.6g", value));
}

static void
write_point (FILE *out, const Plot *p, const LsCollectiveRow *row)
{
  fprintf (out, "%" G_GUINT64_FORMAT, ls_collective_x (p->t, row));
  write_number (
      out, ls_collective_shows_time (p->t) ? ls_collective_time_us (row) : ls_collective_busbw (row) / 1e9);
  write_number (out, ls_collective_measured_busbw (row) / 1e9);
  fputc ('\n', out);
}

/* A table of one fidelity is one line, whatever its algorithms. */
static bool
has_base (const Plot *p)
{
  return !p->t->is_comparison && !p->t->is_scaling && p->t->n_networks == 1;
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fprintf (out, "# %s, then %s, simulated and measured. A block is a curve.\n",
           p->t->is_scaling ? p->t->chips : "Size in bytes",
           ls_collective_shows_time (p->t) ? "time in us" : "bus bandwidth in GB/s");
  for (guint i = 0; i < p->curves->len; i++) {
    const Curve *curve = &g_array_index (p->curves, Curve, i);
    fprintf (out, "%s# panel %u, %s\n", i > 0 ? "\n\n" : "", curve->panel + 1,
             g_array_index (p->styles, Style, curve->style).label);
    for (guint k = 0; k < curve->rows->len; k++)
      write_point (out, p, g_array_index (curve->rows, const LsCollectiveRow *, k));
  }
  if (has_base (p))
    fputs ("\n\n# all\n", out);
  for (guint i = 0; has_base (p) && i < p->t->n_rows; i++)
    write_point (out, p, &p->t->rows[i]);
  return TRUE;
}

/* --- script ------------------------------------------------------------------------- */

static char *
note_of (const Plot *p)
{
  if (p->t->is_comparison)
    return g_strdup ("bus bandwidth over size; points: measured, lines: simulated at the same sizes");
  if (p->t->is_scaling)
    return g_strdup_printf ("%s over %s, alone on the network",
                            ls_collective_shows_time (p->t) ? "time" : "bus bandwidth", p->t->chips);
  return g_strdup (p->t->n_networks > 1 ? "bus bandwidth over size, alone on the network"
                                        : "bus bandwidth over size, alone on the network; points: algorithm "
                                          "and protocol");
}

static void
write_title (FILE *out, const Plot *p)
{
  g_autofree char *title = ls_gnuplot_quote (p->t->title), *note = note_of (p);
  fprintf (out, "set label 1 %s at screen %.6f, screen %.6f left noenhanced font title_font\n", title,
           (double) LEFT / p->width, 1 - 26.0 / p->height);
  fprintf (out, "set label 2 '%s' at screen %.6f, screen %.6f left noenhanced textcolor rgb '#555555'\n",
           note, (double) LEFT / p->width, 1 - 50.0 / p->height);
}

static bool
is_log (const Plot *p)
{
  return p->t->is_scaling && !ls_collective_shows_time (p->t);
}

static void
write_axes (FILE *out, const Plot *p)
{
  ls_collective_write_axis (out, p->t, p->panel_width);
  if (is_log (p))
    ls_collective_write_ratios (out, p->t);
  else
    fputs ("set yrange [0:*]\nset ytics out nomirror\n", out);
  fputs ("set border 3 linecolor rgb '#555555'\n"
         "set grid ytics linetype 1 linecolor rgb '#e6e6e6' linewidth 1\n"
         "unset key\n\n",
         out);
}

static void
write_margins (FILE *out, const Plot *p, guint panel)
{
  int left = LEFT + (int) (panel % p->n_columns) * (p->panel_width + GAP_X);
  int top = TOP + (int) (panel / p->n_columns) * (p->panel_height + GAP_Y);
  ls_picture_write_margins (out, (double) left / p->width, (double) (left + p->panel_width) / p->width,
                            1 - (double) top / p->height, 1 - (double) (top + p->panel_height) / p->height);
}

/* Curve i of the data. */
static void
write_curve (FILE *out, const Plot *p, guint i)
{
  guint style = g_array_index (p->curves, Curve, i).style;
  guint32 color = color_of (p, style);
  int marker = markers[style % G_N_ELEMENTS (markers)], above = n_above (p, style), tenths = 9 + 3 * above;
  if (p->t->is_comparison)
    fprintf (out,
             "data index %u using 1:2 with lines linewidth 2 linecolor rgb '#%06x' notitle, \\\n"
             "  data index %u using 1:3 with points pointtype %d pointsize 0.7 linecolor rgb '#%06x' notitle",
             i, color, i, marker, color);
  else
    fprintf (out,
             "data index %u using 1:2 with %s linewidth %d pointtype %d pointsize %d.%d linecolor rgb "
             "'#%06x' notitle",
             i, has_base (p) ? "points" : "linespoints", 2 + 2 * above, marker, tenths / 10, tenths % 10,
             color);
}

static void
write_panel (FILE *out, const Plot *p, guint panel)
{
  fprintf (out, "\n# panel %u\n", panel + 1);
  write_margins (out, p, panel);
  if (p->t->is_comparison) {
    g_autofree char *name = ls_gnuplot_quote (p->t->families[panel].name);
    fprintf (out, "set label 3 %s at graph 0, graph 1 offset 0, character 0.7 left noenhanced\n", name);
  }
  const char *y = ls_collective_shows_time (p->t) ? "time (us)" : "bus bandwidth (GB/s)",
             *x = p->t->is_scaling ? p->t->chips : "size";
  int offset = is_log (p) ? -1 : 1; /* gnuplot leaves too little room beside listed tics */
  fprintf (out, "set ylabel '%s' offset %d\n", panel % p->n_columns == 0 ? y : "", offset);
  fprintf (out, "set xlabel '%s'\n", panel + p->n_columns >= p->n_panels ? x : "");
  const char *separator = "plot ";
  if (has_base (p)) {
    fprintf (out, "plot data index %u using 1:2 with lines linewidth 2 linecolor rgb '#%06x' notitle",
             p->curves->len, BASE_COLOR);
    separator = ", \\\n  ";
  }
  for (guint i = 0; i < p->curves->len; i++) {
    if (g_array_index (p->curves, Curve, i).panel != panel)
      continue;
    fputs (separator, out);
    write_curve (out, p, i);
    separator = ", \\\n  ";
  }
  fputs ("\nunset label; unset arrow\n", out);
}

/* An empty panel that only has the legend of all. */
static void
write_legend (FILE *out, const Plot *p)
{
  fprintf (out,
           "\n# legend\nunset border; unset tics; unset grid; unset xlabel; unset ylabel; unset logscale\n"
           "set key at screen %.6f, screen %.6f left top Left reverse vertical maxcolumns 1 samplen 2 "
           "spacing 1.25 noenhanced\n"
           "plot [0:1] [0:1] ",
           1 - (KEY_WIDTH - 24.0) / p->width, 1 - (TOP - 6.0) / p->height);
  for (guint i = 0; i < p->styles->len; i++) {
    g_autofree char *label = ls_gnuplot_quote (g_array_index (p->styles, Style, i).label);
    fprintf (out, "%sNaN with %s linewidth 2 pointtype %d pointsize 0.9 linecolor rgb '#%06x' title %s",
             i > 0 ? ", \\\n  " : "", has_base (p) ? "points" : "linespoints",
             markers[i % G_N_ELEMENTS (markers)], color_of (p, i), label);
  }
  fputc ('\n', out);
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (p->picture, out, p->width, p->height, "title_font = ',18'",
                             "title_font = ',15'");
  ls_picture_write_data_name (p->picture, out);
  write_title (out, p);
  write_axes (out, p);
  fputs ("set multiplot\n", out);
  for (guint panel = 0; panel < p->n_panels; panel++)
    write_panel (out, p, panel);
  write_legend (out, p);
  fputs ("unset multiplot\n", out);
  return TRUE;
}

gboolean
ls_plot_collective (const LsCollectiveTable *t, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot plot = { .t = t, .picture = &picture };
  plot_init (&plot);
  gboolean ok = FALSE;
  if (plot.curves->len > 0)
    ok = ls_picture_draw (&picture, write_data, write_script, &plot, error);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s: there is nothing with a size to draw", path);
  plot_clear (&plot);
  return ok;
}
