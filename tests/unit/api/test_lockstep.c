/* Pins the public API through its header alone: the example of lockstep.h runs, and
 * misuse by a user's data (not by a programmer) comes back as an error with the
 * documented code. Simulates the small job of tests/golden/data. */
#include "ls_test.h"

#include <string.h>

#include <lockstep/lockstep.h>

static LsJob *
new_small_job (void)
{
  static const char *const knobs[][2]
      = { { "model", "tiny" }, { "cluster", "pair" }, { "nodes", "2" }, { "tp", "2" }, { "pp", "2" } };
  LsJob *job = ls_job_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_job_set (job, knobs[i][0], knobs[i][1], NULL));
  return job;
}

static void
a_job_gives_every_kind_of_result (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJob) job = new_small_job ();
  g_autoptr (LsResult) result = ls_job_run (job, &error);
  LS_CHECK_NO_ERROR (error);
  if (!result)
    return;
  g_autofree char *summary = ls_result_summary (result, LS_TEXT_ASCII);
  g_autofree char *json = ls_result_json (result);
  g_autofree char *placement = ls_result_placement (result);
  g_autofree char *notes = ls_result_notes (result);
  LS_CHECK_DOUBLE (ls_result_step_time_s (result), >, 0);
  LS_CHECK (strstr (summary, "tiny on 4 GPUs of pair") == summary && g_str_is_ascii (summary));
  LS_CHECK (strstr (json, "\"step_time_s\"") != NULL);
  LS_CHECK (strstr (placement, "rank") != NULL);
  LS_CHECK_STR (notes, "");
  LS_CHECK (ls_result_check_fit (result, NULL));
}

static void
colour_is_used_only_on_request (void)
{
  g_autoptr (LsJob) job = new_small_job ();
  g_autoptr (LsResult) result = ls_job_run (job, NULL);
  if (!LS_CHECK (result != NULL))
    return;
  g_autofree char *plain = ls_result_summary (result, LS_TEXT_PLAIN);
  g_autofree char *color = ls_result_summary (result, LS_TEXT_COLOR);
  LS_CHECK (strchr (plain, '\033') == NULL);
  LS_CHECK (strchr (color, '\033') != NULL);
}

static void
results_outlive_their_job (void)
{
  LsJob *job = new_small_job ();
  g_autoptr (LsResult) result = ls_job_run (job, NULL);
  ls_job_free (job);
  if (!LS_CHECK (result != NULL))
    return;
  g_autofree char *json = ls_result_json (result);
  LS_CHECK (strstr (json, "\"tiny\"") != NULL);
}

/* Takes the error. */
static void
check_code (GError *error, int exit_code)
{
  LS_CHECK (error != NULL && error->domain == LS_ERROR);
  LS_CHECK_INT (ls_error_exit_code (error), ==, exit_code);
  g_clear_error (&error);
}

static void
errors_carry_the_documented_codes (void)
{
  GError *error = NULL;
  g_autoptr (LsJob) job = ls_job_new ();
  LS_CHECK (ls_job_run (job, &error) == NULL);
  check_code (g_steal_pointer (&error), 2); /* no model */
  LS_CHECK (!ls_job_set (job, "tp", "many", &error));
  check_code (g_steal_pointer (&error), 2);
  LS_CHECK (!ls_job_load_strategy (job, "no-such-strategy", &error));
  check_code (g_steal_pointer (&error), 3);
  LS_CHECK (ls_list_text ("racks", &error) == NULL);
  check_code (g_steal_pointer (&error), 2);
  LS_CHECK (ls_check_file ("no/such/file.json", NULL, NULL, &error) == NULL);
  check_code (g_steal_pointer (&error), 3);

  g_autoptr (LsJob) odd = new_small_job ();
  LS_CHECK (ls_job_set (odd, "tp", "3", NULL));
  LS_CHECK (ls_job_run (odd, &error) == NULL);
  check_code (g_steal_pointer (&error), 4);
}

static gboolean
is_topic (const char *name)
{
  guint n;
  const LsKnobTopic *topics = ls_knob_topics (&n);
  for (guint t = 0; t < n; t++)
    if (g_str_equal (topics[t].name, name))
      return TRUE;
  return FALSE;
}

/* All that the table says is there, once, and a value that none takes is refused as such. */
static void
the_table_of_knobs_is_what_can_be_set (void)
{
  guint n, n_without_flag = 0;
  const LsKnob *knobs = ls_knobs (&n);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < n; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (LsJob) job = ls_job_new ();
    LS_CHECK (is_topic (knobs[i].topic) && *knobs[i].meaning && knobs[i].usually);
    LS_CHECK (g_hash_table_add (seen, (gpointer) knobs[i].key));
    LS_CHECK (knobs[i].flag || (knobs[i].argument && !knobs[i].is_usual));
    ls_job_set (job, knobs[i].key, "\001", &error);
    LS_CHECK (!error || !strstr (error->message, "there is no knob"));
    n_without_flag += !knobs[i].flag;
  }
  LS_CHECK_INT (n, >=, 95);
  LS_CHECK_INT (n_without_flag, >=, 13);
}

