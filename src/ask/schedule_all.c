/* ask/schedule_all.c — all schedules for the same job. */
#include <math.h>

#include "ask/schedule.h"

#define DEFAULT_CHUNKS 2 /* where a schedule leaves the choice */

/* A schedule made to the measure of a job. */
typedef struct {
  const LsSched *sched;
  LsSchedShape shape;
  const char *rule; /* that it breaks, or NULL */
} Fit;

/* Only what a schedule can use: --waves of 4 is no reason to refuse 1f1b. */
static void
drop_foreign_knobs (const LsSched *sched, LsSchedShape *shape)
{
  if (!(sched->knobs & LS_SCHED_GROUP))
    shape->group = 0;
  if (!(sched->knobs & LS_SCHED_ROUNDS))
    shape->rounds = LS_ROUNDS_MEGATRON;
  if (!(sched->knobs & LS_SCHED_WAVES))
    shape->waves = 0;
  if (!(sched->knobs & LS_SCHED_PIPES))
    shape->pipes = 0;
}

/* With the chunks that were asked for, or else with those that it needs: of the two rules
 * that may be broken then, the one that is not about chunks says more. */
static Fit
fit_schedule (const LsSched *sched, const LsSchedShape *job)
{
  Fit fit = { .sched = sched, .shape = *job };
  drop_foreign_knobs (sched, &fit.shape);
  fit.shape.vpp = fit.shape.waves > 0 ? 0 : job->vpp > 0 ? job->vpp : DEFAULT_CHUNKS;
  fit.rule = ls_sched_refusal (sched, &fit.shape);
  if (!fit.rule)
    return fit;
  LsSchedShape own = fit.shape;
  own.vpp = 0;
  const char *rule = ls_sched_refusal (sched, &own);
  if (!rule)
    return (Fit) { sched, own, NULL };
  if (g_str_has_prefix (fit.rule, "vpp "))
    fit.rule = rule;
  return fit;
}

/* A stage is pp / n_stages of what a rank would hold without chunks. */
static LsTime
part (LsTime whole, uint32_t pp, uint32_t n_stages)
{
  return n_stages == pp ? whole : (LsTime) ((__int128) whole * pp / n_stages);
}

static LsChunkTimes
parts (const LsChunkTimes *t, uint32_t pp, uint32_t n_stages)
{
  LsChunkTimes c = {
    .f = part (t->f, pp, n_stages),
    .i = part (t->i, pp, n_stages),
    .w = part (t->w, pp, n_stages),
    .fb = part (t->fb, pp, n_stages),
  };
  c.b = c.i + c.w;
  return c;
}

static uint32_t
n_stages_of (const Fit *fit)
{
  return fit->sched->placement == LS_PLACE_PIPES
      ? fit->shape.pp
      : fit->shape.pp * ls_sched_n_chunks (fit->sched, &fit->shape);
}

static guint64
n_cells_of (const Fit *fit)
{
  return (guint64) fit->shape.pp * ls_sched_n_chunks (fit->sched, &fit->shape) * fit->shape.n_micro_batches;
}

static LsSchedEval *
evaluate (Fit *fit, LsOrders **ret_orders)
{
  fit->shape.times.chunk = parts (&fit->shape.times.chunk, fit->shape.pp, n_stages_of (fit));
  *ret_orders = ls_sched_orders (fit->sched, &fit->shape);
  return ls_orders_eval (*ret_orders, &fit->shape.times);
}

/* ---- the table ---- */

/* Boundaries that micro-batches cross from rank to rank, over those of a line. */
static double
communication_of (const LsLayout *l)
{
  guint64 n = 0;
  for (uint32_t pipe = 0; pipe < l->n_pipes; pipe++)
    for (uint32_t stage = 0; stage + 1 < l->n_stages; stage++)
      n += ls_layout_home (l, pipe, stage).rank != ls_layout_home (l, pipe, stage + 1).rank;
  if (l->n_ranks == 1)
    return NAN;
  return (double) n / l->n_pipes / (l->n_ranks - 1);
}

