/* Scripts that start a recipe of Megatron-Bridge by its name: scripts/training/run_recipe.py, and
 * scripts/performance/setup_experiment.py of NVIDIA's DGX Cloud benchmarks, with run_script.py, which it
 * starts (NVIDIA-NeMo/Megatron-Bridge@067f987df, NVIDIA/dgxc-benchmarking@841f546 and
 * AI-Hypercomputer/gpu-recipes@2e1fd5e, August 2026).
 *
 * A recipe is Python, which is not read: its name says the model, and what the script changes is read as a
 * configuration. What it leaves as it is, is told. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/bridge/bridge.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

/* --- options -------------------------------------------------------------------------------------- */

#define AS(option, other) OPTION_AS_ROW (option, other)
#define RULE(option)      OPTION_RULE_ROW (option)

/* What a configuration says, by what scripts/performance/argument_parser.py and
 * scripts/training/run_recipe.py call it; rules are those of scripts/performance/utils/overrides.py. */
static const OptionRow rows[] = {
  AS ("tp", "model.tensor_model_parallel_size"),
  AS ("tensor_model_parallel_size", "model.tensor_model_parallel_size"),
  AS ("pp", "model.pipeline_model_parallel_size"),
  AS ("pipeline_model_parallel_size", "model.pipeline_model_parallel_size"),
  AS ("vp", "model.virtual_pipeline_model_parallel_size"),
  AS ("virtual_pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"),
  AS ("pipeline_model_parallel_layout", "model.pipeline_model_parallel_layout"),
  AS ("cp", "model.context_parallel_size"),
  AS ("context_parallel_size", "model.context_parallel_size"),
  AS ("ep", "model.expert_model_parallel_size"),
  AS ("expert_model_parallel_size", "model.expert_model_parallel_size"),
  AS ("et", "model.expert_tensor_parallel_size"),
  AS ("etp", "model.expert_tensor_parallel_size"),
  AS ("expert_tensor_parallel_size", "model.expert_tensor_parallel_size"),
  AS ("gb", "train.global_batch_size"),
  AS ("global_batch_size", "train.global_batch_size"),
  AS ("mb", "train.micro_batch_size"),
  AS ("micro_batch_size", "train.micro_batch_size"),
  AS ("sl", "dataset.seq_length"),
  AS ("seq_length", "dataset.seq_length"),
  AS ("num_layers", "model.num_layers"),
  AS ("num_moe_experts", "model.num_moe_experts"),
  AS ("rl", "model.recompute_num_layers"),
  AS ("recompute_num_layers", "model.recompute_num_layers"),
  RULE ("activation_offload_layers"),
  RULE ("recompute_modules"),
  RULE ("use_megatron_fsdp"),
  RULE ("moe_a2a_overlap"),
  RULE ("moe_flex_dispatcher_backend"),
  AS ("cuda_graph_impl", "model.cuda_graph_impl"),
  AS ("cuda_graph_scope", "model.cuda_graph_scope"),
  RULE ("recipe"),
  RULE ("model"),
  RULE ("mr"),
  RULE ("model_recipe_name"),
  RULE ("task"),
  RULE ("mode"),
  RULE ("ng"),
  RULE ("num_gpus"),
  RULE ("g"),
  RULE ("gpu"),
  RULE ("c"),
  RULE ("compute_dtype"),
};

static const char ignored[]
    = "a account additional_slurm_params c4_* ce cm container_image custom_* data dataset dataset_* "
      "detach distributed_timeout_minutes domain dryrun dump_env E env gn gpus_per_node gres head_only "
      "hf hf_token i index_mapping_dir kubeflow_* l load_dir log_dir lr m max_retries max_step max_steps "
      "min_lr model_family_name most_recent_k ms nemo_home nh nsys_* offline p packager partition "
      "preempt_time "
      "pretrained_checkpoint profiling_* save_* t time_limit tokenizer_* use_recipes vb vocab_size "
      "wandb_* warmup_iters wdj wdk wdp wds";

static const OptionTable table = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* Those of which one is enough to know a command by. */
static bool
is_known (const char *name)
{
  static const char *const all[]
      = { "recipe", "model-recipe-name", "model", "mode", "num-gpus", "compute-dtype", "mr", "ng", NULL };
  g_autofree char *folded = g_strdelimit (g_strdup (name), "_", '-');
  return g_strv_contains (all, folded);
}

/* Of the first of these options that is there, to which a NULL is the end. */
static const char *
value_of (const LaunchWords *words, const char *const *names)
{
  for (; *names; names++) {
    const LaunchOption *o = launch_words_find (words, *names);
    if (o && o->values->len > 0)
      return o->values->pdata[0];
  }
  return NULL;
}

