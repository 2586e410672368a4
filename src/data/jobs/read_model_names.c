/* data/jobs/read_model_names.c — models by the names that programs and hubs give them. */
#include <string.h>

#include "base/suggest.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"

/* What is checked of such a file; models are read from the document. */
typedef struct {
  char *name, *source;
  GArray *models;
} NamesFile;

typedef struct {
  GArray *names, *decoder_of;
} NamedModel;

static const LsField named_fields[] = {
  { "names", LS_FIELD_ARRAY, offsetof (NamedModel, names), .required = true, LS_FIELD_TEXTS },
  { "decoder_of", LS_FIELD_ARRAY, offsetof (NamedModel, decoder_of), LS_FIELD_TEXTS },
  { "model", LS_FIELD_IGNORED, .required = true, .expected = "text or object" },
  { .table = "model-names.models" },
};
const LsField ls_model_names_fields[] = {
  LS_FIELDS_HEADER (NamesFile),
  { "models", LS_FIELD_ARRAY, offsetof (NamesFile, models), .required = true, .fields = named_fields,
    .element_size = sizeof (NamedModel) },
  { .table = "model-names" },
};

static const cJSON *
models_of (const LsJsonDoc *doc)
{
  return ls_json_doc_at (doc, "models");
}

/* Of the names of an entry the first that fits, borrowed; NULL: none does. */
static const char *
find_name (const cJSON *names, bool (*fits) (const char *name, gconstpointer data), gconstpointer data)
{
  const cJSON *one;
  const char *name = NULL;
  cJSON_ArrayForEach (one, names)
    name = !name && cJSON_IsString (one) && fits (one->valuestring, data) ? one->valuestring : name;

  return name;
}

static bool
is_same_name (const char *name, gconstpointer other)
{
  return g_ascii_strcasecmp (name, other) == 0;
}

/* A model of ours, in the folder above that of the names: they are of one release. A name, or a member of a
 * set there: "deepseek.set.json#deepseek-v2". */
static char *
path_of (const LsJsonDoc *doc, const char *name)
{
  g_autofree char *names = g_path_get_dirname (ls_json_doc_name (doc)),
                  *file = g_strconcat (name, strchr (name, '#') ? "" : ".json", NULL);
  return g_build_filename (names, "..", file, NULL);
}

/* Of an entry: a name of ours, or a file of a model in place, ours or a config.json. */
static bool
read_entry (const LsJsonDoc *doc, const cJSON *entry, LsModel *ret_model, LsDiagList *diags)
{
  const cJSON *model = ls_json_at (entry, "model");
  g_autofree char *path = cJSON_IsString (model) ? path_of (doc, model->valuestring) : NULL;
  if (path)
    return ls_model_load (path, ret_model, NULL, diags);
  g_autoptr (LsJsonDoc) part = cJSON_IsObject (model) ? ls_json_doc_part (doc, model, NULL) : NULL;
  if (!cJSON_IsObject (model))
    ls_json_doc_wrong (doc, entry, diags, "expected \"model\", a name or an object");
  return part && ls_model_read_part (part, ret_model, diags);
}

/* Of that name in a list, borrowed from the document; NULL: nobody has it. */
static const cJSON *
entry_in (const LsJsonDoc *doc, const char *list, const char *name)
{
  const cJSON *entry;
  cJSON_ArrayForEach (entry, models_of (doc))
    if (find_name (cJSON_GetObjectItemCaseSensitive (entry, list), is_same_name, name))
      return entry;

  return NULL;
}

static const cJSON *
entry_of (const LsJsonDoc *doc, const char *name)
{
  return entry_in (doc, "names", name);
}

/* A config.json of what reads text and of what sees or hears: of it the former is simulated. */
static bool
has_encoder (const cJSON *entry)
{
  static const char *const parts[] = { "vision_config", "audio_config", "text_config", "language_config" };
  const cJSON *model = ls_json_at (entry, "model");
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (cJSON_GetObjectItemCaseSensitive (model, parts[i]))
      return true;
  return false;
}

bool
ls_model_of_name (const char *name, LsModel *ret_model, bool *ret_is_decoder)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_MODEL_NAMES, "published", diags);
  const cJSON *entry = doc ? entry_of (doc, name) : NULL;
  *ret_is_decoder = !entry || has_encoder (entry);
  if (doc && !entry)
    entry = entry_in (doc, "decoder_of", name);
  return entry && read_entry (doc, entry, ret_model, diags);
}

