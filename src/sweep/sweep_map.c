/* sweep/sweep_map.c — a heat map of a sweep: what its cells hold, see sweep_charts.h. */
#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "base/suggest.h"
#include "sweep/sweep_charts.h"
#include "sweep/sweep_state.h"

/* --- what is asked ------------------------------------------------------------------------- */

static const struct {
  const char *key, *name, *title;
  bool is_more_better;
} figures[] = {
  [LS_SWEEP_STEP] = { "step", "step time (s)", "step time", false },
  [LS_SWEEP_TOKENS] = { "tokens", "tokens/s", "tokens/s", true },
  [LS_SWEEP_MFU] = { "mfu", "MFU (%)", "MFU", true },
};

static gboolean
set_figure (LsSweepSpec *spec, const char *text, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (figures); i++)
    if (strcmp (text, figures[i].key) == 0) {
      spec->heat_figure = (LsSweepFigure) i;
      return TRUE;
    }
  return ls_fail (error, LS_ERROR_USAGE, "--heat-figure: expected step, tokens or mfu; got \"%s\"", text);
}

static void
refuse_axis (const char *text, GError **error)
{
  const char *names[LS_MAX_SPACE_AXES + 1] = { NULL };
  for (guint a = 0; a < ls_space_n_axes (); a++)
    names[a] = ls_space_axis_name ((LsSpaceAxis) a);
  g_autofree char *hint = ls_did_you_mean (text, names);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               "--heat-axes: expected two axes of the sweep such as tp,pp; got \"%s\"%s", text, hint);
}

gboolean
ls_sweep_spec_set_heat (LsSweepSpec *spec, const char *axes, const char *figure, GError **error)
{
  g_auto (GStrv) names = g_strsplit (axes ? axes : "tp,pp", ",", -1);
  if (g_strv_length (names) != 2 || strcmp (names[0], names[1]) == 0)
    return ls_fail (error, LS_ERROR_USAGE,
                    "--heat-axes: expected two different axes of the sweep such as tp,pp; got \"%s\"", axes);
  for (guint i = 0; i < 2; i++) {
    spec->heat_axes[i] = ls_space_axis (names[i]);
    if (spec->heat_axes[i] != LS_NO_SPACE_AXIS)
      continue;
    refuse_axis (names[i], error);
    return FALSE;
  }
  spec->heat_map = true;
  return !figure || set_figure (spec, figure, error);
}

gboolean
ls_sweep_spec_check_charts (const LsSweepSpec *spec, GError **error)
{
  static const char *const flags[] = { [LS_SPACE_GPUS] = "gpus", [LS_SPACE_GLOBAL_BATCH] = "global-batch" };
  guint n_groups = spec->space.values[LS_SPACE_GPUS]->len * spec->space.values[LS_SPACE_GLOBAL_BATCH]->len;
  for (int a = LS_SPACE_GPUS; spec->heat_map && a <= LS_SPACE_GLOBAL_BATCH; a++)
    if (spec->space.values[a]->len > 1 && (int) spec->heat_axes[0] != a && (int) spec->heat_axes[1] != a)
      return ls_fail (error, LS_ERROR_USAGE, "--heat-axes: with several --%s expected %s as one of the axes",
                      flags[a], flags[a]);
  if (!spec->scaling_chart || n_groups > 1)
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE,
                  "--scaling-chart: expected several numbers in --gpus or in --global-batch");
}

/* --- cells ---------------------------------------------------------------------------------- */

typedef struct {
  LsSweepRun *x;
  LsSweepFigure figure;
  const LsSpaceAxis *axes;
  guint n[2];
  GArray *candidates; /* Candidate: as in x, then run again where it matters */
  LsHeatCell *cells;
  int64_t *best; /* candidate of each cell; -1: none was simulated      */
} Map;

static guint
cell_of (const Map *m, const LsPoint *p)
{
  return p->at[m->axes[1]] * m->n[0] + p->at[m->axes[0]];
}

/* With a step of that time. */
static double
figure_of (const Map *m, const LsPoint *p, LsTime step)
{
  double step_s = ls_time_to_s (step);
  if (m->figure == LS_SWEEP_STEP)
    return step_s;
  LsStrategy s;
  candidate_strategy (m->x, p, &s, NULL);
  double value = m->figure == LS_SWEEP_TOKENS
      ? (double) s.global_batch * s.seq / step_s
      : 100 * ls_mfu (&m->x->model, &s, candidate_cluster (m->x, p), NULL, s.gpus, step_s, true);
  ls_strategy_clear (&s);
  return value;
}

static bool
is_better (const Map *m, double a, double b)
{
  return isnan (b) || (figures[m->figure].is_more_better ? a > b : a < b);
}

