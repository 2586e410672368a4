/* data/launch/import_build.c — keys that an import sets, and whether a file gives them; the optimizer by
 * what programs call it. */
#include "data/launch/import_reader.h"

#include <lockstep/error.h>
#include <string.h>

#include "base/printable.h"
#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"
#include "data/text/field.h"
#include "model/model.h"
#include "strategy/shard.h"

#define MAX_TOLD 2000 /* lines of a list: a file may have a million options */

/* What a key is remarked by is always told. */
static G_GNUC_PRINTF (4, 0) void tell (LsImport *import, LsRemarkKind kind, const char *key,
                                       const char *format, va_list args)
{
  if (!key && import->n_told[kind] >= MAX_TOLD)
    return;
  g_autofree char *text = g_strdup_vprintf (format, args);
  g_strdelimit (text, "\001\002", ' ');
  const LsRemark remark = { kind, key, ls_printable (text), NULL };
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

/* NULL: any, of key or text. */
static bool
is_unknown (const LsImport *import, const char *key, const char *text)
{
  for (guint i = 0; i < import->made.remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->made.remarks, LsRemark, i);
    if (r->kind == LS_REMARK_UNKNOWN && g_strcmp0 (key ? r->key : r->text, key ? key : text) == 0)
      return true;
  }
  return false;
}

void
import_remark_key (LsImport *import, LsRemarkKind kind, const char *key)
{
  const LsRemark remark = { kind, key, NULL, NULL };
  g_array_append_val (import->made.remarks, remark);
}

void
import_unknown_once (LsImport *import, const char *text)
{
  if (!is_unknown (import, NULL, text))
    import_unknown (import, "%s", text);
}

void
import_positions (LsImport *import, guint64 n)
{
  if (n <= G_MAXUINT32)
    import->positions = MAX (import->positions, (guint32) n);
}

