/* Configurations of nanotron. Names, defaults and rules as in src/nanotron/config and models of
 * huggingface/nanotron (2411b022, April 2026), and of releases since 2023 where they differ. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/yaml_config.h"

#define MODEL(option, key)    OPTION_MODEL_ROW ("model.model_config." option, key)
#define STRATEGY(option, key) OPTION_STRATEGY_ROW (option, key)
#define SWITCH(option, key)   OPTION_SWITCH_ROW (option, key)
#define RULE(option)          OPTION_RULE_ROW (option)
#define IGNORED(option)       OPTION_IGNORED_ROW (option)

static const OptionRow rows[] = {
  /* the model */
  MODEL ("num_hidden_layers", "layers"),
  MODEL ("hidden_size", "hidden"),
  MODEL ("num_attention_heads", "heads"),
  MODEL ("intermediate_size", "ffn"),
  MODEL ("vocab_size", "vocab"),
  OPTION_MODEL_ROW ("tokens.sequence_length", "seq"),
  RULE ("model.model_config.is_*_config"),
  MODEL ("d_model", "hidden"), /* of Mamba */
  RULE ("model.model_config.ssm_cfg.*"),
  RULE ("model.model_config.rms_norm"),
  IGNORED ("model.model_config.fused_add_norm"),
  IGNORED ("model.model_config.residual_in_fp32"),
  IGNORED ("model.model_config.pad_vocab_size_multiple"),
  IGNORED ("model.model_config.dtype"), /* model.dtype says it */
  RULE ("model.model_config.num_key_value_heads"),
  RULE ("model.model_config.num_kv_heads"),
  RULE ("model.model_config.multi_query"),
  RULE ("model.model_config.grouped_query"),
  RULE ("model.model_config.attention_bias"),
  RULE ("model.model_config.hidden_act"),
  RULE ("model.model_config.activation_function"),
  RULE ("model.model_config.tie_word_embeddings"),
  RULE ("model.model_config._attn_implementation"),
  RULE ("model.model_config.moe_num_experts"),
  RULE ("model.model_config.num_experts_per_tok"),
  RULE ("model.model_config.moe_capacity_factor"),
  RULE ("model.model_config.moe_config.num_experts"),
  RULE ("model.model_config.moe_config.top_k"),
  RULE ("model.model_config.moe_config.moe_intermediate_size"),
  RULE ("model.model_config.moe_config.shared_expert_intermediate_size"),
  RULE ("model.model_config.moe_config.enable_shared_expert"),
  RULE ("model.model_config.moe_config.layers"),
  RULE ("model.model_config.*_pdrop"),
  MODEL ("sliding_window_size", "window"),
  MODEL ("no_rope_layer", "unrotated_every"),
  IGNORED ("model.model_config.moe_config.router_aux_loss_coef"),
  IGNORED ("model.model_config.moe_config.token_dispatcher_type"),
  IGNORED ("model.model_config.*token_id"),
  IGNORED ("model.model_config.initializer_range"),
  IGNORED ("model.model_config.max_position_embeddings"),
  IGNORED ("model.model_config.pretraining_tp"),
  IGNORED ("model.model_config.*eps*"),
  IGNORED ("model.model_config.rope_*"),
  IGNORED ("model.model_config.use_cache"),
  IGNORED ("model.model_config.z_loss_*"),
  IGNORED ("model.model_config._fused_*"),
  IGNORED ("model.model_config._use_qkv_packed"),
  OPTION_PACKS_ROW ("model.model_config._use_doc_masking"),
  IGNORED ("model.init_method.*"),
  STRATEGY ("model.make_vocab_size_divisible_by", "vocab_multiple"),
  STRATEGY ("model.dtype", "dtype"),

  /* degrees */
  STRATEGY ("parallelism.tp", "tp"),
  STRATEGY ("parallelism.pp", "pp"),
  STRATEGY ("parallelism.context_parallel_size", "cp"),
  RULE ("parallelism.dp"),
  RULE ("parallelism.expert_parallel_size"),
  RULE ("parallelism.pp_engine"),
  RULE ("parallelism.tp_mode"),
  RULE ("parallelism.tp_linear_async_communication"),
  RULE ("parallelism.tp_recompute_allgather"),
  RULE ("parallelism.recompute_layer"),
  RULE ("parallelism.moe_layer_recompute"),

  /* batches, optimizer */
  STRATEGY ("tokens.micro_batch_size", "micro_batch"),
  RULE ("tokens.batch_accumulation_per_replica"),
  RULE ("optimizer.zero_stage"),
  RULE ("optimizer.accumulate_grad_in_fp32"),
  RULE ("optimizer.clip_grad"),
  IGNORED ("tokens.*"),
  IGNORED ("optimizer.learning_rate_scheduler.*"),
  IGNORED ("optimizer.optimizer_factory.adam_*"),
  IGNORED ("optimizer.optimizer_factory.torch_adam_is_fused"),
  IGNORED ("optimizer.torch_adam_is_fused"),
  IGNORED ("optimizer.adam_*"),
  IGNORED ("optimizer.weight_decay*"),
  RULE ("optimizer.optimizer_factory.name"),
  RULE ("model.ddp_bucket_cap_mb"),

  IGNORED ("checkpoints.*"),
  IGNORED ("data_stages.*"),
  IGNORED ("data.*"),
  IGNORED ("experiment_logger.*"),
  IGNORED ("general.*"),
  IGNORED ("lighteval.*"),
  IGNORED ("logging.*"),
  IGNORED ("metrics_logging.*"),
  IGNORED ("profiler.*"),
  IGNORED ("s3_upload.*"),
  IGNORED ("tokenizer.*"),
};

