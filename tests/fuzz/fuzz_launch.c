/* Any text as a launch file: read, or refused with reasons. What is read without a contradiction is written
 * as a strategy that our own reader accepts. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"

static void
check_lists (const LsImport *import)
{
  const GPtrArray *const lists[] = { import->inferred, import->unknown, import->ignored, import->conflicts };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    for (guint k = 0; k < lists[i]->len; k++)
      g_assert (g_utf8_validate (lists[i]->pdata[k], -1, NULL));
  g_assert (isfinite (import->measured.step_s) && import->measured.step_s >= 0);
  g_assert (import->measured.n_steady <= import->measured.n_lines);
}

static void
read_back (const LsImport *import)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_import_strategy (import, NULL, "fuzz", diags);
  LsStrategy s;
  g_assert ((doc != NULL) == (import->conflicts->len == 0));
  if (doc && ls_strategy_read (doc, &s, diags))
    ls_strategy_clear (&s);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImport import;
  bool ok = ls_import_read ((const char *) data, n, "fuzz.sh", NULL, &import, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
  if (!ok)
    return 0;
  check_lists (&import);
  read_back (&import);
  ls_import_clear (&import);
  return 0;
}