static void
count_candidate (Map *m, guint i)
{
  const Candidate *c = &g_array_index (m->candidates, Candidate, i);
  bool is_open = c->status == TRY_PRUNED || c->status == TRY_PENDING;
  LsPoint p;
  ls_space_point (&m->x->spec->space, c->index, &p);
  LsHeatCell *cell = &m->cells[cell_of (m, &p)];
  LsHeatKind kind = c->status == TRY_DONE ? LS_HEAT_VALUE
      : is_open                           ? LS_HEAT_BOUND
      : c->status == TRY_INFEASIBLE       ? LS_HEAT_NO_FIT
                                          : LS_HEAT_ILLEGAL;
  cell->kind = MAX (cell->kind, kind);
  if (c->status != TRY_DONE && !is_open)
    return;
  double value = figure_of (m, &p, is_open ? c->key : c->step);
  if (is_open && is_better (m, value, cell->bound))
    cell->bound = value;
  if (!is_open && is_better (m, value, cell->value)) {
    cell->value = value;
    m->best[cell_of (m, &p)] = i;
  }
}

static void
fill_cells (Map *m)
{
  for (guint i = 0; i < m->n[0] * m->n[1]; i++) {
    m->cells[i] = (LsHeatCell) { LS_HEAT_NONE, NAN, NAN };
    m->best[i] = -1;
  }
  for (guint i = 0; i < m->candidates->len; i++)
    count_candidate (m, i);
}

static void
map_init (Map *m, LsSweepRun *x)
{
  *m = (Map) { .x = x, .figure = x->spec->heat_figure, .axes = x->spec->heat_axes, .candidates = x->settled };
  for (int a = 0; a < 2; a++)
    m->n[a] = ls_space_n (&x->spec->space, m->axes[a]);
  m->cells = g_new (LsHeatCell, (gsize) m->n[0] * m->n[1]);
  m->best = g_new (int64_t, (gsize) m->n[0] * m->n[1]);
  fill_cells (m);
}

static void
map_clear (Map *m)
{
  g_free (m->cells);
  g_free (m->best);
}

/* The sweep's own candidates stay as they are. */
void
sweep_settle_map (LsSweepRun *x)
{
  GArray *own = x->candidates;
  g_autoptr (GPtrArray) unsure = g_ptr_array_new ();
  x->settled = g_array_copy (own);
  x->candidates = x->settled;
  do {
    Map m;
    map_init (&m, x);
    g_ptr_array_set_size (unsure, 0);
    for (guint i = 0; i < m.n[0] * m.n[1]; i++) {
      Candidate *c = m.best[i] < 0 ? NULL : candidate_at (x, (guint) m.best[i]);
      if (c && !c->is_confirmed)
        g_ptr_array_add (unsure, c);
    }
    map_clear (&m);
    workers_do (x, WORK_CONFIRM, (Candidate **) unsure->pdata, unsure->len);
  } while (unsure->len > 0);
  sweep_journal_sync (x);
  x->candidates = own;
}

/* A bound that its cell's value beats says nothing. */
static void
drop_idle_bounds (Map *m)
{
  for (guint i = 0; i < m->n[0] * m->n[1]; i++)
    if (m->cells[i].kind == LS_HEAT_VALUE && !is_better (m, m->cells[i].bound, m->cells[i].value))
      m->cells[i].bound = NAN;
}

static GHashTable *
refused_candidates (const Map *m)
{
  GHashTable *set = g_hash_table_new (g_int64_hash, g_int64_equal);
  for (guint i = 0; i < m->candidates->len; i++) {
    Candidate *c = &g_array_index (m->candidates, Candidate, i);
    if (c->status == TRY_ILLEGAL)
      g_hash_table_add (set, &c->index);
  }
  return set;
}

/* Cells of no candidate: what is legal there surely does not fit. */
static void
explain_cells (Map *m)
{
  LsSweepRun *x = m->x;
  const LsSpace *space = &x->spec->space;
  const LsStrategy *base = &x->spec->job.strategy;
  g_autoptr (GHashTable) refused = refused_candidates (m);
  LsPoint p = { 0 };
  uint64_t index = 0;
  do {
    LsHeatCell *cell = &m->cells[cell_of (m, &p)];
    if (cell->kind < LS_HEAT_NO_FIT && ls_space_is_distinct (space, &x->model, base, &p)) {
      LsStrategy s;
      bool is_refused
          = ls_space_is_refused (space, &x->model, base, &p) || g_hash_table_contains (refused, &index);
      cell->kind = LS_HEAT_ILLEGAL;
      if (is_refused)
        continue;
      if (candidate_strategy (x, &p, &s, NULL))
        cell->kind = LS_HEAT_NO_FIT;
      ls_strategy_clear (&s);
    }
  } while (index++, ls_space_next (space, &p));
}

/* --- the map --------------------------------------------------------------------------------- */

