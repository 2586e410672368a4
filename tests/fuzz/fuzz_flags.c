/* Lines "key=value" as knobs of a job: set, or refused with reasons and without a
 * trace: a knob that is set again to what it was set to is accepted again. */
#include "fuzz.h"

#include <string.h>

#include "job/job.h"

static void
set (LsJobSpec *spec, char *line)
{
  char *value = strchr (line, '=');
  if (!value || !g_utf8_validate (line, -1, NULL)) /* the command line is checked before */
    return;
  *value++ = '\0';
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean ok = ls_job_spec_set (spec, line, value, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  g_assert (!ok || ls_job_spec_set (spec, line, value, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  g_auto (GStrv) lines = g_strsplit (text, "\n", 64);
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (char **line = lines; *line; line++)
    set (&spec, *line);
  LsRunOptions options;
  g_autoptr (GError) error = NULL;
  g_assert (ls_job_spec_options (&spec, &options, &error) || error);
  ls_job_spec_clear (&spec);
  return 0;
}
