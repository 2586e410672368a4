/* Recipes of Megatron-Bridge in Python: src/megatron/bridge/recipes and perf_recipes, a function for each
 * (NVIDIA-NeMo/Megatron-Bridge@067f987df, August 2026).
 *
 * A recipe takes another and sets members of it. The files that it imports from stand behind it, or lie as in
 * a checkout. What they do not say is told. */
#include <string.h>

#include <lockstep/error.h>

#include "data/jobs/read_software.h"
#include "data/launch/bridge/bridge.h"
#include "data/launch/launch_script.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/program/program_map.h"
#include "data/launch/python/python_names.h"
#include "data/launch/yaml_config.h"
#include "data/python/python.h"
#include "data/text/read_file.h"

#define MAX_FILES 64 /* of a recipe */

static const char *
made_by (const cJSON *object)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (object, "()");
  return cJSON_IsString (name) ? name->valuestring : NULL;
}

/* --- what calls stand for ------------------------------------------------------------------------------- */

/* AutoBridge.from_hf_pretrained ("meta-llama/...").get_model_config () names what the model is. */
static char *
hub_name_of (const char *text)
{
  const char *at = text ? strstr (text, "from_hf_pretrained") : NULL,
             *quote = at ? strpbrk (at, "\"'") : NULL, *end = quote ? strchr (quote + 1, *quote) : NULL;
  return end ? g_strndup (quote + 1, (gsize) (end - quote - 1)) : NULL;
}

/* The model of a hub that a recipe asks for; NULL: it asks for none. The caller frees it. */
static char *
hub_of (const cJSON *tree)
{
  const cJSON *model = cJSON_GetObjectItemCaseSensitive (tree, "model");
  const cJSON *whole = cJSON_IsObject (model) ? cJSON_GetObjectItemCaseSensitive (model, "()") : model;
  return hub_name_of (cJSON_IsString (whole) ? whole->valuestring : NULL);
}

