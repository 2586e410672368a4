#include "data/jobs/imported.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/text/field.h"

void
ls_import_clear (gpointer data)
{
  LsImported *import = data;
  if (!import || !import->name)
    return;
  g_free (import->name);
  g_free (import->path);
  g_ptr_array_unref (import->files);
  g_ptr_array_unref (import->asked);
  ls_json_doc_free (import->model);
  ls_json_doc_free (import->strategy);
  g_array_unref (import->remarks);
  ls_measured_clear (&import->measured);
  *import = (LsImported) { 0 };
}

void
ls_import_unref (gpointer import)
{
  if (import)
    g_atomic_rc_box_release_full (import, ls_import_clear);
}

/* --- remarks ----------------------------------------------------------------------------------------- */

const LsRemark *
ls_import_remark (const LsImported *import, LsRemarkKind kind, const char *key)
{
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->remarks, LsRemark, i);
    if (r->kind == kind && r->key && (!key || strcmp (r->key, key) == 0))
      return r;
  }
  return NULL;
}

guint
ls_import_n_remarks (const LsImported *import, LsRemarkKind kind)
{
  guint n = 0;
  for (guint i = 0; i < import->remarks->len; i++)
    n += g_array_index (import->remarks, LsRemark, i).kind == kind;
  return n;
}

bool
ls_import_refuse (const LsImported *import, LsRemarkKind kind, LsErrorCode code, const char *before,
                  LsDiagList *diags)
{
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->remarks, LsRemark, i);
    if (r->kind == kind)
      ls_file_diag (diags, code, import->path, NULL, "%s%s", before, r->text);
  }
  return ls_import_n_remarks (import, kind) == 0;
}

/* --- documents --------------------------------------------------------------------------------------- */

const cJSON *
ls_import_first (const LsJsonDoc *doc)
{
  return ls_json_doc_at (doc, "source")->next;
}

void
ls_import_write (const LsJsonDoc *doc, GHashTable *without, LsJsonOut *w)
{
  for (const cJSON *one = ls_import_first (doc); one; one = one->next)
    if (!without || !g_hash_table_contains (without, one->string))
      ls_json_out_node (w, one->string, one);
}

char *
ls_import_text (const LsJsonDoc *doc, GHashTable *without, const char *name)
{
  const cJSON *root = ls_json_doc_root (doc);
  LsJsonOut w;
  ls_json_out_open (&w);
  ls_json_out_string (&w, "schema", ls_json_text (root, "schema"));
  ls_json_out_string (&w, "name", name);
  ls_json_out_string (&w, "source", ls_json_text (root, "source"));
  ls_import_write (doc, without, &w);
  return ls_json_out_close (&w);
}

LsJsonDoc *
ls_import_parse (const char *text, const char *name, LsDiagList *diags)
{
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  return ls_json_doc_parse (text, strlen (text), file, diags);
}

/* Of which a key of a table is set. */
typedef union {
  LsModel model;
  LsStrategy strategy;
} Either;

/* Clears what was set. row: a table of that key. */
static char *
text_of (const LsField *row, Either *set)
{
  char *text = ls_field_text (row, set, NULL);
  ls_fields_clear (row, set);
  return text;
}

char *
ls_import_spelled (const LsField *fields, const char *key, const char *text)
{
  Either set = { 0 };
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  return ls_field_set_text (fields, &set, key, text, none)
      ? text_of ((const LsField[]) { *ls_field_find_value (fields, key), { NULL } }, &set)
      : NULL;
}

char *
ls_import_value (const LsJsonDoc *doc, const LsField *fields, const char *key)
{
  Either set = { 0 };
  while (fields->key && strcmp (fields->key, key) != 0)
    fields++;
  if (!fields->key || !ls_json_doc_at (doc, key))
    return NULL;
  const LsField row[] = { *fields, { NULL } };
  g_autoptr (GPtrArray) others = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  ls_fields_read (row, doc, ls_json_doc_root (doc), &set, others, none);
  return text_of (row, &set);
}
