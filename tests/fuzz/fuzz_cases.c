/* Any text as a table of measured runs: read, or refused with reasons. */
#include "fuzz.h"

#include "data/measured/read_cases.h"
#include "data/text/csv.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("fuzz.csv", text, -1, diags);
  g_assert ((csv == NULL) == (ls_diag_list_n (diags) > 0));
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++)
    for (guint column = 0; column < ls_csv_n_columns (csv); column++)
      g_assert (ls_csv_cell (csv, row, column) != NULL);

  g_autoptr (LsDiagList) faults = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_parse_cases ("fuzz.csv", text, faults);
  g_assert ((cases == NULL) == (ls_diag_list_n (faults) > 0));
  g_assert (!cases || (csv && cases->len == ls_csv_n_rows (csv)));
  g_autofree char *said = ls_diag_list_format (faults);
  g_assert (g_utf8_validate (said, -1, NULL));
  return 0;
}