/* --- the name of a model --------------------------------------------------------------------------- */

/* "PREFIX/...", of these prefixes. */
static bool
has_prefix (const char *name, gconstpointer prefixes)
{
  const char *slash = strchr (name, '/');
  g_autofree char *prefix = slash ? g_strndup (name, slash - name) : NULL;
  return prefix && g_strv_contains (prefixes, prefix);
}

/* But for the length of a sequence and the kernel of attention, which a job chooses. */
static bool
is_same_model (const LsModel *a, const LsModel *b)
{
  for (const LsField *f = ls_model_fields; f->key; f++) {
    if (!ls_field_is_value (f) || strcmp (f->key, "seq") == 0 || strcmp (f->key, "attention") == 0)
      continue;
    g_autofree char *one = ls_field_text (f, a, NULL), *other = ls_field_text (f, b, NULL);
    if (g_strcmp0 (one, other) != 0)
      return false;
  }
  return true;
}

char *
ls_model_name_of (const LsModel *model, const char *const *prefixes)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_MODEL_NAMES, "published", diags);
  const cJSON *models = doc ? models_of (doc) : NULL, *entry;
  cJSON_ArrayForEach (entry, models) {
    const char *name = find_name (ls_json_at (entry, "names"), has_prefix, prefixes);
    LsModel published;
    if (!name || !read_entry (doc, entry, &published, diags))
      continue;
    bool is_same = is_same_model (model, &published);
    ls_model_clear (&published);
    if (is_same)
      return g_strdup (name);
  }
  return NULL;
}

/* --- as a name of a file --------------------------------------------------------------------------- */

/* What --model would take for that entry: a path, or the JSON of a model in place. */
static char *
file_of (const LsJsonDoc *doc, const cJSON *entry)
{
  const cJSON *model = ls_json_at (entry, "model");
  if (cJSON_IsString (model))
    return path_of (doc, model->valuestring);
  char *printed = cJSON_PrintUnformatted (model), *text = g_strdup (printed);
  cJSON_free (printed);
  return text;
}

/* "meta-llama/Llama-3.1-8B" and the like: one slash. */
static bool
looks_like_a_hub_name (const char *name)
{
  const char *slash = strchr (name, '/');
  return slash && slash > name && slash[1] && !strchr (slash + 1, '/') && !strchr (".~", *name);
}

/* Or would be, if it were not mistyped. */
static bool
is_a_file (const char *name)
{
  g_autofree char *message = NULL,
                  *path = ls_data_is_path (name) ? NULL : ls_data_find (LS_DATA_MODELS, name, &message);
  return path || strstr (name, ".json") || g_file_test (name, G_FILE_TEST_EXISTS);
}

/* What stands behind the last slash, as names are compared; newly allocated. */
static char *
bare_name (const char *name)
{
  const char *slash = strrchr (name, '/');
  return ls_data_folded (slash ? slash + 1 : name);
}

/* Of the entry the last name that is this one behind its slash, borrowed; NULL: none. Names of programs stand
 * before those of repositories. */
static const char *
name_called (const cJSON *entry, const char *bare)
{
  const cJSON *one;
  const char *called = NULL;
  cJSON_ArrayForEach (one, ls_json_at (entry, "names")) {
    g_autofree char *own = bare_name (one->valuestring);
    called = g_str_equal (own, bare) ? one->valuestring : called;
  }
  return called;
}

/* The only entry whose bare name it is, of all or of those that are a config.json; NULL: none, or several. */
static const cJSON *
only_entry (const LsJsonDoc *doc, const char *bare, bool of_configs)
{
  const cJSON *entry, *found = NULL;
  guint n = 0;
  cJSON_ArrayForEach (entry, models_of (doc)) {
    bool is_config = ls_json_at (ls_json_at (entry, "model"), "model_type") != NULL;
    if ((of_configs && !is_config) || !name_called (entry, bare))
      continue;
    found = entry;
    n++;
  }
  return n == 1 ? found : NULL;
}

