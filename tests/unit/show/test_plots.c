/* Pins what pictures by gnuplot are made of: bandwidths, scores, sweeps. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "show/plot/plots.h"
#include <lockstep/error.h>

/* Pins what a picture of bandwidths is made of, and that gnuplot draws it. Files of a
 * picture in general: plot_timeline. */

static const LsCollectiveRow swept[] = {
  { "c", "all-reduce", "tree", "LL", "flow", 8, 1, 1024, 10 * LS_US, 1.75, NAN },
  { "c", "all-reduce", "ring", "Simple", "flow", 8, 1, 1048576, 100 * LS_US, 1.75, NAN },
  { "c", "all-reduce", "ring", "Simple", "flow", 8, 1, 1073741824, 10000 * LS_US, 1.75, NAN },
};

/* Two families; of the first two numbers of GPUs, the larger one first. */
static const LsCollectiveRow compared[] = {
  { "c", "all-reduce", "ring", "LL", "flow", 8, 1, 1048576, 100 * LS_US, 1.75, 90, "GPUs" },
  { "c", "all-reduce", "ring", "LL", "flow", 8, 1, 1024, 10 * LS_US, 1.75, 11, "GPUs" },
  { "c", "all-reduce", "ring", "LL", "flow", 2, 1, 1048576, 50 * LS_US, 1, 60, "GPUs" },
  { "c", "it's", "ring", "LL", "flow", 2, 2, 1048576, 50 * LS_US, 1, 60, "GPUs" },
};
static const LsCollectiveFamily families[] = { { .name = "c/all-reduce" }, { .name = "c/it's" } };

static const LsCollectiveTable table
    = { .title = "it's {a} table", .n_rows = G_N_ELEMENTS (swept), .rows = swept, .n_networks = 1 };
static const LsCollectiveTable comparison = {
  .title = "x",
  .n_rows = G_N_ELEMENTS (compared),
  .rows = compared,
  .n_networks = 1,
  .is_comparison = TRUE,
  .n_families = 2,
  .families = families,
};

typedef struct {
  char *picture, *data, *script;
} Drawn;

static void
drawn_clear (Drawn *d)
{
  g_free (d->picture);
  g_free (d->data);
  g_free (d->script);
}

/* FALSE, having said why, if nothing was drawn. */
static gboolean
draw (const LsCollectiveTable *t, Drawn *ret)
{
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  if (!gnuplot) {
    printf ("skipped: no gnuplot here\n");
    return FALSE;
  }
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "x.svg", NULL);
  g_autofree char *data = g_build_filename (folder, "x.dat", NULL),
                  *script = g_build_filename (folder, "x.gp", NULL);
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plot_collective (t, path, &error) && ls_plot_collective (t, script, &error));
  LS_CHECK_NO_ERROR (error);
  gboolean ok = g_file_get_contents (path, &ret->picture, NULL, NULL)
      && g_file_get_contents (data, &ret->data, NULL, NULL)
      && g_file_get_contents (script, &ret->script, NULL, NULL);
  LS_CHECK (ok);
  LS_CHECK_INT (g_unlink (path) + g_unlink (data) + g_unlink (script) + g_rmdir (folder), ==, 0);
  return ok;
}

static void
a_table_is_a_line_with_points_by_algorithm (void)
{
  Drawn d = { 0 };
  if (!draw (&table, &d))
    return;
  LS_CHECK (strstr (d.picture, "it's {a} table") != NULL && strstr (d.picture, "ring Simple") != NULL);
  LS_CHECK (strstr (d.picture, "1 KiB") != NULL && strstr (d.picture, "bus bandwidth (GB/s)") != NULL);
  LS_CHECK (strstr (d.data,
                    "# panel 1, tree LL\n1024 0.1792 NaN\n\n\n# panel 1, ring Simple\n1048576 18.3501 NaN\n")
            != NULL);
  LS_CHECK (strstr (d.data, "# all\n1024 0.1792 NaN\n1048576") != NULL);
  drawn_clear (&d);
}

