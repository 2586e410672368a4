#include "show/plot/plots.h"

#include <stdio.h>

#include "show/plot/gnuplot.h"
#include "show/plot/picture.h"

#define LEFT          76 /* margins, pixels */
#define RIGHT         24
#define TOP           92
#define BOTTOM        52
#define MIN_WIDTH     700 /* of the rows, pixels */
#define MAX_WIDTH     2400
#define DIGIT_WIDTH   7 /* of a number, pixels */
#define MIN_EDGED_BOX 5 /* pixels of the shortest action; narrower ones alternate in tint */

typedef struct {
  const char *name;
  guint32 color; /* of the first chunk */
} Style;

/* Blue forwards and green backwards as in Megatron-LM's papers; of split backwards, as in
 * those on zero bubbles, the two halves are told apart. */
static const Style styles[] = {
  [LS_ACTION_F] = { "forward", 0x3f76bf },
  [LS_ACTION_B] = { "backward", 0x4f9d55 },
  [LS_ACTION_I] = { "input gradient", 0x2a9d9d },
  [LS_ACTION_W] = { "weight gradient", 0xd98a2b },
};

typedef struct {
  const LsScheduleView *v;
  const LsPicture *picture;
  int width, row_height; /* of the rows, of one */
  bool has_edges;
  guint n_labels;
} Plot;

static LsTime
makespan (const Plot *p)
{
  return MAX (p->v->eval->makespan, 1);
}

static guint
n_digits (uint32_t n)
{
  return n >= 10 ? 1 + n_digits (n / 10) : 1;
}

/* As wide as the numbers need in the shortest action, within limits. */
static void
plot_init (Plot *p)
{
  const LsScheduleView *v = p->v;
  LsTime shortest = makespan (p);
  guint n = 1;
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++)
    for (guint i = 0; i < v->orders->ranks[rank]->len; i++) {
      const LsActionTime *t = &v->eval->times[rank][i];
      if (t->end > t->start)
        shortest = MIN (shortest, t->end - t->start);
      n = MAX (n, n_digits (g_array_index (v->orders->ranks[rank], LsAction, i).mb));
    }
  double per_pixel = (double) makespan (p) / (double) shortest, wanted = per_pixel * (DIGIT_WIDTH * n + 6);
  p->width = (int) CLAMP (wanted, MIN_WIDTH, MAX_WIDTH);
  p->has_edges = p->width / per_pixel >= MIN_EDGED_BOX;
  p->row_height = v->eval->n_ranks <= 8 ? 34 : v->eval->n_ranks <= 16 ? 26 : v->eval->n_ranks <= 64 ? 16 : 8;
}

/* ---- data ---- */

static guint32
tint (guint32 color, double share)
{
  guint32 out = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    double c = (color >> shift) & 255;
    out |= (guint32) (c + (255 - c) * share + 0.5) << shift;
  }
  return out;
}

static double
tint_of (const Plot *p, const LsAction *a)
{
  guint n_chunks = p->v->orders->layout.n_chunks;
  double chunk = n_chunks > 1 ? 0.62 * a->chunk / (n_chunks - 1) : 0.12;
  return chunk + (!p->has_edges && a->mb % 2 ? 0.16 : 0);
}

static void
write_time (FILE *out, const Plot *p, LsTime t)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  double scale = p->v->has_unit ? 1e3 : 1;
  fprintf (out, "%s ",
           g_ascii_formatd (buffer, sizeof buffer, "%.9g", scale * ls_schedule_number (t, p->v->has_unit)));
}

