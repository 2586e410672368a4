/* Configurations of Ai2's OLMo, and scripts that start its scripts/train.py with one:
 *
 *     torchrun ... scripts/train.py CONFIG --fsdp.sharding_strategy=HYBRID_SHARD --save_overwrite
 *
 * Options lie on top of the configuration; one without a value is true (olmo/util.py, clean_opt). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/olmo/olmo_rules.h"
#include "data/launch/yaml_config.h"

#define MODEL(option, key) OPTION_MODEL_ROW (option, key)
#define RULE(option)       OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  MODEL ("model.d_model", "hidden"),
  MODEL ("model.n_heads", "heads"),
  MODEL ("model.n_layers", "layers"),
  MODEL ("model.max_sequence_length", "seq"),
  RULE ("model.n_kv_heads"),
  RULE ("model.multi_query_attention"),
  RULE ("model.mlp_ratio"),
  RULE ("model.mlp_hidden_size"),
  RULE ("model.activation_type"),
  RULE ("model.block_type"),
  RULE ("model.block_group_size"),
  RULE ("model.alibi"),
  RULE ("model.rope"),
  RULE ("model.rope_full_precision"),
  RULE ("model.flash_attention"),
  RULE ("model.attention_dropout"),
  RULE ("model.residual_dropout"),
  RULE ("model.embedding_dropout"),
  RULE ("model.attention_layer_norm"),
  RULE ("model.layer_norm_type"),
  RULE ("model.layer_norm_with_affine"),
  RULE ("model.bias_for_layer_norm"),
  RULE ("model.include_bias"),
  RULE ("model.norm_after"),
  RULE ("model.clip_qkv"),
  RULE ("model.embedding_layer_norm"),
  RULE ("model.scale_logits"),
  RULE ("model.vocab_size"),
  RULE ("model.embedding_size"),
  RULE ("model.weight_tying"),

  OPTION_DECIDES_ROW ("global_train_batch_size", "global_batch"),
  OPTION_DECIDES_ROW ("device_train_microbatch_size", "micro_batch"),
  RULE ("activation_checkpointing"),
  RULE ("precision"),
  RULE ("distributed_strategy"),
  RULE ("fsdp.sharding_strategy"),
  RULE ("fsdp.hybrid_sharding_num_model_replicas"),
  RULE ("fsdp.wrapping_strategy"),
  RULE ("fsdp.precision"),
  OPTION_IGNORED_ROW ("fsdp.use_orig_params"),
  RULE ("ddp.grad_sync_mode"),
  RULE ("ddp.find_unused_params"),
  OPTION_IGNORED_ROW ("single.device"),
  RULE ("compile"),
  RULE ("compile.*"),
  RULE ("fused_loss"),
  RULE ("softmax_auxiliary_loss"),
  RULE ("optimizer.name"),
  RULE ("optimizer.metrics_log_interval"),
  RULE ("optimizer.selective_updates"),
  RULE ("optimizer.record_update_metrics"),
  RULE ("wandb.log_interval"),
  RULE ("dry_run"),
  OPTION_PACKS_ROW ("data.generate_doc_lengths"),
  RULE ("data.generate_attention_mask"),
};

/* The norm of gradients is computed whatever max_grad_norm says (olmo/optim.py). */
static const char ignored[]
    = "model.alibi_bias_max model.rope_theta model.layer_norm_eps model.attention_layer_norm_with_affine "
      "model.*_token_id model.init_* model.scale_emb_init model.emb_init_std model.precision run_name seed "
      "epoch optimizer.* scheduler.* data.* restore_dataloader fast_forward_batches "
      "eval_* tokenizer.* save_* remote_save_folder canceled_check_interval force_save_unsharded "
      "no_pre_train_checkpoint load_path load_path_sharded_checkpointer try_load_latest_save reset_* "
      "sharded_checkpointer new_style_checkpoints max_duration device_eval_batch_size "
      "device_train_batch_size device_train_grad_accum max_grad_norm "
      "max_grad_norm_ratio wandb wandb.* speed_monitor.* console_log_interval gen1_gc_interval "
      "auxiliary_loss_multiplier time_limit extra_steps_after_cancel early_stopping_factor python_profiling "
      "torch_profiling stop_at stop_after hf_datasets_cache_dir module_outputs_save_steps";

static const OptionTable table = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* --- the configuration ------------------------------------------------------------------------------ */

/* Some have dozens, with files of each. */
static void
drop_evaluators (cJSON *tree, LsImport *import)
{
  if (!yaml_config_find (tree, "evaluators"))
    return;
  cJSON_DeleteItemFromObjectCaseSensitive (tree, "evaluators");
  import_ignore (import, "evaluators");
}

