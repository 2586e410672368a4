/* `lockstep import`: a job as the files of another program say it. */
#include <string.h>

#include <lockstep/error.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
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
check_model (const LsImport *import, const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_import_model (import, name, diags);
  LsModel model;
  if (!doc || !ls_model_read (doc, &model, NULL, diags))
    return false;
  ls_model_clear (&model);
  return true;
}

static bool
check_strategy (const LsImport *import, const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_import_strategy (import, NULL, name, diags);
  LsStrategy strategy;
  if (!doc || !ls_strategy_read (doc, &strategy, diags))
    return false;
  ls_strategy_clear (&strategy);
  return true;
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
missing_of (const LsImport *import)
{
  GString *keys = g_string_new (NULL);
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (f->required && !f->file_only && !g_hash_table_contains (import->model_said, f->key))
      g_string_append_printf (keys, "%s%s", keys->len > 0 ? ", " : "", f->key);
  return g_string_free (keys, FALSE);
}

/* The strategy too where the model is not whole, which a file of launch options often leaves to others. */
static gboolean
write_files (const LsImport *import, const char *path, LsAnswer *a, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  if (!name)
    return FALSE;
  g_autoptr (LsDiagList) diags = ls_diag_list_new (), of_model = ls_diag_list_new ();
  g_autofree char *model_name = g_strconcat (name, "-model", NULL),
                  *model_path = model_path_of (path, model_name);
  if (!check_strategy (import, name, diags))
    return ls_diag_list_to_error (diags, error);
  bool has_model = check_model (import, model_name, of_model);
  g_autofree char *model = has_model ? ls_import_model_text (import, model_name) : NULL,
                  *strategy = ls_import_strategy_text (import, name);
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
judge (const LsImport *import, const LsRequest *r, LsAnswer *a)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  GError *error = NULL;
  const char *path = ls_request_text (r, "output");
  if (!ls_import_check (import, diags)) {
    ls_diag_list_to_error (diags, &error);
    ls_answer_fail (a, error);
  } else if (import->unknown->len > 0 && ls_request_is_on (r, "strict")) {
    for (guint i = 0; i < import->unknown->len; i++)
      ls_diag_add (diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, NULL,
                   "not known, may matter: %s", (const char *) import->unknown->pdata[i]);
    ls_diag_list_to_error (diags, &error);
    ls_answer_fail (a, error);
  } else if (path && !write_files (import, path, a, &error))
    ls_answer_fail (a, error);
  if (import->unknown->len > 0)
    ls_answer_warn (a,
                    g_strdup_printf ("%u %s not known, and may matter to time or memory",
                                     import->unknown->len,
                                     import->unknown->len == 1 ? "thing is" : "things are"));
}

gboolean
command_import (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = import_free };
  g_autofree const char **paths = ls_request_texts (r, "file");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImport *import = g_new0 (LsImport, 1);
  if (!ls_import_load (paths, NULL, import, diags)) {
    g_free (import);
    return ls_diag_list_to_error (diags, error);
  }
  ls_answer_take (a, import, &forms);
  judge (import, r, a);
  return TRUE;
}
