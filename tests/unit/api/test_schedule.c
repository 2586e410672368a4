/* Pins pipeline schedules through the public header: figures equal closed forms, charts keep
 * within their width whatever the size, orders printed read back as themselves, pictures are
 * drawn, and all schedules are compared or refused. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include <lockstep/lockstep.h>

static LsSchedule *
made (const LsScheduleOptions *options)
{
  g_autoptr (GError) error = NULL;
  LsSchedule *s = ls_schedule_new (options, &error);
  LS_CHECK_NO_ERROR (error);
  return s;
}

/* The number after a key of our own JSON. */
static double
number (const char *json, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("\"%s\": ", key);
  const char *at = strstr (json, quoted);
  return LS_CHECK (at != NULL) ? g_ascii_strtod (at + strlen (quoted), NULL) : -1;
}

static void
check_figures (const LsScheduleOptions *options, double makespan, double span, double ideal)
{
  g_autoptr (LsSchedule) s = made (options);
  if (!s)
    return;
  g_autofree char *json = ls_schedule_json (s);
  LS_CHECK_DOUBLE (number (json, "makespan"), ==, makespan);
  LS_CHECK_DOUBLE (number (json, "span"), ==, span);
  LS_CHECK_DOUBLE (number (json, "ideal"), ==, ideal);
  LS_CHECK_DOUBLE (number (json, "bubble_frac"), ==, 1 - ideal / makespan);
  LS_CHECK_DOUBLE (number (json, "bubble_frac_span"), ==, 1 - ideal / span);
}

/* Closed forms of their papers: (m + p - 1)(F + B); m (F + B) + (p - 1)(F + B) / v, whole-rank
 * times; m (F + I + W) + (p - 1)(F + I - W); the span of ZB-H2, and its skew. */
static void
figures_equal_closed_forms (void)
{
  check_figures (&(LsScheduleOptions) { .schedule = "gpipe", .pp = "4", .micro_batches = "8" }, 33, 33, 24);
  check_figures (
      &(LsScheduleOptions) {
          .schedule = "1f1b", .pp = "8", .micro_batches = "8", .f_time = "0.1", .b_time = "0.3" },
      6, 6, 3.2);
  check_figures (
      &(LsScheduleOptions) { .schedule = "interleaved-1f1b", .pp = "4", .vpp = "2", .micro_batches = "8" },
      57, 57, 48);
  check_figures (&(LsScheduleOptions) { .schedule = "zb-h1",
                                        .pp = "4",
                                        .micro_batches = "8",
                                        .f_time = "10",
                                        .b_time = "12",
                                        .w_time = "8" },
                 282, 282, 240);
  check_figures (&(LsScheduleOptions) { .schedule = "zb-h2", .pp = "4", .micro_batches = "8", .w_time = "1" },
                 27, 24, 24);
  check_figures (
      &(LsScheduleOptions) {
          .schedule = "1f1b", .pp = "2", .micro_batches = "2", .f_time = "1s", .b_time = "2s" },
      9, 9, 6);
}

/* Columns of the widest line that shows a rank. */
static glong
chart_width (const char *text)
{
  glong width = 0;
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (g_str_has_prefix (*line, "rank "))
      width = MAX (width, g_utf8_strlen (*line, -1));
  return width;
}

static void
charts_keep_within_their_width (void)
{
  static const char *const stages[] = { "1", "2", "16", "64" };
  static const char *const names[] = { "1f1b", "zbv", "gpipe", "hanayo" };
  for (guint i = 0; i < G_N_ELEMENTS (stages); i++)
    for (guint k = 0; k < G_N_ELEMENTS (names); k++) {
      g_autoptr (LsSchedule) s = made (&(LsScheduleOptions) { .schedule = names[k],
                                                              .pp = stages[i],
                                                              .micro_batches = "64",
                                                              .f_time = "1.3",
                                                              .b_time = "1.7",
                                                              .w_time = "0.9" });
      for (guint width = 50; s && width <= 250; width += 40) {
        g_autofree char *text = ls_schedule_text (s, LS_TEXT_PLAIN, width);
        g_autofree char *ascii = ls_schedule_text (s, LS_TEXT_ASCII, width);
        LS_CHECK_INT (chart_width (text), <=, width);
        LS_CHECK_INT (chart_width (text), ==, chart_width (ascii));
        LS_CHECK (g_str_is_ascii (ascii));
      }
    }
}

