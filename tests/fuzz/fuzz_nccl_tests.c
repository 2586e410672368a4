/* Any text as an output of nccl-tests: read, or refused with reasons. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "data/measured/read_nccl_tests.h"

static void
check_run (const LsNcclTests *t)
{
  g_assert (t->rows->len > 0 && t->n_ranks > 0 && t->n_hosts > 0);
  for (guint i = 0; i < t->rows->len; i++) {
    const LsNcclTestsRow *row = &g_array_index (t->rows, LsNcclTestsRow, i);
    g_assert (row->bytes > 0 && row->time_us > 0 && isfinite (row->time_us));
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) runs = ls_nccl_tests_parse ("fuzz", text, strlen (text), diags);
  g_assert ((runs == NULL) == (ls_diag_list_n (diags) > 0));
  for (guint i = 0; runs && i < runs->len; i++)
    check_run (runs->pdata[i]);
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
  return 0;
}
