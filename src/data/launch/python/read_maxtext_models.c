/* Models of MaxText's benchmark_runner in Python, of which one is said by its name: benchmarks/
 * maxtext_trillium_model_configs.py and its kin (AI-Hypercomputer/maxtext@e591f30cb, August 2026),
 *
 *     llama3_1_70b_8192 = _add_to_model_dictionary(
 *         trillium_model_dict, MaxTextModel(model_type="llama3.1-70b", tuning_params={...}))
 *
 * It starts train.py with base.yml, these options on top, and model_name=MODEL_TYPE
 * (benchmarks/maxtext_xpk_runner.py). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/maxtext/maxtext_rules.h"
#include "data/launch/python/python_names.h"

/* What MaxTextModel is given, of a name of the file; NULL: it is none. */
static cJSON *
model_of (const cJSON *item)
{
  cJSON *model = cJSON_IsObject (item) ? cJSON_GetObjectItemCaseSensitive (item, "1") : NULL;
  const cJSON *made = cJSON_GetObjectItemCaseSensitive (model, "()");
  return cJSON_IsString (made) && strcmp (made->valuestring, "MaxTextModel") == 0 ? model : NULL;
}

/* "llama3_1-70b-8192" is known as llama3_1_70b_8192, too (benchmark_utils.py, _add_to_model_dictionary). */
static bool
is_called (const cJSON *item, const cJSON *model, const char *asked)
{
  const cJSON *own = cJSON_GetObjectItemCaseSensitive (model, "model_name");
  g_autofree char *name = g_strdelimit (g_strdup (cJSON_IsString (own) ? own->valuestring : ""), "-", '_'),
                  *folded = g_strdelimit (g_strdup (asked), "-", '_');
  return strcmp (item->string, asked) == 0 || strcmp (name, folded) == 0;
}

/* The one that is asked for, or the only one; NULL: a diagnostic. */
static cJSON *
find_model (const ImportFiles *files, const cJSON *tree, LsDiagList *diags)
{
  const char *asked = import_given (files, "recipe"), *path = files->files[0].path;
  g_autoptr (GString) names = g_string_new (NULL);
  cJSON *only = NULL;
  const cJSON *item;
  guint n = 0;
  cJSON_ArrayForEach (item, tree)
  {
    cJSON *model = model_of (item);
    if (model && asked && is_called (item, model, asked))
      return model;
    if (model)
      g_string_append_printf (names, "%s%s", n++ > 0 ? ", " : "", item->string);
    only = model ? model : only;
  }
  if (n == 1 && !asked)
    return only;
  g_autofree char *hint = g_strdup_printf ("say which behind its name: %s:recipe=NAME", path);
  ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, asked ? NULL : hint,
               asked ? "it has no model %s; it has %s" : "%sit has several models: %s", asked ? asked : "",
               names->str);
  return NULL;
}

/* What the runner tells train.py. */
static cJSON *
options_of (cJSON *model, LsImport *import)
{
  cJSON *options = cJSON_DetachItemFromObjectCaseSensitive (model, "tuning_params");
  const cJSON *type = cJSON_GetObjectItemCaseSensitive (model, "model_type"),
              *flags = cJSON_GetObjectItemCaseSensitive (model, "xla_flags");
  options = cJSON_IsObject (options) ? options : cJSON_CreateObject ();
  python_names_forget_calls (options);
  cJSON_AddStringToObject (options, "base_config", "base.yml");
  cJSON_AddStringToObject (options, "run_name", "run");
  if (cJSON_IsString (type))
    cJSON_AddStringToObject (options, "model_name", type->valuestring);
  if (!cJSON_IsString (flags) || *flags->valuestring)
    import_infer (import, "xla_flags: XLA is taken to do as it does by itself");
  return options;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  import->program = "MaxText";
  cJSON *tree = python_names_of (files, file->text, file->n, file->path, import, diags);
  cJSON *model = tree ? find_model (files, tree, diags) : NULL;
  bool ok = model && maxtext_read_tree (options_of (model, import), file->path, NULL, import, diags);
  cJSON_Delete (tree);
  return ok;
}

static bool
is_its (const ImportFile *file)
{
  return strstr (file->text, "MaxTextModel(") && strstr (file->text, "tuning_params=");
}

const ImportReader import_maxtext_models = { NULL, is_its, read };