static void
output_paths_can_be_checked_before_a_run (void)
{
  GError *error = NULL;
  LS_CHECK (!ls_check_output_path (LS_OUTPUT_CHROME_TRACE, "no/such/folder/t.json", &error));
  check_code (g_steal_pointer (&error), 1);
  LS_CHECK (!ls_check_output_path (LS_OUTPUT_CHROME_TRACE, "a\nb.json", &error));
  check_code (g_steal_pointer (&error), 2);
  LS_CHECK (!ls_check_output_path (LS_OUTPUT_TIMELINE, "step.pdf", &error));
  check_code (g_steal_pointer (&error), 2);
  LS_CHECK (ls_check_output_path (LS_OUTPUT_CHROME_TRACE, "step.pdf", &error));
  LS_CHECK (!g_file_test ("step.pdf", G_FILE_TEST_EXISTS));
}

static void
a_file_that_cannot_be_written_is_an_error (void)
{
  g_autoptr (LsJob) job = new_small_job ();
  g_autoptr (LsResult) result = ls_job_run (job, NULL);
  if (!LS_CHECK (result != NULL))
    return;
  GError *error = NULL;
  LS_CHECK (!ls_result_write_chrome_trace (result, "no/such/folder/t.json", &error));
  check_code (g_steal_pointer (&error), 1);
  LS_CHECK (!ls_result_write_timeline (result, "step.pdf", &error));
  check_code (g_steal_pointer (&error), 2);
}

static void
a_collective_gives_every_kind_of_result (void)
{
  const LsCollectiveOptions options = { .cluster = "pair", .op = "all-reduce", .min = "1KiB", .max = "4KiB" };
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCollective) collective = ls_collective_run (&options, &error);
  LS_CHECK_NO_ERROR (error);
  if (!collective)
    return;
  g_autofree char *text = ls_collective_text (collective);
  g_autofree char *json = ls_collective_json (collective);
  g_autofree char *csv = ls_collective_csv (collective);
  g_autofree char *notes = ls_collective_notes (collective);
  LS_CHECK (g_str_has_prefix (text, "# all-reduce on 2 GPUs of pair, 1 node\n"));
  LS_CHECK (strstr (json, "\"busbw_GBps\"") != NULL);
  LS_CHECK (g_str_has_prefix (csv, "cluster,op,"));
  LS_CHECK_STR (notes, "");
  GError *failure = NULL;
  LS_CHECK (!ls_collective_plot (collective, "table.pdf", &failure));
  check_code (g_steal_pointer (&failure), 2);
}

static void
a_collective_fails_with_the_documented_codes (void)
{
  static const struct {
    LsCollectiveOptions options;
    int exit_code;
  } cases[] = {
    { { .cluster = "pair" }, 2 },
    { { .cluster = "pair", .op = "all-reduce", .min = "8" }, 2 },
    { { .cluster = "nowhere", .op = "all-reduce" }, 3 },
    { { .compare = "no/such/file.csv" }, 3 },
    { { .cluster = "pair", .op = "all-reduce", .nodes = "1", .gpus = "3" }, 4 },
    { { .cluster = "pair", .op = "all-reduce", .algorithm = "p2p" }, 4 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GError *error = NULL;
    LS_CHECK (ls_collective_run (&cases[i].options, &error) == NULL);
    check_code (g_steal_pointer (&error), cases[i].exit_code);
  }
}

int
main (void)
{
  static const LsTestCase cases[] = {
    LS_TEST (a_job_gives_every_kind_of_result),
    LS_TEST (colour_is_used_only_on_request),
    LS_TEST (results_outlive_their_job),
    LS_TEST (errors_carry_the_documented_codes),
    LS_TEST (the_table_of_knobs_is_what_can_be_set),
    LS_TEST (output_paths_can_be_checked_before_a_run),
    LS_TEST (a_file_that_cannot_be_written_is_an_error),
    LS_TEST (a_collective_gives_every_kind_of_result),
    LS_TEST (a_collective_fails_with_the_documented_codes),
  };
  const char *root = g_getenv ("LS_DATA_DIR");
  g_autofree char *data = g_build_filename (root ? root : ".", "tests", "golden", "data", NULL);
  g_setenv ("LS_DATA_DIR", data, TRUE);
  return ls_test_run ("api/lockstep", cases, G_N_ELEMENTS (cases));
}
