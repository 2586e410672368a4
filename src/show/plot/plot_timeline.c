#include "show/plot/plots.h"

#include <inttypes.h>
#include <stdio.h>

#include "show/plot/gnuplot.h"
#include "show/plot/picture.h"
#include "show/run/timeline_boxes.h"

#define MAX_ROWS    32
#define WIDTH       1600 /* of the picture, pixels */
#define LEFT        150  /* margins, pixels: room for "rank 63 (stage 63)" */
#define RIGHT       30
#define TOP         92
#define BOTTOM      64
#define DIGIT_WIDTH 8 /* of a micro-batch number, pixels, with the space around it */

/* Colours that people with impaired colour vision tell apart: Paul Tol, "Colour
 * schemes", SRON/EPS/TN/09-002: forward and backward from "high-contrast" (blue,
 * yellow), the others from "bright" (cyan, red, purple) and "vibrant" (orange,
 * teal, magenta); greys for what is no category of work. */
#define IDLE_COLOR "#eeeeee"

typedef struct {
  const char *color; /* of the last chunk; earlier ones are lighter */
  const char *text;  /* of the number on it; NULL: no number        */
} BoxStyle;

static const BoxStyle box_styles[LS_N_BOX_KINDS] = {
  [LS_BOX_FORWARD] = { "0x004488", "0xffffff" }, [LS_BOX_BACKWARD] = { "0xDDAA33", "0x222222" },
  [LS_BOX_WEIGHT] = { "0x009988", "0xffffff" },  [LS_BOX_RECOMPUTE] = { "0x66CCEE", NULL },
  [LS_BOX_OPTIMIZER] = { "0x555555", NULL },
};

typedef struct {
  LsPart part;
  const char *color;
  const char *label;
} StripKind;

static const StripKind strip_kinds[] = {
  { LS_PART_EXPOSED_TP, "0xEE6677", "exposed tp" }, { LS_PART_EXPOSED_DP, "0xEE7733", "exposed dp" },
  { LS_PART_EXPOSED_PP, "0xAA3377", "exposed pp" }, { LS_PART_EXPOSED_CP, "0x228833", "exposed cp" },
  { LS_PART_EXPOSED_EP, "0xEE3377", "exposed ep" }, { LS_PART_EXPOSED_COPY, "0xAA4499", "exposed copy" },
};
#define N_STRIP_KINDS G_N_ELEMENTS (strip_kinds)

typedef struct {
  const LsTimeline *t;
  const char *title;
  const LsPicture *picture;
  GArray *rows;                     /* uint32_t ranks */
  GPtrArray *boxes;                 /* [rows] GArray of LsTimelineBox */
  GPtrArray *strips[N_STRIP_KINDS]; /* [rows] GArray of LsTimelineStrip */
} Plot;

static LsTime
window (const Plot *p)
{
  return p->t->window_end - p->t->window_start;
}

static LsTime
time_of_pixels (const Plot *p, int pixels)
{
  return window (p) / (WIDTH - LEFT - RIGHT) * pixels;
}

static int
row_height (const Plot *p)
{
  guint n = p->rows->len;
  return n <= 4 ? 64 : n <= 8 ? 52 : n <= 16 ? 36 : n <= 32 ? 24 : 16;
}

static void
plot_init (Plot *p, const LsTimeline *t, const char *title)
{
  p->t = t;
  p->title = title;
  p->rows = ls_timeline_rows (t, MAX_ROWS);
  p->boxes = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (size_t k = 0; k < N_STRIP_KINDS; k++)
    p->strips[k] = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (guint row = 0; row < p->rows->len; row++) {
    uint32_t rank = g_array_index (p->rows, uint32_t, row);
    g_ptr_array_add (p->boxes, ls_timeline_boxes (t, rank));
    g_autoptr (GPtrArray) parts = ls_timeline_strips (t, rank, MAX (time_of_pixels (p, 1), 1));
    for (size_t k = 0; k < N_STRIP_KINDS; k++)
      g_ptr_array_add (p->strips[k], g_array_ref (parts->pdata[strip_kinds[k].part]));
  }
}

