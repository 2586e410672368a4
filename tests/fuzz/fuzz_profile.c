/* Any text as measured kernels, a profile or a table: read, or refused with reasons. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "data/measured/read_profile.h"

static void
check (const GArray *kernels, guint n_rows)
{
  for (guint i = 0; i < kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    g_assert (t->measured_s > 0 && isfinite (t->measured_s) && t->kernel.bytes > 0 && t->row < n_rows);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsProfile) p = ls_profile_parse ("fuzz", text, strlen (text), "a100", diags);
  g_assert ((p == NULL) == (ls_diag_list_n (diags) > 0));
  if (p) {
    check (p->kernels, p->n_rows);
    check (p->sustained, p->n_rows);
    for (guint i = 0; i < p->n_rows; i++)
      ls_profile_error (p, i, diags, "row %u", i);
  }
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
  return 0;
}
