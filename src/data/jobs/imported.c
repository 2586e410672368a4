#include "data/jobs/imported.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/text/field.h"

void
ls_import_clear (LsImport *import)
{
  if (!import || !import->name)
    return;
  g_free (import->name);
  g_free (import->path);
  g_ptr_array_unref (import->files);
  g_ptr_array_unref (import->asked);
  g_array_unref (import->options);
  g_free (import->measured.path);
  ls_model_clear (&import->model);
  ls_strategy_clear (&import->strategy);
  g_hash_table_unref (import->model_said);
  g_hash_table_unref (import->strategy_said);
  g_hash_table_unref (import->by_rule);
  g_hash_table_unref (import->words);
  g_hash_table_unref (import->decided);
  g_hash_table_unref (import->given);
  g_hash_table_unref (import->open);
  g_hash_table_unref (import->follows_gpus);
  g_ptr_array_unref (import->inferred);
  g_ptr_array_unref (import->unknown);
  g_ptr_array_unref (import->ignored);
  g_ptr_array_unref (import->conflicts);
  *import = (LsImport) { 0 };
}

/* --- what is only its program's ---------------------------------------------------------------------- */

bool
ls_import_gives_way (const LsImport *import, const LsField *key)
{
  return !key->of_job && g_hash_table_contains (import->by_rule, key->key)
      && g_hash_table_contains (import->strategy_said, key->key);
}

/* --- what a launch file said, written by the field tables of our files --------------------------- */

/* The rows of a table that are set. */
static LsField *
rows_of (const LsField *fields, GHashTable *said)
{
  GArray *rows = g_array_new (TRUE, TRUE, sizeof (LsField));
  for (const LsField *f = fields; f->key; f++)
    if (g_hash_table_contains (said, f->key))
      g_array_append_val (rows, *f);
  return (LsField *) (gpointer) g_array_free (rows, FALSE);
}

static void
write_rows (const LsField *fields, GHashTable *said, LsJsonOut *w, const void *target)
{
  g_autofree LsField *rows = rows_of (fields, said);
  ls_fields_write (rows, w, target, NULL);
}

void
ls_import_write_model (const LsImport *import, LsJsonOut *w)
{
  write_rows (ls_model_fields, import->model_said, w, &import->model);
}

void
ls_import_write_strategy (const LsImport *import, LsJsonOut *w)
{
  write_rows (ls_strategy_fields, import->strategy_said, w, &import->strategy);
}

static char *
value_of (const LsField *fields, GHashTable *said, const void *target, const char *key)
{
  const LsField *f = fields;
  while (f->key && !g_str_equal (f->key, key))
    f++;
  return f->key && g_hash_table_contains (said, f->key) ? ls_field_text (f, target, NULL) : NULL;
}

char *
ls_import_model_value (const LsImport *import, const char *key)
{
  return value_of (ls_model_fields, import->model_said, &import->model, key);
}

char *
ls_import_strategy_value (const LsImport *import, const char *key)
{
  return value_of (ls_strategy_fields, import->strategy_said, &import->strategy, key);
}

static char *
file_text (const LsImport *import, const char *schema, const char *name,
           void (*write) (const LsImport *import, LsJsonOut *w))
{
  GString *text = g_string_new (NULL);
  g_autofree char *base = g_path_get_basename (import->path),
                  *source = g_strdup_printf ("%s, %s", import->program, base);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "schema", schema);
  ls_json_out_string (&w, "name", name);
  ls_json_out_string (&w, "source", source);
  write (import, &w);
  ls_json_out_end_object (&w);
  g_string_append_c (text, '\n');
  return g_string_free (text, FALSE);
}

char *
ls_import_model_text (const LsImport *import, const char *name)
{
  return file_text (import, "lockstep.model/1", name, ls_import_write_model);
}

char *
ls_import_strategy_text (const LsImport *import, const char *name)
{
  return file_text (import, "lockstep.strategy/1", name, ls_import_write_strategy);
}

/* --- as our files --------------------------------------------------------------------------------- */

bool
ls_import_check (const LsImport *import, LsDiagList *diags)
{
  for (guint i = 0; i < import->conflicts->len; i++)
    ls_diag_add (diags, LS_ERROR_CONFLICT, import->path, 0, 0, NULL, NULL, NULL, "%s",
                 (const char *) import->conflicts->pdata[i]);
  return import->conflicts->len == 0;
}

static LsJsonDoc *
parse (const LsImport *import, const char *text, const char *name, LsDiagList *diags)
{
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  return ls_import_check (import, diags) ? ls_json_doc_parse (text, strlen (text), file, diags) : NULL;
}

LsJsonDoc *
ls_import_model (const LsImport *import, const char *name, LsDiagList *diags)
{
  g_autofree char *text = ls_import_model_text (import, name);
  return parse (import, text, name, diags);
}

LsJsonDoc *
ls_import_strategy (const LsImport *import, GHashTable *without, const char *name, LsDiagList *diags)
{
  LsImport rest = *import; /* borrows */
  g_autoptr (GHashTable) said = g_hash_table_new (g_str_hash, g_str_equal);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (g_hash_table_contains (import->strategy_said, f->key)
        && !(without && g_hash_table_contains (without, f->key)))
      g_hash_table_add (said, (gpointer) f->key);
  rest.strategy_said = said;
  g_autofree char *text = ls_import_strategy_text (&rest, name);
  return parse (import, text, name, diags);
}
