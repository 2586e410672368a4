/* A configuration of axolotl, in YAML: a Trainer of Hugging Face, whose rules are read. Keys and defaults are
 * those of src/axolotl/utils/schemas of axolotl-ai-cloud/axolotl (067b021c, July 2026; context_parallel_size
 * was sequence_parallel_degree, attn_implementation was flash_attention). */
#include <string.h>

#include "data/launch/adapters.h"
#include "data/launch/deepspeed_rules.h"
#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/yaml_config.h"

#define AS(option, trainer) OPTION_AS_ROW (option, trainer)
#define SAME(option)        AS (option, "*")
#define RULE(option)        OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  AS ("base_model", "model_name_or_path"),
  AS ("sequence_len", "max_seq_length"),
  AS ("max_packed_sequence_len", "max_seq_length"),
  AS ("micro_batch_size", "per_device_train_batch_size"),
  SAME ("gradient_accumulation_steps"),
  SAME ("max_grad_norm"),
  AS ("optimizer", "optim"),
  SAME ("torch_compile"),
  SAME ("gradient_checkpointing_kwargs.*"),
  SAME ("attn_implementation"),
  SAME ("fsdp"),
  SAME ("fsdp_version"),
  SAME ("fsdp_config"),
  SAME ("fsdp_config.*"),
  AS ("dp_shard_size", "parallelism_config_dp_shard_size"),
  AS ("dp_replicate_size", "parallelism_config_dp_replicate_size"),
  AS ("context_parallel_size", "parallelism_config_cp_size"),
  AS ("sequence_parallel_degree", "parallelism_config_cp_size"),
  AS ("tensor_parallel_size", "parallelism_config_tp_size"),
  AS ("world_size", "num_processes"),
  RULE ("liger_rms_norm"),
  RULE ("liger_rope"),
  RULE ("liger_glu_activation"),
  RULE ("liger_swiglu"),
  RULE ("liger_cross_entropy"),
  RULE ("liger_fused_linear_cross_entropy"),
  RULE ("lora_mlp_kernel"),
  RULE ("lora_qkv_kernel"),
  RULE ("lora_o_kernel"),
  RULE ("lora_modules_to_save"),
  RULE ("lora_layers_to_transform"),
  RULE ("lora_rank_pattern*"),
  RULE ("peft_use_dora"),
  RULE ("peft_layers_to_transform"),
  RULE ("peft_layer_replication"),
  RULE ("peft_trainable_token_indices"),
  RULE ("bf16"),
  RULE ("bf16.*"),
  RULE ("fp16"),
  RULE ("float16"),
  RULE ("float32"),
  RULE ("bfloat16"),
  RULE ("batch_size"),
  RULE ("gradient_checkpointing"),
  RULE ("activation_offloading"),
  RULE ("deepspeed"),
  RULE ("deepspeed.*"),
  RULE ("flash_attention"),
  RULE ("eager_attention"),
  RULE ("sdp_attention"),
  RULE ("xformers_attention"),
  RULE ("flex_attention"),
  RULE ("sample_packing"),
  RULE ("ring_attn_func"),
  RULE ("pad_to_sequence_len"),
  RULE ("adapter"),
  RULE ("lora_model_dir"),
  RULE ("lora_r"),
  RULE ("lora_target_linear"),
  RULE ("lora_target_modules"),
  RULE ("lora_dropout"),
  RULE ("load_in_*"),
  RULE ("expert_parallel_size"),
  RULE ("experts_implementation"),
  RULE ("fp8"),
  RULE ("qat.*"),
  RULE ("plugins"),
  RULE ("rl"),

  /* what changes the job only if it is there */
  RULE ("lora_target_parameters"),
  RULE ("resize_token_embeddings_to_32x"),
};

/* What adapters are like; where data and checkpoints are, what is logged, how numbers learn; Liger's other
 * kernels, which come with its norm. */
static const char ignored[]
    = "lora_* peft* bnb_* qlora_* loraplus_* loftq* liger_* adam_* accelerator_config* "
      "added_tokens* auto_resume* base_model_* chat_template* cosine_* dataset* dataloader_* ddp_* "
      "debug default_system_message device_map do_* early_stopping_* embedding* eot_tokens eval_* "
      "evals_* evaluation_* excess_length_strategy experimental_* fix_* gc_* generate_* "
      "generation_* group_by_length hf_* hub_* include_* "
      "is_*_derived_model learning_rate load_best_model_at_end local_rank log_* logging_* "
      "loss_watchdog_* low_cpu_mem_usage lr_* max_steps mean_resizing_embeddings min_sample_len "
      "mlflow_* comet_* model_type model_config* neftune_* num_* output_dir "
      "overrides_of_model_config.rope_* pretrain_* pretraining_dataset* processor_* profiler_* "
      "push_* remove_unused_columns resume_* revision_of_model sample_packing_* save_* saves_* seed "
      "shuffle_* skip_* special_tokens* streaming* strict test_datasets* tf32 tokenizer_* tokens* "
      "torch_compile_* trackio_* train_on_inputs trust_remote_code type_of_model use_tensorboard "
      "use_wandb val_set_size wandb_* warmup_* weight_decay";