/* "gpt-oss-120b" of "openai/gpt-oss-120b", where no other model has that name behind a slash; of several the
 * one that is as published, not as a program has it. A flavor that is only a size ("8B" of "llama3/8B") is
 * none. */
static const cJSON *
entry_of_bare (const LsJsonDoc *doc, const char *name)
{
  g_autofree char *bare = strchr (name, '/') ? NULL : bare_name (name);
  if (!bare || !g_ascii_isalpha (*bare))
    return NULL;
  const cJSON *only = only_entry (doc, bare, false);
  return only ? only : only_entry (doc, bare, true);
}

/* is_bare: what stands behind the last slash of each. */
static void
collect_names (const LsJsonDoc *doc, bool is_bare, GPtrArray *names)
{
  const cJSON *models = models_of (doc), *entry, *one;
  cJSON_ArrayForEach (entry, models)
    cJSON_ArrayForEach (one, ls_json_at (entry, "names")) {
      char *slash = is_bare ? strrchr (one->valuestring, '/') : NULL;
      g_ptr_array_add (names, slash ? slash + 1 : one->valuestring);
    }

  g_ptr_array_add (names, NULL);
}

/* Of our names and bare published ones that which was probably meant, if it is one of the latter, newly
 * allocated: "Gemma-3-27b-it" of "gemma-3-27b", "llama2-7b" of "lama2-7b". NULL: none. */
static char *
near_name (const LsJsonDoc *doc, const char *name)
{
  g_autoptr (GPtrArray) own = ls_data_list (LS_DATA_MODELS), words = g_ptr_array_new ();
  for (guint i = 0; i < own->len; i++)
    g_ptr_array_add (words, ((LsDataEntry *) own->pdata[i])->name);
  collect_names (doc, true, words);
  const char *near = strchr (name, '/') ? NULL : ls_suggest (name, (const char *const *) words->pdata);
  return near && entry_of_bare (doc, near) ? g_strdup (near) : NULL;
}

/* A copy of another owner has the same name behind the slash, mostly; else what is written alike. */
static char *
meant_by (const LsJsonDoc *doc, const char *name)
{
  g_autofree char *bare = bare_name (name);
  const cJSON *only = entry_of_bare (doc, bare);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  collect_names (doc, false, names);
  char *meant = ls_did_you_mean (name, (const char *const *) names->pdata);
  if (!only || *meant)
    return meant;
  g_free (meant);
  return g_strdup_printf ("; did you mean \"%s\"?", name_called (only, bare));
}

static void
refuse_name (const LsJsonDoc *doc, const char *name, LsDiagList *diags)
{
  g_autofree char *meant = meant_by (doc, name);
  ls_file_diag (diags, LS_ERROR_INPUT, name,
                "give the path of its config.json, or a name that \"lockstep list models\" shows",
                "no file, and no published model that is known by this name%s", meant);
}

char *
ls_model_file_of (const char *name, LsDiagList *diags)
{
  const char *changes = ls_override_find (name);
  g_autofree char *own = changes ? g_strndup (name, changes - 1 - name) : g_strdup (name);
  if (*own == '{' || is_a_file (own))
    return g_strdup (name);
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_MODEL_NAMES, "published", diags);
  const cJSON *entry = doc ? entry_of (doc, own) : NULL;
  if (doc && !entry)
    entry = entry_of_bare (doc, own);
  if (entry) {
    char *file = file_of (doc, entry);
    return changes ? ls_override_name (file, name) : file;
  }
  g_autofree char *near = doc ? near_name (doc, own) : NULL;
  if (near) {
    ls_diag_fail (diags, LS_ERROR_INPUT, "no model is named \"%s\"; did you mean \"%s\"?", own, near);
    return NULL;
  }
  if (!doc || !looks_like_a_hub_name (own))
    return g_strdup (name);
  refuse_name (doc, own, diags);
  return NULL;
}

/* --- the file as a whole --------------------------------------------------------------------------- */

static bool
check_list (const LsJsonDoc *doc, const cJSON *names, GHashTable *seen, LsDiagList *diags)
{
  const cJSON *one;
  bool ok = true;
  cJSON_ArrayForEach (one, names) {
    char *key = cJSON_IsString (one) ? g_ascii_strdown (one->valuestring, -1) : NULL;
    ok = ((key && g_hash_table_add (seen, key))
          || ls_json_doc_wrong (doc, one, diags, "expected a name that no other model has"))
        && ok;
  }
  return ok;
}

