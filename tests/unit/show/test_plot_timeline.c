/* Pins what a picture of a step is made of, and how gnuplot draws pictures: what it leaves behind, whatever their
 * names, and how it fails. */
#include "show/draw/pictures.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/error.h>

#include "ls_test.h"
#include "pipeline.h"
#include "show/plot/plots.h"
#include "show/run/timeline_boxes.h"

static const PipelineShape shape = { 2, 1, 3, 10 * LS_MS, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };
static const PipelineShape recomputing
    = { 2, 1, 3, 10 * LS_MS, 20 * LS_MS, 9 * LS_MS, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

static gboolean
draw (const LsTimeline *t, const char *title, const char *path, GError **error)
{
  g_autoptr (LsDrawing) drawing
      = ls_draw_timeline (t, &(LsTimelinePicture) { .title = title, .width = LS_TIMELINE_WIDTH });
  return ls_drawing_write (drawing, path, error);
}

static void
check_box (const GArray *boxes, guint i, LsBoxKind kind, uint32_t mb, LsTime from, LsTime to)
{
  const LsTimelineBox *box = &g_array_index (boxes, LsTimelineBox, i);
  LS_CHECK_STR (ls_box_style (box->kind)->name, ls_box_style (kind)->name);
  LS_CHECK_INT (box->mb, ==, mb);
  LS_CHECK_INT (box->from, ==, from);
  LS_CHECK_INT (box->to, ==, to);
}

/* Two kernels around an all-reduce are one box: 3 forwards, 3 backwards, Adam. */
static void
a_forward_of_a_micro_batch_is_one_box (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autoptr (GArray) boxes = ls_timeline_boxes (&p.t, 0, LS_TIME_NEVER);
  if (LS_CHECK_INT (boxes->len, ==, 7)) {
    check_box (boxes, 0, LS_BOX_FORWARD, 0, 0, 11 * LS_MS);
    check_box (boxes, 1, LS_BOX_FORWARD, 1, 11 * LS_MS, 22 * LS_MS);
    LS_CHECK_INT (g_array_index (boxes, LsTimelineBox, 2).kind, ==, LS_BOX_BACKWARD);
    LS_CHECK_INT (g_array_index (boxes, LsTimelineBox, 6).kind, ==, LS_BOX_OPTIMIZER);
  }
  pipeline_clear (&p);
}

static void
recomputation_is_a_box_of_its_own (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", recomputing);
  g_autoptr (GArray) boxes = ls_timeline_boxes (&p.t, 1, LS_TIME_NEVER);
  /* stage 1: input at 13 ms, forward 11 ms, recompute 9 ms, 1 ms of all-reduce, backward 20 ms */
  check_box (boxes, 0, LS_BOX_FORWARD, 0, 13 * LS_MS, 24 * LS_MS);
  check_box (boxes, 1, LS_BOX_RECOMPUTE, 0, 24 * LS_MS, 33 * LS_MS);
  check_box (boxes, 2, LS_BOX_BACKWARD, 0, 34 * LS_MS, 54 * LS_MS);
  pipeline_clear (&p);
}

/* I and W that alternate are one backward; W alone is a weight gradient. */
static void
weight_gradients_alone_are_a_kind (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  for (int segment = 4; segment < PIPELINE_FINISH; segment++) {
    p.ops[segment][PIPELINE_FIRST].tag = LS_TAG_I;
    p.ops[segment][PIPELINE_SECOND].tag = LS_TAG_W;
  }
  g_autoptr (GArray) mixed = ls_timeline_boxes (&p.t, 0, LS_TIME_NEVER);
  LS_CHECK_INT (g_array_index (mixed, LsTimelineBox, 2).kind, ==, LS_BOX_BACKWARD);
  for (int segment = 4; segment < PIPELINE_FINISH; segment++)
    p.ops[segment][PIPELINE_FIRST].tag = LS_TAG_W;
  g_autoptr (GArray) alone = ls_timeline_boxes (&p.t, 0, LS_TIME_NEVER);
  LS_CHECK_INT (g_array_index (alone, LsTimelineBox, 2).kind, ==, LS_BOX_WEIGHT);
  LS_CHECK_INT (alone->len, ==, 7);
  pipeline_clear (&p);
}

static double
area_of_tp (const GArray *strips, guint *ret_n)
{
  double sum = 0;
  *ret_n = 0;
  for (guint i = 0; i < strips->len; i++) {
    const LsTimelineStrip *strip = &g_array_index (strips, LsTimelineStrip, i);
    bool is_tp = strip->part == LS_PART_EXPOSED_TP;
    sum += is_tp ? (double) (strip->to - strip->from) * strip->height : 0;
    *ret_n += is_tp;
  }
  return sum;
}

/* 6 all-reduces of 1 ms, however coarse the picture. */
static void
strips_keep_their_area_when_merged (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  guint n_fine, n_coarse;
  g_autoptr (GArray) fine = ls_timeline_strips (&p.t, 0, 1),
                     coarse = ls_timeline_strips (&p.t, 0, 15 * LS_MS);
  LS_CHECK_NEAR (area_of_tp (fine, &n_fine), 6e9, 1e-12);
  LS_CHECK_NEAR (area_of_tp (coarse, &n_coarse), 6e9, 1e-12);
  LS_CHECK_INT (n_fine, ==, 6);
  LS_CHECK_INT (n_coarse, <, 6);
  pipeline_clear (&p);
}

static void
one_rank_of_each_role_when_there_are_many (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  LsBinding bindings[100] = { 0 };
  uint32_t multiplicity[100];
  for (int rank = 0; rank < 100; rank++) {
    bindings[rank].role = rank < 50 ? 1 : 0;
    multiplicity[rank] = rank == 50 ? 0 : 1;
  }
  LsPlan plan = p.plan;
  plan.bindings = bindings;
  LsTimeline t = p.t;
  t.plan = &plan;
  t.n_ranks = t.n_rows = 100;
  t.multiplicity = multiplicity;
  g_autoptr (GArray) roles = ls_timeline_rows (&t, 64);
  g_autoptr (GArray) all = ls_timeline_rows (&t, 100);
  LS_CHECK_INT (all->len, ==, 99);
  if (LS_CHECK_INT (roles->len, ==, 2)) {
    LS_CHECK_INT (g_array_index (roles, uint32_t, 0), ==, 51);
    LS_CHECK_INT (g_array_index (roles, uint32_t, 1), ==, 0);
  }
  pipeline_clear (&p);
}

/* Copies with work of their own have a role for each stage; a picture of a few has all stages. */
static void
all_stages_when_there_are_many_roles (void)
{
  LsProgram programs[40] = { 0 };
  LsBinding bindings[40] = { 0 };
  uint32_t multiplicity[40];
  for (uint32_t rank = 0; rank < 40; rank++) {
    programs[rank].stage = rank / 10;
    bindings[rank].role = rank;
    multiplicity[rank] = 1;
  }
  LsPlan plan = { .n_ranks = 40, .n_roles = 40, .programs = programs, .bindings = bindings };
  LsTimeline t = { .plan = &plan, .n_ranks = 40, .n_rows = 40, .multiplicity = multiplicity };
  g_autoptr (GArray) rows = ls_timeline_rows (&t, 6);
  static const uint32_t expected[] = { 0, 1, 10, 11, 20, 30 };
  if (LS_CHECK_INT (rows->len, ==, G_N_ELEMENTS (expected)))
    for (guint i = 0; i < rows->len; i++)
      LS_CHECK_INT (g_array_index (rows, uint32_t, i), ==, expected[i]);
}

static void
gnuplot_strings_are_quoted (void)
{
  g_autofree char *quoted = ls_gnuplot_quote ("it's\na \"job\"");
  LS_CHECK_STR (quoted, "'it''s a \"job\"'");
}

static bool
has_gnuplot (void)
{
  g_autofree char *program = g_find_program_in_path ("gnuplot");
  if (!program)
    printf ("skipped: no gnuplot here\n");
  return program != NULL;
}

static void
check_picture (const char *suffix, const char *magic)
{
  if (!has_gnuplot ())
    return;
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL);
  g_autofree char *stem = g_build_filename (folder, "it's", NULL), *path = g_strconcat (stem, suffix, NULL);
  Pipeline p;
  pipeline_init (&p, "1f1b", recomputing);
  g_autoptr (GError) error = NULL;
  LS_CHECK (draw (&p.t, "it's a_job {x}", path, &error));
  LS_CHECK_NO_ERROR (error);
  g_autofree char *picture = NULL;
  gsize n = 0;
  if (LS_CHECK (g_file_get_contents (path, &picture, &n, NULL)))
    LS_CHECK (g_strstr_len (picture, MIN (n, 100), magic) != NULL);
  if (g_str_equal (suffix, ".svg"))
    LS_CHECK (strstr (picture, "a_job {x}") != NULL && strstr (picture, "recompute") != NULL
              && strstr (picture, "rank 1, stage 1") != NULL);
  /* one file and nothing else: the folder can be removed */
  LS_CHECK_INT (g_unlink (path) + g_rmdir (folder), ==, 0);
  pipeline_clear (&p);
}