static double
copies_of (const Fit *fit, const LsLayout *l)
{
  uint32_t n_versions = 1;
  for (uint32_t rank = 0; rank < l->n_ranks; rank++)
    n_versions = MAX (n_versions, ls_sched_n_versions (fit->sched, &fit->shape, rank));
  return (double) n_versions * l->n_pipes;
}

static LsScheduleRow
row_of (const Fit *fit, const LsOrders *orders, const LsSchedEval *eval)
{
  LsScheduleRow row = { .schedule = fit->sched->name,
                        .refusal = fit->rule,
                        .is_searched = ls_sched_is_searched (fit->sched) };
  if (fit->rule)
    return row;
  for (uint32_t rank = 0; rank < eval->n_ranks; rank++) {
    row.to_w = fmax (row.to_w, ls_schedule_peak (eval, rank, LS_PEAK_TO_W));
    row.by_halves = fmax (row.by_halves, ls_schedule_peak (eval, rank, LS_PEAK_BY_HALVES));
  }
  row.vpp = orders->layout.n_stages / fit->shape.pp;
  row.makespan = eval->makespan;
  row.span = eval->span;
  row.ideal = eval->ideal;
  row.copies = copies_of (fit, &orders->layout);
  row.communication = communication_of (&orders->layout);
  return row;
}

static char *
title_of (const LsScheduleSpec *s, const LsSchedTimes *times, bool has_unit)
{
  const LsTime values[] = { times->chunk.f, times->chunk.i, times->chunk.w, times->chunk.fb, times->comm };
  static const char *const names[] = { "F", "I", "W", "F with B", "between ranks" };
  GString *title = g_string_new (NULL);
  g_string_append_printf (title, "%u rank%s, %u micro-batch%s; a rank's share of the model takes", s->pp,
                          s->pp == 1 ? "" : "s", s->n_micro_batches, s->n_micro_batches == 1 ? "" : "es");
  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    g_autofree char *text = ls_schedule_time_text (values[i], has_unit);
    if (i < 4 || values[i] > 0)
      g_string_append_printf (title, "%s %s %s", i > 0 ? "," : "", names[i], text);
  }
  return g_string_free (title, FALSE);
}

/* What there must be, and the job as a shape. */
static gboolean
read_job (const LsScheduleSpec *s, LsSchedShape *ret_job, bool *ret_has_unit, GError **error)
{
  LsSchedTimes times;
  if (s->pp == 0 || s->n_micro_batches == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected %s", s->pp == 0 ? "--pp" : "--micro-batches");
    return FALSE;
  }
  if (!ls_schedule_spec_times (s, &times, ret_has_unit, error))
    return FALSE;
  *ret_job = ls_schedule_spec_shape (s, &times);
  return TRUE;
}

/* --- those that are named --- */

/* Whether one of them has the only knob of that spec. */
static gboolean
heeds_knob (const LsScheduleSpec *only, const GPtrArray *scheds, GError **error)
{
  g_autoptr (GError) refusal = NULL;
  for (guint i = 0; i < scheds->len; i++) {
    g_clear_error (&refusal);
    if (ls_schedule_spec_fits (only, scheds->pdata[i], &refusal))
      return TRUE;
  }
  g_propagate_error (error, g_steal_pointer (&refusal));
  return FALSE;
}

static gboolean
heed_knobs (const LsScheduleSpec *s, const GPtrArray *scheds, GError **error)
{
  const LsScheduleSpec knobs[] = { { .group = s->group, .rounds = -1 },
                                   { .waves = s->waves, .rounds = -1 },
                                   { .pipes = s->pipes, .rounds = -1 },
                                   { .rounds = s->rounds } };
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (!heeds_knob (&knobs[i], scheds, error))
      return FALSE;
  return TRUE;
}

