#include "data/launch/import.h"

#include <string.h>

#include <lockstep/error.h>

#include "data/jobs/read_model.h"
#include "data/jobs/read_strategy.h"
#include "data/launch/import_reader.h"
#include "data/launch/write_import.h"
#include "data/text/read_file.h"

/* Told in this order: a log has words of a script too. */
static const ImportReader *const readers[] = { &import_megatron_log, &import_megatron };

/* "train_gpt.sh" as "train_gpt". */
static char *
name_of (const char *path)
{
  char *name = g_path_get_basename (path);
  char *dot = strrchr (name, '.');
  if (dot && dot > name)
    *dot = '\0';
  for (char *p = name; *p; p++)
    if (!g_ascii_isalnum (*p) && !strchr ("-_.", *p))
      *p = '-';
  return name;
}

static void
import_init (LsImport *import, const char *path)
{
  *import = (LsImport) { .name = name_of (path), .path = g_strdup (path) };
  import->model.attention = LS_ATTENTION_FLASH;
  ls_strategy_init (&import->strategy);
  import->model_said = g_hash_table_new (g_str_hash, g_str_equal);
  import->strategy_said = g_hash_table_new (g_str_hash, g_str_equal);
  import->inferred = g_ptr_array_new_with_free_func (g_free);
  import->unknown = g_ptr_array_new_with_free_func (g_free);
  import->ignored = g_ptr_array_new_with_free_func (g_free);
  import->conflicts = g_ptr_array_new_with_free_func (g_free);
}

void
ls_import_clear (LsImport *import)
{
  if (!import || !import->name)
    return;
  g_free (import->name);
  g_free (import->path);
  ls_model_clear (&import->model);
  ls_strategy_clear (&import->strategy);
  g_hash_table_unref (import->model_said);
  g_hash_table_unref (import->strategy_said);
  g_ptr_array_unref (import->inferred);
  g_ptr_array_unref (import->unknown);
  g_ptr_array_unref (import->ignored);
  g_ptr_array_unref (import->conflicts);
  *import = (LsImport) { 0 };
}

static bool
read_files (const ImportFiles *files, LsImport *ret_import, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (readers); i++) {
    if (!readers[i]->is_its (&files->files[0]))
      continue;
    LsImport import;
    import_init (&import, files->files[0].path);
    bool ok = readers[i]->read (files, &import, diags);
    if (ok)
      *ret_import = import;
    else
      ls_import_clear (&import);
    return ok;
  }
  ls_diag_add (diags, LS_ERROR_INPUT, files->files[0].path, 0, 0, NULL, NULL, NULL,
               "expected options, a launch script or a log of Megatron-LM; this is none of them");
  return false;
}

static void
file_clear (gpointer file)
{
  g_free (((ImportFile *) file)->text);
}

bool
ls_import_load (const char *const *paths, LsImport *ret_import, LsDiagList *diags)
{
  g_autoptr (GArray) files = g_array_new (FALSE, FALSE, sizeof (ImportFile));
  g_array_set_clear_func (files, file_clear);
  for (; *paths; paths++) {
    size_t n;
    char *text = ls_read_file (*paths, LS_MAX_INPUT_BYTES, &n, diags);
    if (!text)
      return false;
    const ImportFile file = { *paths, text, n };
    g_array_append_val (files, file);
  }
  const ImportFiles all = { (const ImportFile *) (gpointer) files->data, files->len };
  return read_files (&all, ret_import, diags);
}

bool
ls_import_read (const char *text, gsize n, const char *name, LsImport *ret_import, LsDiagList *diags)
{
  g_autofree char *copy = g_malloc (n + 1);
  memcpy (copy, text, n);
  copy[n] = '\0';
  const ImportFile file = { name, copy, n };
  return read_files (&(ImportFiles) { &file, 1 }, ret_import, diags);
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
ls_import_strategy (const LsImport *import, const char *name, LsDiagList *diags)
{
  g_autofree char *text = ls_import_strategy_text (import, name);
  return parse (import, text, name, diags);
}
