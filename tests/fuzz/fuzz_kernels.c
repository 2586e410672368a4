/* Any text as a table of kernels: read, or refused with reasons. */
#include "fuzz.h"

#include <math.h>

#include "data/measured/read_kernels.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GArray) rows = ls_parse_kernels ("fuzz.csv", text, "a100", diags);
  g_assert ((rows == NULL) == (ls_diag_list_n (diags) > 0));
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsTimedKernel *t = &g_array_index (rows, LsTimedKernel, i);
    g_assert (t->kernel.bytes > 0 && t->kernel.flops >= 0 && isfinite (t->kernel.flops));
    g_assert (isnan (t->measured_s) || t->measured_s > 0);
  }
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
  return 0;
}