static void
a_comparison_has_a_panel_per_family (void)
{
  Drawn d = { 0 };
  if (!draw (&comparison, &d))
    return;
  LS_CHECK (strstr (d.picture, "c/all-reduce") != NULL && strstr (d.picture, "c/it's") != NULL);
  LS_CHECK (strstr (d.picture, "2 GPUs, 2 nodes") != NULL);
  /* by number of GPUs, then by size, measured beside simulated */
  LS_CHECK (strstr (d.data,
                    "# panel 1, 2 GPUs\n1048576 20.9715 17.4763\n\n\n"
                    "# panel 1, 8 GPUs\n1024 0.1792 0.162909\n1048576 18.3501 20.389\n\n\n"
                    "# panel 2, 2 GPUs, 2 nodes\n")
            != NULL);
  LS_CHECK (strstr (d.script, "# panel 2\n") != NULL && strstr (d.script, "# panel 3\n") == NULL);
  drawn_clear (&d);
}

/* On 2 to 16 GPUs, two sizes each; 4 GPUs a node, 8 a leaf. */
static const LsCollectiveRow scaled[] = {
  { "c", "all-to-all", "pairwise", "Simple", "flow", 2, 1, 1048576, 10 * LS_US, 0.5, NAN },
  { "c", "all-to-all", "pairwise", "Simple", "flow", 2, 1, 1073741824, 10000 * LS_US, 0.5, NAN },
  { "c", "all-to-all", "pairwise", "Simple", "flow", 16, 4, 1048576, 100 * LS_US, 0.9375, NAN },
  { "c", "all-to-all", "pairwise", "Simple", "flow", 16, 4, 1073741824, 100000 * LS_US, 0.9375, NAN },
};

static void
over_gpus_a_curve_is_a_size_and_boundaries_are_marked (void)
{
  const LsCollectiveTable t = {
    .title = "x",
    .n_rows = G_N_ELEMENTS (scaled),
    .rows = scaled,
    .n_networks = 1,
    .is_scaling = TRUE,
    .chips = "GPUs",
    .gpus_per_node = 4,
    .gpus_per_leaf = 8,
  };
  Drawn d = { 0 };
  if (!draw (&t, &d))
    return;
  LS_CHECK (strstr (d.data,
                    "# panel 1, 1.00 MiB\n2 52.4288 NaN\n16 9.8304 NaN\n\n\n"
                    "# panel 1, 1.00 GiB\n2 53.6871 NaN\n16 10.0663 NaN\n")
            != NULL);
  LS_CHECK (strstr (d.data, "# all") == NULL);
  LS_CHECK (strstr (d.picture, "node: 4 GPUs") != NULL && strstr (d.picture, "leaf: 8 GPUs") != NULL);
  LS_CHECK (strstr (d.script, "set xrange [2.0:16.0]") != NULL
            && strstr (d.script, "set logscale y 10") != NULL);
  LS_CHECK (strstr (d.script, "('10' 10, '20' 20, '50' 50)") != NULL);
  drawn_clear (&d);
}

/* A line on the frame, or beyond, would say nothing. */
static void
boundaries_beyond_the_points_are_not_marked (void)
{
  const LsCollectiveTable t = {
    .title = "x",
    .n_rows = G_N_ELEMENTS (scaled),
    .rows = scaled,
    .n_networks = 1,
    .is_scaling = TRUE,
    .chips = "GPUs",
    .gpus_per_node = 16,
    .gpus_per_leaf = 512,
  };
  Drawn d = { 0 };
  if (!draw (&t, &d))
    return;
  LS_CHECK (strstr (d.script, "\nset arrow") == NULL);
  drawn_clear (&d);
}

static void
barriers_over_gpus_show_their_time (void)
{
  static const LsCollectiveRow barriers[] = {
    { "c", "barrier", "tree", "LL", "flow", 2, 1, 0, 3 * LS_US, 0, NAN },
    { "c", "barrier", "tree", "LL", "flow", 4, 1, 0, 5 * LS_US, 0, NAN },
  };
  const LsCollectiveTable t
      = { .title = "x", .n_rows = 2, .rows = barriers, .n_networks = 1, .is_scaling = TRUE, .chips = "GPUs" };
  Drawn d = { 0 };
  if (!draw (&t, &d))
    return;
  LS_CHECK (strstr (d.data, "# panel 1, barrier\n2 3 NaN\n4 5 NaN\n") != NULL);
  LS_CHECK (strstr (d.picture, "time (us)") != NULL);
  drawn_clear (&d);
}

