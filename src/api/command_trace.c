/* `lockstep trace`: what a job does as a file. */

#include <string.h>

#include "api/commands.h"
#include "api/job_answer.h"
#include "ask/profile/import_profile.h"
#include "data/text/write_file.h"
#include "data/traces/traces.h"
#include "job/assumptions.h"
#include "show/answers.h"

/* --- profiles become a trace ------------------------------------------------------------------------ */

typedef struct {
  LsProfileImport *import;
  LsTime replayed; /* 0: it was not */
  char *cluster, *rests;
} Answer;

static void
answer_free (gpointer data)
{
  Answer *answer = data;
  ls_profile_import_free (answer->import);
  g_free (answer->cluster);
  g_free (answer->rests);
  g_free (answer);
}

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const Answer *answer = data;
  return ls_profile_import_to_text (answer->import, answer->replayed, answer->cluster, answer->rests);
}

static const LsAnswerForms forms = { .text = to_text, .free = answer_free };

static gboolean
read_scale (const LsRequest *r, double *scale, GError **error)
{
  const char *text = ls_request_text (r, "compute-scale");
  char *end = NULL;
  *scale = text ? g_ascii_strtod (text, &end) : 1;
  if (!text || (*text && !*end && *scale > 0 && *scale <= LS_TRACE_MAX_SCALE))
    return TRUE;
  return ls_fail (
      error, LS_ERROR_USAGE,
      "--compute-scale: expected a factor of the time of kernels, above 0 and at most %g; got \"%s\"",
      LS_TRACE_MAX_SCALE, text);
}

/* As `lockstep run --trace` would. */
static gboolean
replay (Answer *answer, LsJobSpec *spec, const char *path, GError **error)
{
  g_free (spec->trace);
  spec->trace = g_path_is_absolute (path) ? g_strdup (path) : g_build_filename (".", path, NULL);
  g_autoptr (LsJobResult) result = ls_job_spec_run (spec, error);
  if (!result)
    return FALSE;
  answer->replayed = result->timeline->window_end - result->timeline->window_start;
  answer->cluster = g_strdup (result->cluster->spec.name);
  ls_assumptions_drop_memory (result);
  answer->rests = ls_assumptions_text (result->assumptions);
  for (guint i = 0; result->notes && i < result->notes->len; i++)
    if (!g_ptr_array_find_with_equal_func (answer->import->notes, result->notes->pdata[i], g_str_equal, NULL))
      g_ptr_array_add (answer->import->notes, g_strdup (result->notes->pdata[i]));
  return TRUE;
}

static gboolean
write_and_replay (const LsRequest *r, Answer *answer, const char *path, GError **error)
{
  LsJobSpec spec;
  gboolean ok = ls_request_job (r, &spec, error);
  if (ok && !spec.cluster && ls_request_has_knobs (r))
    ok = ls_request_refuse ("options of a job go with --cluster, on which the trace is replayed", error);
  ok = ok && ls_write_text (path, answer->import->text, error)
      && (!spec.cluster || replay (answer, &spec, path, error));
  ls_job_spec_clear (&spec);
  return ok;
}

/* --- Chakra traces --------------------------------------------------------------------------- */

static gboolean
check_folder (const LsRequest *r, const char *const *paths, GError **error)
{
  static const char *const profiles[] = { "step", "as-measured", "without-stalls", "compute-scale", NULL };
  if (ls_request_has_any (r, profiles))
    return ls_request_refuse ("a folder of Chakra traces is imported as it is: --step, --as-measured, "
                              "--without-stalls and --compute-scale go with profiles",
                              error);
  return !paths[1] || ls_request_refuse ("a folder of Chakra traces is imported by itself", error);
}

/* The folder as a file of ours. */
static gboolean
write_folder (const char *folder, const char *name, const char *path, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *place
      = g_path_is_absolute (folder) ? g_strdup (folder) : g_build_filename (".", folder, NULL);
  g_autoptr (LsTrace) t = ls_trace_load (place, 0, diags);
  if (!ls_diag_list_to_error (diags, error))
    return FALSE;
  const LsTraceHead head = { .name = name,
                             .source = t->source,
                             .measured_on = t->measured_on,
                             .assumes = t->assumes,
                             .compute_scale = t->compute_scale,
                             .model = t->has_model ? &t->model : NULL,
                             .strategy = t->has_model ? &t->strategy : NULL };
  g_autofree char *text = ls_trace_format (t->plan, &head, error);
  return text && ls_write_text (path, text, error);
}