static const OptionTable options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

typedef struct {
  LaunchJob job;        /* by options of axolotl      */
  LaunchWords *trainer; /* what they are of a Trainer */
} Axolotl;

static void
say (Axolotl *a, const char *name, const char *value)
{
  launch_words_add_value (a->trainer, name, value);
}

static const char *
text_of (const Axolotl *a, const char *name)
{
  return option_text (&a->job, name);
}

static bool
is_on (const Axolotl *a, const char *name)
{
  return option_is_on (&a->job, name);
}

/* --- what else is trained --------------------------------------------------------------------------- */

/* What is no training on the next token alone. */
static bool
check_task (const cJSON *tree, const char *path, LsDiagList *diags)
{
  static const char *const others[] = { "rl", "reward_model", "process_reward_model", "diffusion", "ebft" };
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    const cJSON *node = yaml_config_find (tree, others[i]);
    bool is_text = cJSON_IsString (node);
    if (!node || cJSON_IsNull (node) || cJSON_IsFalse (node))
      continue;
    return import_refuse_task (path, diags, "%s%s%s", others[i], is_text ? " " : "",
                               is_text ? node->valuestring : "");
  }
  return true;
}

/* Which layers have adapters was lora_layers_to_transform until 2024. */
static void
tell_uneven_adapters (Axolotl *a, const cJSON *tree)
{
  static const char *const uneven[][2]
      = { { "peft_layers_to_transform", "adapters are taken to be on all layers" },
          { "lora_layers_to_transform", "adapters are taken to be on all layers" },
          { "lora_rank_pattern", "all adapters are taken to have the rank lora_r" },
          { "peft_layer_replication", "layers are taken to be there once" },
          { "peft_trainable_token_indices", "the embedding is taken to be frozen" } };
  for (guint i = 0; i < G_N_ELEMENTS (uneven); i++)
    if (yaml_config_find (tree, uneven[i][0]) && !option_is_off (&a->job, uneven[i][0]))
      import_unknown (a->job.import, "%s: %s", uneven[i][0], uneven[i][1]);
}

static void
tell_adapters (Axolotl *a)
{
  static const char *const options_on[]
      = { "load_in_4bit",    "load_in_8bit",  "fp8",           "qat.weight_dtype",    "lora_mlp_kernel",
          "lora_qkv_kernel", "lora_o_kernel", "peft_use_dora", "lora_modules_to_save" };
  LsImport *import = a->job.import;
  bool has_adapter = text_of (a, "adapter") != NULL;
  for (guint i = 0; i < G_N_ELEMENTS (options_on); i++)
    if (option_is_there (&a->job, options_on[i]) && !(i == 0 && has_adapter))
      import_unknown (import, "%s: taken to be off", options_on[i]);
  if (option_number (&a->job, "expert_parallel_size") > 1)
    import_unknown (import, "expert_parallel_size: experts are taken to be sharded as other weights are");
  if (option_is_there (&a->job, "lora_target_parameters"))
    import_unknown (import, "lora_target_parameters: adapters of experts are left out");
  if (is_on (a, "sample_packing"))
    import_open (
        import, "lengths",
        "sample_packing: attention is inside documents, whose lengths are not in the file: taken to be "
        "over whole sequences (lengths)");
  else if (!is_on (a, "pad_to_sequence_len"))
    import_unknown (import, "sample_packing is off: sequences are taken to be as long as sequence_len");
}

/* What PEFT takes where a file names neither: r of LoraConfig, and the modules of Llama and its kin. */
#define PEFT_RANK 8