static void
nothing_is_drawn_without_a_size (void)
{
  static const LsCollectiveRow barrier = { "c", "barrier", "tree", "LL", "flow", 8, 1, 0, LS_US, 0, NAN };
  const LsCollectiveTable t = { .title = "x", .n_rows = 1, .rows = &barrier, .n_networks = 1 };
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "x.svg", NULL);
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_plot_collective (&t, path, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, gnuplot ? LS_ERROR_CONFLICT : LS_ERROR_IO));
  LS_CHECK_INT (g_rmdir (folder), ==, 0);
}

/* Pins what a picture of predictions over measurements is made of, and that gnuplot draws it.
 * Files of a picture in general: plot_timeline. */

static const LsScoreRow rows[] = {
  { .id = "a-1", .family = "a", .measured_s = 1, .predicted_s = 1.25 },
  { .id = "b-1", .family = "b", .measured_s = 2, .predicted_s = NAN },
  { .id = "c-1", .family = "c", .measured_s = 40, .predicted_s = 38 },
  { .id = "a-2", .family = "a", .measured_s = 10, .predicted_s = 9 },
};
static LsFamilyScore plot_scores_families[] = {
  { .family = "a", .score = { .n = 2, .mape_pct = 17.5 } },
  { .family = "b", .score = { .refused = 1, .mape_pct = NAN } },
  { .family = "c", .score = { .n = 1, .mape_pct = 5 } },
};
static const LsScores scores = {
  .total = { .n = 3, .refused = 1, .mape_pct = 13.3, .bias_pct = 3.3, .worst_pct = 25 },
  .n_families = G_N_ELEMENTS (plot_scores_families),
  .families = plot_scores_families,
  .n_rows = G_N_ELEMENTS (rows),
  .rows = rows,
};

static void
families_are_blocks_and_refused_rows_are_absent (void)
{
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  if (!gnuplot) {
    printf ("skipped: no gnuplot here\n");
    return;
  }
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "x.svg", NULL);
  g_autofree char *data = g_build_filename (folder, "x.dat", NULL),
                  *script = g_build_filename (folder, "x.gp", NULL);
  g_autofree char *points = NULL, *commands = NULL, *picture = NULL;
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plot_scores (&scores, path, &error) && ls_plot_scores (&scores, script, &error));
  LS_CHECK_NO_ERROR (error);
  if (LS_CHECK (g_file_get_contents (data, &points, NULL, NULL)
                && g_file_get_contents (script, &commands, NULL, NULL)
                && g_file_get_contents (path, &picture, NULL, NULL))) {
    LS_CHECK (strstr (points, "# a\n1 1.25\n10 9\n\n\n# b\nNaN NaN\n\n\n# c\n40 38\n") != NULL);
    LS_CHECK (strstr (commands, "data index 2 ") && !strstr (commands, "data index 1 ")); /* nothing of b */
    LS_CHECK (strstr (commands, "set xrange [0.769231:52]") != NULL);
    LS_CHECK (strstr (commands, "set yrange [-30:30]") != NULL);
    LS_CHECK (strstr (picture, "a: 2, 17.5 %") && strstr (picture, "c: 1, 5.0 %")
              && !strstr (picture, "b: "));
  }
  g_unlink (path);
  g_unlink (data);
  g_unlink (script);
  g_rmdir (folder);
}

static void
nothing_simulated_is_nothing_to_draw (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "x.svg", NULL);
  LsScores none = scores;
  none.total.n = 0;
  g_autoptr (GError) error = NULL;
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  LS_CHECK (!ls_plot_scores (&none, path, &error));
  LS_CHECK (error && error->code == (gnuplot ? LS_ERROR_FAILED : LS_ERROR_IO));
  LS_CHECK (!g_file_test (path, G_FILE_TEST_EXISTS));
  g_rmdir (folder);
}

/* Pins what charts of sweeps draw: a cell that was not simulated shows its bound, rounded away from what is
 * known, and no number of the colours; only the front has names; ideal scaling lies beside what was reached.
 * And that gnuplot draws them. What they hold: sweep/sweep_charts. */