const char *
bridge_precision_of (const char *name)
{
  static const char *const names[][2] = { { "bf16", "bf16_mixed" },
                                          { "fp8_cs", "bf16_with_fp8_current_scaling_mixed" },
                                          { "fp8_ds", "bf16_with_fp8_delayed_scaling_mixed" },
                                          { "fp8_mx", "bf16_with_mxfp8_mixed" },
                                          { "fp8_sc", "bf16_with_fp8_subchannel_scaling_mixed" },
                                          { "nvfp4", "bf16_with_nvfp4_mixed" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (name, names[i][0]) == 0)
      return names[i][1];
  return NULL;
}

/* What training/mixed_precision.py makes of a name, and perf_recipes/_common.py of its short one. */
static void
set_precision (cJSON *tree)
{
  cJSON *precision = yaml_config_find (tree, "mixed_precision");
  const char *made = made_by (precision);
  const cJSON *asked = cJSON_GetObjectItemCaseSensitive (precision, "0");
  if (!made)
    return;
  bool is_short = strcmp (made, "_perf_precision") == 0 && cJSON_IsString (asked);
  const char *of_short = is_short ? bridge_precision_of (asked->valuestring) : NULL;
  made = of_short ? of_short : made;
  if (!cJSON_HasObjectItem (precision, "precision"))
    cJSON_AddStringToObject (precision, "precision", made);
  for (guint i = 0; i < 2 && is_short; i++) {
    static const char *const off[] = { "grad_reduce_in_fp32", "first_last_layers_bf16" };
    if (!cJSON_HasObjectItem (precision, off[i]))
      cJSON_AddFalseToObject (precision, off[i]);
  }
}

/* A precision's fields overwrite those of the model that have their names (training/mixed_precision.py). */
static void
overwrite_by_precision (cJSON *tree)
{
  static const char *const fields[] = { "bf16",
                                        "fp16",
                                        "fp8",
                                        "fp8_recipe",
                                        "fp8_param",
                                        "fp8_dot_product_attention",
                                        "fp4",
                                        "fp4_param",
                                        "first_last_layers_bf16",
                                        "num_layers_at_start_in_bf16",
                                        "num_layers_at_end_in_bf16" };
  cJSON *model = cJSON_GetObjectItemCaseSensitive (tree, "model");
  if (!cJSON_HasObjectItem (yaml_config_find (tree, "mixed_precision"), "precision"))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    cJSON_DeleteItemFromObjectCaseSensitive (model, fields[i]);
}

/* A number by a name that no file here sets, or one that does not resize the model, which has its own where a
 * hub has it, unless that is asked for (training/setup.py, _validate_and_set_vocab_size, of v0.2.0 too). */
static void
drop_vocab (cJSON *tree, LsImport *import)
{
  cJSON *vocab = yaml_config_find (tree, "tokenizer.vocab_size");
  const cJSON *asked = yaml_config_find (tree, "tokenizer.use_tokenizer_vocab_size");
  g_autofree char *hub = hub_of (tree);
  bool is_unused = cJSON_IsFalse (asked) || (hub && !cJSON_IsTrue (asked));
  if (!vocab || (!is_unused && !cJSON_IsString (vocab)))
    return;
  if (!is_unused)
    import_unknown (import, "tokenizer.vocab_size %s: no file here sets it; the model's vocabulary is taken",
                    vocab->valuestring);
  cJSON_Delete (cJSON_DetachItemViaPointer (yaml_config_find (tree, "tokenizer"), vocab));
}

/* Of a list of chunks, each a list of its layers, what Megatron-Core calls a layout: "Ett|tt|tL"
 * (core/transformer/pipeline_parallel_layer_layout.py). NULL: it is none. The caller frees it. */
static char *
layout_of (const cJSON *chunks)
{
  static const char *const layers[][2]
      = { { "embedding", "E" }, { "decoder", "t" }, { "mtp", "m" }, { "loss", "L" } };
  g_autoptr (GString) text = g_string_new (NULL);
  for (const cJSON *chunk = chunks->child; chunk; chunk = chunk->next) {
    g_string_append (text, chunk == chunks->child ? "" : "|");
    for (const cJSON *layer = chunk->child; layer; layer = layer->next) {
      gsize i = 0;
      while (i < G_N_ELEMENTS (layers) && g_strcmp0 (cJSON_GetStringValue (layer), layers[i][0]) != 0)
        i++;
      if (i == G_N_ELEMENTS (layers))
        return NULL;
      g_string_append (text, layers[i][1]);
    }
    if (!cJSON_IsArray (chunk))
      return NULL;
  }
  return chunks->child ? g_strdup (text->str) : NULL;
}

static void
write_layout (cJSON *tree)
{
  static const char key[] = "pipeline_model_parallel_layout";
  cJSON *model = cJSON_GetObjectItemCaseSensitive (tree, "model");
  const cJSON *chunks = cJSON_IsObject (model) ? cJSON_GetObjectItemCaseSensitive (model, key) : NULL;
  g_autofree char *text = cJSON_IsArray (chunks) ? layout_of (chunks) : NULL;
  if (text)
    cJSON_ReplaceItemInObjectCaseSensitive (model, key, cJSON_CreateString (text));
}

/* A recipe of formats by its file, or as it is: what Megatron-LM's option of it is read as. */
static void
write_formats (cJSON *tree, LsImport *import)
{
  static const char key[] = "quant_recipe";
  cJSON *model = cJSON_GetObjectItemCaseSensitive (tree, "model");
  const cJSON *recipe = cJSON_IsObject (model) ? cJSON_GetObjectItemCaseSensitive (model, key) : NULL,
              *of = cJSON_IsObject (recipe) ? cJSON_GetObjectItemCaseSensitive (recipe, "0") : NULL;
  const char *path = cJSON_GetStringValue (of);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gsize n;
  g_autofree char *file = path ? ls_read_file (path, LAUNCH_MAX_BESIDE, &n, diags) : NULL,
                  *text = file ? megatron_formats_text (file, n, path) : NULL;
  if (cJSON_IsObject (of)) {
    char *printed = cJSON_PrintUnformatted (of);
    text = g_strdup (printed);
    cJSON_free (printed);
  }
  if (file)
    g_ptr_array_add (import->files, g_strdup (path));
  if (text)
    cJSON_ReplaceItemInObjectCaseSensitive (model, key, cJSON_CreateString (text));
}

/* LoRA (dim=8) says which adapters there are by its class. */
static void
name_adapters (cJSON *tree)
{
  cJSON *peft = cJSON_GetObjectItemCaseSensitive (tree, "peft");
  const char *made = cJSON_IsObject (peft) ? made_by (peft) : NULL, *dot = made ? strrchr (made, '.') : NULL;
  if (made && g_ascii_isupper (dot ? dot[1] : *made) && !cJSON_HasObjectItem (peft, "_target_"))
    cJSON_AddStringToObject (peft, "_target_", made);
}

/* --- which recipe --------------------------------------------------------------------------------------- */

/* The one that is asked for, or the only one of the first file; NULL: a diagnostic. The caller frees it. */
static char *
find_recipe (const ImportFiles *files, LsDiagList *diags)
{
  static const PythonPick pick = { "recipe", "recipe" };
  const ImportFile *file = &files->files[0];
  g_autoptr (LsPython) python = ls_python_new (file->text, file->n, file->path, diags);
  const char *asked = import_given (files, "recipe");
  return python ? g_strdup (python_pick_function (python, &pick, asked, file->path, diags)) : NULL;
}

/* What functions of the program do, as far as a step shows it. training/flex_dispatcher_backend.py: the same
 * for every GPU that the backend runs on. */
#define KNOWN_PATH "megatron/bridge/training/flex_dispatcher_backend.py"
static const char known_functions[] = "def apply_flex_dispatcher_backend(model_config, backend=None):\n"
                                      "    model_config.moe_token_dispatcher_type = \"flex\"\n"
                                      "    model_config.moe_flex_dispatcher_backend = backend\n"
                                      "    model_config.moe_shared_expert_overlap = False\n";

/* The folder above one, above where we are too; NULL: there is none. The caller frees it. */
static char *
folder_above (const char *folder)
{
  g_autofree char *name = g_path_get_basename (folder),
                  *whole = *name == '.' ? g_canonicalize_filename (folder, NULL) : g_strdup (folder),
                  *above = g_path_get_dirname (whole);
  return strcmp (above, whole) != 0 ? g_steal_pointer (&above) : NULL;
}

/* a.b.c for a file x/a/y.py: x/a/b/c.py or x/a/b/c/__init__.py, which the caller frees; NULL: none is. */
static char *
find_import (const char *path, const char *module)
{
  g_auto (GStrv) parts = g_strsplit (module, ".", -1);
  g_autofree char *name = g_strjoinv ("/", parts), *file = g_strconcat (name, ".py", NULL),
                  *folder = g_path_get_dirname (path);
  while (folder && *name) {
    g_autofree char *whole = g_build_filename (folder, file, NULL),
                    *init = g_build_filename (folder, name, "__init__.py", NULL),
                    *parent = folder_above (folder);
    if (g_file_test (whole, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&whole);
    if (g_file_test (init, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&init);
    g_free (folder);
    folder = g_steal_pointer (&parent);
  }
  return NULL;
}

/* "0" of "MAJOR = 0"; NULL: no line says it. The caller frees it. */
static char *
number_of (const char *text, const char *name)
{
  g_autofree char *line = g_strdup_printf ("\n%s = ", name);
  const char *at = strstr (text, line), *digits = at ? at + strlen (line) : "";
  gsize n = strspn (digits, "0123456789");
  return n > 0 ? g_strndup (digits, n) : NULL;
}

static char *
bridge_software (const char *path, LsImport *import)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gsize n;
  g_autofree char *info = find_import (path, "megatron.bridge.package_info"),
                  *text = info ? ls_read_file (info, LAUNCH_MAX_BESIDE, &n, diags) : NULL,
                  *major = text ? number_of (text, "MAJOR") : NULL,
                  *minor = text ? number_of (text, "MINOR") : NULL;
  if (!major || !minor)
    return NULL;
  g_autofree char *version = g_strconcat (major, ".", minor, NULL);
  char *software = ls_software_of_package ("megatron-bridge", version);
  if (software)
    import_infer (import, "software %s: it is in a checkout of Megatron-Bridge %s", software, version);
  return software;
}

/* A package of recipes; what the rest of the program does is known here. */
static bool
is_of_recipes (const char *module)
{
  g_auto (GStrv) parts = g_strsplit (module, ".", -1);
  return g_strv_contains ((const char *const *) parts, "recipes")
      || g_strv_contains ((const char *const *) parts, "perf_recipes");
}

/* Files that those which are given import from, where they lie as in the program: beside the folders of the
 * file that names them. */
static bool
add_imported (LsPython *python, GPtrArray *paths, GPtrArray *texts, LsImport *import, LsDiagList *diags)
{
  for (guint i = 0; i < paths->len && i < MAX_FILES; i++) {
    const GPtrArray *modules = ls_python_imports (python, i);
    for (guint k = 0; k < modules->len; k++) {
      gsize n;
      g_autofree char *path
          = is_of_recipes (modules->pdata[k]) ? find_import (paths->pdata[i], modules->pdata[k]) : NULL;
      if (!path || g_ptr_array_find_with_equal_func (paths, path, g_str_equal, NULL))
        continue;
      char *text = ls_read_file (path, LAUNCH_MAX_BESIDE, &n, diags);
      if (!text)
        return false;
      g_ptr_array_add (texts, text);
      g_ptr_array_add (import->files, g_strdup (path));
      g_ptr_array_add (paths, g_steal_pointer (&path));
      if (!ls_python_add (python, text, n, paths->pdata[paths->len - 1], diags))
        return false;
    }
  }
  return true;
}

/* All files from `first` on, with what they import, each well formed; NULL: a diagnostic. texts, to which
 * those that are read are added, outlive it. */
static LsPython *
join_files (const ImportFiles *files, guint first, GPtrArray *texts, LsImport *import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = NULL;
  bool ok = true;
  for (guint i = first; i < files->n && ok; i++) {
    const ImportFile *file = &files->files[i];
    import_use_file (file);
    ok = i == first ? (python = ls_python_new (file->text, file->n, file->path, diags)) != NULL
                    : ls_python_add (python, file->text, file->n, file->path, diags);
    g_ptr_array_add (paths, g_strdup (file->path));
  }
  ok = ok && add_imported (python, paths, texts, import, diags)
      && ls_python_add (python, known_functions, strlen (known_functions), KNOWN_PATH, diags);
  return ok ? g_steal_pointer (&python) : NULL;
}

/* "llama3_70b_pretrain_64gpu_h100_fp8cs_config" is for 64 GPUs; 0: its name does not say. */
static guint64
gpus_of (const char *recipe)
{
  const char *end = strstr (recipe, "gpu_"), *begin = end;
  while (begin && begin > recipe && g_ascii_isdigit (begin[-1]))
    begin--;
  return begin && begin < end ? g_ascii_strtoull (begin, NULL, 10) : 0;
}

/* DeepEP runs on one node's GPUs, not on racks (training/flex_dispatcher_backend.py). */
static bool
may_run_deepep (const char *recipe)
{
  static const char *const racks[] = { "_gb200_", "_gb300_", "_vr200_" };
  for (guint i = 0; i < G_N_ELEMENTS (racks); i++)
    if (strstr (recipe, racks[i]))
      return false;
  return true;
}

/* Scripts that run performance recipes take a backend that is named for the dispatcher
 * (scripts/performance/utils/utils.py, finalize_config_overrides). */
static void
settle_dispatcher (cJSON *tree, const char *recipe, LsImport *import)
{
  cJSON *model = cJSON_GetObjectItemCaseSensitive (tree, "model");
  const cJSON *backend = cJSON_GetObjectItemCaseSensitive (model, "moe_flex_dispatcher_backend");
  if (gpus_of (recipe) == 0 || !cJSON_IsString (backend))
    return;
  bool is_flex = strcmp (backend->valuestring, "deepep") != 0 || may_run_deepep (recipe);
  if (!is_flex)
    import_infer (import,
                  "moe_flex_dispatcher_backend deepep: Megatron-Bridge does not run it on the GPUs of "
                  "racks; the tokens of experts go by all-to-all");
  cJSON_DeleteItemFromObjectCaseSensitive (model, "moe_token_dispatcher_type");
  cJSON_AddStringToObject (model, "moe_token_dispatcher_type", is_flex ? "flex" : "alltoall");
  if (!is_flex)
    return;
  cJSON_DeleteItemFromObjectCaseSensitive (model, "moe_shared_expert_overlap");
  cJSON_AddFalseToObject (model, "moe_shared_expert_overlap");
}

static void
set_gpus (const char *recipe, LsImport *import)
{
  guint64 n = gpus_of (recipe);
  if (n > 0) {
    import_set_strategy_number (import, "gpus", n);
    import_infer (import, "gpus %" G_GUINT64_FORMAT ": the recipe's name says so", n);
  } else
    import_open (import, "gpus", "how many GPUs: nothing here says");
}

/* --- files ---------------------------------------------------------------------------------------------- */

/* The model of a hub that a recipe asks for, else the one that it is called by; the caller frees it. */
static char *
model_of (const cJSON *tree, const char *base)
{
  char *hub = hub_of (tree);
  return hub ? hub : bridge_model_of (base);
}

/* The tree of a recipe of the files from `first` on; NULL: a diagnostic. */
static cJSON *
tree_of (const ImportFiles *files, guint first, const char *recipe, GPtrArray *passed, LsImport *import,
         LsDiagList *diags)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = join_files (files, first, texts, import, diags);
  cJSON *tree = python ? ls_python_value (python, recipe, passed, diags) : NULL;
  const char *made = tree ? made_by (tree) : NULL;
  if (python && python_refuse_program (python, files->files[first].path, "megatron-bridge", diags)) {
    cJSON_Delete (tree);
    return NULL;
  }
  if (tree)
    launch_python_environment (python, true, import);
  if (!tree || (made && cJSON_HasObjectItem (tree, "train")))
    return tree;
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, files->files[first].path, 0, 0, NULL, NULL, NULL,
               "%s returns what %s makes, which is no recipe of a training job", recipe, made ? made : "it");
  cJSON_Delete (tree);
  return NULL;
}

