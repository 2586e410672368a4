/* Pins what the charts of a sweep hold. A cell of a heat map has the best of its configurations, or
 * a bound that is true, and says which; several numbers of GPUs and batches are one sweep each, as
 * alone; scaling is measured against the fewest GPUs and the largest batch. Small jobs of
 * tests/golden/data. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "small_sweep.h"
#include "sweep/sweep_charts.h"

#define CHART_INIT(spec, ...)                                                                                \
  SPEC_INIT ((spec), "model", "tiny", "threads", "2", "micro-batch", "1", "vpp", "1", "schedule", "1f1b",    \
             "zero", "0,1", "dp-kind", "megatron", "tp-overlap", "0", __VA_ARGS__)

/* --- heat maps ----------------------------------------------------------------------------- */

static const LsHeatCell *
cell_at (const LsHeatMap *map, guint across, guint up)
{
  return &g_array_index (map->cells, LsHeatCell, up * map->labels[0]->len + across);
}

/* The least step of the list with these knobs; NAN: none. */
static double
least_step (const LsSweepRun *x, const char *a, const char *b)
{
  g_autofree char *list = ls_sweep_run_list (x);
  g_auto (GStrv) lines = g_strsplit (list, "\n", -1);
  double least = NAN;
  for (guint i = 1; lines[i]; i++)
    if (strstr (lines[i], a) && strstr (lines[i], b))
      least = fmin (least, (double) g_ascii_strtoll (lines[i], NULL, 10) / 1e12);
  return least;
}

static LsSweepRun *
run_map (LsSweepSpec *spec, const char *axes, const char *figure, LsHeatMap *ret)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_sweep_spec_set_heat (spec, axes, figure, &error));
  LsSweepRun *x = run (spec);
  if (x)
    ls_sweep_run_heat_map (x, ret);
  return x;
}

#define MAP_KNOBS "gpus", "4", "global-batch", "16", "recompute", "none,full", "pp", "1,2,4"

static void
a_cell_has_the_best_of_its_configurations (void)
{
  LsSweepSpec spec;
  CHART_INIT (&spec, MAP_KNOBS, "prune", "off");
  g_auto (LsHeatMap) map = { 0 };
  g_autoptr (LsSweepRun) x = run_map (&spec, "tp,pp", "step", &map);
  guint n_values = 0;
  for (guint up = 0; up < map.labels[1]->len; up++)
    for (guint across = 0; across < map.labels[0]->len; across++) {
      g_autofree char *tp = g_strdup_printf ("--tp %s ", (char *) map.labels[0]->pdata[across]);
      g_autofree char *pp = g_strdup_printf ("--pp %s ", (char *) map.labels[1]->pdata[up]);
      const LsHeatCell *cell = cell_at (&map, across, up);
      double least = least_step (x, tp, pp);
      LS_CHECK (isnan (cell->bound));
      LS_CHECK (isnan (least) ? cell->kind < LS_HEAT_BOUND
                              : cell->kind == LS_HEAT_VALUE && cell->value == least);
      n_values += cell->kind == LS_HEAT_VALUE;
    }
  LS_CHECK_INT (n_values, >=, 3);
  ls_sweep_spec_clear (&spec);
}

/* A map changes nothing of its sweep: not what is counted, nor the list. */
static void
check_same_without_map (const LsSweepRun *with)
{
  LsSweepSpec spec;
  CHART_INIT (&spec, MAP_KNOBS, "top", "1");
  g_autoptr (LsSweepRun) x = run (&spec);
  g_autofree char *a = ls_sweep_run_list (with), *b = ls_sweep_run_list (x);
  LS_CHECK_STR (a, b);
  LS_CHECK_INT (with->report.counts.simulated, ==, x->report.counts.simulated);
  ls_sweep_spec_clear (&spec);
}

