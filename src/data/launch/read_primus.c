/* A configuration of Primus, AMD's launcher, in YAML: a trainer, the program that it starts, a model, and
 * what differs from both.
 *
 *     modules:
 *       pre_trainer: { framework: megatron, config: pre_trainer.yaml, model: llama3.1_8B.yaml,
 *                      overrides: { tensor_model_parallel_size: 1 } }
 *
 * Overrides are arguments of Megatron-LM by the names of its namespace, or sections of torchtitan's TOML.
 * What they lie on is that of primus/configs of AMD-AGI/Primus (fd1eeabb, August 2026): trainer_base.yaml,
 * pre_trainer.yaml and sft_trainer.yaml of modules/megatron, models/megatron/language_model.yaml,
 * modules/torchtitan/pre_trainer.yaml and models/torchtitan. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/torchtitan/torchtitan_rules.h"
#include "data/launch/yaml_config.h"
#include "model/compressed.h"

/* --- its options on Megatron-LM -------------------------------------------------------------------- */

#define RULE(option)    OPTION_RULE_ROW (option)
#define IGNORED(option) OPTION_IGNORED_ROW (option)
#define OTHERS          OPTION_AS_ROW ("*", "*") /* of Megatron-LM */

static const OptionRow rows[] = {
  RULE ("use_turbo_deepep"),
  RULE ("use_turbo_attention"),
  RULE ("use_turbo_gemm"),
  RULE ("use_turbo_grouped_gemm"),
  RULE ("use_turbo_grouped_mlp"),
  RULE ("use_turbo_rms_norm"),
  RULE ("use_turbo_mega_moe"),
  RULE ("enable_turbo_attention_float8"),
  RULE ("use_sink_attention"),
  RULE ("patch_zero_bubble"),
  RULE ("patch_primus_pipeline"),
  RULE ("patch_moe_overlap"),
  RULE ("decoder_pipeline_manual_split_list"),
  RULE ("enable_odc"),
  RULE ("moe_router_force_load_balancing"),
  RULE ("moe_router_force_load_balancing_type"),
  /* what these choose among, which is told of them; logging, checkpoints */
  IGNORED ("enable_primus_turbo"),
  IGNORED ("turbo_*"),
  IGNORED ("odc_*"),
  IGNORED ("sink_sliding_window"),
  IGNORED ("sink_window_*"),
  IGNORED ("*sink_level"),
  IGNORED ("log_avg_*"),
  IGNORED ("disable_tensorboard"),
  IGNORED ("disable_wandb"),
  IGNORED ("disable_mlflow"),
  IGNORED ("disable_last_saving"),
  IGNORED ("disable_profiler_*"),
  IGNORED ("disable_compile_dependencies"),
  IGNORED ("disable_primus_topk_router"),
  IGNORED ("mlflow_*"),
  IGNORED ("auto_continue_train"),
  IGNORED ("use_rocm_mem_info*"),
  IGNORED ("torch_profiler_*"),
  IGNORED ("dump_pp_data"),
  IGNORED ("pp_warmup"),
  IGNORED ("no_fp8_weight_transpose_cache"),
  IGNORED ("sft_*"),
  IGNORED ("stage"),
  IGNORED ("trainable"),
  OTHERS,
};

static const OptionTable table = { rows, G_N_ELEMENTS (rows), NULL, NULL, NULL };

/* What of its files under the overrides is not Megatron-LM's default. */
static const char *const pre_training[][2] = {
  { "bf16", "true" },
  { "micro_batch_size", "2" },
  { "global_batch_size", "16" },
  { "seq_length", "1024" },
  { "use_flash_attn", "true" },
  { "use_distributed_optimizer", "true" },
  { "sequence_parallel", "true" },
  { "untie_embeddings_and_output_weights", "true" },
  { "moe_token_dispatcher_type", "alltoall" },
  { "moe_grouped_gemm", "true" },
};
static const char *const fine_tuning[][2] = {
  { "micro_batch_size", "1" },
  { "global_batch_size", "128" },
  { "seq_length", "2048" },
};
/* Of models whose names begin so. */
static const char *const of_models[][3] = {
  { "deepseek", "moe_shared_expert_overlap", "true" },
  { "llama4", "moe_shared_expert_overlap", "true" },
};

