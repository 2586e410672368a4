/* Pins what charts of sweeps draw: a cell that was not simulated shows its bound, rounded away from what is
 * known, and no number of the colours; only the front has names; ideal scaling lies beside what was reached.
 * And that gnuplot draws them. What they hold: sweep/sweep_charts. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "show/plot/plots.h"

typedef gboolean (*Draw) (const void *what, const char *path, GError **error);

/* The .dat and .gp of what was drawn; NULL, having said why, if nothing was. */
static char *
draw (Draw f, const void *what)
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
  g_autofree char *text = draw (draw_heat, &map);
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
  g_autofree char *text = draw (draw_heat, &map);
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
                                 .points = g_array_new (FALSE, FALSE, sizeof (LsParetoPoint)) };
  const LsParetoPoint points[] = { { 10, 60, 25000, g_strdup ("tp 2") },
                                   { 12, 70, 30000, NULL },
                                   { 20, 20, 50000, g_strdup ("tp 8") } };
  g_array_append_vals (plot.points, points, G_N_ELEMENTS (points));
  g_autofree char *text = draw (draw_pareto, &plot);
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
  LsSweepRow rows[] = { { .step = 4 * LS_S, .tokens_per_s = 100, .mfu = 0.5 },
                        { .step = 3 * LS_S, .tokens_per_s = 160, .mfu = 0.4 } };
  const LsSweepGroup groups[] = {
    { .gpus = 4, .global_batch = 16, .first = &rows[0], .of_fewest_gpus = 1, .of_largest_batch = 1 },
    { .gpus = 8, .global_batch = 16, .first = &rows[1], .of_fewest_gpus = 0.8, .of_largest_batch = 1 },
    { .gpus = 2, .global_batch = 16, .of_fewest_gpus = NAN, .of_largest_batch = NAN }, /* nothing fits */
  };
  LsSweepReport r = { .title = "job",
                      .chip = "GPU",
                      .chips = "GPUs",
                      .groups = g_array_new (FALSE, FALSE, sizeof (LsSweepGroup)) };
  g_array_append_vals (r.groups, groups, G_N_ELEMENTS (groups));
  g_autofree char *text = draw (draw_scaling, &r);
  if (text)
    LS_CHECK (strstr (text, "# global batch 16\n4 4 100 50 4 100 50\n8 3 160 40 2.4 200 50\n") != NULL);
  g_array_unref (r.groups);
}

LS_TEST_SUITE (LS_TEST (a_cell_shows_what_is_known), LS_TEST (bounds_round_away_from_what_is_known),
               LS_TEST (a_map_without_values_is_refused), LS_TEST (only_the_front_has_names),
               LS_TEST (ideal_lies_beside_what_was_reached))
