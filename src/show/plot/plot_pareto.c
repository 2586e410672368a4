#include "base/order.h"
#include "show/plot/plots.h"

#include <math.h>

#include <lockstep/error.h>

#include "show/plot/picture.h"

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
  const LsPicture *picture;
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

static void
plot_clear (Plot *p)
{
  g_array_unref (p->front);
  g_array_unref (p->named);
}

/* --- data ------------------------------------------------------------------------------------ */

static void
write_point (FILE *out, const LsParetoPoint *point)
{
  char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE], c[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, "%s %s %s", g_ascii_formatd (a, sizeof a, "%.6g", point->gib),
           g_ascii_formatd (b, sizeof b, "%.6g", point->days),
           g_ascii_formatd (c, sizeof c, "%.6g", point->cost));
}

/* Block 0: beaten; 1: the front; 2: those of it with a name. */
static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# GiB, days, cost. Blocks: beaten in all three, the front, those of it that have a name.\n# "
         "beaten\n-9 NaN NaN\n",
         out);
  for (guint i = 0; i < p->plot->points->len; i++)
    if (!point_at (p, i)->name) {
      write_point (out, point_at (p, i));
      fputc ('\n', out);
    }
  fputs ("\n\n# front\n", out);
  for (guint i = 0; i < p->front->len; i++) {
    write_point (out, point_at (p, g_array_index (p->front, guint, i)));
    fputc ('\n', out);
  }
  fputs ("\n\n# named\n", out);
  for (guint i = 0; i < p->named->len; i++) {
    write_point (out, point_at (p, g_array_index (p->named, guint, i)));
    fprintf (out, " %u\n", i + 1);
  }
  return TRUE;
}

/* --- script ----------------------------------------------------------------------------------- */

static void
write_range (FILE *out, const char *axis, double lo, double hi)
{
  char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, "set %srange [%s:%s]\n", axis, g_ascii_formatd (a, sizeof a, "%.6g", lo),
           g_ascii_formatd (b, sizeof b, "%.6g", hi));
}

static void
write_axes (FILE *out, const Plot *p)
{
  double margin = is_log (p) ? 0 : fmax (0.06 * (p->max_days - p->min_days), 0.01 * p->max_days);
  ls_picture_write_margins (out, (double) LEFT / WIDTH, (double) (LEFT + PANEL_WIDTH) / WIDTH,
                            1 - (double) TOP / HEIGHT, (double) BOTTOM / HEIGHT);
  write_range (out, "x", 0, 1.05 * p->max_gib);
  write_range (out, "y", is_log (p) ? p->min_days / 1.12 : p->min_days - margin,
               is_log (p) ? p->max_days * 1.12 : p->max_days + margin);
  write_range (out, "cb", p->min_cost, p->max_cost > p->min_cost ? p->max_cost : p->max_cost * 1.001);
  fprintf (out,
           "%sset xlabel 'memory of the fullest rank (GiB)'\nset ylabel 'time for a trillion tokens (days)'\n"
           "set format y '%%g'\nset format cb '%s'\nset cblabel '%s%s for a trillion tokens' noenhanced "
           "offset 2.4\n"
           "set tics out nomirror\nset border 3 linecolor rgb '#555555'\n"
           "set grid xtics ytics linetype 1 linecolor rgb '#e6e6e6' linewidth 1\n",
           is_log (p) ? "set logscale y\n" : "", p->max_cost >= 1e4 ? "%.0s%c" : "%g",
           p->plot->is_money ? "$" : p->plot->chip, p->plot->is_money ? "" : " hours");
  fputs ("set palette defined (0 '#fde725', 1 '#addc30', 2 '#5ec962', 3 '#28ae80', 4 '#21918c', 5 '#2c728e', "
         "6 '#3b528b', 7 '#472d7b', "
         "8 '#440154') # viridis (N. Smith and S. van der Walt, matplotlib), cheap is bright\n",
         out);
  fprintf (out, "set colorbox user origin screen %.6f, screen %.6f size screen %.6f, screen %.6f noborder\n",
           (double) (LEFT + PANEL_WIDTH + 16) / WIDTH, (double) BOTTOM / HEIGHT, 14.0 / WIDTH,
           (double) PANEL_HEIGHT / HEIGHT);
}

