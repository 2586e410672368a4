/* show/draw/draw_memory.c — what a rank holds over a step, drawn. */
#include "show/draw/drawing.h"
#include "show/draw/pictures.h"
#include "show/text_table.h"

#define LEFT      66.0 /* margins, pixels */
#define RIGHT     20.0
#define WIDTH     1314.0 /* of the areas */
#define HEIGHT    470.0
#define N_COLUMNS 1200 /* in which the curve is drawn: narrower peaks stand in one */
#define GIB       1073741824.0

/* By LsMemCategory. */
static const char *const paints[LS_N_MEM] = {
  [LS_MEM_PARAMETERS] = "parameters",      [LS_MEM_GRADIENTS] = "gradients",
  [LS_MEM_OPTIMIZER] = "optimizer-states", [LS_MEM_ACTIVATIONS] = "activations",
  [LS_MEM_UNSHARDED] = "unsharded",        [LS_MEM_COMM_BUFFERS] = "comm-buffers",
  [LS_MEM_WORKSPACE] = "workspace",
};

typedef struct {
  const LsMemoryPlot *plot;
  LsDrawing *d;
  double top, most; /* y of the upper end; bytes there */
  GArray *steps;    /* LsMemorySample: what is held from there on, a column wide or more */
} Page;

static const LsMemorySample *
sample_at (const Page *p, guint i)
{
  return &g_array_index (p->plot->samples, LsMemorySample, i);
}

static double
x_of (const Page *p, LsTime at)
{
  return LEFT + (double) at / (double) MAX (p->plot->window, 1) * WIDTH;
}

static double
y_of (const Page *p, double bytes)
{
  return p->top + (1 - bytes / p->most) * HEIGHT;
}

/* Up to and with a category. */
static double
edge_of (const LsMemorySample *s, int category)
{
  uint64_t edge = 0;
  for (int c = 0; c <= category; c++)
    edge += s->alive[c];
  return (double) edge;
}

/* Its upper edge from left to right, or the one below back. */
static void
add_edge (const Page *p, GArray *points, int category, bool is_back)
{
  guint n = p->steps->len;
  for (guint k = 0; k < n; k++) {
    guint i = is_back ? n - 1 - k : k;
    const LsMemorySample *s = &g_array_index (p->steps, LsMemorySample, i);
    LsTime end = i + 1 < n ? s[1].at : p->plot->window;
    double y = y_of (p, edge_of (s, category));
    const LsXY ends[] = { { x_of (p, is_back ? end : s->at), y }, { x_of (p, is_back ? s->at : end), y } };
    g_array_append_vals (points, ends, 2);
  }
}

/* Nothing of a category that is never held. */
static void
draw_category (const Page *p, int category)
{
  uint64_t most = 0;
  for (guint i = 0; i < p->plot->samples->len; i++)
    most = MAX (most, sample_at (p, i)->alive[category]);
  if (most == 0)
    return;
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, sizeof (LsXY));
  g_autofree char *bytes = ls_format_bytes (most),
                  *name = ls_text_words (ls_mem_category_names[category].name),
                  *tip = g_strdup_printf ("%s, at most %s", name, bytes);
  add_edge (p, points, category, false);
  add_edge (p, points, category - 1, true);
  ls_drawing_area (p->d, (const LsXY *) points->data, points->len, paints[category], tip);
}

static void
draw_capacity (const Page *p)
{
  double y = y_of (p, (double) p->plot->capacity_bytes);
  g_autofree char *bytes = ls_format_bytes (p->plot->capacity_bytes),
                  *text = g_strdup_printf ("capacity, %s", bytes);
  const LsStroke stroke = { LS_LAYER_OVER, "text", 2, true, text };
  ls_drawing_segment (p->d, (LsXY) { LEFT, y }, (LsXY) { LEFT + WIDTH, y }, &stroke);
  ls_drawing_text (p->d, LEFT + WIDTH, y - 9, 11, LS_RIGHT, "text", text);
}

static void
draw_axes (const Page *p)
{
  LsTime unit;
  const char *unit_name = ls_axis_unit (p->plot->window, &unit);
  g_autofree char *name = g_strdup_printf ("time from the start of the step (%s)", unit_name);
  const LsDrawnAxis time = { 0, (double) p->plot->window / (double) unit, name };
  const LsDrawnAxis memory = { 0, p->most / GIB, "held (GiB)" };
  ls_draw_axis_below (p->d, LEFT, LEFT + WIDTH, p->top + HEIGHT, &time);
  ls_draw_axis_left (p->d, LEFT, LEFT + WIDTH, p->top, p->top + HEIGHT, &memory);
}

static void
draw_head (const Page *p)
{
  char *names[LS_N_MEM];
  LsLegendEntry entries[LS_N_MEM];
  for (int c = 0; c < LS_N_MEM; c++) {
    names[c] = ls_text_words (ls_mem_category_names[c].name);
    entries[c] = (LsLegendEntry) { paints[c], names[c] };
  }
  double head = ls_draw_head (p->d, LEFT, LEFT + WIDTH, p->plot->title, p->plot->note, entries, LS_N_MEM);
  ls_drawing_resize (p->d, LEFT + WIDTH + RIGHT, head + p->top + HEIGHT + 44);
  for (int c = 0; c < LS_N_MEM; c++)
    g_free (names[c]);
}

LsDrawing *
ls_draw_memory (const LsMemoryPlot *plot)
{
  Page p = { .plot = plot, .d = ls_drawing_new (plot->title), .top = 22 };
  uint64_t most = plot->capacity_bytes;
  for (guint i = 0; i < plot->samples->len; i++)
    most = MAX (most, ls_memory_sample_total (sample_at (&p, i)));
  p.most = 1.06 * (double) MAX (most, 1);
  p.steps = ls_memory_samples_thin (plot->samples, plot->window, N_COLUMNS);
  g_array_prepend_val (p.steps, *sample_at (&p, 0));
  for (int c = 0; c < LS_N_MEM; c++)
    draw_category (&p, c);
  draw_capacity (&p);
  draw_axes (&p);
  draw_head (&p);
  g_array_unref (p.steps);
  return p.d;
}