/* Kernels of Primus-Turbo and ways to pipe that are not known here. */
static const char *const told[][2] = {
  { "use_turbo_attention", "attention is taken to be as fast as FlashAttention" },
  { "use_turbo_gemm", "products are taken to be Transformer Engine's" },
  { "use_turbo_grouped_gemm", "products of experts are taken to be Transformer Engine's" },
  { "use_turbo_grouped_mlp", "products of experts are taken to be Transformer Engine's" },
  { "use_turbo_rms_norm", "norms are taken to be Transformer Engine's" },
  { "use_turbo_mega_moe", "experts are taken to exchange tokens before and behind their products" },
  { "enable_turbo_attention_float8", "attention is taken to be in 16 bits" },
  { "use_sink_attention", "attention is taken to have no sinks, and the windows of its model" },
  { "patch_zero_bubble", "the schedule is taken for Megatron-LM's" },
  { "patch_primus_pipeline", "the schedule is taken for Megatron-LM's" },
  { "patch_moe_overlap", "taken to be off" },
  { "decoder_pipeline_manual_split_list", "layers are taken to be shared out evenly" },
  { "enable_odc", "gradients are taken to be reduced by collectives" },
};

/* --- the file --------------------------------------------------------------------------------------- */

typedef struct {
  const cJSON *trainer; /* the module that trains */
  const char *framework;
  char *model; /* "llama3.1_8B"; "": none */
  bool is_tuned;
  LsImport *import;
} Primus;

static const cJSON *
trainer_of (const cJSON *tree)
{
  static const char *const names[] = { "modules.pre_trainer", "modules.sft_trainer", "modules.post_trainer" };
  const cJSON *trainer = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (names) && !trainer; i++)
    trainer = yaml_config_find (tree, names[i]);
  return trainer;
}

/* "${PRIMUS_MODEL:llama3_8B}.yaml" as it is where nobody sets the variable. */
static char *
with_defaults (const char *text)
{
  GString *out = g_string_new (NULL);
  for (const char *p = text; *p;) {
    const char *end = g_str_has_prefix (p, "${") ? strchr (p, '}') : NULL,
               *colon = end ? memchr (p, ':', (gsize) (end - p)) : NULL;
    if (colon)
      g_string_append_len (out, colon + 1, end - colon - 1);
    else
      g_string_append_c (out, *p);
    p = colon ? end + 1 : p + 1;
  }
  return g_string_free (out, FALSE);
}

static void
fill_variables (cJSON *node, LsImport *import)
{
  cJSON *member;
  if (cJSON_IsString (node) && strstr (node->valuestring, "${")) {
    g_autofree char *text = with_defaults (node->valuestring);
    import_infer (import, "%s: %s, as where nobody sets the variable", node->valuestring, text);
    cJSON_SetValuestring (node, text);
  }
  cJSON_ArrayForEach (member, node)
  {
    fill_variables (member, import);
  }
}

static const char *
text_in (const cJSON *mapping, const char *key)
{
  const cJSON *member = cJSON_GetObjectItemCaseSensitive (mapping, key);
  return cJSON_IsString (member) ? member->valuestring : "";
}

/* --- on Megatron-LM ---------------------------------------------------------------------------------- */

static void
add_pairs (LaunchWords *words, const char *const (*pairs)[2], guint n)
{
  for (guint i = 0; i < n; i++)
    launch_words_add_by (words, false, pairs[i][0], pairs[i][1]);
}

