/* Pins what is said of measured runs before they are fitted, and what is not. */
#include "ls_test.h"

#include <string.h>

#include "base/diag.h"
#include "calibrate/calibrate_runs.h"

static void
check (const LsCheckedRun *runs, guint n, const char *expected_note, const char *expected_error)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_runs_check ("mine.csv", runs, n, notes, &error) == !expected_error);
  LS_CHECK (
      !expected_error
      || (g_error_matches (error, LS_ERROR, LS_ERROR_INPUT) && strstr (error->message, expected_error)));
  LS_CHECK_INT (notes->len, ==, expected_note ? 1 : 0);
  if (expected_note && notes->len == 1)
    LS_CHECK (strstr (g_ptr_array_index (notes, 0), expected_note) != NULL);
}

static void
runs_that_agree_are_left_in_peace (void)
{
  static const LsCheckedRun runs[] = { { "a", 1.1, 1 }, { "b", 2.1, 2 }, { "c", 3.3, 3 }, { "d", 1.12, 1 } };
  check (runs, 4, NULL, NULL);
  /* all slow alike: a slow cluster, no outlier */
  static const LsCheckedRun slow[] = { { "a", 3, 1 }, { "b", 6, 2 }, { "c", 9.5, 3 } };
  check (slow, 3, NULL, NULL);
}

static void
milliseconds_are_refused (void)
{
  static const LsCheckedRun runs[] = { { "a", 1100, 1 }, { "b", 2050, 2 }, { "c", 3300, 3 } };
  check (runs, 3, NULL, "mine.csv: measured times are 1.1e+03 times what is predicted");
}

static void
outliers_and_contradictions_are_named (void)
{
  static const LsCheckedRun far[] = { { "a", 1.1, 1 }, { "b", 2.1, 2 }, { "c", 9, 3 }, { "d", 4.3, 4 } };
  check (far, 4, "c is far from the others: measured is 3 times", NULL);
  static const LsCheckedRun twice[] = { { "a", 1.2, 1 }, { "b", 2.1, 2 }, { "c", 1.05, 1 }, { "d", 1.1, 1 } };
  check (twice, 4, "c and a are one job to the simulator, and measured 1.14 times apart", NULL);
}

LS_TEST_SUITE (LS_TEST (runs_that_agree_are_left_in_peace), LS_TEST (milliseconds_are_refused),
               LS_TEST (outliers_and_contradictions_are_named))