/* As the head of the data says. */
static void
write_box (FILE *out, const Plot *p, uint32_t rank, guint i, bool as_label)
{
  const LsAction *actions = &g_array_index (p->v->orders->ranks[rank], LsAction, 0), *a = &actions[i];
  const LsActionTime *t = &p->v->eval->times[rank][i];
  bool is_upper = a->is_paired, is_lower = i > 0 && actions[i - 1].is_paired;
  double top = is_lower ? 0.0 : -0.46, bottom = is_upper ? 0.0 : 0.46;
  char y0[G_ASCII_DTOSTR_BUF_SIZE], y1[G_ASCII_DTOSTR_BUF_SIZE];
  if (as_label) {
    write_time (out, p, t->start + (t->end - t->start) / 2);
    fprintf (out, "%s %u 0x%06x\n", g_ascii_formatd (y0, sizeof y0, "%.2f", rank + (top + bottom) / 2), a->mb,
             tint_of (p, a) > 0.4 ? 0x222222 : 0xffffff);
    return;
  }
  write_time (out, p, t->start);
  write_time (out, p, t->end);
  fprintf (out, "%u %s %s 0x%06x %u %u %u\n", rank, g_ascii_formatd (y0, sizeof y0, "%.2f", rank + top),
           g_ascii_formatd (y1, sizeof y1, "%.2f", rank + bottom),
           tint (styles[a->type].color, tint_of (p, a)), a->type, a->chunk, a->mb);
}

static bool
has_label (const Plot *p, uint32_t rank, guint i)
{
  const LsAction *actions = &g_array_index (p->v->orders->ranks[rank], LsAction, 0);
  const LsActionTime *t = &p->v->eval->times[rank][i];
  bool is_half = actions[i].is_paired || (i > 0 && actions[i - 1].is_paired);
  double pixels = (double) (t->end - t->start) * p->width / (double) makespan (p);
  return pixels >= (double) DIGIT_WIDTH * n_digits (actions[i].mb) + 1
      && p->row_height >= (is_half ? 26 : 14);
}

static void
write_actions (FILE *out, const Plot *p, bool as_labels)
{
  for (uint32_t rank = 0; rank < p->v->eval->n_ranks; rank++)
    for (guint i = 0; i < p->v->orders->ranks[rank]->len; i++) {
      const LsActionTime *t = &p->v->eval->times[rank][i];
      if (t->end > t->start && (!as_labels || has_label (p, rank, i)))
        write_box (out, p, rank, i, as_labels);
    }
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Blocks are named by the line above them. Of idle: from, to, row. Of actions: from, to, row,\n"
         "# top, bottom, colour, kind (0 F, 1 B, 2 I, 3 W), chunk, micro-batch. Of numbers: x, y,\n"
         "# micro-batch, colour\n\n\n# idle\n",
         out);
  for (uint32_t rank = 0; rank < p->v->eval->n_ranks; rank++) {
    fputs ("0 ", out);
    write_time (out, p, makespan (p));
    fprintf (out, "%u\n", rank);
  }
  fputs ("\n\n# actions\n", out);
  write_actions (out, p, false);
  if (p->n_labels > 0) {
    fputs ("\n\n# numbers\n", out);
    write_actions (out, p, true);
  }
  return TRUE;
}

/* ---- script ---- */

static void
write_frame (FILE *out, const Plot *p)
{
  int width = LEFT + p->width + RIGHT, height = TOP + BOTTOM + p->row_height * (int) p->v->eval->n_ranks;
  bool is_low = p->row_height < 26;
  ls_picture_write_terminal (
      p->picture, out, width, height,
      is_low ? "title_font = ',17'; number_font = ',9'" : "title_font = ',17'; number_font = ',11'",
      is_low ? "title_font = ',14'; number_font = ',7'" : "title_font = ',14'; number_font = ',8.5'");
  ls_picture_write_margins (out, (double) LEFT / width, 1 - (double) RIGHT / width, 1 - (double) TOP / height,
                            (double) BOTTOM / height);
  g_autofree char *title = ls_gnuplot_quote (p->v->title);
  g_autofree char *total = ls_schedule_time_text (p->v->eval->makespan, p->v->has_unit);
  const LsSchedEval *e = p->v->eval;
  double peak = 0;
  for (uint32_t rank = 0; rank < e->n_ranks; rank++)
    peak = MAX (peak, ls_schedule_peak (e, rank, ls_schedule_count (p->v->is_searched)));
  fprintf (out, "set label 1 %s at screen %.6f, screen %.6f left noenhanced font title_font\n", title,
           (double) LEFT / width, 1 - 24.0 / height);
  fprintf (out,
           "set label 2 'makespan %s; bubble %.1f %%, of the span %.1f %%; at most %.4g micro-batches "
           "held%s' "
           "at screen %.6f, screen %.6f left noenhanced textcolor rgb '#555555'\n",
           total, 100 * ls_schedule_bubble (e->ideal, e->makespan),
           100 * ls_schedule_bubble (e->ideal, e->span), peak,
           p->v->orders->layout.n_chunks > 1 ? "; later chunks lighter" : "", (double) LEFT / width,
           1 - 48.0 / height);
  fprintf (out,
           "set key at screen %.6f, screen %.6f left center horizontal Left reverse maxrows 1 samplen 1 "
           "width 0 noenhanced\n",
           (double) (LEFT - 8) / width, 1 - 72.0 / height);
}