cJSON *
bridge_recipe (const ImportFiles *files, guint first, const char *recipe, char **ret_model,
               bool *ret_is_whole, LsImport *import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) passed = g_ptr_array_new_with_free_func (g_free);
  cJSON *tree = tree_of (files, first, recipe, passed, import, diags);
  if (!tree)
    return NULL;
  const char *made = made_by (tree);
  *ret_is_whole = strcmp (made, "ConfigContainer") == 0;
  *ret_model = model_of (tree, *ret_is_whole ? recipe : made);
  if (!*ret_is_whole)
    import_unknown (import, "%s, which %s changes: it is in no file here", made, recipe);
  python_tell_passed (import, recipe, passed);
  set_precision (tree);
  overwrite_by_precision (tree);
  drop_vocab (tree, import);
  settle_dispatcher (tree, recipe, import);
  name_adapters (tree);
  write_layout (tree);
  write_formats (tree, import);
  python_names_forget_calls (tree);
  return tree;
}

bool
bridge_read (cJSON *tree, const ImportFile *file, const char *model, bool is_whole, LsImport *import,
             LsDiagList *diags)
{
  g_autofree char *software = bridge_software (file->path, import);
  const ProgramTold told[] = { { "program", "Megatron-Bridge" },
                               { "named", model },
                               { "software", software },
                               { "whole", is_whole ? "1" : NULL },
                               { NULL } };
  return program_read_tree ("nemo", tree, file->path, told, import, diags);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  g_autofree char *recipe = find_recipe (files, diags), *model = NULL;
  bool is_whole;
  cJSON *tree = recipe ? bridge_recipe (files, 0, recipe, &model, &is_whole, import, diags) : NULL;
  import->program = "Megatron-Bridge";
  if (!tree)
    return false;
  set_gpus (recipe, import);
  return bridge_read (tree, &files->files[0], model, is_whole, import, diags);
}

static bool
is_its (const ImportFile *file)
{
  return strstr (file->text, "ConfigContainer") && launch_has_line (file->text, "def ")
      && launch_has_line (file->text, "from megatron.bridge");
}

const ImportReader import_bridge_python
    = { "recipes of Megatron-Bridge in Python and scripts that start one", is_its, read };