static void
plot_clear (Plot *p)
{
  g_array_unref (p->rows);
  g_ptr_array_unref (p->boxes);
  for (size_t k = 0; k < N_STRIP_KINDS; k++)
    g_ptr_array_unref (p->strips[k]);
}

static guint
n_boxes_of (const Plot *p, LsBoxKind kind)
{
  guint n = 0;
  for (guint row = 0; row < p->boxes->len; row++) {
    const GArray *boxes = g_ptr_array_index (p->boxes, row);
    for (guint i = 0; i < boxes->len; i++)
      n += g_array_index (boxes, LsTimelineBox, i).kind == kind;
  }
  return n;
}

static guint
n_strips_of (const Plot *p, size_t kind)
{
  guint n = 0;
  for (guint row = 0; row < p->strips[kind]->len; row++)
    n += ((const GArray *) g_ptr_array_index (p->strips[kind], row))->len;
  return n;
}

/* --- data ------------------------------------------------------------- */

/* Picoseconds as exact milliseconds. */
static void
write_ms (FILE *out, LsTime ps)
{
  fprintf (out, "%" PRId64 ".%09" PRId64 " ", ps / LS_MS, ps % LS_MS);
}

static void
write_interval (FILE *out, LsTime from, LsTime to, guint row)
{
  write_ms (out, from);
  write_ms (out, to);
  fprintf (out, "%u ", row);
}

static void
write_boxes (FILE *out, const Plot *p, LsBoxKind kind)
{
  fprintf (out, "\n\n# %s\n", ls_box_kind_name (kind));
  for (guint row = 0; row < p->boxes->len; row++) {
    const GArray *boxes = g_ptr_array_index (p->boxes, row);
    for (guint i = 0; i < boxes->len; i++) {
      const LsTimelineBox *box = &g_array_index (boxes, LsTimelineBox, i);
      if (box->kind != kind)
        continue;
      write_interval (out, box->from, box->to, row);
      fprintf (out, "%u %u\n", box->chunk, box->mb);
    }
  }
}

static void
write_strips (FILE *out, const Plot *p, size_t kind)
{
  fprintf (out, "\n\n# %s\n", strip_kinds[kind].label);
  for (guint row = 0; row < p->strips[kind]->len; row++) {
    const GArray *strips = g_ptr_array_index (p->strips[kind], row);
    for (guint i = 0; i < strips->len; i++) {
      const LsTimelineStrip *strip = &g_array_index (strips, LsTimelineStrip, i);
      char height[G_ASCII_DTOSTR_BUF_SIZE];
      write_interval (out, strip->from, strip->to, row);
      fprintf (out, "%s\n", g_ascii_formatd (height, sizeof height, "%.4f", strip->height));
    }
  }
}

static bool
has_label (const Plot *p, const LsTimelineBox *box)
{
  int n_digits = box->mb >= 1000 ? 4 : box->mb >= 100 ? 3 : box->mb >= 10 ? 2 : 1;
  return box_styles[box->kind].text && box->to - box->from > time_of_pixels (p, DIGIT_WIDTH * n_digits);
}

