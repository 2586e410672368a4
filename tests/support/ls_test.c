#include "ls_test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const LsTestCase *current;
static unsigned n_failed_checks;

bool
ls_check_impl (bool ok, const char *file, int line, const char *format, ...)
{
  char text[1024] = "";
  if (!ok) { /* many checks pass */
    va_list args;
    va_start (args, format);
    g_vsnprintf (text, sizeof text, format, args);
    va_end (args);
    n_failed_checks++;
    fprintf (stderr, "%s:%d: %s: %s\n", file, line, current ? current->name : "?", text);
    fflush (stderr);
  }
  CU_assertImplementation (ok ? CU_TRUE : CU_FALSE, (unsigned int) line, text, file, "", CU_FALSE);
  return ok;
}

int
ls_test_run (const char *suite, const LsTestCase *cases, size_t n_cases)
{
  if (CU_initialize_registry () != CUE_SUCCESS)
    return EXIT_FAILURE;
  CU_pSuite s = CU_add_suite (suite, NULL, NULL);
  for (size_t i = 0; i < n_cases; i++) {
    current = &cases[i];
    CU_pTest test = CU_add_test (s, cases[i].name, cases[i].run);
    CU_run_test (s, test);
  }
  printf ("%s: %zu tests, %u failed checks\n", suite, n_cases, n_failed_checks);
  CU_cleanup_registry ();
  return n_failed_checks == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool
ls_test_has_all_cases (void)
{
  return g_strcmp0 (g_getenv ("LS_ALL_CASES"), "1") == 0;
}

guint
ls_test_cases (guint few, guint all)
{
  const char *asked = g_getenv ("LS_CASES");
  return asked ? (guint) g_ascii_strtoull (asked, NULL, 10) : ls_test_has_all_cases () ? all : few;
}

const char *
ls_test_shared_data (void)
{
  const char *dir = g_getenv ("LS_SHARED_DATA");
  if (dir && g_file_test (dir, G_FILE_TEST_IS_DIR))
    return dir;
  printf ("skipped: measured data not here (LS_SHARED_DATA)\n");
  return NULL;
}

void
ls_test_golden_data (void)
{
  g_autofree char *data = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data", NULL);
  g_setenv ("LS_DATA_DIR", data, TRUE);
}
