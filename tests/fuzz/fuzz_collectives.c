/* Any text as a table of measured collectives: read, or refused with reasons. */
#include "fuzz.h"

#include "data/measured/read_collectives.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) rows = ls_parse_collectives ("fuzz.csv", text, diags);
  g_assert ((rows == NULL) == (ls_diag_list_n (diags) > 0));
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsMeasuredCollective *m = g_ptr_array_index (rows, i);
    g_assert (m->cluster && m->op && *m->op && m->n_nodes > 0 && m->n_gpus % m->n_nodes == 0
              && m->time_us > 0);
  }
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
  return 0;
}