typedef gboolean (*Draw) (const void *what, const char *path, GError **error);

/* The .dat and .gp of what was drawn; NULL, having said why, if nothing was. */
static char *
plot_sweep_draw (Draw f, const void *what)
{
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  if (!gnuplot) {
    printf ("skipped: no gnuplot here\n");
    return NULL;
  }
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL), *picture = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  static const char *const names[] = { "c.svg", "c.gp", "c.dat" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (folder, names[i], NULL), *content = NULL;
    if (i < 2)
      LS_CHECK (f (what, path, &error));
    LS_CHECK_NO_ERROR (error);
    LS_CHECK (g_file_get_contents (path, &content, NULL, NULL));
    if (i == 0)
      LS_CHECK (content && strstr (content, "<svg"));
    else
      g_string_append (text, content ? content : "");
    g_unlink (path);
  }
  g_rmdir (folder);
  return g_strdup (text->str);
}

static gboolean
draw_heat (const void *what, const char *path, GError **error)
{
  return ls_plot_heat (what, path, error);
}

static GPtrArray *
labels (const char *a, const char *b)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (list, g_strdup (a));
  g_ptr_array_add (list, g_strdup (b));
  return list;
}

static void
heat_init (LsHeatMap *map, const LsHeatCell cells[4])
{
  *map = (LsHeatMap) {
    .title = g_strdup ("it's {a} job"),
    .note = g_strdup ("note"),
    .names = { g_strdup ("tp"), g_strdup ("pp") },
    .labels = { labels ("1", "2"), labels ("1", "4") },
    .figure = g_strdup ("step time (s)"),
    .cells = g_array_new (FALSE, FALSE, sizeof (LsHeatCell)),
  };
  g_array_append_vals (map->cells, cells, 4);
}

static void
a_cell_shows_what_is_known (void)
{
  const LsHeatCell cells[4] = { { LS_HEAT_VALUE, 2.1996, NAN },
                                { LS_HEAT_VALUE, 3.5, 2.3999 },
                                { LS_HEAT_BOUND, NAN, 4.2199 },
                                { LS_HEAT_NO_FIT, NAN, NAN } };
  g_auto (LsHeatMap) map = { 0 };
  heat_init (&map, cells);
  g_autofree char *text = plot_sweep_draw (draw_heat, &map);
  if (!text)
    return;
  LS_CHECK (strstr (text, "0 0 2.1996 \"2.20\" ") != NULL);
  LS_CHECK (strstr (text, "1 0 3.5 \"3.50\\n≥ 2.39\" ") != NULL);
  LS_CHECK (strstr (text, "0 1 NaN \"≥ 4.21\" ") != NULL);
  LS_CHECK (strstr (text, "1 1 NaN \"does not fit\" ") != NULL);
  LS_CHECK (strstr (text, "'it''s {a} job'") && strstr (text, "fillstyle pattern"));
}

/* More is better, in thousands: the bound is rounded up. */
static void
bounds_round_away_from_what_is_known (void)
{
  const LsHeatCell cells[4] = { { LS_HEAT_VALUE, 121458, NAN },
                                { LS_HEAT_VALUE, 90000, 99910 },
                                { LS_HEAT_BOUND, NAN, 120001 },
                                { LS_HEAT_ILLEGAL, NAN, NAN } };
  g_auto (LsHeatMap) map = { 0 };
  heat_init (&map, cells);
  map.is_more_better = true;
  g_autofree char *text = plot_sweep_draw (draw_heat, &map);
  if (!text)
    return;
  LS_CHECK (strstr (text, "0 0 121.458 \"121k\" ") != NULL);
  LS_CHECK (strstr (text, "\"90.0k\\n≤ 100k\" ") != NULL);
  LS_CHECK (strstr (text, "\"≤ 121k\" ") != NULL);
}