/* Names that gnuplot, left to itself, would take for a command, an option or a device,
 * and one that it would break in two. */
static void
odd_names_are_only_names (void)
{
  static const char *const names[] = { "<touch stray", "|touch stray", "-e", "+", "it's `touch stray` @x" };
  if (!has_gnuplot ())
    return;
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL);
    g_autofree char *stem = g_build_filename (folder, names[i], NULL),
                    *path = g_strconcat (stem, ".png", NULL);
    g_autofree char *data = g_strconcat (stem, ".dat", NULL), *script = g_strconcat (stem, ".gp", NULL);
    g_autoptr (GError) error = NULL;
    LS_CHECK (draw (&p.t, "title", path, &error) && draw (&p.t, "title", script, &error));
    LS_CHECK_NO_ERROR (error);
    LS_CHECK_INT (g_unlink (path) + g_unlink (data) + g_unlink (script) + g_rmdir (folder), ==, 0);
  }
  pipeline_clear (&p);
}

/* The script draws the same picture when people run it. */
static void
the_script_can_be_run_again (void)
{
  if (!has_gnuplot ())
    return;
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "x.png", NULL);
  g_autofree char *data = g_build_filename (folder, "x.dat", NULL),
                  *script = g_build_filename (folder, "x.gp", NULL);
  const char *const argv[] = { "gnuplot", "-e", "output = 'x.png'", "x.gp", NULL };
  gsize n_first = 0, n_second = 0;
  g_autofree char *first = NULL, *second = NULL;
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  LS_CHECK (draw (&p.t, "title", path, NULL));
  g_file_get_contents (path, &first, &n_first, NULL);
  g_unlink (path);
  LS_CHECK (draw (&p.t, "title", script, NULL));
  LS_CHECK (
      g_spawn_sync (folder, (char **) argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL));
  g_file_get_contents (path, &second, &n_second, NULL);
  LS_CHECK_INT (n_second, ==, n_first);
  LS_CHECK (n_first > 1000 && memcmp (first, second, n_first) == 0);
  LS_CHECK_INT (g_unlink (path) + g_unlink (data) + g_unlink (script) + g_rmdir (folder), ==, 0);
  pipeline_clear (&p);
}

