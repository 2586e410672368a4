/* Configurations of torchtitan in Python, and what they are by the names of its TOML. Since February 2026 a
 * module of a model, torchtitan/models/llama3/config_registry.py, has a function for each; names as in
 * pytorch/torchtitan@b5bcd76c6, of August 2026, and of releases between. */
#include <lockstep/error.h>
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/python/python_names.h"
#include "data/launch/torchtitan/torchtitan_rules.h"
#include "data/python/python.h"
#include "data/text/json_doc.h"

/* --- by the names of TOML -------------------------------------------------------------------------- */

static const char *
text_in (const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (object, key);
  return cJSON_IsString (item) ? item->valuestring : NULL;
}

/* "float8linearconverter.config" of what is called so. */
static void
add_converters (cJSON *model, const cJSON *where)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (where, "converters"), *item;
  cJSON *names = cJSON_AddArrayToObject (model, "converters");
  cJSON_ArrayForEach (item, list)
  {
    g_autofree char *name = g_ascii_strdown (text_in (item, "()") ? text_in (item, "()") : "?", -1);
    cJSON_AddItemToArray (names, cJSON_CreateString (name));
  }
}

/* moe_comm_backend="hybridep", which has a place among other options in TOML. */
static void
set_experts (cJSON *tree, const cJSON *spec)
{
  const char *backend = text_in (spec, "moe_comm_backend");
  cJSON *parallelism = cJSON_GetObjectItemCaseSensitive (tree, "parallelism");
  if (!backend)
    return;
  if (!parallelism)
    parallelism = cJSON_AddObjectToObject (tree, "parallelism");
  cJSON_AddStringToObject (parallelism, "expert_parallel_comm_backend", backend);
}

/* model_registry ("8B", attn_backend="varlen"); a log has "name" and "flavor". */
static void
set_spec (cJSON *tree, const char *module)
{
  const cJSON *spec = cJSON_GetObjectItemCaseSensitive (tree, "model_spec"),
              *older = cJSON_GetObjectItemCaseSensitive (tree, "model_converters");
  const char *flavor = text_in (spec, "0"), *backend = text_in (spec, "attn_backend");
  flavor = flavor ? flavor : text_in (spec, "flavor");
  cJSON *model = cJSON_CreateObject ();
  const char *name = text_in (spec, "name") ? text_in (spec, "name") : module;
  if (name && flavor) {
    cJSON_AddStringToObject (model, "name", name);
    cJSON_AddStringToObject (model, "flavor", flavor);
  }
  if (backend)
    cJSON_AddStringToObject (model, "attn_backend", backend);
  set_experts (tree, spec);
  add_converters (model, older ? older : spec);
  cJSON_AddItemToObject (tree, "model", model);
  if (text_in (tree, "hf_model"))
    cJSON_AddStringToObject (cJSON_AddObjectToObject (tree, "hf_transformers"), "model",
                             text_in (tree, "hf_model"));
  cJSON_DeleteItemFromObjectCaseSensitive (tree, "hf_model");
}

static const struct {
  const char *policy, *mode;
} policies[]
    = { { "FullAC", "full" }, { "SelectiveAC", "selective" }, { "MemoryBudgetAC", "memory_budget" } };

static void
set_policy (cJSON *tree)
{
  cJSON *policy = cJSON_GetObjectItemCaseSensitive (tree, "activation_checkpoint");
  const char *name = text_in (policy, "()");
  if (cJSON_IsNull (policy)) {
    cJSON_ReplaceItemInObjectCaseSensitive (tree, "activation_checkpoint", policy = cJSON_CreateObject ());
    cJSON_AddStringToObject (policy, "mode", "none");
  }
  for (guint i = 0; i < G_N_ELEMENTS (policies) && name; i++)
    if (g_str_has_prefix (name, policies[i].policy)) {
      cJSON_AddStringToObject (policy, "mode", policies[i].mode);
      cJSON_AddStringToObject (policy, "selective_ac_option", "op");
    }
}

/* The policy that is there where none is set: every second layer as a whole until June 2026. */
static void
set_default_policy (cJSON *tree)
{
  const cJSON *training = cJSON_GetObjectItemCaseSensitive (tree, "training"),
              *loss = cJSON_GetObjectItemCaseSensitive (tree, "loss");
  bool is_later = cJSON_GetObjectItemCaseSensitive (training, "num_tokens_per_microbatch_per_dp_rank")
      || text_in (loss, "()");
  if (cJSON_GetObjectItemCaseSensitive (tree, "activation_checkpoint") || !is_later)
    return;
  cJSON *policy = cJSON_AddObjectToObject (tree, "activation_checkpoint");
  cJSON_AddStringToObject (policy, "mode", "selective");
  cJSON_AddStringToObject (policy, "selective_ac_option", "op");
}

/* default_adamw (lr=...), or a container with a name. What another function takes is its own. */
static void
set_optimizer (cJSON *tree)
{
  const cJSON *optimizer = cJSON_GetObjectItemCaseSensitive (tree, "optimizer");
  g_autofree char *made = g_strdup (text_in (optimizer, "()"));
  if (!made || strstr (made, "OptimizersContainer"))
    return;
  cJSON_DeleteItemFromObjectCaseSensitive (tree, "optimizer");
  cJSON_AddStringToObject (cJSON_AddObjectToObject (tree, "optimizer"), "name",
                           strcmp (made, "default_adamw") == 0 ? "AdamW" : made);
}