static void
write_axes (FILE *out, const Plot *p)
{
  guint n = p->v->eval->n_ranks, step = n <= 64 ? 1 : (n + 63) / 64;
  fputs ("set xrange [0:", out);
  write_time (out, p, makespan (p));
  fprintf (out, "]\nset yrange [%u.5:-0.5]\nset xlabel 'time%s'\nset xtics out nomirror\nset ytics scale 0 (",
           n - 1, p->v->has_unit ? " (ms)" : "");
  for (guint rank = 0; rank < n; rank += step)
    fprintf (out, "%s'rank %u' %u", rank > 0 ? ", " : "", rank, rank);
  fputs (")\nset border 1 linecolor rgb '#555555'\nset style fill solid 1.0 noborder\n\n", out);
}

static bool
has_type (const LsOrders *orders, uint8_t type)
{
  for (uint32_t rank = 0; rank < orders->layout.n_ranks; rank++)
    for (guint i = 0; i < orders->ranks[rank]->len; i++)
      if (g_array_index (orders->ranks[rank], LsAction, i).type == type)
        return true;
  return false;
}

static void
write_key (FILE *out, const Plot *p)
{
  guint n_chunks = p->v->orders->layout.n_chunks;
  for (guint type = 0; type < G_N_ELEMENTS (styles); type++) {
    if (!has_type (p->v->orders, (uint8_t) type))
      continue;
    fprintf (out, ", \\\n  NaN with boxes fillcolor rgb 0x%06x title '%s'",
             tint (styles[type].color, n_chunks > 1 ? 0 : 0.12), styles[type].name);
  }
  fputs (", \\\n  NaN with boxes fillcolor rgb '#eeeeee' title 'idle'\n", out);
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  write_frame (out, p);
  write_axes (out, p);
  ls_picture_write_data_name (p->picture, out);
  fprintf (out,
           "plot data index 'idle' using 1:3:1:2:($3 - 0.46):($3 + 0.46) with boxxyerror fillcolor rgb "
           "'#eeeeee' notitle, \\\n"
           "  data index 'actions' using 1:3:1:2:4:5:6 with boxxyerror fillstyle solid 1.0 %s linewidth 0.5 "
           "fillcolor rgb "
           "variable notitle",
           p->has_edges ? "border rgb '#ffffff'" : "noborder");
  if (p->n_labels > 0)
    fputs (", \\\n  data index 'numbers' using 1:2:3:4 with labels font number_font textcolor rgb variable "
           "notitle",
           out);
  write_key (out, p);
  return TRUE;
}

gboolean
ls_plot_schedule (const LsScheduleView *v, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot p = { .v = v, .picture = &picture };
  plot_init (&p);
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++)
    for (guint i = 0; i < v->orders->ranks[rank]->len; i++)
      p.n_labels += has_label (&p, rank, i);
  return ls_picture_draw (&picture, write_data, write_script, &p, error);
}