/* A gnuplot of our own in front of the real one. */
static char *
fake_gnuplot (const char *script)
{
  g_autofree char *old = g_strdup (g_getenv ("PATH")), *folder = g_dir_make_tmp ("ls-bin-XXXXXX", NULL);
  g_autofree char *program = g_build_filename (folder, "gnuplot", NULL),
                  *path = g_strconcat (folder, ":", old, NULL);
  LS_CHECK (g_file_set_contents (program, script, -1, NULL) && g_chmod (program, 0700) == 0);
  g_setenv ("PATH", path, TRUE);
  return g_steal_pointer (&folder);
}

static void
remove_fake (char *folder)
{
  g_autofree char *program = g_build_filename (folder, "gnuplot", NULL);
  g_autofree char *path = g_strdup (g_getenv ("PATH") + strlen (folder) + 1);
  g_setenv ("PATH", path, TRUE);
  LS_CHECK_INT (g_unlink (program) + g_rmdir (folder), ==, 0);
  g_free (folder);
}

/* Draws x.png in a folder that holds x.gp already, and must fail. */
static void
check_failure (const char *message)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "x.png", NULL);
  g_autofree char *script = g_build_filename (folder, "x.gp", NULL);
  LS_CHECK (g_file_set_contents (script, "mine", -1, NULL));
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autoptr (GError) error = NULL;
  LS_CHECK (!draw (&p.t, "x", path, &error));
  if (LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_IO)))
    LS_CHECK (g_str_has_suffix (error->message, message));
  LS_CHECK_INT (g_unlink (script) + g_rmdir (folder), ==, 0); /* nothing else is there */
  pipeline_clear (&p);
}

