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
#include "show/answers.h"

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

/* 0: the strategy does not have it. */
static unsigned
count_of (const LsImported *import, const char *key)
{
  const cJSON *value = ls_json_doc_at (import->strategy, key);
  return value ? (unsigned) value->valuedouble : 0;
}

/* Sequences of a step of each copy of the model, by the files on the GPUs of one copy; 0: not known. */
static unsigned
batch_of_copy (const LsImported *import)
{
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  g_autoptr (GPtrArray) paths = g_ptr_array_new ();
  unsigned tp = count_of (import, "tp"), pp = count_of (import, "pp"), cp = count_of (import, "cp");
  g_autofree char *gpus = g_strdup_printf (":gpus=%u", MAX (tp, 1) * MAX (pp, 1) * MAX (cp, 1));
  LsImported one;
  g_ptr_array_extend (paths, import->asked, NULL, NULL);
  g_ptr_array_add (paths, gpus);
  g_ptr_array_add (paths, NULL);
  if (!ls_import_load ((const char *const *) paths->pdata, NULL, &one, unheard))
    return 0;
  bool follows = ls_import_remark (&one, LS_REMARK_OF_GPUS, "global_batch") != NULL;
  unsigned batch = follows ? count_of (&one, "global_batch") : 0;
  ls_import_clear (&one);
  return batch;
}

/* What --from asks for where the file leaves it open: a strategy without it is another job's. */
static void
warn_of_batch (const LsImported *import, LsAnswer *a)
{
  unsigned batch = count_of (import, "global_batch"), each = batch > 0 ? 0 : batch_of_copy (import);
  if (count_of (import, "micro_batch") == 0)
    ls_answer_note (a, "warning: no micro_batch is written: add --micro-batch N");
  if (each > 0)
    ls_answer_note (a, "warning: no global_batch is written: add --global-batch %u x the copies", each);
  else if (batch == 0)
    ls_answer_note (a, "warning: no global_batch is written: add --global-batch N");
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
  warn_of_batch (import, a);
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