#define VALUE_OF(words, ...) value_of (words, (const char *const[]) { __VA_ARGS__, NULL })

/* --- what a script says --------------------------------------------------------------------------- */

static void
say (cJSON *tree, const char *name, const char *value)
{
  g_autofree char *pair = g_strdup_printf ("%s=%s", name, value);
  yaml_config_set_pair (tree, pair);
}

/* What an option means beside what it is called. */
static void
say_rules (const LaunchWords *words, const LaunchJob *job, bool is_performance, cJSON *tree)
{
  const char *tp = VALUE_OF (words, "tp", "tensor_model_parallel_size"),
             *modules = VALUE_OF (words, "recompute_modules"),
             *backend = VALUE_OF (words, "moe_flex_dispatcher_backend");
  if (tp && is_performance && !ls_shell_has_hole (tp))
    say (tree, "model.sequence_parallel", strcmp (tp, "1") == 0 ? "false" : "true");
  if (VALUE_OF (words, "rl", "recompute_num_layers")) {
    say (tree, "model.recompute_granularity", "full");
    say (tree, "model.recompute_method", "block");
  }
  if (modules && !ls_shell_has_hole (modules)) {
    g_autofree char *list = g_strdup_printf ("[%s]", modules);
    say (tree, "model.recompute_granularity", "selective");
    say (tree, "model.recompute_modules", list);
  }
  const char *offloaded = VALUE_OF (words, "activation_offload_layers");
  if (offloaded) {
    say (tree, "model.cpu_offloading", "true");
    say (tree, "model.cpu_offloading_weights", "false");
    say (tree, "model.cpu_offloading_num_layers", offloaded);
  }
  if (option_is_on (job, "use_megatron_fsdp")) {
    say (tree, "ddp.use_megatron_fsdp", "true");
    say (tree, "ddp.data_parallel_sharding_strategy", "optim_grads_params");
  }
  if (option_is_on (job, "moe_a2a_overlap")) {
    say (tree, "comm_overlap.overlap_moe_expert_parallel_comm", "true");
    say (tree, "comm_overlap.delay_wgrad_compute", "true");
  }
  if (backend && !ls_shell_has_hole (backend)) {
    bool is_none = strcmp (backend, "None") == 0;
    say (tree, "model.moe_token_dispatcher_type", is_none ? "alltoall" : "flex");
    if (!is_none)
      say (tree, "model.moe_flex_dispatcher_backend", backend);
  }
}

static void
say_pair (cJSON *tree, const char *word)
{
  if (strchr (word, '='))
    yaml_config_set_pair (tree, word);
}

/* A word that is no change and that the script leaves open may be many. */
static void
tell_rest (const LaunchJob *job, const char *word)
{
  if (!strchr (word, '='))
    option_tell_hole (job, word);
}

/* Of the words behind an option, of which the first may be its own. */
static bool
is_change (const char *word, guint at)
{
  return at > 0 || strchr (word, '.') || g_str_has_prefix (word, "mixed_precision=");
}

/* Words "a.b=c", wherever they stand, over the options. */
static cJSON *
changes_of (const LaunchWords *words, bool is_performance, LsImport *import)
{
  cJSON *tree = cJSON_CreateObject ();
  g_autoptr (LaunchWords) same = launch_words_new ();
  const LaunchJob job = { .import = import, .words = words, .table = &table };
  cJSON_AddObjectToObject (tree, "train");
  option_translate (&job, same);
  for (guint i = 0; i < same->options->len; i++) {
    const LaunchOption *o = same->options->pdata[i];
    if (o->values->len > 0)
      say (tree, o->name, o->values->pdata[0]);
  }
  say_rules (words, &job, is_performance, tree);
  for (guint i = 0; i < words->others->len; i++) {
    say_pair (tree, words->others->pdata[i]);
    tell_rest (&job, words->others->pdata[i]);
  }
  for (guint i = 0; i < words->options->len; i++) {
    const LaunchOption *o = words->options->pdata[i];
    for (guint k = 0; k < o->values->len; k++) {
      if (is_change (o->values->pdata[k], k))
        say_pair (tree, o->values->pdata[k]);
      if (k > 0)
        tell_rest (&job, o->values->pdata[k]);
    }
  }
  return tree;
}