static gboolean
import_folder (const LsRequest *r, LsAnswer *a, const char *const *paths, GError **error)
{
  const char *path = ls_request_text (r, "output");
  g_autofree char *name = check_folder (r, paths, error) ? ls_output_name (path, error) : NULL;
  if (!name
      || (ls_request_has_knobs (r)
          && !ls_request_refuse ("options of a job go with lockstep run --trace", error))
      || !write_folder (paths[0], name, path, error))
    return FALSE;
  ls_answer_take_text (a, g_strdup (""));
  return TRUE;
}

/* Errors as of ls_profile_import_new(), ls_write_text() and, with a cluster to replay on,
 * ls_job_spec_run(). */
static gboolean
import_profiles (const LsRequest *r, LsAnswer *a, GError **error)
{
  g_autofree const char **paths = ls_request_texts (r, "file");
  const char *path = ls_request_text (r, "output");
  g_autofree char *name = NULL;
  LsProfileImportSpec spec = { .paths = paths,
                               .step = ls_request_text (r, "step"),
                               .as_measured = ls_request_is_on (r, "as-measured"),
                               .changes = { .without_stalls = ls_request_is_on (r, "without-stalls") } };
  if (g_file_test (paths[0], G_FILE_TEST_IS_DIR))
    return import_folder (r, a, paths, error);
  if (!ls_measured_step_check (spec.step, error) || !read_scale (r, &spec.changes.compute_scale, error)
      || !(name = ls_output_name (path, error)))
    return FALSE;
  spec.name = name;
  Answer *answer = g_new0 (Answer, 1);
  answer->import = ls_profile_import_new (NULL, &spec, error);
  if (!answer->import || !write_and_replay (r, answer, path, error)) {
    answer_free (answer);
    return FALSE;
  }
  ls_answer_note_all (a, answer->import->notes);
  ls_job_tell_idle (r, LS_IDLE_OF_MEMORY, a);
  ls_answer_take (a, answer, &forms);
  return TRUE;
}

/* --- the command ------------------------------------------------------------------------------------ */

/* "a/gpt3.json" is named gpt3: a file says its own name. */
static char *
name_of (const char *path)
{
  g_autofree char *base = g_path_get_basename (path);
  char *suffix = g_str_has_suffix (base, ".json") ? base + strlen (base) - strlen (".json") : NULL;
  return g_strndup (base, suffix ? (gsize) (suffix - base) : strlen (base));
}

/* --- export: the plan of a job ---------------------------------------------------------------------- */

static gboolean
export_job (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *path = ls_request_text (r, "output");
  g_autofree char *name = name_of (path);
  LsJobSpec spec;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  gboolean ok = ls_request_job (r, &spec, error)
      && ls_job_spec_export (&spec, ls_request_text (r, "format"), name, path, notes, error);
  ls_answer_note_all (a, notes);
  ls_job_tell_idle (r, LS_IDLE_OF_REPLAY, a);
  ls_job_spec_clear (&spec);
  if (ok)
    ls_answer_take_text (a, g_strdup (""));
  return ok;
}

/* --- the command ---------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  gboolean (*run) (const LsRequest *r, LsAnswer *a, GError **error);
} actions[] = {
  { "export", export_job },
  { "import", import_profiles },
};

gboolean
command_trace (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *action = ls_request_text (r, "action");
  for (guint i = 0; action && i < G_N_ELEMENTS (actions); i++)
    if (strcmp (action, actions[i].name) == 0)
      return ls_request_text (r, "output") ? actions[i].run (r, a, error)
                                           : ls_request_refuse ("expected -o FILE", error);
  const char *names[G_N_ELEMENTS (actions) + 1] = { NULL };
  for (guint i = 0; i < G_N_ELEMENTS (actions); i++)
    names[i] = actions[i].name;
  return ls_request_refuse_word (NULL, names, action, error);
}