static void
set_loss (cJSON *tree)
{
  g_autofree char *kind = g_strdup (text_in (cJSON_GetObjectItemCaseSensitive (tree, "loss"), "()"));
  cJSON_DeleteItemFromObjectCaseSensitive (tree, "loss");
  if (kind)
    cJSON_AddStringToObject (cJSON_AddObjectToObject (tree, "loss"), "kind", kind);
}

void
torchtitan_add_config (LaunchWords *words, cJSON *tree, const char *module)
{
  set_default_policy (tree);
  set_spec (tree, module);
  set_policy (tree);
  set_optimizer (tree);
  set_loss (tree);
  cJSON_DeleteItemFromObjectCaseSensitive (tree, "model_spec");
  cJSON_DeleteItemFromObjectCaseSensitive (tree, "model_converters");
  python_names_forget_calls (tree);
  launch_words_add_tree (words, tree);
}

static void
add_policy (LaunchWords *words, const char *word)
{
  static const char *const modes[][2]
      = { { "full", "full" }, { "selective", "selective" }, { "memory-budget", "memory_budget" } };
  g_auto (GStrv) parts = g_strsplit (word, ":", 2);
  if (g_strv_length (parts) != 2 || strcmp (g_strdelimit (parts[0], "-", '_'), "activation_checkpoint") != 0)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (modes); i++)
    if (strcmp (parts[1], modes[i][0]) == 0) {
      launch_words_add_value (words, "activation_checkpoint.mode", modes[i][1]);
      launch_words_add_value (words, "activation_checkpoint.selective_ac_option", "op");
    }
}

void
torchtitan_add_policies (LaunchWords *words, const LaunchWords *command)
{
  for (guint i = 0; i < command->others->len; i++)
    add_policy (words, command->others->pdata[i]);
  for (guint i = 0; i < command->options->len; i++) {
    const LaunchOption *o = command->options->pdata[i];
    for (guint k = 0; k < o->values->len; k++)
      add_policy (words, o->values->pdata[k]);
  }
}

/* --- configurations in Python ---------------------------------------------------------------------- */

/* Of a module since February 2026: each function without an argument returns one. */
static const PythonPick pick = { "config", "configuration" };

/* Trainer.Config (model_spec=...), not one of reinforcement learning, which has a trainer among others, nor
 * what a function of another file makes of one. */
static bool
is_job (const cJSON *tree, const char *function, const char *path, LsDiagList *diags)
{
  const char *made = text_in (tree, "()");
  bool has_model = cJSON_IsObject (cJSON_GetObjectItemCaseSensitive (tree, "model_spec"));
  if (has_model && !cJSON_HasObjectItem (tree, "trainer") && made && g_str_has_suffix (made, "Config"))
    return true;
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
               "%s returns what %s makes, which is no configuration of a training job in this file", function,
               made ? made : "it");
  return false;
}

bool
torchtitan_add_python (LaunchWords *words, const ImportFile *file, const char *asked, const char *module,
                       LsImport *import, LsDiagList *diags)
{
  g_autoptr (LsPython) python = ls_python_new (file->text, file->n, file->path, diags);
  const char *function = python ? python_pick_function (python, &pick, asked, file->path, diags) : NULL;
  g_autoptr (GPtrArray) passed = g_ptr_array_new_with_free_func (g_free);
  cJSON *tree = function ? ls_python_value (python, function, passed, diags) : NULL;
  bool is_program = function && python_refuse_program (python, file->path, "torchtitan", diags);
  if (!tree || is_program || !is_job (tree, function, file->path, diags)) {
    cJSON_Delete (tree);
    return false;
  }
  python_tell_passed (import, function, passed);
  launch_python_environment (python, false, import);
  torchtitan_add_config (words, tree, module);
  cJSON_Delete (tree);
  return true;
}

/* What tools/python/lockstep/dump.py prints of one: the same, by the same names. */
static bool
add_dump (LaunchWords *words, const ImportFile *file, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (file->text, file->n, file->path, diags);
  cJSON *tree = doc ? cJSON_Duplicate (ls_json_doc_root (doc), true) : NULL;
  bool ok = tree && is_job (tree, "it", file->path, diags);
  if (ok)
    torchtitan_add_config (words, tree, NULL);
  cJSON_Delete (tree);
  return ok;
}

static bool
is_dump (const ImportFile *file)
{
  return *file->text == '{' && strstr (file->text, "\"model_registry\"");
}

/* Its module is named by the folder. */
static bool
read_python (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  g_autofree char *folder = g_path_get_dirname (file->path), *name = g_path_get_basename (folder);
  const char *asked = import_given (files, "config"), *module = import_given (files, "module");
  module = module ? module : strcmp (name, ".") != 0 ? name : NULL;
  import->program = "torchtitan";
  if (is_dump (file) ? !add_dump (words, file, diags)
                     : !torchtitan_add_python (words, file, asked, module, import, diags))
    return false;
  LaunchJob job = { .import = import, .words = words };
  return torchtitan_read (&job, diags);
}

static bool
is_python (const ImportFile *file)
{
  return is_dump (file)
      || (strstr (file->text, "model_registry") && launch_has_line (file->text, "def ")
          && launch_has_line (file->text, "from torchtitan"));
}

const ImportReader import_torchtitan_python = { NULL, is_python, read_python };