/* Colour adds escapes, and takes none of the figures away. */
static void
colours_are_switched_off_again (void)
{
  g_autoptr (LsSchedule) s
      = made (&(LsScheduleOptions) { .schedule = "dualpipe", .pp = "4", .micro_batches = "8" });
  if (!s)
    return;
  g_autofree char *text = ls_schedule_text (s, LS_TEXT_COLOR, 120);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++) {
    const char *last = NULL;
    for (const char *at = *line; (at = strstr (at, "\033[")); at++)
      last = at;
    LS_CHECK (!last || g_str_has_prefix (last, "\033[0m"));
    LS_CHECK (!g_str_has_prefix (*line, "rank ") || last);
  }
}

static void
orders_read_back_as_themselves (void)
{
  static const LsScheduleOptions all[] = {
    { .schedule = "interleaved-zb", .pp = "3", .vpp = "3", .micro_batches = "8" },
    { .schedule = "zb-auto", .pp = "3", .micro_batches = "5", .memory_limit = "2" },
    { .schedule = "dualpipev", .pp = "3", .micro_batches = "7" },
    { .schedule = "chimera", .pp = "4", .pipes = "4", .micro_batches = "8" },
    { .schedule = "hanayo", .pp = "3", .waves = "2", .micro_batches = "4" },
  };
  g_autofree char *folder = g_dir_make_tmp ("ls-schedule-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "orders.csv", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    g_autoptr (LsSchedule) s = made (&all[i]);
    if (!s)
      continue;
    g_autofree char *csv = ls_schedule_csv (s);
    LS_CHECK (ls_schedule_write (csv, path, NULL));
    g_autoptr (LsSchedule) read = made (&(LsScheduleOptions) { .schedule = path });
    g_autofree char *again = read ? ls_schedule_csv (read) : NULL;
    LS_CHECK_STR (again, csv);
  }
  g_remove (path);
  g_rmdir (folder);
}

static void
check_picture (const LsSchedule *s, const char *folder, const char *word)
{
  g_autofree char *picture = g_build_filename (folder, "s.svg", NULL), *svg = NULL;
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_schedule_plot (s, picture, &error));
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (g_file_get_contents (picture, &svg, NULL, NULL) && strstr (svg, word));
  g_remove (picture);
}

static void
pictures_are_drawn (void)
{
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  if (!gnuplot) {
    printf ("skipped: no gnuplot here\n");
    return;
  }
  g_autofree char *folder = g_dir_make_tmp ("ls-schedule-XXXXXX", NULL);
  g_autoptr (LsSchedule) one
      = made (&(LsScheduleOptions) { .schedule = "zb-h1", .pp = "4", .micro_batches = "8" });
  g_autoptr (LsSchedule) all = made (&(LsScheduleOptions) { .all = TRUE, .pp = "2", .micro_batches = "4" });
  if (one && all) {
    check_picture (one, folder, "weight gradient");
    check_picture (all, folder, "interleaved-zb");
  }
  g_rmdir (folder);
}

static void
every_schedule_has_a_row (void)
{
  static const char *const names[]
      = { "naive",      "gpipe",          "1f1b",      "pipedream", "interleaved-1f1b",
          "looped-bfs", "interleaved-zb", "zb-h1",     "zb-h2",     "zb-auto",
          "zb-1p",      "zb-2p",          "zbv",       "zbv-auto",  "v-half",
          "v-min",      "dualpipe",       "dualpipev", "chimera",   "hanayo" };
  g_autoptr (LsSchedule) s
      = made (&(LsScheduleOptions) { .all = TRUE, .pp = "4", .micro_batches = "8", .w_time = "1" });
  if (!s)
    return;
  g_autofree char *json = ls_schedule_json (s);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *row = g_strdup_printf ("\"schedule\": \"%s\",\n      \"refusal\": null", names[i]);
    LS_CHECK (strstr (json, row) != NULL);
  }
}

LS_TEST_MAIN ("schedule", LS_TEST (figures_equal_closed_forms), LS_TEST (charts_keep_within_their_width),
              LS_TEST (colours_are_switched_off_again), LS_TEST (orders_read_back_as_themselves),
              LS_TEST (pictures_are_drawn), LS_TEST (every_schedule_has_a_row))