char *
bridge_model_of (const char *recipe)
{
  static const char *const ends[] = { "_pretrain", "_sft", "_peft", "_config" };
  gsize n = strlen (recipe);
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++) {
    const char *end = strstr (recipe, ends[i]);
    n = end ? MIN (n, (gsize) (end - recipe)) : n;
  }
  return g_strdup_printf ("bridge/%.*s", (int) n, recipe);
}

/* --- adapters of recipes ---------------------------------------------------------------------------- */

/* Of recipes whose adapters are not those of peft/lora.py, of rank 32 on all linear layers (recipes/llama,
 * gemma, qwen, exaone, nemotronh; NVIDIA-NeMo/Megatron-Bridge@067f987df). */
static const struct {
  const char *model, *rank, *on; /* on NULL: all linear layers */
} adapters[] = {
  { "llama3_8b", "8", NULL },
  { "llama31_8b", "8", NULL },
  { "llama3_70b", "16", NULL },
  { "llama31_70b", "16", NULL },
  { "llama31_405b", "16", "[linear_qkv]" },
  { "gemma3_1b", "8", NULL },
  { "qwen3_8b", "8", "[linear_qkv, linear_proj]" },
  { "qwen3_30b_a3b", "8", "[linear_qkv, linear_proj]" },
  { "qwen3_235b_a22b", "8", "[linear_qkv, linear_proj]" },
  { "exaone_moe_236b_a23b", "8", "[linear_qkv, linear_proj]" },
  { "exaone_moe_2_0_750b_a37", "8", "[linear_qkv, linear_proj]" },
  { "nemotron_3_nano_4b", "8", "[linear_qkv, linear_proj]" },
};

static void
say_unless (cJSON *tree, const char *name, const char *value)
{
  if (value && !yaml_config_find (tree, name))
    say (tree, name, value);
}

/* scheme: "dora", or LoRA; model: "bridge/qwen3_8b", or NULL. */
static void
say_adapters (cJSON *tree, const char *scheme, const char *model, LsImport *import)
{
  bool is_dora = strcmp (scheme, "dora") == 0;
  guint i = 0;
  say_unless (tree, "peft._target_",
              is_dora ? "megatron.bridge.peft.dora.DoRA" : "megatron.bridge.peft.lora.LoRA");
  while (i < G_N_ELEMENTS (adapters) && (!model || strcmp (strchr (model, '/') + 1, adapters[i].model) != 0))
    i++;
  if (i < G_N_ELEMENTS (adapters)) {
    say_unless (tree, "peft.dim", adapters[i].rank);
    say_unless (tree, "peft.target_modules", adapters[i].on);
  }
  import_infer (import, "adapters: those of the recipe, as of August 2026");
}

/* What is trained: by the name of the recipe, or by options; NULL: all weights. */
static const char *
scheme_of (const LaunchWords *words, const char *recipe)
{
  const char *task = VALUE_OF (words, "mode", "task");
  bool is_task = task && (!strcmp (task, "peft") || !strcmp (task, "lora"));
  if (task && strcmp (task, "dora") == 0)
    return "dora";
  return is_task || (recipe && strstr (recipe, "_peft")) ? "lora" : NULL;
}

/* Names of setup_experiment.py (scripts/performance/utils/precision.py); by a name alone gradients would be
 * summed in fp32, and layers at both ends be in bf16. */
static void
say_dtype (const LaunchWords *words, cJSON *tree, LsImport *import)
{
  const char *name = VALUE_OF (words, "c", "compute_dtype"), *gpu = VALUE_OF (words, "g", "gpu");
  if (!name && gpu)
    import_infer (import, "dtype bf16: the default of --compute_dtype");
  name = name || !gpu ? name : "bf16";
  const char *precision = name ? bridge_precision_of (name) : NULL;
  if (precision) {
    say (tree, "mixed_precision.precision", precision);
    say (tree, "mixed_precision.grad_reduce_in_fp32", "false");
    say (tree, "mixed_precision.first_last_layers_bf16", "false");
  } else if (name)
    import_open (import, "dtype", "--compute_dtype: the script does not say its value");
}

static void
set_gpus (const LaunchScript *script, LsImport *import)
{
  const char *text = VALUE_OF (script->words, "ng", "num_gpus");
  guint64 n = text ? g_ascii_strtoull (text, NULL, 10) : script->gpus;
  if (n > 0)
    import_set_strategy_number (import, "gpus", n);
  else
    import_open (import, "gpus", "how many GPUs: nothing here says");
}

/* --- files ---------------------------------------------------------------------------------------- */

/* What launches a recipe of scripts/performance, and what that starts on each GPU; clouds have copies of it
 * beside it, "custom_setup_experiment.py", which hand their options on. */
