/* `lockstep compare`: results, or spans, next to each other. */
#include <math.h>
#include <string.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/job_answer.h"
#include "api/request.h"
#include "ask/compare.h"
#include "data/text/override.h"
#include "data/text/read_file.h"
#include "show/answers.h"

/* --- results -------------------------------------------------------------------------------------- */

#define FILES(data) ((LsResultFile *const *) (gpointer) ((const GPtrArray *) (data))->pdata)

LS_ANSWER_FORM (files_to_text, ls_compare_to_text (FILES (data), ((const GPtrArray *) data)->len))
LS_ANSWER_FORM (files_to_json, ls_compare_to_json (FILES (data), ((const GPtrArray *) data)->len, NULL))
LS_ANSWER_FREE (files_free, g_ptr_array_unref)

/* Whether the file is a result, or another of ours; what cannot be read is one that says why. */
static gboolean
is_result (const char *path)
{
  size_t n;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  return text ? *(text + strspn (text, " \t\r\n")) == '{'
          && (strstr (text, "\"provenance\"") || strstr (text, "\"lockstep."))
              : !ls_override_find (path);
}

/* A job of another program's file, simulated. */
static gboolean
add_job (const LsRequest *r, const char *path, GPtrArray *files, LsAnswer *a, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJobAnswer) job = ls_job_answer_new_of (r, path, a, error);
  g_autofree char *json = job ? ls_job_answer_to_json (job, ls_version ()) : NULL;
  if (!job)
    return FALSE;
  g_ptr_array_add (files, ls_result_file_parse (path, json, diags));
  return ls_diag_list_to_error (diags, error);
}

static gboolean
compare_results (const LsRequest *r, const char *const *paths, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = files_to_text, .json = files_to_json, .free = files_free };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_result_file_free);
  guint n_jobs = 0;
  for (; *paths; paths++) {
    if (is_result (*paths)) {
      g_ptr_array_add (files, ls_result_file_load (*paths, diags));
      continue;
    }
    n_jobs++;
    if (!add_job (r, *paths, files, a, error))
      return FALSE;
  }
  if (!ls_diag_list_to_error (diags, error))
    return FALSE;
  if (n_jobs == 0 && ls_request_has_knobs (r))
    return ls_request_refuse ("options of a job go with its launch files; these are results", error);
  ls_answer_take (a, g_steal_pointer (&files), &forms);
  return TRUE;
}

/* --- spans ---------------------------------------------------------------------------------------- */

LS_ANSWER_FORM (spans_to_text, ls_span_compare_to_text (data))
LS_ANSWER_FORM (spans_to_json, ls_compare_to_json (NULL, 0, data))
LS_ANSWER_FREE (spans_free, ls_span_compare_free)

/* Which of the two files is which is known by their columns. */
static gboolean
check_sides (const LsSpanTable *measured, const LsSpanTable *predicted, GError **error)
{
  if (measured->is_measured && !predicted->is_measured)
    return TRUE;
  return ls_request_refuse (measured->is_measured ? "both files hold measured spans"
                                : predicted->is_measured
                                ? "the measured spans (kernelbench --plan) come first"
                                : "both files hold predicted spans",
                            error);
}

static LsSpanCompare *
load_spans (const char *const *paths, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsSpanTable) measured = ls_span_table_load (paths[0], diags);
  g_autoptr (LsSpanTable) predicted = ls_span_table_load (paths[1], diags);
  if (!ls_diag_list_to_error (diags, error) || !check_sides (measured, predicted, error))
    return NULL;
  return ls_span_compare_new (measured, predicted, error);
}

static gboolean
compare_spans (const char *const *paths, double max_pct, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = spans_to_text, .json = spans_to_json, .free = spans_free };
  LsSpanCompare *compare = load_spans (paths, error);
  if (!compare)
    return FALSE;
  ls_answer_take (a, compare, &forms);
  double error_pct = 100 * (compare->predicted.step_us / compare->measured.step_us - 1);
  if (!(fabs (error_pct) <= max_pct))
    ls_answer_fail_with (a, LS_ERROR_TOLERANCE, "the predicted step is off by %+.2f %%, more than %.2f %%",
                         error_pct, max_pct);
  return TRUE;
}

/* --- the command ---------------------------------------------------------------------------------- */

gboolean
command_compare (const LsRequest *r, LsAnswer *a, GError **error)
{
  g_autofree const char **paths = ls_request_paths (r, "file", "from");
  guint n = paths ? g_strv_length ((char **) paths) : 0;
  gboolean has_spans = ls_request_is_on (r, "spans");
  double max_pct = INFINITY;
  if (n < 2 || (has_spans && n != 2))
    return ls_fail (error, LS_ERROR_USAGE, "expected two files%s; got %u", has_spans ? "" : " or more", n);
  if (!ls_request_percent (r, "max-error", G_MAXDOUBLE, &max_pct, error))
    return FALSE;
  return has_spans ? compare_spans (paths, max_pct, a, error) : compare_results (r, paths, a, error);
}
