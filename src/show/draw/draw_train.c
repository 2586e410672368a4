/* show/draw/draw_train.c — what held up a training run and what is lost, drawn. */
#include <math.h>

#include "base/order.h"
#include "show/draw/drawing.h"
#include "show/draw/pictures.h"
#include "show/text_table.h"

#define LEFT       210.0 /* margins, pixels */
#define RIGHT      120.0
#define WIDTH      1000.0
#define ROW        26.0 /* of the timeline */
#define BAR        20.0
#define MAX_ROWS   12
#define MAX_CAUSES 16
#define DAY_S      86400.0

/* By LsLost. */
static const char *const paints[LS_N_LOST] = {
  [LS_LOST_CHECKPOINT] = "link-nic", [LS_LOST_REWORK] = "bad", [LS_LOST_DETECTION] = "backward",
  [LS_LOST_WAITING] = "pp",          [LS_LOST_RESTART] = "dp", [LS_LOST_SLOW] = "slowdown",
  [LS_LOST_SMALLER] = "cp",          [LS_LOST_STALL] = "skew", [LS_LOST_VARIATION] = "bubble",
};

typedef struct {
  const LsTrainReport *r;
  LsDrawing *d;
  double row_s; /* of the timeline */
  double y;     /* so far          */
} Sheet;

/* --- the timeline of one run -------------------------------------------------------------------- */

/* Whole days, or parts of one, a row, so that there are not too many. */
static double
row_seconds (double all_s)
{
  double least = all_s / MAX_ROWS;
  return least > DAY_S ? ceil (least / DAY_S) * DAY_S : least > 3600 ? ceil (least / 3600) * 3600 : all_s;
}

/* A part of a span within a row; at least as wide as can be seen. */
static void
draw_piece (const Sheet *s, const LsRunSpan *span, guint row)
{
  double start = row * s->row_s, from = fmax (span->from_s, start), to = fmin (span->to_s, start + s->row_s);
  if (to <= from)
    return;
  const LsTrainCause *cause = &g_array_index (s->r->causes, LsTrainCause, span->cause);
  g_autofree char *time = ls_text_time (span->to_s - span->from_s);
  g_autofree char *tip = g_strdup_printf ("%s: %s, day %.2f, %s", ls_lost_names[span->kind], cause->name,
                                          span->from_s / DAY_S, time);
  const LsRect rect = { LEFT + WIDTH * (from - start) / s->row_s, s->y + row * ROW,
                        fmax (WIDTH * (to - from) / s->row_s, 0.8), ROW - 6 };
  ls_drawing_rect (s->d, LS_LAYER_BOXES, rect, paints[span->kind], false, tip);
}

static void
draw_row (const Sheet *s, guint row)
{
  double start = row * s->row_s, length = fmin (s->r->timeline_s - start, s->row_s);
  const LsDrawnItem ground = { .x = LEFT,
                               .y = s->y + row * ROW,
                               .width = WIDTH * length / s->row_s,
                               .height = ROW - 6,
                               .paint = "forward",
                               .opacity = 0.25,
                               .tip = "steps and checkpoints" };
  g_autofree char *text = g_strdup_printf ("day %.3g", start / DAY_S);
  ls_drawing_box (s->d, LS_LAYER_GROUND, ground);
  ls_drawing_text (s->d, LEFT - 10, s->y + row * ROW + (ROW - 6) / 2, 11, LS_RIGHT, "quiet", text);
}

static void
draw_timeline (Sheet *s)
{
  guint n = (guint) ceil (s->r->timeline_s / s->row_s - 1e-9);
  for (guint row = 0; row < n; row++)
    draw_row (s, row);
  for (guint i = 0; i < s->r->timeline->len; i++) {
    const LsRunSpan *span = &g_array_index (s->r->timeline, LsRunSpan, i);
    guint last = MIN ((guint) (span->to_s / s->row_s), n - 1);
    for (guint row = (guint) (span->from_s / s->row_s); row <= last; row++)
      draw_piece (s, span, row);
  }
  s->y += n * ROW + 8;
}

/* --- what is lost, in the mean ------------------------------------------------------------------- */

static void
draw_heading (Sheet *s, const char *text)
{
  s->y += 22;
  ls_drawing_text (s->d, LEFT, s->y, 13, LS_LEFT, "text", text);
  s->y += 14;
}

static void
draw_bar (Sheet *s, const char *name, double seconds, double most_s, const char *paint)
{
  double width = WIDTH * seconds / most_s;
  g_autofree char *time = ls_text_time (seconds);
  g_autofree char *text = g_strdup_printf ("%s, %.2f %%", time, 100 * seconds / s->r->wall_s.mean);
  ls_drawing_rect (s->d, LS_LAYER_BOXES, (LsRect) { LEFT, s->y, fmax (width, 0.8), BAR - 5 }, paint, false,
                   text);
  ls_drawing_text (s->d, LEFT - 10, s->y + (BAR - 5) / 2, 11, LS_RIGHT, "text", name);
  ls_drawing_text (s->d, LEFT + width + 8, s->y + (BAR - 5) / 2, 11, LS_LEFT, "quiet", text);
  s->y += BAR;
}

static void
draw_kinds (Sheet *s)
{
  double most = 0;
  for (int k = 0; k < LS_N_LOST; k++)
    most = fmax (most, s->r->lost_s[k]);
  if (most == 0)
    return;
  draw_heading (s, "time lost, by what happens: mean of all seeds");
  for (int k = 0; k < LS_N_LOST; k++)
    if (s->r->lost_s[k] > 0)
      draw_bar (s, ls_lost_names[k], s->r->lost_s[k], most, paints[k]);
}

static void
draw_causes (Sheet *s)
{
  static const LsSortKey by_loss[] = { { LS_FALLING (LsTrainCause, lost_s) }, { 0 } };
  g_autoptr (GArray) list = g_array_copy (s->r->causes);
  ls_sort_by (list, by_loss);
  const LsTrainCause *causes = (const LsTrainCause *) list->data;
  if (list->len == 0 || causes->lost_s <= 0)
    return;
  draw_heading (s, "the same, by cause");
  for (guint i = 0; i < MIN (list->len, MAX_CAUSES) && causes[i].lost_s > 0; i++) {
    g_autofree char *name = g_strdup_printf ("%s x %.1f", causes[i].name, causes[i].n);
    draw_bar (s, name, causes[i].lost_s, causes->lost_s, "accent");
  }
}

LsDrawing *
ls_draw_train (const LsTrainReport *r, const char *title, const char *subtitle)
{
  Sheet s = { r, ls_drawing_new (title), row_seconds (r->timeline_s), 26 };
  LsLegendEntry entries[LS_N_LOST];
  for (int k = 0; k < LS_N_LOST; k++)
    entries[k] = (LsLegendEntry) { paints[k], ls_lost_names[k] };
  ls_drawing_text (s.d, LEFT, 12, 13, LS_LEFT, "text", "the run of the first seed: what held it up");
  draw_timeline (&s);
  draw_kinds (&s);
  draw_causes (&s);
  double head = ls_draw_head (s.d, LEFT, LEFT + WIDTH, title, subtitle, entries, LS_N_LOST);
  ls_drawing_resize (s.d, LEFT + WIDTH + RIGHT, head + s.y + 16);
  return s.d;
}