/* False: there are none. */
static bool
read_adapters (Axolotl *a, const GPtrArray *usual, LaunchAdapters *ret)
{
  const char *adapter = text_of (a, "adapter");
  const LaunchOption *modules = launch_words_find (a->job.words, "lora_target_modules");
  bool is_all = is_on (a, "lora_target_linear"), has_modules = modules && modules->values->len > 0,
       is_qlora = g_strcmp0 (adapter, "qlora") == 0, is_lora = g_strcmp0 (adapter, "lora") == 0;
  if (adapter && !is_lora && !is_qlora)
    import_unknown (a->job.import, "adapter %s: only it is trained; all weights are taken to be", adapter);
  if (!is_lora && !is_qlora)
    return false;
  if (!is_all && !has_modules)
    import_infer (a->job.import, "lora_modules q,v: the default of PEFT");
  *ret = (LaunchAdapters) { .option = "adapter",
                            .rank = option_number (&a->job, "lora_r"),
                            .usual_rank = PEFT_RANK,
                            .dropout = text_of (a, "lora_dropout"),
                            .on = is_all      ? NULL
                                : has_modules ? modules->values
                                              : usual,
                            .is_nf4 = is_qlora || is_on (a, "load_in_4bit") };
  return true;
}

/* Experts are looped over unless another way is asked for (integrations/kernels/args.py,
 * check_experts_implementation). */
static void
tell_experts (Axolotl *a)
{
  const char *how = text_of (a, "experts_implementation");
  LsImport *import = a->job.import;
  if (import->model.n_experts == 0 || launch_words_find (a->trainer, "deepspeed")
      || g_strcmp0 (how, "grouped_mm") == 0)
    return;
  if (how && strcmp (how, "eager") != 0)
    import_unknown (import, "experts_implementation %s: experts are taken to be looped over", how);
  import_set_strategy (import, "grouped_gemm", "0", "experts_implementation");
}

/* --- what a Trainer is told ------------------------------------------------------------------------- */

static void
say_default (Axolotl *a, const char *name, const char *value, const char *key)
{
  if (launch_words_find (a->trainer, name))
    return;
  say (a, name, value);
  import_infer (a->job.import, "%s %s: the default of axolotl", key, value);
}

static void
say_batch (Axolotl *a)
{
  guint64 batch = option_number (&a->job, "batch_size"), micro = option_number (&a->job, "micro_batch_size");
  say_default (a, "per_device_train_batch_size", "1", "micro_batch");
  say_default (a, "max_seq_length", "512", "seq");
  if (batch > 0 && micro > 0 && !launch_words_find (a->trainer, "gradient_accumulation_steps")) {
    g_autofree char *steps = g_strdup_printf ("%" G_GUINT64_FORMAT, batch / micro);
    say (a, "gradient_accumulation_steps", steps);
  }
}

/* Weights are loaded in the format that is trained in; bf16 "full" is without autocast, and so is float16
 * (utils/config/__init__.py, resolve_dtype; core/builders/base.py; utils/trainer.py). */
static void
say_precision (Axolotl *a)
{
  const char *bf16 = text_of (a, "bf16");
  bool is_fp16 = is_on (a, "fp16"), is_half = is_on (a, "float16"),
       is_other = is_fp16 || is_half || is_on (a, "float32"), is_off = option_is_none (&a->job, "bf16"),
       is_auto = bf16 ? strcmp (bf16, "auto") == 0 : !launch_words_find (a->job.words, "bf16"),
       is_bf16 = is_on (a, "bfloat16")
      || (is_auto ? !is_off && !is_other : launch_words_find (a->job.words, "bf16") != NULL);
  const char *weights = is_bf16 ? "bfloat16" : is_fp16 || is_half ? "float16" : "float32";
  bool is_said = !is_auto || is_other || is_off || is_on (a, "bfloat16");
  launch_words_add_by (a->trainer, is_said, "torch_dtype", weights);
  import_infer (a->job.import, "torch_dtype %s: axolotl loads weights so (utils/config, resolve_dtype)",
                weights);
  if (is_bf16 && g_strcmp0 (bf16, "full") != 0)
    launch_words_add_by (a->trainer, is_said, "bf16", "True");
  else if (is_fp16)
    say (a, "fp16", "True");
  if (is_auto && is_bf16 && !is_on (a, "bfloat16"))
    import_infer (a->job.import, "dtype bf16: bf16 is on by itself where a GPU has it");
}