static const OptionTable table = { rows, G_N_ELEMENTS (rows) };

#define CONFIG "model.model_config."

static void
set_bool (LaunchJob *job, const char *key, bool is_on)
{
  import_set_model (job->import, key, is_on ? "1" : "0", key);
}

/* --- the model ------------------------------------------------------------------------------------ */

static void
set_heads (LaunchJob *job)
{
  bool is_starcoder = option_is_on (job, CONFIG "is_starcoder2_config");
  guint64 kv = option_number (job, is_starcoder ? CONFIG "num_kv_heads" : CONFIG "num_key_value_heads");
  bool is_multi
      = is_starcoder && !option_is_on (job, CONFIG "grouped_query"); /* its default is multi_query */
  if (is_multi)
    import_set_model_number (job->import, "kv_heads", 1);
  else if (kv > 0)
    import_set_model_number (job->import, "kv_heads", kv);
  else if (import_has_model (job->import, "heads")) {
    import_infer (job->import, "kv_heads: as many as heads, the default");
    import_set_model_number (job->import, "kv_heads", job->import->model.n_heads);
  }
}

static void
set_layer (LaunchJob *job)
{
  bool is_starcoder = option_is_on (job, CONFIG "is_starcoder2_config");
  const char *act = option_text (job, is_starcoder ? CONFIG "activation_function" : CONFIG "hidden_act");
  bool is_gelu = act && strstr (act, "gelu");
  if (act && !is_starcoder && !is_gelu && strcmp (act, "silu") != 0)
    import_infer (job->import, "mlp swiglu: a gated %s has the same products", act);
  import_set_model (job->import, "mlp", is_starcoder ? "gelu" : is_gelu ? "geglu" : "swiglu", "hidden_act");
  import_set_model (job->import, "norm", is_starcoder ? "layernorm" : "rmsnorm", "model_config");
  import_set_model (job->import, "position", "rope", "model_config");
  set_bool (job, "tied_embeddings", is_starcoder || option_is_on (job, CONFIG "tie_word_embeddings"));
  set_bool (job, "linear_bias", is_starcoder);
  if (option_is_on (job, CONFIG "attention_bias"))
    set_bool (job, "qkv_bias", true);
  if (job->import->model.window > 0 && import_has_model (job->import, "unrotated_every"))
    import_set_model_number (job->import, "full_every",
                             job->import->model.unrotated_every); /* models/qwen.py */
  bool is_dropped = option_is_on (job, CONFIG "resid_pdrop") || option_is_on (job, CONFIG "attn_pdrop");
  set_bool (job, "dropout", is_dropped);
}