static bool
check_names (const LsJsonDoc *doc, const cJSON *entry, GHashTable *seen, LsDiagList *diags)
{
  const cJSON *names = ls_json_at (entry, "names");
  bool ok = (cJSON_IsArray (names) && names->child)
      || ls_json_doc_wrong (doc, entry, diags, "expected \"names\", a list of names");
  return check_list (doc, names, seen, diags)
      && check_list (doc, ls_json_at (entry, "decoder_of"), seen, diags) && ok;
}

guint
ls_model_names_check (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const cJSON *models = models_of (doc), *entry;
  NamesFile file = { NULL };
  bool is_read = ls_fields_read_file (ls_model_names_fields, "model-names", doc, &file, diags);
  ls_fields_clear (ls_model_names_fields, &file);
  if (!is_read)
    return 0;
  bool ok = models->child
      || ls_json_doc_wrong (doc, ls_json_doc_root (doc), diags,
                            "expected \"models\", a list of names and their models");
  cJSON_ArrayForEach (entry, models) {
    LsModel m;
    bool has_model = read_entry (doc, entry, &m, diags);
    if (has_model)
      ls_model_clear (&m);
    ok = check_names (doc, entry, seen, diags) && has_model && ok;
  }
  return ok ? g_hash_table_size (seen) : 0;
}

/* --- a model by where it lies ------------------------------------------------------------------------ */

/* "models--Qwen--Qwen3-32B" of a cache of the hub as "Qwen/Qwen3-32B"; NULL: it is another folder. */
static char *
cached_name (char *const *parts)
{
  for (; *parts; parts++) {
    g_auto (GStrv) words = g_str_has_prefix (*parts, "models--") ? g_strsplit (*parts, "--", -1) : NULL;
    if (words && g_strv_length (words) == 3)
      return g_strconcat (words[1], "/", words[2], NULL);
  }
  return NULL;
}

/* "OWNER/" with this end. */
static bool
has_end (const char *name, gconstpointer end)
{
  const char *slash = strrchr (name, '/');
  return slash && g_ascii_strcasecmp (slash + 1, end) == 0;
}

static bool
is_same_entry (const LsJsonDoc *doc, const cJSON *a, const cJSON *b)
{
  LsModel one = { 0 }, other = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool is_same = a == b;
  if (!is_same && read_entry (doc, a, &one, diags)) {
    is_same = read_entry (doc, b, &other, diags) && is_same_model (&one, &other);
    ls_model_clear (&other);
  }
  ls_model_clear (&one);
  return is_same;
}

/* The name of the only model that ends so; NULL: none does, or several that differ. */
static const char *
only_that_ends (const LsJsonDoc *doc, const char *end)
{
  const cJSON *entry, *first = NULL;
  const char *found = NULL;
  cJSON_ArrayForEach (entry, models_of (doc)) {
    const char *name = find_name (ls_json_at (entry, "names"), has_end, end);
    if (name && first && !is_same_entry (doc, first, entry))
      return NULL;
    first = first || !name ? first : entry;
    found = found ? found : name;
  }
  return found;
}

#define LEAST_END 4 /* characters of a folder that names a model by itself */

char *
ls_model_name_of_path (const char *path)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *bare = g_strdup (path);
  gsize n = strlen (bare);
  while (n > 0 && bare[n - 1] == '/')
    bare[--n] = '\0';
  g_auto (GStrv) parts = g_strsplit (bare, "/", -1);
  guint n_parts = g_strv_length (parts);
  g_autoptr (LsJsonDoc) doc = n_parts > 1 ? ls_data_load (LS_DATA_MODEL_NAMES, "published", diags) : NULL;
  if (!doc)
    return NULL;
  const char *end = parts[n_parts - 1];
  g_autofree char *cached = cached_name (parts), *two = g_strconcat (parts[n_parts - 2], "/", end, NULL);
  const char *whole = cached ? cached : two;
  if (entry_of (doc, whole))
    return g_strdup (whole);
  bool is_word = g_ascii_isalpha (*end) && strlen (end) >= LEAST_END;
  return is_word ? g_strdup (only_that_ends (doc, end)) : NULL;
}
