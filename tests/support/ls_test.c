#include "ls_test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- expected texts of several tests in one file ---- */

#define SECTION "=== "

/* Where the text of a section begins, and its bytes in *length; NULL: the file has none of that name. */
static const char *
section_find (const char *file, const char *name, gsize *length)
{
  g_autofree char *header = g_strconcat (SECTION, name, "\n", NULL);
  const char *at = file;
  while (at && !g_str_has_prefix (at, header)) {
    at = strstr (at, "\n" SECTION);
    at = at ? at + 1 : NULL;
  }
  if (!at)
    return NULL;
  at += strlen (header);
  const char *next = g_str_has_prefix (at, SECTION) ? at : strstr (at, "\n" SECTION);
  *length = !next ? strlen (at) : next == at ? 0 : (gsize) (next + 1 - at);
  return at;
}

/* The file with this text as its section; a new one goes to the end. */
static char *
section_replace (const char *file, const char *name, const char *text)
{
  gsize length = 0;
  const char *at = section_find (file, name, &length);
  if (!at)
    return g_strconcat (file, SECTION, name, "\n", text, NULL);
  g_autofree char *before = g_strndup (file, (gsize) (at - file));
  return g_strconcat (before, text, at + length, NULL);
}

void
ls_check_section (const char *file, const char *name, const char *is)
{
  g_autofree char *path = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", file, NULL), *was = NULL;
  if (!g_file_get_contents (path, &was, NULL, NULL))
    was = g_strdup ("");
  if (g_strcmp0 (g_getenv ("LS_UPDATE_GOLDEN"), "1") == 0) {
    g_autofree char *now = section_replace (was, name, is);
    LS_CHECK (g_file_set_contents (path, now, -1, NULL));
    return;
  }
  gsize length = 0;
  const char *at = section_find (was, name, &length);
  bool is_same = at && strlen (is) == length && strncmp (is, at, length) == 0;
  ls_check_impl (is_same, __FILE__, __LINE__,
                 "%s: section %s (LS_UPDATE_GOLDEN=1 writes it anew) should be:\n%s", path, name, is);
}