static void
say_attention (Axolotl *a)
{
  static const char *const names[][2] = { { "flash_attention", "flash_attention_2" },
                                          { "sdp_attention", "sdpa" },
                                          { "xformers_attention", "xformers" },
                                          { "flex_attention", "flex_attention" },
                                          { "eager_attention", "eager" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (is_on (a, names[i][0]))
      say (a, "attn_implementation", names[i][1]);
}

/* With PyTorch's attention, and without FSDP and adapters, embeddings and norms become fp32
 * (loaders/model.py, _configure_embedding_dtypes; DeepSpeed has its own format of all). */
static void
tell_embeddings (Axolotl *a)
{
  const LaunchJob trainer = { .import = a->job.import, .words = a->trainer };
  const char *how = option_text (&trainer, "attn_implementation");
  bool is_torch = !how || strcmp (how, "sdpa") == 0 || strcmp (how, "eager") == 0;
  if (is_torch && !text_of (a, "adapter") && !hf_uses_fsdp (&trainer) && !hf_uses_deepspeed (&trainer))
    import_unknown (
        a->job.import,
        "embeddings are made fp32 without flash attention: taken to be in the format of all weights");
}

/* Kernels of Liger are software of their own, of which all are taken. */
static void
say_liger (Axolotl *a)
{
  static const char *const kernels[]
      = { "liger_rms_norm", "liger_rope", "liger_glu_activation", "liger_swiglu", "liger_cross_entropy" };
  bool has_loss = is_on (a, "liger_fused_linear_cross_entropy"), is_any = has_loss;
  for (guint i = 0; i < G_N_ELEMENTS (kernels); i++)
    is_any = is_any || is_on (a, kernels[i]);
  if (!is_any)
    return;
  say (a, "use_liger_kernel", "True");
  if (!has_loss || !is_on (a, "liger_rms_norm"))
    import_unknown (a->job.import, "%s is off: all kernels of Liger are taken",
                    has_loss ? "liger_rms_norm" : "liger_fused_linear_cross_entropy");
}

/* The plugin alone turns it on (axolotl, integrations/cut_cross_entropy/args.py). */
static void
tell_loss (Axolotl *a, const cJSON *tree)
{
  const LaunchOption *plugins = launch_words_find (a->job.words, "plugins");
  for (guint i = 0; plugins && i < plugins->values->len; i++)
    if (strstr (plugins->values->pdata[i], "CutCrossEntropyPlugin")
        && !yaml_config_find (tree, "cut_cross_entropy")) /* else that key is told, or it is off */
      import_unknown (a->job.import, "plugins CutCrossEntropyPlugin: logits are taken to be whole");
}

/* What is offloaded beside adapters is not recomputed, but for "hidden_states" (loaders/model.py,
 * _apply_activation_checkpointing); gradient_checkpointing "offload", of releases until 2025, does both. */
static void
say_recompute (Axolotl *a)
{
  const char *how = text_of (a, "gradient_checkpointing"), *mode = text_of (a, "activation_offloading");
  bool is_there = option_is_there (&a->job, "activation_offloading"),
       is_disk = g_strcmp0 (mode, "disk") == 0 || g_strcmp0 (how, "offload_disk") == 0,
       is_kept = is_there && text_of (a, "adapter") && g_strcmp0 (mode, "hidden_states") != 0;
  LsImport *import = a->job.import;
  if (is_there && !launch_words_find (a->job.words, "gradient_checkpointing"))
    import_conflict (import, "activation_offloading without gradient_checkpointing: axolotl refuses it");
  if (launch_words_find (a->job.words, "gradient_checkpointing"))
    say (a, "gradient_checkpointing", is_kept ? "False" : "True");
  if (is_disk || (how && !g_str_has_prefix (how, "offload")))
    import_unknown (import,
                    "gradient_checkpointing %s, activation_offloading %s: activations are taken to "
                    "stay on the GPU",
                    how ? how : "true", mode ? mode : "false");
  else if (is_there || how)
    import_set_strategy (import, "offload_activations", "1", "activation_offloading");
  if (g_strcmp0 (mode, "legacy") == 0)
    import_unknown (import, "activation_offloading legacy: copies are taken to run beside kernels");
}

/* FSDP is on where any of its parts is configured; with its shards the number of GPUs is known. */
static void
say_shards (Axolotl *a)
{
  static const char *const degrees[]
      = { "parallelism_config_dp_shard_size", "parallelism_config_dp_replicate_size",
          "parallelism_config_cp_size", "parallelism_config_tp_size" };
  const LaunchJob trainer = { .import = a->job.import, .words = a->trainer };
  guint64 gpus = MAX (1, option_number (&a->job, "expert_parallel_size"));
  bool has_config = false;
  for (guint i = 0; i < a->trainer->options->len; i++)
    has_config = has_config
        || g_str_has_prefix (((LaunchOption *) a->trainer->options->pdata[i])->name, "fsdp_config");
  for (guint i = 0; i < G_N_ELEMENTS (degrees); i++)
    gpus = MIN (gpus * MAX (1, option_number (&trainer, degrees[i])), G_MAXUINT32);
  bool has_shards = option_number (&trainer, degrees[0]) > 1;
  if (has_config || has_shards)
    say (a, "use_fsdp", "True");
  if (!has_shards || launch_words_find (a->trainer, "num_processes"))
    return;
  g_autofree char *n = g_strdup_printf ("%" G_GUINT64_FORMAT, gpus);
  say (a, "num_processes", n);
  import_infer (a->job.import, "gpus %s: dp_shard_size times the other degrees", n);
}

/* Contiguous parts of sequences, by kernels of ring-flash-attn (utils/schemas/validation.py,
 * validate_ring_attn_func): a ring, or with packed samples keys and values gathered. In 2025 there were rings
 * with parts in zigzag, too. */
static void
set_context (Axolotl *a)
{
  const LaunchJob trainer = { .import = a->job.import, .words = a->trainer };
  LsImport *import = a->job.import;
  if (option_number (&trainer, "parallelism_config_cp_size") <= 1)
    return;
  const char *said = text_of (a, "ring_attn_func"),
             *way = said            ? said
      : is_on (a, "sample_packing") ? "varlen_llama3"
                                    : "batch_ring";
  bool is_gathered = strcmp (way, "varlen_llama3") == 0, is_balanced = strstr (way, "zigzag") != NULL;
  import_set_strategy (import, "cp_kind", is_gathered ? "all-gather" : "ring", "ring_attn_func");
  import_set_strategy (import, "cp_balance", is_balanced ? "1" : "0", "ring_attn_func");
  if (!said)
    import_infer (import, "cp_kind %s of contiguous parts (cp_balance 0): ring_attn_func %s by itself",
                  is_gathered ? "all-gather" : "ring", way);
}

/* A file, or the configuration itself. */
static bool
take_deepspeed (Axolotl *a, const ImportFiles *files, HfJob *hf, const cJSON *tree, LsDiagList *diags)
{
  const char *name = text_of (a, "deepspeed");
  const cJSON *inside = yaml_config_find (tree, "deepspeed");
  g_autofree char *text = cJSON_IsObject (inside) ? cJSON_PrintUnformatted (inside) : NULL;
  gsize n = text ? strlen (text) : 0;
  if (!text && name)
    text = launch_file_of (files, name, &n);
  if (name || text)
    say (a, "deepspeed", name ? name : "deepspeed");
  if (!text)
    return true;
  hf->deepspeed = launch_words_new ();
  if (deepspeed_add_json (hf->deepspeed, text, n, name ? name : files->files[0].path, diags))
    return true;
  launch_words_free (hf->deepspeed);
  return false;
}

/* --- the file --------------------------------------------------------------------------------------- */

static bool
read_tree (const ImportFiles *files, cJSON *tree, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) words = launch_words_new (), trainer = launch_words_new ();
  launch_words_add_tree (words, tree);
  Axolotl a = { { .import = import, .words = words, .table = &options }, trainer };
  HfJob hf = { .job = { .import = import, .words = trainer },
               .has_trainer = true,
               .release = { HF_RELEASE_5, "transformers 5.14 (pyproject.toml of July 2026)", false } };
  if (!check_task (tree, import->path, diags) || !hf_read_model (files, import, diags))
    return false;
  option_translate (&a.job, trainer);
  say_batch (&a);
  say_precision (&a);
  say_attention (&a);
  say_liger (&a);
  tell_loss (&a, tree);
  say_recompute (&a);
  say_shards (&a);
  set_context (&a);
  if (!take_deepspeed (&a, files, &hf, tree, diags))
    return false;
  tell_adapters (&a);
  tell_uneven_adapters (&a, tree);
  tell_embeddings (&a);
  g_autoptr (GPtrArray) usual = launch_usual_modules ();
  LaunchAdapters adapters;
  hf.adapters = read_adapters (&a, usual, &adapters) ? &adapters : NULL;
  hf_read (&hf);
  tell_experts (&a);
  if (is_on (&a, "resize_token_embeddings_to_32x"))
    import_set_strategy (import, "vocab_multiple", "32", "resize_token_embeddings_to_32x");
  return true;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  cJSON *tree = cJSON_CreateObject ();
  import->program = "axolotl";
  bool ok = yaml_config_add (tree, &files->files[0], import, diags) && read_tree (files, tree, import, diags);
  cJSON_Delete (tree);
  return ok;
}

static bool
fits (const cJSON *tree)
{
  static const char *const own[]
      = { "datasets", "sequence_len", "micro_batch_size", "val_set_size", "sample_packing", "adapter" };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    n += yaml_config_find (tree, own[i]) != NULL;
  return cJSON_IsString (yaml_config_find (tree, "base_model")) && n >= 2;
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "base_model", fits);
}

const ImportReader import_axolotl = { "a configuration of axolotl", is_its, read };