static void
add_defaults (const Primus *p, LaunchWords *words)
{
  add_pairs (words, pre_training, G_N_ELEMENTS (pre_training));
  if (p->is_tuned)
    add_pairs (words, fine_tuning, G_N_ELEMENTS (fine_tuning));
  for (guint i = 0; i < G_N_ELEMENTS (of_models); i++)
    if (g_str_has_prefix (p->model, of_models[i][0]))
      launch_words_add_by (words, false, of_models[i][1], of_models[i][2]);
}

static void
tell_rules (const LaunchJob *job, LaunchWords *megatron)
{
  const char *load = option_text (job, "moe_router_force_load_balancing_type");
  for (guint i = 0; i < G_N_ELEMENTS (told); i++)
    if (option_is_there (job, told[i][0]))
      import_unknown (job->import, "%s: %s", told[i][0], told[i][1]);
  if (option_is_on (job, "use_turbo_deepep")) {
    launch_words_add_value (megatron, "moe_token_dispatcher_type", "flex");
    launch_words_add_value (megatron, "moe_enable_deepep", "true");
  }
  if (option_is_on (job, "moe_router_force_load_balancing") && load && strcmp (load, "even") != 0)
    import_unknown (job->import, "moe_router_force_load_balancing_type %s: tokens are taken to fall evenly",
                    load);
}

/* multi_latent_attention: false over a model with latents: heads of their own, as wide as kv_channels, which
 * those files have as qk_head_dim. */
static void
drop_latents (const LaunchJob *job)
{
  static const char *const keys[] = { "kv_lora", "q_lora", "rope_dim", "v_dim" };
  LsImport *import = job->import;
  LsModel *m = &import->model;
  if (!option_is_off (job, "multi_latent_attention") || !ls_model_has_latents (m))
    return;
  guint head_dim = m->head_dim - m->rope_dim;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    g_hash_table_remove (import->model_said, keys[i]);
  m->kv_lora = m->q_lora = m->rope_dim = m->v_dim = 0;
  import_set_model_number (import, "head_dim", head_dim);
  import_infer (import, "head_dim %u, and no latents: multi_latent_attention is off", head_dim);
}

static void
read_megatron (const Primus *p, const cJSON *overrides)
{
  g_autoptr (LaunchWords) own = launch_words_new (), words = launch_words_new ();
  g_autofree char *name = g_strconcat ("primus/", p->model, NULL);
  const LaunchJob primus = { .import = p->import, .words = own, .table = &table };
  LaunchJob job = { .import = p->import, .words = words, .table = &megatron_options };
  add_defaults (p, own);
  launch_words_add_tree (own, overrides);
  option_translate (&primus, words);
  megatron_namespace (words);
  tell_rules (&primus, words);
  import_set_software (p->import, "megatron");
  import_infer (p->import, "software megatron: Primus runs Megatron-LM, by kernels that are not known here");
  option_read_all (&job);
  if (launch_words_find (words, "hidden_size"))
    megatron_model (&job);
  else
    import_model_of_name (p->import, name);
  drop_latents (&job);
  megatron_strategy (&job);
  megatron_kernels (&job);
  g_hash_table_unref (job.open);
}

/* --- on torchtitan ----------------------------------------------------------------------------------- */

/* Its files of models, and which of torchtitan's they are. */
static const char *const flavors[][3] = {
  { "llama3_8B", "llama3", "8B" },
  { "llama3.1_8B", "llama3", "8B" },
  { "llama3_70B", "llama3", "70B" },
  { "llama3.1_70B", "llama3", "70B" },
  { "llama3.3_70B", "llama3", "70B" },
  { "llama3.1_405B", "llama3", "405B" },
  { "deepseek_v3_16b", "deepseek_v3", "16B" },
  { "deepseek_v3_236b", "deepseek_v3", "236B" },
  { "deepseek_v3_671b", "deepseek_v3", "671B" },
  { "qwen3_0.6b", "qwen3", "0.6B" },
  { "qwen3_1.7b", "qwen3", "1.7B" },
  { "qwen3_4b", "qwen3", "4B" },
  { "qwen3_8b", "qwen3", "8B" },
  { "qwen3_14b", "qwen3", "14B" },
  { "qwen3_32b", "qwen3", "32B" },
  { "gpt_oss_20b", "gpt_oss", "20b" },
  { "gpt_oss_120b", "gpt_oss", "120b" },
  { "llama4_17Bx16E", "llama4", "17bx16e" },
  { "llama4_17Bx128E", "llama4", "17bx128e" },
};