/* What was pruned shows no number but a bound that holds. */
static void
bounds_of_cells_are_true (void)
{
  LsSweepSpec all, pruned;
  g_auto (LsHeatMap) truth = { 0 }, map = { 0 };
  CHART_INIT (&all, MAP_KNOBS, "prune", "off");
  CHART_INIT (&pruned, MAP_KNOBS, "top", "1");
  g_autoptr (LsSweepRun) x = run_map (&all, "recompute,pp", "tokens", &truth),
                         y = run_map (&pruned, "recompute,pp", "tokens", &map);
  guint n_bounds = 0;
  LS_CHECK_INT (map.cells->len, ==, truth.cells->len);
  LS_CHECK (map.is_more_better);
  LS_CHECK_INT (y->report.counts.pruned, >, 0);
  for (guint i = 0; i < map.cells->len; i++) {
    const LsHeatCell *cell = &g_array_index (map.cells, LsHeatCell, i),
                     *best = &g_array_index (truth.cells, LsHeatCell, i);
    LS_CHECK (best->kind == LS_HEAT_VALUE);
    LS_CHECK (cell->kind == LS_HEAT_VALUE || cell->kind == LS_HEAT_BOUND);
    LS_CHECK ((cell->kind == LS_HEAT_BOUND) == isnan (cell->value));
    LS_CHECK (cell->kind == LS_HEAT_BOUND || cell->value <= best->value);
    LS_CHECK (isnan (cell->bound) ? cell->value == best->value : cell->bound >= best->value);
    n_bounds += cell->kind == LS_HEAT_BOUND;
  }
  LS_CHECK_INT (n_bounds, >, 0);
  check_same_without_map (y);
  ls_sweep_spec_clear (&all);
  ls_sweep_spec_clear (&pruned);
}

/* tp 8 with 4 GPUs is illegal, and gone with its whole column; sp changes nothing with tp 1. */
static void
cells_without_a_value_say_why (void)
{
  LsSweepSpec spec;
  g_auto (LsHeatMap) map = { 0 };
  CHART_INIT (&spec, "gpus", "4", "global-batch", "16", "recompute", "none", "tp", "1,2,8", "sp", "0,1", "pp",
              "1");
  g_autoptr (LsSweepRun) x = run_map (&spec, "tp,sp", NULL, &map);
  LS_CHECK_INT (map.labels[0]->len, ==, 2);
  LS_CHECK_INT (cell_at (&map, 0, 0)->kind, ==, LS_HEAT_VALUE);
  LS_CHECK_INT (cell_at (&map, 0, 1)->kind, ==, LS_HEAT_NONE);
  LS_CHECK (cell_at (&map, 1, 1)->kind >= LS_HEAT_BOUND);
  ls_sweep_spec_clear (&spec);
}

static void
what_does_not_fit_is_not_illegal (void)
{
  LsSweepSpec spec;
  g_auto (LsHeatMap) map = { 0 };
  CHART_INIT (&spec, "model", "tiny:hidden=6144,ffn=24576", "gpus", "4", "global-batch", "16", "recompute",
              "none", "tp", "1,2", "pp", "1,2,4", "zero", "0");
  g_autoptr (LsSweepRun) x = run_map (&spec, "tp,pp", NULL, &map);
  guint n[LS_HEAT_VALUE + 1] = { 0 };
  for (guint i = 0; i < map.cells->len; i++)
    n[g_array_index (map.cells, LsHeatCell, i).kind]++;
  LS_CHECK_INT (n[LS_HEAT_NO_FIT], >, 0);
  LS_CHECK_INT (n[LS_HEAT_VALUE], >, 0);
  LS_CHECK_INT (n[LS_HEAT_ILLEGAL], ==, 1); /* tp 2, pp 4 */
  ls_sweep_spec_clear (&spec);
}

static void
wrong_axes_are_refused (void)
{
  const char *const wrong[][2]
      = { { "tp", NULL }, { "tp,tp", NULL }, { "tp,pq", NULL }, { "tp,pp,cp", NULL }, { NULL, "speed" } };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    LsSweepSpec spec;
    g_autoptr (GError) error = NULL;
    ls_sweep_spec_init (&spec);
    LS_CHECK (!ls_sweep_spec_set_heat (&spec, wrong[i][0], wrong[i][1], &error));
    LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE));
    ls_sweep_spec_clear (&spec);
  }
  for (guint i = 0; i < 2; i++) { /* cells of several batches; nothing to scale over */
    LsSweepSpec spec;
    g_autoptr (GError) error = NULL;
    CHART_INIT (&spec, "gpus", "4", "global-batch", i == 0 ? "8,16" : "16");
    LS_CHECK (i > 0 || ls_sweep_spec_set_heat (&spec, "tp,gpus", NULL, &error));
    spec.scaling_chart = i == 1;
    LS_CHECK (!ls_sweep_spec_run (&spec, &error) && g_error_matches (error, LS_ERROR, LS_ERROR_USAGE));
    ls_sweep_spec_clear (&spec);
  }
}

/* --- scaling ----------------------------------------------------------------------------------- */

#define SCALING_KNOBS "recompute", "none", "sp", "0"

