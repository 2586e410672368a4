/* Pins the public way to why a step takes its time: what was asked for is shown, in text and JSON, and what
 * was not is not; asking again changes nothing; jobs for other programs come with notes or an error. */
#include "asked.h"

#define SMALL_JOB "model tiny cluster pair nodes 2 tp 2 pp 2"

static void
check_shown (const char *options, bool has_path, bool has_sensitivity)
{
  const LsTextStyle ascii = { .is_ascii = TRUE };
  g_autoptr (LsAnswer) answer = asked ("run", options);
  if (!answer)
    return;
  g_autofree char *text = ls_answer_format (answer, LS_FORM_TEXT, &ascii),
                  *json = ls_answer_format (answer, LS_FORM_JSON, NULL),
                  *again = ls_answer_format (answer, LS_FORM_JSON, NULL);
  LS_CHECK ((strstr (text, "\nCritical path") != NULL) == has_path
            && (strstr (json, "\"critical_path\"") != NULL) == has_path);
  LS_CHECK ((strstr (text, "\nSensitivity") != NULL) == has_sensitivity
            && (strstr (json, "\"sensitivity\"") != NULL) == has_sensitivity);
  LS_CHECK_STR (json, again);
}

static void
what_is_asked_for_is_shown (void)
{
  check_shown (SMALL_JOB, false, false);
  check_shown (SMALL_JOB " critical-path -", true, false);
  check_shown (SMALL_JOB " sensitivity -", false, true);
  check_shown (SMALL_JOB " critical-path - sensitivity 1", true, true);
  check_shown (SMALL_JOB " critical-path 0", false, false);
}

static void
jobs_are_written_for_others (void)
{
  g_autoptr (LsAnswer) answer = asked ("run", SMALL_JOB " emit megatron");
  if (!answer)
    return;
  g_autofree char *flags = ls_answer_format (answer, LS_FORM_TEXT, NULL), *notes = ls_answer_notes (answer);
  LS_CHECK (strstr (flags, "--tensor-model-parallel-size 2\n") && strlen (notes) > 0);
  check_fails ("run", SMALL_JOB " emit torchtitan", LS_ERROR_UNSUPPORTED);
  check_fails ("run", SMALL_JOB " emit megatron json -", LS_ERROR_USAGE);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (what_is_asked_for_is_shown),
                    LS_TEST (jobs_are_written_for_others))