/* gpus, of_node: that a script starts; 0: none does. Takes the tree. */
static void
read_tree (cJSON *tree, guint64 gpus, guint64 of_node, LsImport *import)
{
  Olmo o = { .is_compiled = cJSON_IsObject (yaml_config_find (tree, "compile")),
             .has_wandb = cJSON_IsObject (yaml_config_find (tree, "wandb")),
             .of_node = of_node };
  drop_evaluators (tree, import);
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  o.job = (LaunchJob) { .import = import, .words = words, .table = &table, .gpus = gpus };
  option_read_all (&o.job);
  olmo_set_model (&o.job);
  olmo_set_strategy (&o);
  g_hash_table_unref (o.job.open);
}

/* Of its models, as d_model is a word of others too. */
static bool
fits (const cJSON *tree)
{
  static const char *const own[]
      = { "block_type", "layer_norm_type", "max_sequence_length", "mlp_ratio", "weight_tying" };
  const cJSON *model = yaml_config_find (tree, "model");
  bool is_own = false;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    is_own = is_own || yaml_config_find (model, own[i]);
  return is_own && yaml_config_find (model, "d_model") && !yaml_config_find (model, "name")
      && yaml_config_find (tree, "global_train_batch_size");
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  import->program = "OLMo";
  cJSON *tree = yaml_config_load (files, import, diags);
  if (tree)
    read_tree (tree, 0, 0, import);
  return tree != NULL;
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "global_train_batch_size", fits);
}

const ImportReader import_olmo = { "a configuration or a script of OLMo", is_its, read };

/* --- scripts ---------------------------------------------------------------------------------------- */

static bool
is_known (const char *name)
{
  return option_find (&table, name) != NULL;
}

static bool
is_trainer (const char *word)
{
  return strcmp (word, "scripts/train.py") == 0 || g_str_has_suffix (word, "/scripts/train.py");
}

static bool
starts (char *const *words, guint n)
{
  for (guint i = 0; i < n; i++)
    if (is_trainer (words[i]))
      return true;
  return false;
}

/* "--save_overwrite": true. Of several words behind one the first is its value. */
static void
add_options (cJSON *tree, const LaunchWords *words)
{
  for (guint i = 0; i < words->options->len; i++) {
    const LaunchOption *o = words->options->pdata[i];
    g_autofree char *name = g_strdelimit (g_strdup (o->name), "-", '_');
    yaml_config_set (tree, name, o->values->len > 0 ? o->values->pdata[0] : "true");
  }
}

/* The configuration that a command names; where it is an argument of the script, the one behind that. NULL: a
 * diagnostic. */
static cJSON *
load_config (const ImportFiles *files, const char *name, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) named = launch_words_new ();
  cJSON *tree = NULL;
  if (name && ls_shell_has_hole (name) && files->n > 1) {
    import_infer (import, "%s: what the script is given as a configuration", files->files[1].path);
    tree = cJSON_CreateObject ();
    if (yaml_config_add (tree, &files->files[1], import, diags))
      return tree;
    cJSON_Delete (tree);
    return NULL;
  }
  if (name) {
    launch_words_add_value (named, "config", name);
    return yaml_config_of_option (files, named, "config", import, diags);
  }
  launch_refuse_config (name, import, diags);
  return NULL;
}

static cJSON *
tree_of (const ImportFiles *files, const LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  const char *name = script->words->others->len > 0 ? script->words->others->pdata[0] : NULL;
  cJSON *tree = load_config (files, name, import, diags);
  if (!tree)
    return NULL;
  if (fits (tree)) {
    add_options (tree, script->words);
    return tree;
  }
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, NULL,
               "%s: it is no configuration of OLMo, and what else scripts/train.py is started with is not "
               "known",
               name);
  cJSON_Delete (tree);
  return NULL;
}

/* torchrun's. */
static guint64
of_node (const LaunchScript *script)
{
  g_autoptr (LaunchWords) front = launch_words_new ();
  launch_words_add (front, (char *const *) script->front->pdata, script->front->len);
  const char *text = launch_words_text (front, "nproc_per_node");
  return text ? g_ascii_strtoull (text, NULL, 10) : 0;
}

static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { .program = "OLMo", .is_known = is_known, .n_needed = 1, .starts = starts };
  LaunchScript script;
  import->program = "OLMo";
  bool ok = launch_script_read (files, &kind, &script, import, diags);
  cJSON *tree = ok ? tree_of (files, &script, import, diags) : NULL;
  if (tree)
    read_tree (tree, script.gpus, of_node (&script), import);
  launch_script_clear (&script);
  return tree != NULL;
}

/* Its own words beside a name that others have. */
static bool
is_its_script (const ImportFile *file)
{
  static const char *const own[] = { "OLMo", "OLMO", "olmo", "--save_overwrite", "--fsdp.", "--run_name" };
  bool is_own = false;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    is_own = is_own || strstr (file->text, own[i]);
  return is_own && strstr (file->text, "scripts/train.py") && strstr (file->text, "torchrun");
}

const ImportReader import_olmo_script = { NULL, is_its_script, read_script };
