#include "job/job_written.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "job/assumptions.h"
#include "job/job_steps.h"
#include "job/knobs.h"

/* NULL is not set. */
static bool
set (LsJobSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  return !value || ls_job_spec_set (spec, key, value, diags);
}

/* What the text leaves open, or how many ranks there are, as s has it; appended to options. */
static bool
set_open (LsJobSpec *again, const LsStrategy *s, GString *options, LsDiagList *diags)
{
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    bool is_size = strcmp (f->key, "gpus") == 0 && !ls_json_doc_at (again->from->strategy, f->key);
    const LsRemark *open = ls_import_remark (again->from, LS_REMARK_UNKNOWN, f->key);
    g_autofree char *value = is_size || open ? ls_field_text (f, s, NULL) : NULL,
                    *option = value ? ls_field_option (f, value) : NULL;
    if (!set (again, f->key, value, diags))
      return false;
    g_string_append_printf (options, "%s%s", option ? option : "", option ? " " : "");
  }
  return true;
}

/* As --from reads it, on the same GPUs. */
static bool
read_again (const LsJobSpec *spec, const LsEmitJob *job, const char *program, const char *text,
            LsJobSpec *again, LsDiagList *diags)
{
  LsImported from;
  g_autofree char *gpus = g_strdup_printf ("%u", job->strategy->gpus);
  return set (again, "for", program, diags) && set (again, "model", spec->model, diags)
      && set (again, "cluster", spec->cluster, diags)
      && ls_import_read (text, strlen (text), "written", job->model, &from, diags)
      && ls_job_spec_take_import (again, &from, diags) && set (again, "gpus", gpus, diags);
}

/* A configuration of DeepSpeed names no model. */
static bool
says_model (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImported alone;
  if (!ls_import_read (text, strlen (text), "written", NULL, &alone, diags))
    return false;
  bool says = ls_json_doc_at (alone.model, "layers") != NULL;
  ls_import_clear (&alone);
  return says;
}

/* "": none, or the text cannot be read alone. */
static char *
find_lacks (const LsJobSpec *spec, const LsEmitJob *job, const char *program, const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  GString *options = g_string_new (NULL);
  LsJobSpec again;
  ls_job_spec_init (&again);
  again.no_notes = true;
  bool is_read = read_again (spec, job, program, text, &again, diags)
      && set_open (&again, job->strategy, options, diags);
  g_autofree char *model = is_read && spec->model && !says_model (text) ? ls_shell_quote (spec->model) : NULL;
  if (model)
    g_string_append_printf (options, "--model %s ", model);
  g_autoptr (LsJobResult) r = is_read ? ls_job_spec_prepare (&again, NULL) : NULL;
  g_autofree char *rest = r ? ls_job_knobs_instead (&again, job->model, job->strategy, &r->strategy) : NULL;
  g_string_append (options, rest ? rest : "");
  ls_job_spec_clear (&again);
  return g_strchomp (g_string_free (options, FALSE));
}

char *
ls_job_emit (const LsJobSpec *spec, const LsEmitJob *job, const GArray *assumptions, const char *program,
             char **ret_notes, GError **error)
{
  g_autofree char *notes = NULL;
  g_autoptr (GError) refusal = NULL;
  char *text = ls_emit (job, program, &notes, &refusal);
  if (!text) {
    bool is_of_nobody = !spec->software && g_strv_contains (ls_emit_targets (), program)
        && g_error_matches (refusal, LS_ERROR, LS_ERROR_UNSUPPORTED);
    g_propagate_prefixed_error (error, g_steal_pointer (&refusal),
                                is_of_nobody ? "without --for %s, which brings its defaults, " : "", program);
    return NULL;
  }
  g_autofree char *lacks = find_lacks (spec, job, program, text), *rests = ls_assumptions_text (assumptions);
  g_auto (GStrv) lines = g_strsplit (rests ? rests : "", "\n  ", -1);
  g_autofree char *line = g_strjoinv (" ", lines);
  *ret_notes = g_strdup_printf (
      "%s%s%s%s%s%s", notes, line, *line ? "\n" : "",
      *lacks ? "what is written lacks what is set elsewhere; to read it by --from, add " : "", lacks,
      *lacks ? "\n" : "");
  return text;
}