static guint
write_labels (FILE *out, const Plot *p)
{
  guint n = 0;
  for (guint row = 0; row < p->boxes->len; row++) {
    const GArray *boxes = g_ptr_array_index (p->boxes, row);
    for (guint i = 0; i < boxes->len; i++) {
      const LsTimelineBox *box = &g_array_index (boxes, LsTimelineBox, i);
      if (!has_label (p, box))
        continue;
      n++;
      if (!out)
        continue;
      write_ms (out, box->from + (box->to - box->from) / 2);
      fprintf (out, "%u %u %s\n", row, box->mb, box_styles[box->kind].text);
    }
  }
  return n;
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Times in ms from the start of the step. Blocks are named by the line above them:\n"
         "# from, to, row, then: chunk and micro-batch (compute), height = share of the\n"
         "# interval that is exposed (communication); centre, row, micro-batch, color (numbers)\n\n\n# "
         "idle\n",
         out);
  for (guint row = 0; row < p->rows->len; row++) {
    write_interval (out, 0, window (p), row);
    fputc ('\n', out);
  }
  for (int kind = 0; kind < LS_N_BOX_KINDS; kind++)
    if (n_boxes_of (p, (LsBoxKind) kind) > 0)
      write_boxes (out, p, (LsBoxKind) kind);
  for (size_t kind = 0; kind < N_STRIP_KINDS; kind++)
    if (n_strips_of (p, kind) > 0)
      write_strips (out, p, kind);
  if (write_labels (NULL, p) > 0) {
    fputs ("\n\n# numbers\n", out);
    write_labels (out, p);
  }
  return TRUE;
}

/* --- script ----------------------------------------------------------- */

static void
write_terminal (FILE *out, const Plot *p)
{
  int height = TOP + BOTTOM + row_height (p) * (int) p->rows->len;
  ls_picture_write_terminal (p->picture, out, WIDTH, height, "title_font = ',18'; number_font = ',10.5'",
                             "title_font = ',15'; number_font = ',8'");
  ls_picture_write_margins (out, (double) LEFT / WIDTH, 1 - (double) RIGHT / WIDTH, 1 - (double) TOP / height,
                            (double) BOTTOM / height);
  fprintf (out, "title_y = %.6f\nnote_y = %.6f\nkey_y = %.6f\n\n", 1 - 26.0 / height, 1 - 54.0 / height,
           1 - 62.0 / height);
}

static void
write_title (FILE *out, const Plot *p)
{
  g_autofree char *title = ls_gnuplot_quote (p->title);
  g_autofree char *step = ls_format_time (window (p));
  bool is_all = p->rows->len == p->t->n_ranks;
  g_autofree char *note
      = g_strdup_printf ("one step: %s, %u rank%s%s", step, p->t->n_ranks, p->t->n_ranks == 1 ? "" : "s",
                         is_all ? "" : ", one of each role shown");
  fprintf (out, "set label 1 %s at screen %.6f, screen title_y left noenhanced font title_font\n", title,
           (double) LEFT / WIDTH);
  fprintf (out, "set label 2 '%s' at screen %.6f, screen note_y left noenhanced textcolor rgb '#555555'\n",
           note, (double) LEFT / WIDTH);
}

static void
write_axes (FILE *out, const Plot *p)
{
  fputs ("set xrange [0:", out);
  write_ms (out, window (p));
  fprintf (out, "]\nset yrange [%u.5:-0.5]\n", p->rows->len - 1);
  fputs ("set xlabel 'time from the start of the step (ms)'\n"
         "set xtics out nomirror\n"
         "set ytics scale 0 (",
         out);
  for (guint row = 0; row < p->rows->len; row++) {
    uint32_t rank = g_array_index (p->rows, uint32_t, row);
    fprintf (out, "%s'rank %u (stage %u)' %u", row > 0 ? ", " : "", rank,
             p->t->plan->programs[p->t->plan->bindings[rank].role].stage, row);
  }
  fputs (")\nset border 1 linecolor rgb '#555555'\n"
         "set key at screen 0.985, screen key_y right center horizontal Left reverse maxrows 1 samplen 1 "
         "width 0\n\n",
         out);
}

/* Neighbouring micro-batches are told apart by white edges, or, where boxes are so
 * narrow that little but edges would be left, by alternating tints. */
#define MIN_EDGED_BOX 6 /* pixels, on average */

static bool
has_edges (const Plot *p)
{
  guint n = 0;
  for (guint row = 0; row < p->boxes->len; row++)
    n = MAX (n, ((const GArray *) g_ptr_array_index (p->boxes, row))->len);
  return n * MIN_EDGED_BOX <= WIDTH - LEFT - RIGHT;
}