/* Number, configuration, figures. */
static void
write_name (FILE *out, const LsParetoPlot *plot, const LsParetoPoint *point, guint i)
{
  char days[G_ASCII_DTOSTR_BUF_SIZE], gib[G_ASCII_DTOSTR_BUF_SIZE], cost[G_ASCII_DTOSTR_BUF_SIZE];
  bool is_thousands = point->cost >= 1e4;
  g_ascii_formatd (cost, sizeof cost, "%.0f", is_thousands ? point->cost / 1e3 : point->cost);
  g_autofree char *name = ls_gnuplot_quote (point->name);
  double x = LEFT + PANEL_WIDTH + BOX + 14, y = TOP + 8.0 + 34 * i;
  fprintf (out, "set label %u '%u' at screen %.6f, screen %.6f right\n", 10 + 3 * i, i + 1, x / WIDTH,
           1 - y / HEIGHT);
  fprintf (out, "set label %u %s at screen %.6f, screen %.6f left noenhanced font small_font\n", 11 + 3 * i,
           name, (x + 8) / WIDTH, 1 - y / HEIGHT);
  fprintf (out,
           "set label %u '%s days, %s GiB, %s%s%s%s%s%s' at screen %.6f, screen %.6f left noenhanced font "
           "small_font textcolor rgb '#777777'\n",
           12 + 3 * i, g_ascii_formatd (days, sizeof days, "%.1f", point->days),
           g_ascii_formatd (gib, sizeof gib, "%.1f", point->gib), plot->is_money ? "$" : "", cost,
           is_thousands ? "k" : "", plot->is_money ? "" : " ", plot->is_money ? "" : plot->chip,
           plot->is_money ? "" : " hours", (x + 8) / WIDTH, 1 - (y + 15) / HEIGHT);
}

static void
write_words (FILE *out, const Plot *p)
{
  g_autofree char *title = ls_gnuplot_quote (p->plot->title), *note = ls_gnuplot_quote (p->plot->note);
  fprintf (out,
           "set label 1 %s at screen %.6f, screen %.6f left noenhanced font title_font\n"
           "set label 2 %s at screen %.6f, screen %.6f left noenhanced textcolor rgb '#555555'\n",
           title, 24.0 / WIDTH, 1 - 26.0 / HEIGHT, note, 24.0 / WIDTH, 1 - 50.0 / HEIGHT);
  for (guint i = 0; i < p->named->len; i++)
    write_name (out, p->plot, point_at (p, g_array_index (p->named, guint, i)), i);
}

static void
write_capacity (FILE *out, const Plot *p)
{
  char gib[G_ASCII_DTOSTR_BUF_SIZE];
  if (p->is_far)
    fprintf (out,
             "set label 3 'capacity: %s GiB' at graph 1, graph 1 right offset 0, -0.8 textcolor rgb "
             "'#222222'\n",
             g_ascii_formatd (gib, sizeof gib, "%.4g", p->plot->capacity_gib));
  else {
    g_ascii_formatd (gib, sizeof gib, "%.6g", p->plot->capacity_gib);
    fprintf (out,
             "set arrow 1 from %s, graph 0 to %s, graph 1 nohead linewidth 1.5 dashtype 2 linecolor rgb "
             "'#222222'\n"
             "set label 3 'capacity' at %s, graph 1 right offset -0.5, -0.8 textcolor rgb '#222222'\n",
             gib, gib, gib);
  }
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\nset encoding utf8\n", out);
  ls_picture_write_terminal (p->picture, out, WIDTH, HEIGHT, "title_font = ',18'; small_font = ',11'",
                             "title_font = ',15'; small_font = ',8.5'");
  ls_picture_write_data_name (p->picture, out);
  write_axes (out, p);
  write_words (out, p);
  write_capacity (out, p);
  fprintf (out,
           "set key at screen %.6f, screen %.6f left center Left reverse horizontal maxrows 1 samplen 1 "
           "width 1\n",
           (double) LEFT / WIDTH, 1 - 72.0 / HEIGHT);
  fputs ("plot data index 0 using 1:2:3 with points pointtype 7 pointsize 0.5 linecolor palette notitle, \\\n"
         "  keyentry with points pointtype 7 pointsize 0.5 linecolor rgb '#888888' title 'beaten in time, "
         "memory and cost', \\\n"
         "  data index 1 using 1:2:3 with points pointtype 7 pointsize 1.5 linecolor palette notitle, \\\n"
         "  data index 1 using 1:2 with points pointtype 6 pointsize 1.5 linewidth 1.5 linecolor rgb "
         "'#cc3311' title 'Pareto front', \\\n"
         "  data index 2 using 1:2:4 with labels offset 0.9, 0.75 notitle\n",
         out);
  return TRUE;
}

gboolean
ls_plot_pareto (const LsParetoPlot *plot, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot p = { .plot = plot, .picture = &picture };
  plot_init (&p);
  gboolean ok = FALSE;
  if (p.front->len > 0)
    ok = ls_picture_draw (&picture, write_data, write_script, &p, error);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s: nothing was simulated that could be drawn", path);
  plot_clear (&p);
  return ok;
}
