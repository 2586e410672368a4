/* Times of kernels: LsKernelQuery of lockstep/lockstep.h. */
#include <lockstep/lockstep.h>

#include "ask/kernel.h"
#include "show/fits/write_kernel.h"

struct LsKernelQuery {
  LsKernelSpec spec;
};

LsKernelQuery *
ls_kernel_query_new (void)
{
  LsKernelQuery *query = g_new0 (LsKernelQuery, 1);
  ls_kernel_spec_init (&query->spec);
  return query;
}

void
ls_kernel_query_free (LsKernelQuery *query)
{
  if (!query)
    return;
  ls_kernel_spec_clear (&query->spec);
  g_free (query);
}

gboolean
ls_kernel_query_set (LsKernelQuery *query, const char *key, const char *value, GError **error)
{
  g_return_val_if_fail (query && key && value, FALSE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_kernel_spec_set (&query->spec, key, value, diags) || ls_diag_list_to_error (diags, error);
}

char *
ls_kernel_query_text (const LsKernelQuery *query, GError **error)
{
  g_return_val_if_fail (query, NULL);
  g_autoptr (LsKernelRows) rows = ls_kernel_rows_new (&query->spec, error);
  return rows ? ls_kernel_rows_to_text (rows) : NULL;
}

char *
ls_kernel_query_json (const LsKernelQuery *query, GError **error)
{
  g_return_val_if_fail (query, NULL);
  g_autoptr (LsKernelRows) rows = ls_kernel_rows_new (&query->spec, error);
  return rows ? ls_kernel_rows_to_json (rows) : NULL;
}