static void
a_failure_leaves_nothing_new_behind (void)
{
  char *fake = fake_gnuplot ("#!/bin/sh\necho half\necho 'no colours left' >&2\nexit 3\n");
  check_failure ("/x.png: no colours left");
  remove_fake (fake);
  fake = fake_gnuplot ("#!/bin/sh\nexit 0\n"); /* says that all is well, but drew nothing */
  check_failure ("/x.png: it drew nothing");
  remove_fake (fake);
}

/* A file of that name, in time. */
static gboolean
appears (const char *path)
{
  for (int i = 0; i < 2000 && !g_file_test (path, G_FILE_TEST_EXISTS); i++)
    g_usleep (10000);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static void
a_gnuplot_that_hangs_is_ended (void)
{
  char *fake = fake_gnuplot ("#!/bin/sh\necho half\nsleep 1000\n");
  gint64 start = g_get_monotonic_time ();
  g_setenv ("LS_GNUPLOT_SECONDS", "1", TRUE);
  check_failure ("LS_GNUPLOT_SECONDS=N in the environment gives it more");
  LS_CHECK (g_get_monotonic_time () - start < 60 * G_USEC_PER_SEC);
  g_setenv ("LS_GNUPLOT_SECONDS", "soon", TRUE);
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_gnuplot_run (stdin, stdin, "x.png", &error));
  if (LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE)))
    LS_CHECK_STR (error->message,
                  "LS_GNUPLOT_SECONDS: expected a whole number from 1 to 86400; got \"soon\"");
  g_unsetenv ("LS_GNUPLOT_SECONDS");
  remove_fake (fake);
}

/* No such process, or one that waits for its parent to notice. */
static gboolean
is_over (const char *pid)
{
  g_autofree char *path = g_build_filename ("/proc", pid, "stat", NULL);
  for (int i = 0; i < 2000; i++) {
    g_autofree char *stat = NULL;
    if (!g_file_get_contents (path, &stat, NULL, NULL) || strstr (stat, ") Z "))
      return TRUE;
    g_usleep (10000);
  }
  return FALSE;
}

/* SIGTERM while gnuplot draws: no file stays, and no gnuplot. */
static void
a_signal_leaves_nothing_behind (void)
{
  char *fake = fake_gnuplot (
      "#!/bin/sh\necho $$ > \"$LS_TEST_PID.new\"; mv \"$LS_TEST_PID.new\" \"$LS_TEST_PID\"\nexec sleep 1000\n");
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "x.png", NULL);
  g_autofree char *mark = g_strconcat (folder, ".pid", NULL), *pid = NULL;
  g_setenv ("LS_TEST_PID", mark, TRUE);
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  pid_t drawer = fork ();
  if (drawer == 0)
    _exit (draw (&p.t, "title", path, NULL));
  LS_CHECK (appears (mark));
  kill (drawer, SIGTERM);
  waitpid (drawer, NULL, 0);
  LS_CHECK (g_file_get_contents (mark, &pid, NULL, NULL));
  LS_CHECK (pid && is_over (g_strstrip (pid)));
  LS_CHECK_INT (g_unlink (mark) + g_rmdir (folder), ==, 0);
  pipeline_clear (&p);
  remove_fake (fake);
}

