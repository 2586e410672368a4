/* data/launch/import_build.c — keys that an import sets, and whether a file gives them. */
#include "data/launch/import_reader.h"

#include <lockstep/error.h>
#include <string.h>

#include "base/printable.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "model/model.h"

#define MAX_TOLD 2000 /* lines of a list: a file may have a million options */

/* What a key is remarked by is always told. */
static G_GNUC_PRINTF (4, 0) void tell (LsImport *import, LsRemarkKind kind, const char *key,
                                       const char *format, va_list args)
{
  if (!key && import->n_told[kind] >= MAX_TOLD)
    return;
  g_autofree char *text = g_strdup_vprintf (format, args);
  g_strdelimit (text, "\001\002", ' ');
  const LsRemark remark = { ls_printable (text), NULL, key, kind };
  g_array_append_val (import->made.remarks, remark);
  import->n_told[kind]++;
}

#define TELLER(name, kind)                                                                                   \
  void name (LsImport *import, const char *format, ...)                                                      \
  {                                                                                                          \
    va_list args;                                                                                            \
    va_start (args, format);                                                                                 \
    tell (import, kind, NULL, format, args);                                                                 \
    va_end (args);                                                                                           \
  }

TELLER (import_infer, LS_REMARK_INFERRED)
TELLER (import_unknown, LS_REMARK_UNKNOWN)
TELLER (import_ignore, LS_REMARK_IGNORED)
TELLER (import_conflict, LS_REMARK_CONFLICT)

void
import_remark_key (LsImport *import, LsRemarkKind kind, const char *key)
{
  const LsRemark remark = { NULL, NULL, key, kind };
  g_array_append_val (import->made.remarks, remark);
}

void
import_unknown_once (LsImport *import, const char *text)
{
  for (guint i = 0; i < import->made.remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->made.remarks, LsRemark, i);
    if (r->kind == LS_REMARK_UNKNOWN && g_strcmp0 (r->text, text) == 0)
      return;
  }
  import_unknown (import, "%s", text);
}

void
import_positions (LsImport *import, guint64 n)
{
  if (n <= G_MAXUINT32)
    import->positions = MAX (import->positions, (guint32) n);
}

/* --- which words say a key ------------------------------------------------------------------------- */

char *
import_bare_name (const char *name, gsize n)
{
  char *bare = g_strndup (name, n);
  g_strdelimit (bare, "_", '-');
  memmove (bare, bare + strspn (bare, "-"), strlen (bare + strspn (bare, "-")) + 1);
  return bare;
}

void
import_note_word (LsImport *import, const char *name, const char *key)
{
  char *bare = import_bare_name (name, strlen (name));
  for (const char *dot = strchr (bare, '.'); dot; dot = strchr (dot + 1, '.'))
    g_hash_table_add (import->words, g_strdup (dot + 1));
  g_hash_table_add (import->words, bare);
  const LsField *f = key ? ls_field_find (ls_strategy_fields, key) : NULL;
  if (f)
    g_hash_table_add (import->decided, (gpointer) f->key);
}

bool
import_has_option (const LsImport *import, const char *names)
{
  bool is_there = false;
  for (const char *name = names; *name && !is_there; name += strspn (name, " ")) {
    gsize n = strcspn (name, " ");
    g_autofree char *bare = import_bare_name (name, n);
    GHashTableIter words;
    gpointer word;
    is_there = *bare && g_hash_table_contains (import->words, bare);
    g_hash_table_iter_init (&words, import->words);
    while (!is_there && strchr (bare, '*') && g_hash_table_iter_next (&words, &word, NULL))
      is_there = g_pattern_match_simple (bare, word);
    name += n;
  }
  return is_there;
}

/* --- keys that are set ------------------------------------------------------------------------------ */

gpointer
import_target (LsImport *import, const LsField *fields, GHashTable **ret_said)
{
  bool is_model = fields == ls_model_fields;
  *ret_said = is_model ? import->model_said : import->strategy_said;
  return is_model ? (gpointer) &import->model : (gpointer) &import->strategy;
}

void
import_set (LsImport *import, const LsField *fields, const char *key, const char *text, const char *option)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const LsField *f = ls_field_find_value (fields, key);
  GHashTable *said;
  gpointer target = import_target (import, fields, &said);
  g_assert (f);
  if (fields == ls_model_fields && strcmp (key, "seq") == 0)
    import_positions (import, g_ascii_strtoull (text, NULL, 10));
  else if (fields == ls_model_fields)
    import->model_is_sized = true;
  if (g_hash_table_contains (import->given, f->key)) {
    g_autofree char *theirs = ls_import_spelled (fields, f->key, text),
                    *given = ls_field_text (f, target, NULL);
    import->departs = g_strcmp0 (theirs, given) != 0 ? f->key : import->departs;
    return;
  }
  if (ls_field_set_text (fields, target, key, text, diags)) {
    bool is_by_rule = fields == ls_strategy_fields && !g_hash_table_contains (import->decided, f->key)
        && !import_has_option (import, option);
    g_hash_table_add (said, (gpointer) f->key);
    if (is_by_rule)
      g_hash_table_add (import->by_rule, (gpointer) f->key);
    else
      g_hash_table_remove (fields == ls_model_fields ? import->model_by_rule : import->by_rule, f->key);
    return;
  }
  bool is_variable = g_str_has_prefix (text, "${") && strchr (text, '}');
  g_autofree char *hint = is_variable
      ? g_strdup_printf (": give it after the name, %s:%.*s=N", import->made.path,
                         (int) strcspn (text + 2, "}:"), text + 2)
      : NULL;
  import_conflict (import, "%.*s: \"%s\" is no value for %s%s", (int) strcspn (option, " "), option, text,
                   key, hint ? hint : "");
}