/* Whether any cell of value `at` on axis a has something legal. */
static bool
is_shown (const Map *m, int a, guint at)
{
  for (guint k = 0; k < m->n[1 - a]; k++)
    if (m->cells[a == 0 ? k * m->n[0] + at : at * m->n[0] + k].kind > LS_HEAT_ILLEGAL)
      return true;
  return false;
}

#include "sweep/points_text.h"

static void
copy_shown (const Map *m, LsHeatMap *ret)
{
  ret->cells = g_array_new (FALSE, FALSE, sizeof (LsHeatCell));
  for (int a = 0; a < 2; a++) {
    ret->names[a] = g_strdelimit (g_strdup (ls_space_axis_name (m->axes[a])), "_", '-');
    ret->labels[a] = g_ptr_array_new_with_free_func (g_free);
    for (guint i = 0; i < m->n[a]; i++)
      if (is_shown (m, a, i))
        g_ptr_array_add (ret->labels[a], ls_space_value_text (&m->x->spec->space, m->axes[a], i));
  }
  for (guint up = 0; up < m->n[1]; up++)
    for (guint across = 0; across < m->n[0]; across++)
      if (is_shown (m, 0, across) && is_shown (m, 1, up))
        g_array_append_val (ret->cells, m->cells[up * m->n[0] + across]);
}

void
ls_sweep_run_heat_map (LsSweepRun *x, LsHeatMap *ret_map)
{
  Map m;
  map_init (&m, x);
  drop_idle_bounds (&m);
  explain_cells (&m);
  *ret_map = (LsHeatMap) {
    .title = sweep_chart_title (x),
    .note = g_strdup_printf ("%s of the best configuration of each cell", figures[m.figure].title),
    .figure = g_strdup (figures[m.figure].name),
    .is_more_better = figures[m.figure].is_more_better,
  };
  copy_shown (&m, ret_map);
  map_clear (&m);
}

void
ls_heat_map_clear (LsHeatMap *map)
{
  g_free (map->title);
  g_free (map->note);
  g_free (map->figure);
  for (int a = 0; a < 2; a++) {
    g_free (map->names[a]);
    g_clear_pointer (&map->labels[a], g_ptr_array_unref);
  }
  g_clear_pointer (&map->cells, g_array_unref);
}

/* ---- what a sweep simulated, by time, memory and cost ---- */

#define GIB             1073741824.0
#define SECONDS_PER_DAY 86400.0

/* Cost without a price is time of GPUs. */
static LsParetoPoint
point_of (const LsSweepRun *x, guint i)
{
  const Candidate *c = candidate_at (x, i);
  LsStrategy s;
  candidate_strategy_at (x, c->index, &s);
  double tokens_per_s = (double) s.global_batch * s.seq / ls_time_to_s (c->step);
  bool is_in_front = g_array_binary_search (x->front, &i, ls_compare_uint32, NULL); /* it is ascending */
  double usd = ls_price_usd (&x->report.price, s.gpus, tokens_per_s);
  LsParetoPoint point = {
    .days = 1e12 / tokens_per_s / SECONDS_PER_DAY,
    .gib = (double) c->memory_bytes / GIB,
    .cost = isnan (usd) ? s.gpus * 1e12 / tokens_per_s / 3600 : 1e12 * usd,
    .name = is_in_front ? short_name (&s, x->groups->len > 1 ? x->report.chips : NULL) : NULL,
  };
  ls_strategy_clear (&s);
  return point;
}

static const LsSortKey by_days[]
    = { { LS_RISING (LsParetoPoint, days) }, { LS_RISING (LsParetoPoint, gib) }, { 0 } };

void
ls_sweep_run_pareto (const LsSweepRun *x, LsParetoPlot *ret_plot)
{
  *ret_plot = (LsParetoPlot) {
    .title = sweep_chart_title (x),
    .capacity_gib = (double) x->capacity_bytes / GIB,
    .chip = x->report.chip,
    .is_money = !isnan (x->report.price.usd_per_gpu_hour),
    .points = ls_list_new (sizeof (LsParetoPoint), ls_clear_text),
  };
  for (guint i = 0; i < x->candidates->len; i++)
    if (candidate_at (x, i)->status == TRY_DONE && candidate_at (x, i)->is_confirmed) {
      LsParetoPoint point = point_of (x, i);
      g_array_append_val (ret_plot->points, point);
    }
  ls_sort_by (ret_plot->points, by_days);
  ret_plot->note = g_strdup_printf (
      "time, memory and cost of %u configurations that were simulated and fit; nothing beats %u in all three",
      ret_plot->points->len, x->front->len);
}

void
ls_pareto_plot_clear (LsParetoPlot *plot)
{
  g_free (plot->title);
  g_free (plot->note);
  g_clear_pointer (&plot->points, g_array_unref);
}
