/* Pins the public way to why a step takes its time: nothing is shown before it was asked for,
 * then it is, in text, JSON and Chrome trace; asking again changes nothing; jobs for other
 * programs come with notes or an error. */
#include "ls_test.h"

#include <string.h>

#include <lockstep/lockstep.h>

static LsJob *
job_new (void)
{
  static const char *const knobs[][2]
      = { { "model", "tiny" }, { "cluster", "pair" }, { "nodes", "2" }, { "tp", "2" }, { "pp", "2" } };
  g_autoptr (GError) error = NULL;
  LsJob *job = ls_job_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_job_set (job, knobs[i][0], knobs[i][1], &error));
  LS_CHECK_NO_ERROR (error);
  return job;
}

static void
check_shown (const LsResult *result, bool has_path, bool has_sensitivity)
{
  g_autofree char *text = ls_result_summary (result, LS_TEXT_ASCII), *json = ls_result_json (result);
  LS_CHECK ((strstr (text, "\nCritical path") != NULL) == has_path
            && (strstr (json, "\"critical_path\"") != NULL) == has_path);
  LS_CHECK ((strstr (text, "\nSensitivity") != NULL) == has_sensitivity
            && (strstr (json, "\"sensitivity\"") != NULL) == has_sensitivity);
}

static void
what_is_asked_for_is_shown (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJob) job = job_new ();
  g_autoptr (LsResult) result = ls_job_run (job, &error);
  LS_CHECK_NO_ERROR (error);
  check_shown (result, false, false);
  LS_CHECK (ls_result_find_critical_path (result, &error));
  check_shown (result, true, false);
  LS_CHECK (ls_result_find_sensitivity (result, job, 2, &error));
  check_shown (result, true, true);
  g_autofree char *before = ls_result_json (result);
  LS_CHECK (ls_result_find_critical_path (result, &error)
            && ls_result_find_sensitivity (result, job, 1, &error));
  g_autofree char *after = ls_result_json (result);
  LS_CHECK_STR (before, after);
}

static void
jobs_are_written_for_others (void)
{
  g_autoptr (GError) error = NULL, refused = NULL, unknown = NULL;
  g_autofree char *notes = NULL, *none = NULL;
  g_autoptr (LsJob) job = job_new ();
  g_autoptr (LsResult) result = ls_job_run (job, &error);
  g_autofree char *flags = ls_result_emit (result, job, "megatron", &notes, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (strstr (flags, "--tensor-model-parallel-size 2\n") && strlen (notes) > 0);
  LS_CHECK (!ls_result_emit (result, job, "torchtitan", &none, &refused)
            && ls_error_exit_code (refused) == 4);
  LS_CHECK (!ls_check_emit_target ("nemo", &unknown) && ls_error_exit_code (unknown) == 2);
  LS_CHECK (none == NULL);
}

int
main (void)
{
  static const LsTestCase cases[]
      = { LS_TEST (what_is_asked_for_is_shown), LS_TEST (jobs_are_written_for_others) };
  const char *root = g_getenv ("LS_DATA_DIR");
  g_autofree char *data = g_build_filename (root ? root : ".", "tests", "golden", "data", NULL);
  g_setenv ("LS_DATA_DIR", data, TRUE);
  return ls_test_run ("api/why", cases, G_N_ELEMENTS (cases));
}