/* MambaConfig () of examples/mamba: layers of Mamba alone, whose head is its own (mamba.py). */
static void
set_mamba (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *text = option_text (job, CONFIG "ssm_cfg.expand");
  double expand = text ? CLAMP (g_ascii_strtod (text, NULL), 0, 1e3) : 2;
  import_mamba (import, "m", (guint64) (expand * import->model.hidden),
                config_number_or (job, CONFIG "ssm_cfg.d_state", "mixer_state", 16),
                config_number_or (job, CONFIG "ssm_cfg.d_conv", "mixer_conv", 4), CONFIG "ssm_cfg");
  import_set_model (import, "mlp", "swiglu", CONFIG "ssm_cfg"); /* there is none */
  import_set_model (import, "norm", option_is_off (job, CONFIG "rms_norm") ? "layernorm" : "rmsnorm",
                    CONFIG "rms_norm");
  set_bool (job, "tied_embeddings", false);
  set_bool (job, "linear_bias", false);
  set_bool (job, "dropout", false);
}

/* Of the release of 2024, examples/moe, and that of 2025. */
static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 n = option_number (job, CONFIG "moe_config.num_experts"),
          old = option_number (job, CONFIG "moe_num_experts");
  if (n > 1) {
    import_set_model_number (import, "experts", n);
    import_set_model_number (import, "top_k", config_number_or (job, CONFIG "moe_config.top_k", "top_k", 2));
    import_set_model_number (
        import, "expert_ffn",
        config_number_or (job, CONFIG "moe_config.moe_intermediate_size", "expert_ffn", 1408));
    if (option_is_on (job, CONFIG "moe_config.enable_shared_expert"))
      import_set_model_number (
          import, "shared_ffn",
          config_number_or (job, CONFIG "moe_config.shared_expert_intermediate_size", "shared_ffn", 5632));
  } else if (old > 1) {
    import_set_model_number (import, "experts", old);
    import_set_model_number (import, "top_k",
                             config_number_or (job, CONFIG "num_experts_per_tok", "top_k", 1));
    if (import_has_model (import, "ffn"))
      import_set_model_number (import, "expert_ffn", import->model.ffn);
    const char *capacity = option_text (job, CONFIG "moe_capacity_factor");
    if (capacity)
      import_set_strategy (import, "expert_capacity", capacity, CONFIG "moe_capacity_factor");
  }
  const LaunchOption *layers = launch_words_find (job->words, CONFIG "moe_config.layers");
  if (n > 1 && layers && !(layers->values->len == 1 && strcmp (layers->values->pdata[0], "-1") == 0))
    import_unknown (import, CONFIG "moe_config.layers: all layers are taken to have experts");
}

/* --- the strategy --------------------------------------------------------------------------------- */

static void
set_degrees (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *mode = option_text (job, "parallelism.tp_mode"),
             *engine = option_text (job, "parallelism.pp_engine");
  bool is_scatter = mode && g_ascii_strcasecmp (mode, "reduce_scatter") == 0;
  option_tell_other (job, "parallelism.tp_mode", "all_reduce reduce_scatter", "all_reduce");
  option_tell_other (job, "parallelism.pp_engine", "1f1b afab", "afab");
  option_default (job, "tp", "1");
  option_default (job, "pp", "1");
  option_default (job, "cp", "1");
  import_set_strategy (import, "sp", is_scatter ? "1" : "0", "parallelism.tp_mode");
  import_set_strategy (import, "tp_async",
                       option_is_on (job, "parallelism.tp_linear_async_communication") ? "1" : "0",
                       "parallelism.tp_linear_async_communication");
  const LaunchOption *again = launch_words_find (job->words, "parallelism.tp_recompute_allgather");
  bool is_kept = !again && option_is_off (job, "parallelism.tp_recompute_allgather");
  if (is_scatter && is_kept)
    import_set_strategy (import, "sp_save_gathered", "1", "parallelism.tp_recompute_allgather");
  if (import->strategy.pp > 1) {
    bool is_1f1b = engine && strcmp (engine, "1f1b") == 0;
    if (!engine)
      import_infer (import, "schedule gpipe: all forwards first, the default of nanotron");
    import_set_strategy (import, "schedule", is_1f1b ? "1f1b" : "gpipe", "parallelism.pp_engine");
  }
  if (import->strategy.cp > 1)
    import_infer (import, "cp_kind ring: as nanotron's ring attention passes keys and values on");
}

/* Until 2025 the ranks of an expert-parallel group were an axis beside the others (parallel/context.py). */
static void
set_ranks (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 ep = option_number (job, "parallelism.expert_parallel_size"),
          dp = option_number (job, "parallelism.dp");
  guint64 n = option_number (job, "tokens.batch_accumulation_per_replica");
  if (import->model.n_experts > 0 || ep == 1)
    import_set_strategy_number (import, "ep", ep ? ep : 1);
  else if (ep > 1)
    import_infer (import, "ep 1: the model has no experts");
  config_set_batch (job, dp, n);
  if (ep > 1 && import->model.n_experts > 0 && dp % ep != 0)
    import_unknown (import,
                    "expert_parallel_size %" G_GUINT64_FORMAT
                    " is an axis of ranks beside dp %" G_GUINT64_FORMAT "; here experts are spread over dp",
                    ep, dp);
}