static void
a_map_without_values_is_refused (void)
{
  const LsHeatCell cells[4] = { { LS_HEAT_BOUND, NAN, 1 },
                                { LS_HEAT_BOUND, NAN, 1 },
                                { LS_HEAT_NONE, NAN, NAN },
                                { LS_HEAT_NONE, NAN, NAN } };
  g_auto (LsHeatMap) map = { 0 };
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (g_get_tmp_dir (), "ls-no-map.svg", NULL),
                  *gnuplot = g_find_program_in_path ("gnuplot");
  heat_init (&map, cells);
  LS_CHECK (!ls_plot_heat (&map, path, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, gnuplot ? LS_ERROR_CONFLICT : LS_ERROR_IO));
}

static gboolean
draw_pareto (const void *what, const char *path, GError **error)
{
  return ls_plot_pareto (what, path, error);
}

static void
only_the_front_has_names (void)
{
  g_auto (LsParetoPlot) plot = { .title = g_strdup ("job"),
                                 .note = g_strdup ("note"),
                                 .capacity_gib = 80,
                                 .is_money = true,
                                 .points = ls_list_new (sizeof (LsParetoPoint), ls_clear_text) };
  const LsParetoPoint points[] = { { g_strdup ("tp 2"), 10, 60, 25000 },
                                   { NULL, 12, 70, 30000 },
                                   { g_strdup ("tp 8"), 20, 20, 50000 } };
  g_array_append_vals (plot.points, points, G_N_ELEMENTS (points));
  g_autofree char *text = plot_sweep_draw (draw_pareto, &plot);
  if (!text)
    return;
  LS_CHECK (strstr (text, "# beaten\n-9 NaN NaN\n70 12 30000\n") != NULL);
  LS_CHECK (strstr (text, "# named\n60 10 25000 1\n20 20 50000 2\n") != NULL);
  LS_CHECK (strstr (text, "'tp 8'") && strstr (text, "'20.0 days, 20.0 GiB, $50k'"));
  LS_CHECK (strstr (text, "'capacity'") != NULL);
}

static gboolean
draw_scaling (const void *what, const char *path, GError **error)
{
  return ls_plot_scaling (what, path, error);
}

static void
ideal_lies_beside_what_was_reached (void)
{
  LsSweepRow reached[] = { { .step = 4 * LS_S, .tokens_per_s = 100, .mfu = 0.5 },
                           { .step = 3 * LS_S, .tokens_per_s = 160, .mfu = 0.4 } };
  const LsSweepGroup groups[] = {
    { .gpus = 4, .global_batch = 16, .first = &reached[0], .of_fewest_gpus = 1, .of_largest_batch = 1 },
    { .gpus = 8, .global_batch = 16, .first = &reached[1], .of_fewest_gpus = 0.8, .of_largest_batch = 1 },
    { .gpus = 2, .global_batch = 16, .of_fewest_gpus = NAN, .of_largest_batch = NAN }, /* nothing fits */
  };
  LsSweepReport r = { .title = "job",
                      .chip = "GPU",
                      .chips = "GPUs",
                      .groups = g_array_new (FALSE, FALSE, sizeof (LsSweepGroup)) };
  g_array_append_vals (r.groups, groups, G_N_ELEMENTS (groups));
  g_autofree char *text = plot_sweep_draw (draw_scaling, &r);
  if (text)
    LS_CHECK (strstr (text, "# global batch 16\n4 4 100 50 4 100 50\n8 3 160 40 2.4 200 50\n") != NULL);
  g_array_unref (r.groups);
}

LS_TEST_SUITE (LS_TEST (a_table_is_a_line_with_points_by_algorithm),
               LS_TEST (a_comparison_has_a_panel_per_family),
               LS_TEST (over_gpus_a_curve_is_a_size_and_boundaries_are_marked),
               LS_TEST (boundaries_beyond_the_points_are_not_marked),
               LS_TEST (barriers_over_gpus_show_their_time), LS_TEST (nothing_is_drawn_without_a_size),
               LS_TEST (families_are_blocks_and_refused_rows_are_absent),
               LS_TEST (nothing_simulated_is_nothing_to_draw), LS_TEST (a_cell_shows_what_is_known),
               LS_TEST (bounds_round_away_from_what_is_known), LS_TEST (a_map_without_values_is_refused),
               LS_TEST (only_the_front_has_names), LS_TEST (ideal_lies_beside_what_was_reached))