static void
append_rows (GString *out, const LsSweepReport *r)
{
  for (guint i = 0; i < r->best->len; i++) {
    const LsSweepRow *row = &g_array_index (r->best, LsSweepRow, i);
    g_string_append_printf (out, "%s %" G_GINT64_FORMAT " %s\n", row->knobs, row->step,
                            row->why ? row->why : "first");
  }
}

static int
compare_lines (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

/* Rows are sorted: those of several sweeps are one text. */
static char *
sorted_lines (const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GPtrArray) sorted = g_ptr_array_new ();
  for (guint i = 0; lines[i]; i++)
    g_ptr_array_add (sorted, lines[i]);
  g_ptr_array_sort (sorted, compare_lines);
  g_ptr_array_add (sorted, NULL);
  return g_strjoinv ("\n", (char **) sorted->pdata);
}

/* List, ranking with its reasons, rule of thumb. */
static void
lists_give_one_sweep_each (void)
{
  const char *const gpus[] = { "4", "6" }, *const batches[] = { "24", "48" };
  g_autoptr (GString) list = g_string_new (NULL), rows = g_string_new (NULL);
  LsSweepSpec spec;
  CHART_INIT (&spec, "gpus", "4,6", "global-batch", "24,48", SCALING_KNOBS);
  g_autoptr (LsSweepRun) both = run (&spec);
  for (guint i = 0; i < 4; i++) {
    LsSweepSpec one;
    CHART_INIT (&one, "gpus", gpus[i / 2], "global-batch", batches[i % 2], SCALING_KNOBS);
    g_autoptr (LsSweepRun) x = run (&one);
    const LsSweepGroup *alone = &g_array_index (x->report.groups, LsSweepGroup, 0);
    const LsSweepGroup *group = &g_array_index (both->report.groups, LsSweepGroup, i);
    g_autofree char *text = ls_sweep_run_list (x);
    g_string_append (list, i == 0 ? text : strchr (text, '\n') + 1);
    append_rows (rows, &x->report);
    LS_CHECK (alone->rule && group->rule);
    LS_CHECK_STR (group->rule->knobs, alone->rule->knobs);
    LS_CHECK_INT (group->rule_rank, ==, alone->rule_rank);
    ls_sweep_spec_clear (&one);
  }
  g_autoptr (GString) merged = g_string_new (NULL);
  append_rows (merged, &both->report);
  g_autofree char *text = ls_sweep_run_list (both), *a = sorted_lines (merged->str),
                  *b = sorted_lines (rows->str);
  LS_CHECK_STR (text, list->str);
  LS_CHECK_STR (a, b);
  ls_sweep_spec_clear (&spec);
}

static void
scaling_is_against_fewest_gpus_and_largest_batch (void)
{
  LsSweepRow rows[] = { { .tokens_per_s = 100 }, { .tokens_per_s = 170 }, { .tokens_per_s = 120 } };
  LsSweepGroup groups[] = {
    { .gpus = 8, .global_batch = 16, .first = &rows[1] }, /* as asked for, not ascending */
    { .gpus = 4, .global_batch = 16, .first = &rows[0] },
    { .gpus = 4, .global_batch = 32, .first = &rows[2] },
    { .gpus = 2, .global_batch = 16 }, /* nothing fits: no base */
  };
  LsSweepReport r = { .groups = g_array_new (FALSE, FALSE, sizeof (LsSweepGroup)) };
  g_array_append_vals (r.groups, groups, G_N_ELEMENTS (groups));
  sweep_scaling (&r);
  const LsSweepGroup *g = &g_array_index (r.groups, LsSweepGroup, 0);
  LS_CHECK_NEAR (g[0].tokens_per_s_per_gpu, 21.25, 1e-12);
  LS_CHECK_NEAR (g[0].of_fewest_gpus, 0.85, 1e-12);
  LS_CHECK_NEAR (g[0].of_largest_batch, 1, 1e-12);
  LS_CHECK_NEAR (g[1].of_fewest_gpus, 1, 1e-12);
  LS_CHECK_NEAR (g[1].of_largest_batch, 100.0 / 120, 1e-12);
  LS_CHECK (isnan (g[3].tokens_per_s_per_gpu) && isnan (g[3].of_fewest_gpus));
  g_array_unref (r.groups);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (a_cell_has_the_best_of_its_configurations),
                    LS_TEST (bounds_of_cells_are_true), LS_TEST (cells_without_a_value_say_why),
                    LS_TEST (what_does_not_fit_is_not_illegal), LS_TEST (wrong_axes_are_refused),
                    LS_TEST (lists_give_one_sweep_each),
                    LS_TEST (scaling_is_against_fewest_gpus_and_largest_batch))