static bool
is_performance_script (const char *name)
{
  return g_str_has_suffix (name, "setup_experiment.py") || strcmp (name, "run_script.py") == 0;
}

/* The name of its function: that of a performance recipe has what it is for (scripts/performance/utils/
 * utils.py, _recipe_function_name). NULL: something of it is not said. The caller frees it. */
static char *
function_of (const LaunchWords *words, const char *recipe, bool is_performance)
{
  const char *n = VALUE_OF (words, "ng", "num_gpus"), *gpu = VALUE_OF (words, "g", "gpu"),
             *dtype = VALUE_OF (words, "c", "compute_dtype"), *task = VALUE_OF (words, "task", "t");
  if (!is_performance)
    return g_strdup (recipe);
  if (!recipe || !n || !gpu)
    return NULL;
  g_auto (GStrv) parts = g_strsplit (dtype ? dtype : "bf16", "_", -1);
  g_autofree char *format = g_strjoinv ("", parts);
  return g_strdup_printf ("%s_%s_%sgpu_%s_%s_config", recipe, task ? task : "pretrain", n, gpu, format);
}

/* One configuration on top of another, both of which are taken. */
static cJSON *
lay_over (cJSON *below, cJSON *above)
{
  cJSON *item;
  while ((item = cJSON_DetachItemFromArray (above, 0))) {
    cJSON *old = cJSON_DetachItemFromObjectCaseSensitive (below, item->string);
    bool are_both = cJSON_IsObject (old) && cJSON_IsObject (item);
    g_autofree char *name = g_strdup (item->string);
    cJSON_AddItemToObject (below, name, are_both ? lay_over (old, item) : item);
    if (!are_both)
      cJSON_Delete (old);
  }
  cJSON_Delete (above);
  return below;
}

/* Of the files behind the script, the first that is Python; files->n: none is. */
static guint
find_python (const ImportFiles *files)
{
  guint i = 1;
  while (i < files->n && !g_str_has_suffix (files->files[i].path, ".py"))
    i++;
  return MIN (i, files->n);
}

/* The changes on top of the recipe that stands behind the script. Takes tree. */
static bool
read_changed (const ImportFiles *files, cJSON *tree, const char *function, LsImport *import,
              LsDiagList *diags)
{
  bool is_whole = false;
  g_autofree char *model = NULL;
  cJSON *recipe = bridge_recipe (files, find_python (files), function, &model, &is_whole, import, diags);
  if (!recipe) {
    cJSON_Delete (tree);
    return false;
  }
  return bridge_read (lay_over (recipe, tree), &files->files[0], model, is_whole, import, diags);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = {
    .program = "Megatron-Bridge", .is_known = is_known, .n_needed = 1, .gpus = "num_gpus ng", .has_te = true
  };
  LaunchScript script;
  if (!launch_script_read (files, &kind, &script, import, diags)) {
    launch_script_clear (&script);
    return false;
  }
  const char *recipe = VALUE_OF (script.words, "recipe", "mr", "model_recipe_name", "model"),
             *scheme = scheme_of (script.words, recipe);
  bool is_performance = script.script && is_performance_script (script.script);
  g_autofree char *model = recipe && !ls_shell_has_hole (recipe) ? bridge_model_of (recipe) : NULL;
  set_gpus (&script, import);
  cJSON *tree = changes_of (script.words, is_performance, import);
  say_dtype (script.words, tree, import);
  if (scheme)
    say_adapters (tree, scheme, model, import);
  g_autofree char *function = function_of (script.words, recipe, is_performance);
  launch_script_clear (&script);
  import->program = kind.program;
  if (function && find_python (files) < files->n)
    return read_changed (files, tree, function, import, diags);
  const ProgramTold told[] = { { "program", kind.program }, { "named", model }, { NULL } };
  return program_read_tree ("nemo", tree, files->files[0].path, told, import, diags);
}

/* No page that shows such a command. */
static bool
is_its (const ImportFile *file)
{
  static const char *const programs[]
      = { "run_recipe.py", "setup_experiment.py", "performance/run_script.py" };
  bool is_it = false;
  for (guint i = 0; i < G_N_ELEMENTS (programs); i++)
    is_it = is_it || strstr (file->text, programs[i]);
  bool names_recipe = strstr (file->text, "recipe") || strstr (file->text, " -mr ");
  bool is_script = g_str_has_prefix (file->text, "#!") || g_str_has_suffix (file->path, ".sh");
  return is_it && names_recipe && is_script;
}

const ImportReader import_bridge_script = { NULL, is_its, read };