/* The bar is the upper three quarters of a row, the strips hang below it. */
static void
write_geometry (FILE *out, const Plot *p)
{
  uint32_t n_chunks = MAX (p->t->plan->n_chunks, 1);
  fprintf (out,
           "# colours: later chunks are darker; odd micro-batches a little lighter if there are no edges\n"
           "mix(c, f) = int(c + (255 - c) * f)\n"
           "tint(c, f) = (mix(c >> 16, f) << 16) + (mix((c >> 8) & 255, f) << 8) + mix(c & 255, f)\n"
           "shade(c, chunk, mb) = tint(c, 0.08 + 0.37 * (%u - chunk) / %u.0 + %s * (int(mb) %% 2))\n"
           "plain(c, chunk, mb) = tint(c, 0.08)\n"
           "top(y) = y - 0.42\n"
           "bar(y) = y + 0.20\n"
           "strip(y, h) = y + 0.23 + 0.19 * h\n"
           "end(y) = y + 0.42\n"
           "set style fill solid 1.0 noborder\n\n",
           n_chunks - 1, MAX (n_chunks, 2) - 1, has_edges (p) ? "0.0" : "0.1");
}

static void
write_plot (FILE *out, const Plot *p)
{
  ls_picture_write_data_name (p->picture, out);
  fputs ("plot data index 'idle' using 1:3:1:2:(top($3)):(end($3)) with boxxyerror fillcolor rgb '" IDLE_COLOR
         "' notitle",
         out);
  for (int kind = 0; kind < LS_N_BOX_KINDS; kind++)
    if (n_boxes_of (p, (LsBoxKind) kind) > 0)
      fprintf (out,
               ", \\\n  data index '%s' using 1:3:1:2:(top($3)):(bar($3)):(%s(%s, $4, $5)) with boxxyerror"
               " fillstyle solid 1.0 %s linewidth 0.5 fillcolor rgb variable notitle",
               ls_box_kind_name ((LsBoxKind) kind), kind == LS_BOX_OPTIMIZER ? "plain" : "shade",
               box_styles[kind].color, has_edges (p) ? "border rgb '#ffffff'" : "noborder");
  for (size_t kind = 0; kind < N_STRIP_KINDS; kind++)
    if (n_strips_of (p, kind) > 0)
      fprintf (out,
               ", \\\n  data index '%s' using 1:3:1:2:(strip($3, 0)):(strip($3, $4)) with boxxyerror "
               "fillcolor rgb %s notitle",
               strip_kinds[kind].label, strip_kinds[kind].color);
  if (write_labels (NULL, p) > 0)
    fputs (", \\\n  data index 'numbers' using 1:($2 - 0.11):3:4 with labels font number_font textcolor rgb "
           "variable notitle",
           out);
  for (int kind = 0; kind < LS_N_BOX_KINDS; kind++)
    if (n_boxes_of (p, (LsBoxKind) kind) > 0)
      fprintf (out, ", \\\n  NaN with boxes fillcolor rgb tint(%s, 0.08) title '%s'", box_styles[kind].color,
               ls_box_kind_name ((LsBoxKind) kind));
  for (size_t kind = 0; kind < N_STRIP_KINDS; kind++)
    if (n_strips_of (p, kind) > 0)
      fprintf (out, ", \\\n  NaN with boxes fillcolor rgb %s title '%s'", strip_kinds[kind].color,
               strip_kinds[kind].label);
  fputs (", \\\n  NaN with boxes fillcolor rgb '" IDLE_COLOR "' title 'idle'\n", out);
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  write_terminal (out, p);
  write_title (out, p);
  write_axes (out, p);
  write_geometry (out, p);
  write_plot (out, p);
  return TRUE;
}

gboolean
ls_plot_timeline (const LsTimeline *t, const char *title, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot plot = { .picture = &picture };
  plot_init (&plot, t, title);
  gboolean ok = ls_picture_draw (&picture, write_data, write_script, &plot, error);
  plot_clear (&plot);
  return ok;
}