void
import_set_text (ImportFile *file, GString *text)
{
  g_free (file->text);
  file->n = text->len;
  file->text = g_string_free (text, FALSE);
  cJSON_Delete (file->yaml->tree);
  *file->yaml = (ImportYaml) { 0 };
}

void
import_use_file (const ImportFile *file)
{
  if (file->is_used)
    *file->is_used = true;
}

const char *
import_given (const ImportFiles *files, const char *name)
{
  for (guint i = 0; i < files->n_given; i++)
    if (strcmp (files->given[i].name, name) == 0) {
      files->given[i].is_used = true;
      return files->given[i].value;
    }
  return NULL;
}

void
import_set_strategy_count (LsImport *import, const char *key, guint64 value, const char *option)
{
  char text[24];
  g_snprintf (text, sizeof text, "%" G_GUINT64_FORMAT, value);
  import_set (import, ls_strategy_fields, key, text, option);
}

/* --- what is left open ----------------------------------------------------------------------------- */

static const char *
static_key (const char *key)
{
  const LsField *f = ls_field_find (ls_strategy_fields, key);
  return (f ? f : ls_field_find_value (ls_model_fields, key))->key;
}

void
import_open (LsImport *import, const char *key, const char *format, ...)
{
  if (g_hash_table_contains (import->given, static_key (key)) || import_is_open (import, key))
    return;
  va_list args;
  va_start (args, format);
  tell (import, LS_REMARK_UNKNOWN, static_key (key), format, args);
  va_end (args);
}

bool
import_is_open (const LsImport *import, const char *key)
{
  return ls_import_remark (&import->made, LS_REMARK_UNKNOWN, static_key (key)) != NULL;
}

bool
import_is_given (const LsImport *import, const char *key)
{
  return g_hash_table_contains (import->given, static_key (key));
}

void
import_follows_gpus (LsImport *import, const char *key)
{
  import_remark_key (import, LS_REMARK_OF_GPUS, static_key (key));
}

void
import_model (LsImport *import, const LsModel *m, const char *source)
{
  if (m->position == LS_POSITION_LEARNED)
    import_positions (import, m->seq);
  for (const LsField *f = ls_model_fields; f->key; f++) {
    bool is_left = !ls_field_is_value (f) || import_has (import, ls_model_fields, f->key)
        || strcmp (f->key, "seq") == 0 || strcmp (f->key, "attention") == 0;
    g_autofree char *text = is_left ? NULL : ls_field_text (f, m, NULL),
                    *usual = g_strdup (ls_field_default (f) ? ls_field_default (f) : ""); /* `"pre"`, false */
    g_strdelimit (usual, "`\"", ' ');
    if (text && strcmp (text, "0") != 0 && strcmp (g_strstrip (usual), text) != 0)
      import_set (import, ls_model_fields, f->key, text, source);
  }
}

bool
import_find_model (const char *name, LsModel *ret_model, bool *ret_is_decoder, char **ret_found)
{
  *ret_found = NULL;
  if (!name || ls_model_of_name (name, ret_model, ret_is_decoder))
    return name != NULL;
  *ret_found = ls_model_name_of_path (name);
  return *ret_found && ls_model_of_name (*ret_found, ret_model, ret_is_decoder);
}

void
import_model_of_name (LsImport *import, const char *name)
{
  LsModel m = { 0 };
  import->model_is_named = true;
  if (import->model_is_given)
    return;
  bool is_decoder;
  g_autofree char *found = NULL;
  if (!import_find_model (name, &m, &is_decoder, &found)) {
    import_unknown (import, "model %s: its dimensions are in no file here", name);
    return;
  }
  const char *slash = found ? strrchr (found, '/') : NULL;
  if (found)
    import_infer (import, "model %s: assumed to be %s, as the end of its path says", name,
                  strstr (name, found) || !slash ? found : slash + 1);
  if (is_decoder)
    import_unknown (import, "model %s: its decoder alone is simulated; what sees or hears is left out", name);
  import_model (import, &m, name);
  import_infer (import, "model %s: %s", name, m.source);
  ls_model_clear (&m);
}

void
import_set_software (LsImport *import, const char *name)
{
  g_free (import->strategy.program.software);
  import->strategy.program.software = g_strdup (name);
  g_hash_table_add (import->strategy_said, (gpointer) "software");
}

bool
import_has (const LsImport *import, const LsField *fields, const char *key)
{
  GHashTable *said = fields == ls_model_fields ? import->model_said : import->strategy_said;
  return g_hash_table_contains (said, ls_field_find_value (fields, key)->key);
}

/* --- jobs of another kind ---------------------------------------------------------------------------- */

bool
import_refuse_task (const char *path, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  return ls_file_diag (diags, LS_ERROR_UNSUPPORTED, path, NULL,
                       "%s: another task; a job of Lockstep trains a decoder on the next token", what);
}