static void
add_flavor (const Primus *p, LaunchWords *words)
{
  bool is_fp8 = g_str_has_suffix (p->model, "-fp8");
  g_autofree char *stem = g_strndup (p->model, strlen (p->model) - (is_fp8 ? strlen ("-fp8") : 0));
  for (guint i = 0; i < G_N_ELEMENTS (flavors); i++)
    if (strcmp (stem, flavors[i][0]) == 0) {
      launch_words_add_value (words, "model.name", flavors[i][1]);
      launch_words_add_value (words, "model.flavor", flavors[i][2]);
    }
  if (is_fp8)
    launch_words_add_value (words, "model.converters", "quantize.linear.float8");
  launch_words_add_by (words, false, "compile.enable", "true");
}

/* Kernels and logging of its own are not torchtitan's. */
static bool
read_torchtitan (const Primus *p, const cJSON *overrides, LsDiagList *diags)
{
  static const char *const own[] = { "primus_turbo", "sink_level", "file_sink_level", "stderr_sink_level" };
  g_autoptr (LaunchWords) words = launch_words_new ();
  cJSON *tree = overrides ? cJSON_Duplicate (overrides, true) : cJSON_CreateObject ();
  const cJSON *narrow = yaml_config_find (tree, "primus_turbo.enable_attention_float8");
  if (cJSON_IsTrue (narrow))
    import_unknown (p->import, "primus_turbo.enable_attention_float8: attention is taken to be in 16 bits");
  import_unknown (p->import, "kernels of Primus-Turbo: those of torchtitan are taken");
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    cJSON_DeleteItemFromObjectCaseSensitive (tree, own[i]);
  add_flavor (p, words);
  launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
  LaunchJob job = { .import = p->import, .words = words };
  return torchtitan_read (&job, diags);
}

/* --- the whole --------------------------------------------------------------------------------------- */

static bool
read_trainer (const Primus *p, const char *path, LsDiagList *diags)
{
  const cJSON *overrides = cJSON_GetObjectItemCaseSensitive (p->trainer, "overrides");
  if (strcmp (p->framework, "torchtitan") == 0)
    return read_torchtitan (p, overrides, diags);
  if (strcmp (p->framework, "megatron") == 0) {
    read_megatron (p, overrides);
    return true;
  }
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
               "framework %s: of Primus's, megatron and torchtitan are read", p->framework);
  return false;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const char *path = files->files[0].path;
  cJSON *tree = cJSON_Duplicate (yaml_config_tree (&files->files[0]), true);
  fill_variables (cJSON_GetObjectItemCaseSensitive (tree, "modules"), import);
  const cJSON *trainer = trainer_of (tree);
  g_autofree char *model = g_strdup (text_in (trainer, "model"));
  if (g_str_has_suffix (model, ".yaml"))
    model[strlen (model) - strlen (".yaml")] = '\0';
  import->program = "Primus";
  Primus p = { .trainer = trainer,
               .framework = text_in (trainer, "framework"),
               .model = model,
               .is_tuned = strstr (text_in (trainer, "config"), "sft") != NULL,
               .import = import };
  bool is_other = g_str_has_prefix (model, "diffusion/"),
       ok = is_other ? import_refuse_task (path, diags, "%s", model) : read_trainer (&p, path, diags);
  cJSON_Delete (tree);
  return ok;
}

static bool
fits (const cJSON *tree)
{
  return *text_in (trainer_of (tree), "framework") != '\0';
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "framework", fits);
}

const ImportReader import_primus = { "a configuration of Primus", is_its, read };