/* Whether a file says of a given key what was given. */
static void
compare_given (LsImport *import, const LsField *fields, const void *target, const LsField *f,
               const char *text)
{
  g_autofree char *theirs = ls_import_spelled (fields, f->key, text),
                  *given = ls_field_text (f, target, NULL);
  if (g_strcmp0 (theirs, given) != 0)
    import->departs = f->key;
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

/* pattern: may have '*'. */
static bool
has_word (const LsImport *import, const char *pattern)
{
  if (!strchr (pattern, '*'))
    return g_hash_table_contains (import->words, pattern);
  GHashTableIter words;
  gpointer word;
  for (g_hash_table_iter_init (&words, import->words); g_hash_table_iter_next (&words, &word, NULL);)
    if (g_pattern_match_simple (pattern, word))
      return true;
  return false;
}

/* Whether the files give one of these names, which blanks part. */
static bool
has_option (const LsImport *import, const char *names)
{
  bool is_there = false;
  for (const char *name = names; *name && !is_there; name += strspn (name, " ")) {
    gsize n = strcspn (name, " ");
    g_autofree char *bare = import_bare_name (name, n);
    is_there = *bare && has_word (import, bare);
    name += n;
  }
  return is_there;
}

static void
note_origin (LsImport *import, const LsField *f, const char *option)
{
  if (g_hash_table_contains (import->decided, f->key) || has_option (import, option))
    g_hash_table_remove (import->by_rule, f->key);
  else
    g_hash_table_add (import->by_rule, (gpointer) f->key);
}

/* --- keys that are set ------------------------------------------------------------------------------ */

static void
set (LsImport *import, const LsField *fields, void *target, GHashTable *said, const char *key,
     const char *text, const char *option)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const LsField *f = ls_field_find_value (fields, key);
  g_assert (f);
  if (fields == ls_model_fields && strcmp (key, "seq") == 0)
    import_positions (import, g_ascii_strtoull (text, NULL, 10));
  else if (fields == ls_model_fields)
    import->model_is_sized = true;
  if (g_hash_table_contains (import->given, f->key)) {
    compare_given (import, fields, target, f, text);
    return;
  }
  if (ls_field_set_text (fields, target, key, text, diags)) {
    g_hash_table_add (said, (gpointer) f->key);
    if (fields == ls_strategy_fields)
      note_origin (import, f, option);
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
import_set_model (LsImport *import, const char *key, const char *text, const char *option)
{
  set (import, ls_model_fields, &import->model, import->model_said, key, text, option);
}

void
import_set_strategy (LsImport *import, const char *key, const char *text, const char *option)
{
  set (import, ls_strategy_fields, &import->strategy, import->strategy_said, key, text, option);
}

void
import_set_strategy_count (LsImport *import, const char *key, guint64 value, const char *option)
{
  char text[24];
  g_snprintf (text, sizeof text, "%" G_GUINT64_FORMAT, value);
  import_set_strategy (import, key, text, option);
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
  return is_unknown (import, static_key (key), NULL);
}

bool
import_is_given (const LsImport *import, const char *key)
{
  return g_hash_table_contains (import->given, static_key (key));
}

void
import_stages_conflict (LsImport *import, const char *format, ...)
{
  static const char *const stages[] = { "pp", "vpp", "layers_per_chunk", "schedule" };
  bool is_given = false;
  for (guint i = 0; i < G_N_ELEMENTS (stages); i++)
    is_given = is_given || import_is_given (import, stages[i]);
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  if (is_given)
    import_infer (import, "stages as given together with the file; left out: %s", text);
  else
    import_conflict (import, "%s", text);
}

void
import_follows_gpus (LsImport *import, const char *key)
{
  import_remark_key (import, LS_REMARK_OF_GPUS, static_key (key));
}

/* Whether a text is the value of a key that is not there: `"pre"`, false. */
static bool
is_default (const LsField *f, const char *text)
{
  const char *usual = ls_field_default (f);
  g_autofree char *bare = g_strdup (usual ? usual : "");
  g_strdelimit (bare, "`\"", ' ');
  return strcmp (g_strstrip (bare), text) == 0;
}

void
import_model (LsImport *import, const LsModel *m, const char *source)
{
  if (m->position == LS_POSITION_LEARNED)
    import_positions (import, m->seq);
  for (const LsField *f = ls_model_fields; f->key; f++) {
    bool is_left = !ls_field_is_value (f) || import_has_model (import, f->key) || strcmp (f->key, "seq") == 0
        || strcmp (f->key, "attention") == 0;
    g_autofree char *text = is_left ? NULL : ls_field_text (f, m, NULL);
    if (text && strcmp (text, "0") != 0 && !is_default (f, text))
      import_set_model (import, f->key, text, source);
  }
}

bool
import_model_files (const ImportFiles *files, bool is_first, LsImport *import, LsDiagList *diags)
{
  for (guint i = 1; i < (is_first ? MIN (2, files->n) : files->n); i++) {
    const ImportFile *file = &files->files[i];
    g_autoptr (LsDiagList) none = ls_diag_list_new ();
    g_autoptr (GPtrArray) notes = is_first ? g_ptr_array_new_with_free_func (g_free) : NULL;
    bool is_json = is_first || file->text[strspn (file->text, " \t\r\n")] == '{';
    g_autoptr (LsJsonDoc) doc
        = is_json ? ls_json_doc_parse (file->text, file->n, file->path, is_first ? diags : none) : NULL;
    bool is_model = doc && (is_first || ls_is_hf_config (doc) || strstr (file->text, "lockstep.model/"));
    LsModel m;
    if (!is_model && !is_first)
      continue;
    if (!is_model || !ls_model_read (doc, &m, notes, diags))
      return false;
    import_model (import, &m, file->path);
    import_use_file (file);
    for (guint k = 0; notes && k < notes->len; k++)
      import_infer (import, "%s: %s", file->path, (const char *) notes->pdata[k]);
    ls_model_clear (&m);
  }
  return true;
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

bool
import_names_model (const LsImport *import)
{
  return import_has_model (import, "hidden") && (!import->model_is_given || import->model_is_named);
}

void
import_set_software (LsImport *import, const char *name)
{
  g_free (import->strategy.program.software);
  import->strategy.program.software = g_strdup (name);
  g_hash_table_add (import->strategy_said, (gpointer) "software");
}

bool
import_has_model (const LsImport *import, const char *key)
{
  return g_hash_table_contains (import->model_said, ls_field_find_value (ls_model_fields, key)->key);
}

bool
import_has_strategy (const LsImport *import, const char *key)
{
  return g_hash_table_contains (import->strategy_said, ls_field_find (ls_strategy_fields, key)->key);
}

/* --- the optimizer, by what programs and libraries call it ------------------------------------------ */

static const char *
name_of (const char *theirs, double momentum)
{
  const ProgramMap *map = program_doors->map_get ("optimizers");
  if (g_ascii_strcasecmp (theirs, "sgd") == 0)
    return momentum > 0 ? "sgd-momentum" : "sgd";
  return map ? cJSON_GetStringValue (cJSON_GetObjectItem (map->tables, theirs)) : NULL;
}

/* Ranks have pieces of the matrices that it needs: Megatron-LM's alone deal out whole ones. */
static bool
lacks_matrices (const LsStrategy *s, const char *ours)
{
  bool is_cut = ls_dp_traits (s->dp_kind)->is_fsdp
      || (s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage != LS_ZERO_AUTO && s->zero_stage > 0);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOptimizerKind) kind
      = is_cut && !ls_optimizer_is_adam (ours) ? ls_optimizer_load (ours, diags) : NULL;
  return kind && (ls_optimizer_multiplies (kind) || ls_optimizer_factors (kind));
}

void
import_set_optimizer (LsImport *import, const char *theirs, double momentum, const char *option)
{
  const char *ours = theirs ? name_of (theirs, momentum) : NULL;
  const LsStrategy *s = &import->strategy;
  if (!theirs)
    return;
  if (!ours)
    import_unknown (import, "%s %s: memory and time are those of Adam", option, theirs);
  else if (lacks_matrices (s, ours))
    import_unknown (
        import,
        "%s %s: how it works on shards of matrices is not known here; memory and time are those of "
        "Adam",
        option, theirs);
  else if (s->memory.offload != LS_OFFLOAD_NONE && !ls_optimizer_is_adam (ours))
    import_unknown (import, "%s %s: on the host memory and time are those of Adam", option, theirs);
  else
    import_set_strategy (import, "optimizer", ours, option);
  if (ours && g_ascii_strncasecmp (theirs, "paged", 5) == 0)
    import_infer (import, "%s %s: its pages stay on the GPU", option, theirs);
}

/* --- jobs of another kind ---------------------------------------------------------------------------- */

bool
import_refuse_task (const char *path, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
               "%s: another task; a job of Lockstep trains a decoder on the next token", what);
  return false;
}
