/* Comparisons of lockstep/lockstep.h. */
#include <math.h>

#include <lockstep/lockstep.h>

#include "ask/compare.h"
#include "show/write_compare.h"
#include "show/write_compare_many.h"

static LsResultCompare *
compare_results (const LsResultFile *a, const LsResultFile *b, const LsDiagList *diags, GError **error)
{
  return ls_diag_list_to_error (diags, error) ? ls_result_compare_new (a, b) : NULL;
}

char *
ls_compare_results (const char *path_a, const char *path_b, gboolean as_json, GError **error)
{
  g_return_val_if_fail (path_a && path_b, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsResultFile) a = ls_result_file_load (path_a, diags);
  g_autoptr (LsResultFile) b = ls_result_file_load (path_b, diags);
  g_autoptr (LsResultCompare) compare = compare_results (a, b, diags, error);
  if (!compare)
    return NULL;
  return as_json ? ls_result_compare_to_json (compare) : ls_result_compare_to_text (compare);
}

char *
ls_compare_many (const char *const *paths, gboolean as_json, GError **error)
{
  g_return_val_if_fail (paths && paths[0] && paths[1], NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_result_file_free);
  for (; *paths; paths++)
    g_ptr_array_add (files, ls_result_file_load (*paths, diags));
  if (!ls_diag_list_to_error (diags, error))
    return NULL;
  LsResultFile *const *all = (LsResultFile *const *) (gpointer) files->pdata;
  return as_json ? ls_compare_many_to_json (all, files->len) : ls_compare_many_to_text (all, files->len);
}

/* Which of the two files is which is known by their columns. */
static gboolean
check_sides (const LsSpanTable *measured, const LsSpanTable *predicted, GError **error)
{
  if (measured->is_measured && !predicted->is_measured)
    return TRUE;
  g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE,
                       measured->is_measured        ? "both files hold measured spans"
                           : predicted->is_measured ? "the measured spans (kernelbench --plan) come first"
                                                    : "both files hold predicted spans");
  return FALSE;
}

static LsSpanCompare *
load_spans (const char *path_measured, const char *path_predicted, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsSpanTable) measured = ls_span_table_load (path_measured, diags);
  g_autoptr (LsSpanTable) predicted = ls_span_table_load (path_predicted, diags);
  if (!ls_diag_list_to_error (diags, error) || !check_sides (measured, predicted, error))
    return NULL;
  return ls_span_compare_new (measured, predicted, error);
}

char *
ls_compare_spans (const char *path_measured, const char *path_predicted, gboolean as_json, GError **error)
{
  g_return_val_if_fail (path_measured && path_predicted, NULL);
  g_autoptr (LsSpanCompare) compare = load_spans (path_measured, path_predicted, error);
  if (!compare)
    return NULL;
  return as_json ? ls_span_compare_to_json (compare) : ls_span_compare_to_text (compare);
}

gboolean
ls_check_spans (const char *path_measured, const char *path_predicted, double max_pct, GError **error)
{
  g_return_val_if_fail (path_measured && path_predicted, FALSE);
  g_autoptr (LsSpanCompare) compare = load_spans (path_measured, path_predicted, error);
  if (!compare)
    return FALSE;
  double error_pct = 100 * (compare->predicted.step_us / compare->measured.step_us - 1);
  if (fabs (error_pct) <= max_pct)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE,
               "the predicted step is off by %+.2f %%, more than %.2f %%", error_pct, max_pct);
  return FALSE;
}