/* LsSched, in their order; NULL: one is not known, or is named twice. */
static GPtrArray *
named (const char *names, GError **error)
{
  g_autoptr (GPtrArray) scheds = g_ptr_array_new ();
  g_auto (GStrv) words = g_strsplit (names, ",", -1);
  for (char **word = words; *word; word++) {
    const LsSched *sched = ls_schedule_named (*word, error);
    if (!sched)
      return NULL;
    if (g_ptr_array_find (scheds, sched, NULL)) {
      g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--schedule: \"%s\" is named twice", *word);
      return NULL;
    }
    g_ptr_array_add (scheds, (gpointer) sched);
  }
  return g_steal_pointer (&scheds);
}

static GPtrArray *
all_scheds (void)
{
  GPtrArray *scheds = g_ptr_array_new ();
  const LsSched *sched;
  for (guint i = 0; (sched = ls_sched_at (i)); i++)
    g_ptr_array_add (scheds, (gpointer) sched);
  return scheds;
}

/* NULL: the spec is not of several. */
static GPtrArray *
chosen (const LsScheduleSpec *s, GError **error)
{
  if (!s->schedule)
    return all_scheds ();
  if (!ls_schedule_is_list (s->schedule)) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, "expected --schedule or --all; got both");
    return NULL;
  }
  g_autoptr (GPtrArray) scheds = named (s->schedule, error);
  return scheds && heed_knobs (s, scheds, error) ? g_steal_pointer (&scheds) : NULL;
}

static LsScheduleRun *
run_of (const Fit *fit, bool has_unit, LsOrders *orders, LsSchedEval *eval)
{
  LsScheduleRun *run = g_new (LsScheduleRun, 1);
  run->view = (LsScheduleView) {
    .title = ls_schedule_title (fit->sched->name, &orders->layout),
    .orders = orders,
    .eval = eval,
    .times = fit->shape.times.chunk,
    .comm = fit->shape.times.comm,
    .has_unit = has_unit,
    .is_searched = ls_sched_is_searched (fit->sched),
  };
  return run;
}

static gboolean
add_row (LsScheduleTable *table, Fit *fit, GError **error)
{
  if (fit->rule && table->runs) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s: %s", fit->sched->name, fit->rule);
    return FALSE;
  }
  if (!fit->rule && !ls_schedule_check_size (n_cells_of (fit), &fit->shape.times, error))
    return FALSE;
  LsOrders *orders = NULL;
  LsSchedEval *eval = fit->rule ? NULL : evaluate (fit, &orders);
  LsScheduleRow row = row_of (fit, orders, eval);
  g_array_append_val (table->rows, row);
  if (table->runs) {
    g_ptr_array_add (table->runs, run_of (fit, table->has_unit, orders, eval));
    return TRUE;
  }
  ls_orders_free (orders);
  ls_sched_eval_free (eval);
  return TRUE;
}

LsScheduleTable *
ls_schedule_all (const LsScheduleSpec *s, GError **error)
{
  LsSchedShape job;
  bool has_unit, has_vpp = s->vpp == 0 || !s->schedule;
  g_autoptr (GPtrArray) scheds = chosen (s, error);
  if (!scheds || !read_job (s, &job, &has_unit, error))
    return NULL;
  g_autoptr (LsScheduleTable) table = g_new0 (LsScheduleTable, 1);
  table->title = title_of (s, &job.times, has_unit);
  table->has_unit = has_unit;
  table->memory_limit = s->memory_limit;
  table->rows = g_array_new (FALSE, FALSE, sizeof (LsScheduleRow));
  table->runs = s->schedule ? g_ptr_array_new_with_free_func ((GDestroyNotify) ls_schedule_run_free) : NULL;
  for (guint i = 0; i < scheds->len; i++) {
    Fit fit = fit_schedule (scheds->pdata[i], &job);
    has_vpp = has_vpp || fit.shape.vpp == s->vpp;
    if (!add_row (table, &fit, error))
      return NULL;
  }
  if (has_vpp)
    return g_steal_pointer (&table);
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
               "--vpp %u: none of these schedules can have so many chunks", s->vpp);
  return NULL;
}

