/* Scripts that start a recipe of Megatron-Bridge by its name: scripts/training/run_recipe.py, and
 * scripts/performance/setup_experiment.py of NVIDIA's DGX Cloud benchmarks
 * (NVIDIA-NeMo/Megatron-Bridge@067f987df and NVIDIA/dgxc-benchmarking@841f546, August 2026).
 *
 * A recipe is Python, which is not read: its name says the model, and what the script changes is read as a
 * configuration. What it leaves as it is, is told. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/nemo_rules.h"
#include "data/launch/yaml_config.h"

/* --- options -------------------------------------------------------------------------------------- */

/* Short forms of what a configuration says, and who names the recipe. */
static const struct {
  const char *option, *is;
} forms[] = {
  { "tp", "model.tensor_model_parallel_size" },
  { "tensor_model_parallel_size", "model.tensor_model_parallel_size" },
  { "pp", "model.pipeline_model_parallel_size" },
  { "pipeline_model_parallel_size", "model.pipeline_model_parallel_size" },
  { "vp", "model.virtual_pipeline_model_parallel_size" },
  { "virtual_pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size" },
  { "cp", "model.context_parallel_size" },
  { "context_parallel_size", "model.context_parallel_size" },
  { "ep", "model.expert_model_parallel_size" },
  { "expert_model_parallel_size", "model.expert_model_parallel_size" },
  { "et", "model.expert_tensor_parallel_size" },
  { "etp", "model.expert_tensor_parallel_size" },
  { "expert_tensor_parallel_size", "model.expert_tensor_parallel_size" },
  { "gb", "train.global_batch_size" },
  { "global_batch_size", "train.global_batch_size" },
  { "mb", "train.micro_batch_size" },
  { "micro_batch_size", "train.micro_batch_size" },
  { "sl", "dataset.seq_length" },
  { "seq_length", "dataset.seq_length" },
};

static const char *const names[] = { "recipe", "model_recipe_name", "model" };

static bool
is_known (const char *name)
{
  static const char *const others[] = { "mode", "num_gpus", "compute_dtype" };
  g_autofree char *folded = g_strdelimit (g_strdup (name), "-", '_');
  bool is_it = false;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    is_it = is_it || strcmp (folded, names[i]) == 0;
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    is_it = is_it || strcmp (folded, others[i]) == 0;
  return is_it;
}

static const char *
value_of (const LaunchWords *words, const char *name)
{
  const LaunchOption *o = launch_words_find (words, name);
  return o && o->values->len > 0 ? o->values->pdata[0] : NULL;
}

/* --- what a script says --------------------------------------------------------------------------- */

/* Words "a.b=c", wherever they stand, over the short forms. */
static cJSON *
changes_of (const LaunchWords *words)
{
  cJSON *tree = cJSON_CreateObject ();
  cJSON_AddObjectToObject (tree, "train");
  for (guint i = 0; i < G_N_ELEMENTS (forms); i++) {
    const char *value = value_of (words, forms[i].option);
    g_autofree char *pair = value ? g_strdup_printf ("%s=%s", forms[i].is, value) : NULL;
    if (pair)
      yaml_config_set_pair (tree, pair);
  }
  for (guint i = 0; i < words->others->len; i++)
    if (strchr (words->others->pdata[i], '='))
      yaml_config_set_pair (tree, words->others->pdata[i]);
  for (guint i = 0; i < words->options->len; i++) {
    const LaunchOption *o = words->options->pdata[i];
    for (guint k = 0; k < o->values->len; k++)
      if (strchr (o->values->pdata[k], '=') && strchr (o->values->pdata[k], '.'))
        yaml_config_set_pair (tree, o->values->pdata[k]);
  }
  return tree;
}

/* "bridge/qwen3_8b" of "qwen3_8b_pretrain_8gpu_h100_bf16_config"; the caller frees it. */
static char *
model_of (const char *recipe)
{
  static const char *const ends[] = { "_pretrain", "_sft", "_peft", "_config" };
  gsize n = strlen (recipe);
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++) {
    const char *end = strstr (recipe, ends[i]);
    n = end ? MIN (n, (gsize) (end - recipe)) : n;
  }
  return g_strdup_printf ("bridge/%.*s", (int) n, recipe);
}

/* Names of setup_experiment.py. */
static void
set_dtype (const LaunchWords *words, LsImport *import)
{
  static const struct {
    const char *name, *dtype, *recipe;
  } dtypes[]
      = { { "bf16", "bf16", NULL },       { "fp8_cs", "fp8", "current" },   { "fp8_mx", "fp8", "mxfp8" },
          { "fp8_ds", "fp8", "delayed" }, { "fp8_sc", "fp8", "blockwise" }, { "nvfp4", "nvfp4", NULL } };
  const char *name = value_of (words, "compute_dtype");
  for (guint i = 0; i < G_N_ELEMENTS (dtypes) && name; i++)
    if (strcmp (name, dtypes[i].name) == 0) {
      import_set_strategy (import, "dtype", dtypes[i].dtype, "--compute_dtype");
      if (dtypes[i].recipe)
        import_set_strategy (import, "fp8_recipe", dtypes[i].recipe, "--compute_dtype");
      return;
    }
  if (name)
    import_open (import, "dtype", "--compute_dtype: the script does not say its value");
}

static void
set_gpus (const LaunchScript *script, LsImport *import)
{
  const char *text = value_of (script->words, "num_gpus");
  guint64 n = text ? g_ascii_strtoull (text, NULL, 10) : script->gpus;
  if (n > 0)
    import_set_strategy_number (import, "gpus", n);
  else
    import_open (import, "gpus", "how many GPUs: nothing here says");
}

/* --- files ---------------------------------------------------------------------------------------- */

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = "Megatron-Bridge", .is_known = is_known, .n_needed = 1, .gpus = "num_gpus" };
  LaunchScript script;
  if (!launch_script_read (files, &kind, &script, import, diags)) {
    launch_script_clear (&script);
    return false;
  }
  const char *recipe = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (names) && !recipe; i++)
    recipe = value_of (script.words, names[i]);
  g_autofree char *model = recipe && !ls_shell_has_hole (recipe) ? model_of (recipe) : NULL;
  if (recipe && strstr (recipe, "_peft"))
    import_unknown (import, "%s: only adapters are trained; all weights are taken to be", recipe);
  set_gpus (&script, import);
  set_dtype (script.words, import);
  cJSON *tree = changes_of (script.words);
  launch_script_clear (&script);
  return nemo_read_tree (tree, &files->files[0], kind.program, model, NULL, import, diags);
}

/* No page that shows such a command. */
static bool
is_its (const ImportFile *file)
{
  static const char *const programs[] = { "run_recipe.py", "setup_experiment.py" };
  bool is_it = false;
  for (guint i = 0; i < G_N_ELEMENTS (programs); i++)
    is_it = is_it || strstr (file->text, programs[i]);
  return is_it && strstr (file->text, "recipe") && g_str_has_prefix (file->text, "#!");
}

const ImportReader import_bridge_script
    = { "a script that starts a recipe of Megatron-Bridge", is_its, read };
