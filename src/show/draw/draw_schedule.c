/* show/draw/draw_schedule.c — pipeline schedules on one scale, drawn. */
#include <string.h>

#include "show/draw/drawing.h"
#include "show/draw/pictures.h"

#define LEFT        76.0 /* margins, pixels */
#define RIGHT       24.0
#define MIN_WIDTH   700 /* of the rows */
#define MAX_WIDTH   2400
#define DIGIT_WIDTH 7 /* of a number */
#define NARROW      0.33
#define LIGHTEST    0.5 /* the last chunk */
#define NUMBER_SIZE 11.0

/* Of split backwards the two halves are told apart. */
static const LsLegendEntry styles[] = {
  [LS_ACTION_F] = { "forward", "forward" },
  [LS_ACTION_B] = { "backward", "backward" },
  [LS_ACTION_I] = { "input", "input gradient" },
  [LS_ACTION_W] = { "weight", "weight gradient" },
};

typedef struct {
  const LsScheduleView *v;
  LsDrawing *d;
  LsTime scale; /* the longest makespan */
  double width, row, y;
  bool is_one; /* picture of one schedule */
} Plot;

static const LsAction *
action_at (const LsScheduleView *v, uint32_t rank, guint i)
{
  return &g_array_index (v->orders->ranks[rank], LsAction, i);
}

/* As wide as the numbers need in the shortest action. */
static double
width_of (const LsScheduleView *v, LsTime scale)
{
  LsTime shortest = MIN (scale, ls_schedule_shortest (v));
  uint32_t most = 0;
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++)
    for (guint i = 0; i < v->orders->ranks[rank]->len; i++)
      most = MAX (most, action_at (v, rank, i)->mb);
  g_autofree char *number = g_strdup_printf ("%u", most);
  return (double) scale / (double) shortest * (DIGIT_WIDTH * strlen (number) + 6);
}

static double
x_of (const Plot *p, LsTime at)
{
  return LEFT + (double) at / (double) p->scale * p->width;
}

/* --- a row ------------------------------------------------------------------------------------------- */

/* Actions that are too narrow to be seen, as one box. */
typedef struct {
  double left, right;
  const char *paint;
  guint n;
} Run;

static double
tint_of (const Plot *p, const LsAction *a)
{
  guint n_chunks = p->v->orders->layout.n_chunks;
  return n_chunks > 1 ? 1 - (1 - LIGHTEST) * a->chunk / (n_chunks - 1) : 1;
}

static char *
tip_of (const Plot *p, uint32_t rank, guint i)
{
  const LsAction *a = action_at (p->v, rank, i);
  const LsActionTime *t = &p->v->eval->times[rank][i];
  g_autofree char *from = ls_schedule_time_text (t->start, p->v->has_unit),
                  *to = ls_schedule_time_text (t->end, p->v->has_unit);
  return g_strdup_printf ("%s of micro-batch %u, chunk %u, rank %u: %s to %s", styles[a->type].name, a->mb,
                          a->chunk, rank, from, to);
}

static void
end_run (Plot *p, Run *run)
{
  if (run->n == 0)
    return;
  g_autofree char *tip = g_strdup_printf ("%u actions", run->n);
  const LsRect rect = { run->left, p->y + 1, MAX (run->right - run->left, 0.2), p->row - 2 };
  ls_drawing_rect (p->d, LS_LAYER_BOXES, rect, run->paint, false, tip);
  run->n = 0;
}

/* Whether it is too narrow to be drawn by itself. */
static bool
joins_run (Plot *p, Run *run, double left, double right, const char *paint)
{
  bool is_narrow = right - left < NARROW;
  if (run->n > 0 && (!is_narrow || paint != run->paint || left - run->right > NARROW))
    end_run (p, run);
  if (!is_narrow)
    return false;
  if (run->n++ == 0)
    *run = (Run) { left, right, paint, 1 };
  run->right = right;
  return true;
}

static void
draw_action (Plot *p, uint32_t rank, guint i, Run *run)
{
  const LsAction *a = action_at (p->v, rank, i);
  const LsActionTime *t = &p->v->eval->times[rank][i];
  double left = x_of (p, t->start), right = x_of (p, t->end), gap = right - left > 4 ? 0.6 : 0;
  const char *paint = styles[a->type].paint;
  if (t->end <= t->start || joins_run (p, run, left, right, paint))
    return;
  bool is_upper = a->is_paired, is_lower = i > 0 && action_at (p->v, rank, i - 1)->is_paired;
  double height = (p->row - 2) / (is_upper || is_lower ? 2 : 1), tint = tint_of (p, a);
  double y = p->y + 1 + (is_lower ? height : 0);
  g_autofree char *tip = tip_of (p, rank, i), *number = g_strdup_printf ("%u", a->mb);
  const LsDrawnItem box = { .x = left,
                            .y = y,
                            .width = right - left - gap,
                            .height = height - (is_upper ? 0.6 : 0),
                            .paint = paint,
                            .tint = tint,
                            .tip = right - left >= 1 ? tip : NULL }; /* else no pointer finds it */
  ls_drawing_box (p->d, LS_LAYER_BOXES, box);
  double size = MIN (NUMBER_SIZE, height - 2);
  if (size >= 7 && right - left >= ls_text_width (number, size) + 2)
    ls_drawing_text (p->d, (left + right) / 2, y + height / 2, size, LS_CENTER,
                     ls_palette_ink (ls_palette_mix (0xffffff, ls_palette_find (paint)->light, tint)),
                     number);
}

