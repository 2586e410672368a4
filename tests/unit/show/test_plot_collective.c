/* Pins what a picture of bandwidths is made of, and that gnuplot draws it. Files of a
 * picture in general: plot_timeline. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "show/plot/plots.h"

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
                    "# panel 1, 1.0 MiB\n2 52.4288 NaN\n16 9.8304 NaN\n\n\n"
                    "# panel 1, 1.0 GiB\n2 53.6871 NaN\n16 10.0663 NaN\n")
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

LS_TEST_SUITE (LS_TEST (a_table_is_a_line_with_points_by_algorithm),
               LS_TEST (a_comparison_has_a_panel_per_family),
               LS_TEST (over_gpus_a_curve_is_a_size_and_boundaries_are_marked),
               LS_TEST (boundaries_beyond_the_points_are_not_marked),
               LS_TEST (barriers_over_gpus_show_their_time), LS_TEST (nothing_is_drawn_without_a_size))
