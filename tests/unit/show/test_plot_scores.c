/* Pins what a picture of predictions over measurements is made of, and that gnuplot draws it.
 * Files of a picture in general: plot_timeline. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "show/plot/plots.h"

static const LsScoreRow rows[] = {
  { .id = "a-1", .family = "a", .measured_s = 1, .predicted_s = 1.25 },
  { .id = "b-1", .family = "b", .measured_s = 2, .predicted_s = NAN },
  { .id = "c-1", .family = "c", .measured_s = 40, .predicted_s = 38 },
  { .id = "a-2", .family = "a", .measured_s = 10, .predicted_s = 9 },
};
static const LsFamilyScore families[] = {
  { .family = "a", .score = { .n = 2, .mape_pct = 17.5 } },
  { .family = "b", .score = { .refused = 1, .mape_pct = NAN } },
  { .family = "c", .score = { .n = 1, .mape_pct = 5 } },
};
static const LsScores scores = {
  .total = { .n = 3, .refused = 1, .mape_pct = 13.3, .bias_pct = 3.3, .worst_pct = 25 },
  .n_families = G_N_ELEMENTS (families),
  .families = families,
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

LS_TEST_SUITE (LS_TEST (families_are_blocks_and_refused_rows_are_absent),
               LS_TEST (nothing_simulated_is_nothing_to_draw))