static void
draw_rank (Plot *p, uint32_t rank, bool is_named)
{
  ls_drawing_rect (p->d, LS_LAYER_GROUND, (LsRect) { LEFT, p->y + 1, p->width, p->row - 2 }, "idle", false,
                   NULL);
  g_autofree char *name = g_strdup_printf ("rank %u", rank);
  if (is_named)
    ls_drawing_text (p->d, LEFT - 8, p->y + p->row / 2, 11, LS_RIGHT, "text", name);
  Run run = { 0 };
  for (guint i = 0; i < p->v->orders->ranks[rank]->len; i++)
    draw_action (p, rank, i, &run);
  end_run (p, &run);
  p->y += p->row;
}

/* --- a schedule -------------------------------------------------------------------------------------- */

static char *
note_of (const Plot *p)
{
  const LsSchedEval *e = p->v->eval;
  g_autofree char *total = ls_schedule_time_text (e->makespan, p->v->has_unit);
  double peak = 0;
  for (uint32_t rank = 0; rank < e->n_ranks; rank++)
    peak = MAX (peak, ls_schedule_peak (e, rank, ls_schedule_count (p->v->is_searched)));
  return g_strdup_printf (
      "makespan %s; bubble %.1f %%, of the span %.1f %%; at most %.4g micro-batch%s held%s", total,
      100 * ls_schedule_bubble (e->ideal, e->makespan), 100 * ls_schedule_bubble (e->ideal, e->span), peak,
      peak == 1 ? "" : "es", p->v->orders->layout.n_chunks > 1 ? "; later chunks lighter" : "");
}

static void
draw_schedule (Plot *p)
{
  guint n = p->v->eval->n_ranks, step = MAX (1, (n + 63) / 64);
  g_autofree char *note = note_of (p);
  if (!p->is_one)
    ls_drawing_text (p->d, LEFT, p->y + 10, 13, LS_LEFT, "text", p->v->title);
  ls_drawing_text (p->d, LEFT, p->y + (p->is_one ? 10 : 27), 11, LS_LEFT, "quiet", note);
  p->y += p->is_one ? 24 : 38;
  for (uint32_t rank = 0; rank < n; rank++)
    draw_rank (p, rank, rank % step == 0);
}

static double
row_height (guint n_ranks, guint n_schedules)
{
  double height = n_ranks <= 8 ? 34 : n_ranks <= 16 ? 26 : n_ranks <= 64 ? 16 : 8;
  return n_schedules > 1 ? MIN (height, 24) : height;
}

static void
draw_axis (Plot *p, const LsScheduleView *v)
{
  LsTime unit = LS_SCHEDULE_ONE;
  const char *name = v->has_unit ? ls_axis_unit (p->scale, &unit) : NULL;
  g_autofree char *text
      = name ? g_strdup_printf ("time (%s)", name) : g_strdup ("time, in the unit of --f-time");
  const LsDrawnAxis axis = { 0, (double) p->scale / (double) unit, text };
  p->y += ls_draw_axis_below (p->d, LEFT, LEFT + p->width, p->y + 2, &axis) + 2;
}

LsDrawing *
ls_draw_schedules (const LsScheduleView *const *views, guint n, const char *title)
{
  Plot p = { .d = ls_drawing_new (title), .scale = 1, .is_one = n == 1 };
  double width = MIN_WIDTH;
  for (guint i = 0; i < n; i++)
    p.scale = MAX (p.scale, views[i]->eval->makespan);
  for (guint i = 0; i < n; i++)
    width = MAX (width, width_of (views[i], p.scale));
  p.width = MIN (width, MAX_WIDTH);
  for (guint i = 0; i < n; i++) {
    p.v = views[i];
    p.row = row_height (views[i]->eval->n_ranks, n);
    draw_schedule (&p);
    p.y += i + 1 < n ? 16 : 0;
  }
  draw_axis (&p, views[0]);
  p.y += ls_draw_head (p.d, LEFT, LEFT + p.width, title, NULL, styles, G_N_ELEMENTS (styles));
  ls_drawing_resize (p.d, LEFT + p.width + RIGHT, p.y);
  return p.d;
}