static void
set_strategy (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *attention = option_text (job, CONFIG "_attn_implementation"),
             *zero = option_text (job, "optimizer.zero_stage");
  bool is_full = option_is_on (job, "parallelism.recompute_layer");
  set_degrees (job);
  set_ranks (job);
  import_set_strategy (import, "dp_kind", "megatron", "--");
  import_set_strategy (import, "zero", zero ? zero : "0", "optimizer.zero_stage");
  import_set_strategy (import, "recompute", is_full ? "full" : "none", "parallelism.recompute_layer");
  if (option_is_on (job, "parallelism.moe_layer_recompute"))
    import_unknown (import, "parallelism.moe_layer_recompute");
  import_set_strategy (import, "grad_dtype",
                       option_is_on (job, "optimizer.accumulate_grad_in_fp32") ? "fp32" : "auto",
                       "optimizer.accumulate_grad_in_fp32");
  if (!import_has_strategy (import, "dtype")) {
    import_infer (import, "dtype bf16: no model.dtype");
    import_set_strategy (import, "dtype", "bf16", "model.dtype");
  }
  bool is_unfused = attention && strcmp (attention, "eager") == 0;
  import_set_strategy (import, "attention", is_unfused ? "unfused" : "flash", CONFIG "_attn_implementation");
  import_set_software (import, "nanotron-2024");
  import_infer (import, "software nanotron-2024: the release of nanotron that is known");
}

/* gpus: that a script starts; 0: none does. Takes the tree. */
static void
read_tree (cJSON *tree, guint64 gpus, LsImport *import)
{
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  LaunchJob job = { .import = import, .words = words, .table = &table };
  option_read_all (&job);
  if (option_is_on (&job, CONFIG "is_mamba_config"))
    set_mamba (&job);
  else {
    set_heads (&job);
    set_layer (&job);
    set_experts (&job);
  }
  set_strategy (&job);
  import_set_optimizer (import, option_text (&job, "optimizer.optimizer_factory.name"), 0,
                        "optimizer.optimizer_factory.name");
  if (gpus > 0 && import_has_strategy (import, "gpus") && import->strategy.gpus != gpus)
    import_conflict (import, "the script starts %" G_GUINT64_FORMAT " processes, degrees in the file make %u",
                     gpus, import->strategy.gpus);
  g_hash_table_unref (job.open);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  import->program = "nanotron";
  cJSON *tree = yaml_config_load (files, import, diags);
  if (tree)
    read_tree (tree, 0, import);
  return tree != NULL;
}

static bool
fits (const cJSON *tree)
{
  return yaml_config_find (tree, "parallelism.tp") && yaml_config_find (tree, "model.model_config");
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "model_config", fits);
}

const ImportReader import_nanotron = { "a configuration or a script of nanotron", is_its, read };

/* --- scripts: torchrun ... run_train.py --config-file FILE -------------------------------------------- */

static bool
is_known (const char *name)
{
  return strcmp (name, "config-file") == 0;
}

static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { .program = "nanotron", .is_known = is_known, .n_needed = 1 };
  LaunchScript script;
  import->program = "nanotron";
  cJSON *tree = yaml_config_of_script (files, &kind, "config-file", &script, import, diags);
  bool ok = tree && fits (tree);
  if (tree && !ok)
    ls_diag_add (
        diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, NULL,
        "--config-file %s: it is no configuration of nanotron, and what else is started so is not known",
        (const char *) launch_words_find (script.words, "config-file")->values->pdata[0]);
  if (ok)
    read_tree (g_steal_pointer (&tree), script.gpus, import);
  cJSON_Delete (tree);
  launch_script_clear (&script);
  return ok;
}

static bool
is_its_script (const ImportFile *file)
{
  return strstr (file->text, "--config-file")
      && (strstr (file->text, "torchrun") || strstr (file->text, "torch.distributed.run")
          || strstr (file->text, "run_train.py"));
}

const ImportReader import_nanotron_script = { NULL, is_its_script, read_script };
