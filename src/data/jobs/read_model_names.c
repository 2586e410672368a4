
#include "data/datadir.h"
#include "data/jobs/job_files.h"

/* What is checked of such a file; models are read from the document. */
typedef struct {
  char *name, *source;
  GArray *models;
} NamesFile;

typedef struct {
  GArray *names;
} NamedModel;

static const LsField name_element[] = { { "", LS_FIELD_STRING, 0, .required = true }, { NULL } };
static const LsField named_fields[] = {
  { "names", LS_FIELD_ARRAY, offsetof (NamedModel, names), .required = true, .fields = name_element,
    .element_size = sizeof (char *), .meaning = "what programs and hubs call it" },
  { "model", LS_FIELD_IGNORED, .required = true, .expected = "text or object",
    .meaning = "a name of models/, or an object with the keys of such a file" },
  { NULL },
};
const LsField ls_model_names_fields[] = {
  LS_FIELDS_HEADER (NamesFile),
  { "models", LS_FIELD_ARRAY, offsetof (NamesFile, models), .required = true, .fields = named_fields,
    .element_size = sizeof (NamedModel), .meaning = "models and their names" },
  { NULL },
};

static const cJSON *
models_of (const LsJsonDoc *doc)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "models");
}

static bool
has_name (const cJSON *entry, const char *name)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (entry, "names"))
  {
    if (cJSON_IsString (one) && g_ascii_strcasecmp (one->valuestring, name) == 0)
      return true;
  }
  return false;
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

/* Of an entry: a name of ours, or a file of a model in place. */
static bool
read_entry (const LsJsonDoc *doc, const cJSON *entry, LsModel *ret_model, LsDiagList *diags)
{
  const cJSON *model = cJSON_GetObjectItemCaseSensitive (entry, "model");
  g_autofree char *path = cJSON_IsString (model) ? path_of (doc, model->valuestring) : NULL;
  if (path)
    return ls_model_load (path, ret_model, NULL, diags);
  g_autoptr (LsJsonDoc) part = cJSON_IsObject (model) ? ls_json_doc_part (doc, model, NULL) : NULL;
  if (!cJSON_IsObject (model))
    ls_json_doc_diag (doc, entry, LS_JSON_AT_VALUE, diags, NULL, "expected \"model\", a name or an object");
  return part && ls_model_read_part (part, ret_model, diags);
}

bool
ls_model_of_name (const char *name, LsModel *ret_model)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_MODEL_NAMES, "published", diags);
  const cJSON *entry;
  if (!doc)
    return false;
  cJSON_ArrayForEach (entry, models_of (doc))
  {
    if (has_name (entry, name))
      return read_entry (doc, entry, ret_model, diags);
  }
  return false;
}

/* --- the file as a whole --------------------------------------------------------------------------- */

static bool
check_names (const LsJsonDoc *doc, const cJSON *entry, GHashTable *seen, LsDiagList *diags)
{
  const cJSON *names = cJSON_GetObjectItemCaseSensitive (entry, "names"), *one;
  bool ok = cJSON_IsArray (names) && names->child;
  if (!ok)
    ls_json_doc_diag (doc, entry, LS_JSON_AT_VALUE, diags, NULL, "expected \"names\", a list of names");
  cJSON_ArrayForEach (one, names)
  {
    char *key = cJSON_IsString (one) ? g_ascii_strdown (one->valuestring, -1) : NULL;
    bool is_new = key && g_hash_table_add (seen, key);
    if (!is_new)
      ls_json_doc_diag (doc, one, LS_JSON_AT_VALUE, diags, NULL, "expected a name that no other model has");
    ok = ok && is_new;
  }
  return ok;
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
  bool ok = models->child != NULL;
  if (!ok)
    ls_json_doc_diag (doc, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL,
                      "expected \"models\", a list of names and their models");
  cJSON_ArrayForEach (entry, models)
  {
    LsModel m;
    bool has_model = read_entry (doc, entry, &m, diags);
    if (has_model)
      ls_model_clear (&m);
    ok = check_names (doc, entry, seen, diags) && has_model && ok;
  }
  return ok ? g_hash_table_size (seen) : 0;
}
