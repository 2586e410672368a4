/* Pins: what is said about knobs with wrong values, as flags or as ls_job_set() has
 * them, and that a refused knob leaves the job alone. The cases are the lines of
 * tests/reject/flags/cases.txt, "KEY VALUE" each; cases.expect is written anew by
 * LS_UPDATE_GOLDEN=1. */
#include "ls_test.h"

#include <stdio.h>
#include <string.h>

#include "sweep/job.h"

static void
refuse (const char *line, GString *got)
{
  LsJobSpec spec, before;
  ls_job_spec_init (&spec);
  memcpy (&before, &spec, sizeof spec); /* padding and pointers too */
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (line, " ", 2);
  const char *value = words[1] ? words[1] : "";
  ls_check_impl (!ls_job_spec_set (&spec, words[0], value, diags), __FILE__, __LINE__, "%s: was accepted", line);
  ls_check_impl (memcmp (&before, &spec, sizeof spec) == 0, __FILE__, __LINE__, "%s: changed the job", line);
  ls_diag_list_to_error (diags, &error);
  g_autofree char *said = ls_diag_list_format (diags);
  g_string_append_printf (got, "%s\n%sexit %d\n\n", line, said, ls_error_exit_code (error));
  ls_job_spec_clear (&spec);
}

static void
wrong_values_are_explained (void)
{
  g_autofree char *folder = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "reject", "flags", NULL);
  g_autofree char *cases = g_build_filename (folder, "cases.txt", NULL), *golden = g_build_filename (folder, "cases.expect", NULL);
  g_autofree char *text = NULL, *expected = NULL;
  if (!LS_CHECK (g_file_get_contents (cases, &text, NULL, NULL)))
    return;
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GString) got = g_string_new (NULL);
  guint n = 0;
  for (char **line = lines; *line; line++)
    if (**line) {
      refuse (*line, got);
      n++;
    }
  printf ("%u cases\n", n);
  LS_CHECK_INT (n, >=, 80);
  if (g_strcmp0 (g_getenv ("LS_UPDATE_GOLDEN"), "1") == 0)
    LS_CHECK (g_file_set_contents (golden, got->str, -1, NULL));
  g_file_get_contents (golden, &expected, NULL, NULL);
  ls_check_impl (g_strcmp0 (got->str, expected) == 0, __FILE__, __LINE__, "got:\n%s--- expected:\n%s", got->str, expected ? expected : "nothing\n");
}

LS_TEST_MAIN ("flags", LS_TEST (wrong_values_are_explained))
