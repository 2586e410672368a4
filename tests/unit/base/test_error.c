/* Pins: the exit code that each error stands for, which scripts rely on. */
#include "ls_test.h"

#include <lockstep/error.h>

static int
exit_code_of (LsErrorCode code)
{
  g_autoptr (GError) error = g_error_new_literal (LS_ERROR, (gint) code, "x");
  return ls_error_exit_code (error);
}

static void
exit_codes_are_as_documented (void)
{
  LS_CHECK_INT (ls_error_exit_code (NULL), ==, 0);
  LS_CHECK_INT (exit_code_of (LS_ERROR_FAILED), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_IO), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_LIMIT), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_DEADLOCK), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_USAGE), ==, 2);
  LS_CHECK_INT (exit_code_of (LS_ERROR_INPUT), ==, 3);
  LS_CHECK_INT (exit_code_of (LS_ERROR_CONFLICT), ==, 4);
  LS_CHECK_INT (exit_code_of (LS_ERROR_UNSUPPORTED), ==, 4);
  LS_CHECK_INT (exit_code_of (LS_ERROR_NO_FIT), ==, 4);
  LS_CHECK_INT (exit_code_of (LS_ERROR_TOLERANCE), ==, 5);
}

static void
errors_of_other_domains_are_failures (void)
{
  g_autoptr (GError) error = g_error_new_literal (g_quark_from_static_string ("other"), 3, "x");
  LS_CHECK_INT (ls_error_exit_code (error), ==, 1);
}

LS_TEST_MAIN ("error", LS_TEST (exit_codes_are_as_documented), LS_TEST (errors_of_other_domains_are_failures))