static void
a_link_is_drawn_through (void)
{
  char *fake = fake_gnuplot ("#!/bin/sh\necho picture\n");
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *link = g_build_filename (folder, "x.png", NULL);
  g_autofree char *real = g_build_filename (folder, "real", NULL), *text = NULL;
  LS_CHECK (g_file_set_contents (real, "old", -1, NULL));
  LS_CHECK_INT (symlink ("real", link), ==, 0);
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  LS_CHECK (draw (&p.t, "x", link, NULL));
  LS_CHECK (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  g_file_get_contents (real, &text, NULL, NULL);
  LS_CHECK_STR (text, "picture\n");
  LS_CHECK_INT (g_unlink (link) + g_unlink (real) + g_rmdir (folder), ==, 0);
  pipeline_clear (&p);
  remove_fake (fake);
}

/* The picture that was asked for is named, not what it is drawn from. */
static void
a_missing_folder_is_reported_first (void)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_picture_check ("/nonexistent-folder/x.svg", &error));
  if (LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_IO)))
    LS_CHECK_STR (error->message, "/nonexistent-folder/x.svg: No such file or directory");
}

static void
svg_is_drawn (void)
{
  check_picture (".svg", "<svg xmlns");
}
static void
png_is_drawn (void)
{
  check_picture (".png", "PNG");
}

static void
other_suffixes_are_refused (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_drawing_check ("x.pdf", &error));
  if (LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE)))
    LS_CHECK_STR (error->message,
                  "x.pdf: expected a name that ends in .svg or .png, or in .gp for the script and its data");
  pipeline_clear (&p);
}

static void
missing_gnuplot_is_explained (void)
{
  g_autofree char *path = g_strdup (g_getenv ("PATH"));
  g_setenv ("PATH", "/nonexistent", TRUE);
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_gnuplot_run (stdin, stdin, "x.png", &error));
  g_setenv ("PATH", path, TRUE);
  if (LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_IO)))
    LS_CHECK (strstr (error->message, "gnuplot-nox") != NULL);
}

static void
gnuplot_failure_is_reported (void)
{
  if (!has_gnuplot ())
    return;
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL);
  g_autofree char *picture = g_build_filename (folder, "x.png", NULL);
  FILE *script = tmpfile ();
  fputs ("plot nonsense nonsense\n", script);
  fflush (script);
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_gnuplot_run (script, script, picture, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_IO));
  LS_CHECK (error && strstr (error->message, "undefined variable: nonsense"));
  fclose (script);
  LS_CHECK_INT (g_rmdir (folder), ==, 0);
}

LS_TEST_SUITE (LS_TEST (a_forward_of_a_micro_batch_is_one_box), LS_TEST (recomputation_is_a_box_of_its_own),
               LS_TEST (weight_gradients_alone_are_a_kind), LS_TEST (strips_keep_their_area_when_merged),
               LS_TEST (one_rank_of_each_role_when_there_are_many),
               LS_TEST (all_stages_when_there_are_many_roles), LS_TEST (gnuplot_strings_are_quoted),
               LS_TEST (svg_is_drawn), LS_TEST (png_is_drawn), LS_TEST (other_suffixes_are_refused),
               LS_TEST (missing_gnuplot_is_explained), LS_TEST (gnuplot_failure_is_reported),
               LS_TEST (odd_names_are_only_names), LS_TEST (the_script_can_be_run_again),
               LS_TEST (a_failure_leaves_nothing_new_behind), LS_TEST (a_gnuplot_that_hangs_is_ended),
               LS_TEST (a_signal_leaves_nothing_behind), LS_TEST (a_link_is_drawn_through),
               LS_TEST (a_missing_folder_is_reported_first))
