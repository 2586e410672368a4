/* api/command_list.c — commands of data files: list, check, schema. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "show/catalog.h"

/* What is listed; JSON is made when it is asked for. */
typedef struct {
  char *kind; /* NULL: all */
  char *text;
} Data;

static void
data_free (gpointer data)
{
  Data *list = data;
  g_free (list->kind);
  g_free (list->text);
  g_free (list);
}

LS_ANSWER_FORM (to_text, g_strdup (((const Data *) data)->text))
LS_ANSWER_FORM (to_json, ls_catalog_to_json (((const Data *) data)->kind, NULL))

gboolean
command_list (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = data_free };
  const char *kind = ls_request_text (r, "kind");
  char *text = ls_catalog_list (kind, error);
  if (!text)
    return FALSE;
  Data *list = g_new (Data, 1);
  *list = (Data) { g_strdup (kind), text };
  ls_answer_take (a, list, &forms);
  return TRUE;
}

/* --- `lockstep check`: whether data files are right ---------------------------------------------- */

LS_ANSWER_FORM (to_text_check, ls_checked_files_to_text (data))
LS_ANSWER_FORM (to_json_check, ls_checked_files_to_json (data))

LS_ANSWER_FREE (free_files, g_ptr_array_unref)

/* What is wrong in all files, with the code of the first; NULL: nothing. */
static GError *
error_of (const GPtrArray *files)
{
  g_autoptr (GString) wrong = g_string_new (NULL);
  const GError *first = NULL;
  for (guint i = 0; i < files->len; i++) {
    const LsCheckedFile *f = g_ptr_array_index (files, i);
    if (!f->problem)
      continue;
    g_string_append_printf (wrong, "%s%s", wrong->len > 0 ? "\n" : "", f->problem->message);
    first = first ? first : f->problem;
  }
  return first ? g_error_new_literal (first->domain, first->code, wrong->str) : NULL;
}

gboolean
command_check (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = to_text_check, .json = to_json_check, .free = free_files };
  const char *model = ls_request_text (r, "model"), *cluster = ls_request_text (r, "cluster");
  g_autofree const char **paths = ls_request_texts (r, "file");
  GPtrArray *files = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_checked_file_free);
  for (guint i = 0; paths[i]; i++)
    g_ptr_array_add (files, ls_catalog_check (paths[i], model, cluster));
  GError *wrong = error_of (files);
  if (wrong)
    ls_answer_fail (a, wrong);
  ls_answer_take (a, files, &forms);
  return TRUE;
}

/* --- `lockstep schema`: what JSON of ours may hold ----------------------------------------------- */

gboolean
command_schema (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *name = ls_request_text (r, "name");
  char *text = name ? ls_schema_to_json (name, error) : ls_schemas_list ();
  if (text)
    ls_answer_take_text (a, text);
  return text != NULL;
}
