/* `lockstep import`: a job as the files of another program say it. */
#include <string.h>

#include <lockstep/error.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "data/inspect.h"
#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"
#include "data/text/write_file.h"
#include "show/tell_import.h"

LS_ANSWER_FORM (to_text, ls_import_to_text (data))
LS_ANSWER_FORM (to_json, ls_import_to_json (data))

static void
import_free (gpointer import)
{
  ls_import_clear (import);
  g_free (import);
}

/* Read back before it is written: what our own reader refuses is none of our files. */
static bool
check (const char *text, const char *name, LsDiagList *diags)
{
  const char *kind;
  LsJsonDoc *doc = ls_import_parse (text, name, diags);
  g_autofree char *what = doc ? ls_inspect_doc (doc, &kind, diags) : NULL;
  return what != NULL;
}

/* NAME-model.json beside NAME.json; newly allocated. */
static char *
model_path_of (const char *path, const char *model_name)
{
  g_autofree char *folder = g_path_get_dirname (path), *file = g_strconcat (model_name, ".json", NULL);
  return strchr (path, '/') ? g_build_filename (folder, file, NULL) : g_strdup (file);
}

/* Keys of a model that the file does not say, with commas. The caller frees it. */
static char *
missing_of (const LsImported *import)
{
  GString *keys = g_string_new (NULL);
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (f->required && !f->file_only && !ls_json_doc_at (import->model, f->key))
      g_string_append_printf (keys, "%s%s", keys->len > 0 ? ", " : "", f->key);
  return g_string_free (keys, FALSE);
}

/* The strategy too where the model is not whole, which a file of launch options often leaves to others. */
static gboolean
write_files (const LsImported *import, const char *path, LsAnswer *a, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  if (!name)
    return FALSE;
  g_autoptr (LsDiagList) diags = ls_diag_list_new (), of_model = ls_diag_list_new ();
  g_autofree char *model_name = g_strconcat (name, "-model", NULL),
                  *model_path = model_path_of (path, model_name),
                  *model = ls_import_text (import->model, NULL, model_name),
                  *strategy = ls_import_text (import->strategy, NULL, name);
  if (!check (strategy, name, diags))
    return ls_diag_list_to_error (diags, error);
  bool has_model = check (model, model_name, of_model);
  if ((has_model && !ls_write_text (model_path, model, error)) || !ls_write_text (path, strategy, error))
    return FALSE;
  ls_answer_note (a, "written: %s%s%s--strategy %s", has_model ? "--model " : "", has_model ? model_path : "",
                  has_model ? " " : "", path);
  g_autofree char *missing = missing_of (import);
  if (!has_model && !*missing)
    return ls_diag_list_to_error (of_model, error);
  if (!has_model)
    ls_answer_note (a,
                    "no model is written, as the file does not say %s: give it behind the file's name, or "
                    "the model by --model",
                    missing);
  return TRUE;
}

/* Contradictions first: they are refused. */
static void
judge (const LsImported *import, const LsRequest *r, LsAnswer *a)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  GError *error = NULL;
  const char *path = ls_request_text (r, "output");
  guint n_unknown = ls_import_n_remarks (import, LS_REMARK_UNKNOWN);
  if (ls_import_refuse (import, LS_REMARK_CONFLICT, LS_ERROR_CONFLICT, "", diags)
      && ls_request_is_on (r, "strict"))
    ls_import_refuse (import, LS_REMARK_UNKNOWN, LS_ERROR_UNSUPPORTED, LS_IMPORT_NOT_KNOWN, diags);
  if (!ls_diag_list_to_error (diags, &error) || (path && !write_files (import, path, a, &error)))
    ls_answer_fail (a, error);
  if (n_unknown > 0)
    ls_answer_warn (a,
                    g_strdup_printf ("%u %s not known, and may matter to time or memory", n_unknown,
                                     n_unknown == 1 ? "thing is" : "things are"));
}

gboolean
command_import (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = import_free };
  g_autofree const char **paths = ls_request_texts (r, "file");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImported *import = g_new0 (LsImported, 1);
  if (!ls_import_load (paths, NULL, import, diags)) {
    g_free (import);
    return ls_diag_list_to_error (diags, error);
  }
  ls_answer_take (a, import, &forms);
  judge (import, r, a);
  return TRUE;
}
