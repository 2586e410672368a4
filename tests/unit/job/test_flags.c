/* Pins: what is said about knobs with wrong values, as flags or as ls_job_set() has
 * them, and that a refused knob leaves the job alone. The cases are those of
 * tests/reject/flags.txt: a line "KEY VALUE" each. */
#include "reject.h"

#include <string.h>

#include "job/job.h"

static bool
set_knob (const char *path, LsDiagList *diags)
{
  LsJobSpec spec, before;
  g_autofree char *line = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &line, NULL, NULL) && g_str_has_suffix (line, "\n")))
    return true;
  line[strlen (line) - 1] = '\0';
  ls_job_spec_init (&spec);
  memcpy (&before, &spec, sizeof spec); /* padding and pointers too */
  g_auto (GStrv) words = g_strsplit (line, " ", 2);
  bool accepted = ls_job_spec_set (&spec, words[0], words[1] ? words[1] : "", diags);
  ls_check_impl (memcmp (&before, &spec, sizeof spec) == 0, __FILE__, __LINE__, "%s: changed the job", line);
  ls_job_spec_clear (&spec);
  return accepted;
}

static void
wrong_values_are_explained (void)
{
  static const LsRejectKind kind = { "flags", set_knob };
  ls_reject_run ((const char *const[]) { "flags", NULL }, &kind, 1, 120);
}

LS_TEST_SUITE (LS_TEST (wrong_values_are_explained))