void
ls_schedule_table_free (LsScheduleTable *table)
{
  if (!table)
    return;
  g_free (table->title);
  g_clear_pointer (&table->rows, g_array_unref);
  g_clear_pointer (&table->runs, g_ptr_array_unref);
  g_free (table);
}

/* ---- the chart ---- */

#define MAX_POINT_CELLS (1 << 14) /* stages times micro-batches of a point: the chart is quick */

static void
curve_clear (gpointer data)
{
  g_array_unref (((LsBubbleCurve *) data)->points);
}

static void
add_point (GArray *points, const LsSched *sched, const LsSchedShape *job, uint32_t x)
{
  Fit fit = fit_schedule (sched, job);
  if (fit.rule || n_cells_of (&fit) > MAX_POINT_CELLS)
    return;
  g_autoptr (LsOrders) orders = NULL;
  g_autoptr (LsSchedEval) eval = evaluate (&fit, &orders);
  LsBubblePoint point = { x, ls_schedule_bubble (eval->ideal, eval->span) };
  g_array_append_val (points, point);
}

/* Micro-batches as multiples of the ranks; ranks as powers of 2. */
static GArray *
points_of (const LsSched *sched, const LsSchedShape *job, guint panel)
{
  static const uint32_t multiples[] = { 1, 2, 3, 4, 6, 8, 12, 16 };
  static const uint32_t stages[] = { 2, 4, 8, 16, 32, 64 };
  GArray *points = g_array_new (FALSE, FALSE, sizeof (LsBubblePoint));
  LsSchedShape at = *job;
  for (guint i = 0; panel == 0 && i < G_N_ELEMENTS (multiples); i++) {
    at.n_micro_batches = multiples[i] * job->pp;
    add_point (points, sched, &at, at.n_micro_batches);
  }
  for (guint i = 0; panel == 1 && i < G_N_ELEMENTS (stages); i++) {
    at.pp = stages[i];
    add_point (points, sched, &at, at.pp);
  }
  return points;
}

static GArray *
curves_of (const LsSchedShape *job, guint panel)
{
  GArray *curves = g_array_new (FALSE, FALSE, sizeof (LsBubbleCurve));
  g_array_set_clear_func (curves, curve_clear);
  const LsSched *sched;
  for (guint i = 0; (sched = ls_sched_at (i)); i++) {
    if (ls_sched_is_searched (sched))
      continue;
    LsBubbleCurve curve = { sched->name, i, points_of (sched, job, panel) };
    if (curve.points->len > 0)
      g_array_append_val (curves, curve);
    else
      g_array_unref (curve.points);
  }
  return curves;
}

LsBubbles *
ls_schedule_bubbles (const LsScheduleSpec *s, GError **error)
{
  LsSchedShape job;
  bool has_unit;
  if (!read_job (s, &job, &has_unit, error) || !ls_schedule_check_size (MAX_POINT_CELLS, &job.times, error))
    return NULL;
  LsBubbles *b = g_new0 (LsBubbles, 1);
  b->title = title_of (s, &job.times, has_unit);
  b->notes[0] = g_strdup_printf ("%u ranks", job.pp);
  b->notes[1] = g_strdup_printf ("%u micro-batches", job.n_micro_batches);
  for (guint panel = 0; panel < 2; panel++)
    b->panels[panel] = curves_of (&job, panel);
  return b;
}

void
ls_schedule_bubbles_free (LsBubbles *b)
{
  if (!b)
    return;
  g_free (b->title);
  for (guint panel = 0; panel < 2; panel++) {
    g_free (b->notes[panel]);
    g_array_unref (b->panels[panel]);
  }
  g_free (b);
}

bool
ls_schedule_row_fits (const LsScheduleTable *t, const LsScheduleRow *row)
{
  return t->memory_limit == 0 || row->by_halves <= t->memory_limit;
}
