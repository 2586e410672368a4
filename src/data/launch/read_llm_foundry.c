/* Configurations of llm-foundry. Names, defaults and rules as in llmfoundry/models/mpt/configuration_mpt.py
 * and llmfoundry/command_utils/train.py of mosaicml/llm-foundry (8c8dd48f7, July 2025), in composer, and in
 * releases since 2023 where they differ. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/adapters.h"
#include "data/launch/yaml_config.h"

#define MODEL(option, key)    OPTION_MODEL_ROW (option, key)
#define STRATEGY(option, key) OPTION_STRATEGY_ROW (option, key)
#define RULE(option)          OPTION_RULE_ROW (option)
#define IGNORED(option)       OPTION_IGNORED_ROW (option)

static const OptionRow rows[] = {
  /* the model */
  MODEL ("model.n_layers", "layers"),
  MODEL ("model.d_model", "hidden"),
  MODEL ("model.n_heads", "heads"),
  MODEL ("model.head_dim", "head_dim"),
  RULE ("model.expansion_ratio"),
  RULE ("model.vocab_size"),
  RULE ("model.max_seq_len"),
  RULE ("max_seq_len"),
  RULE ("model.name"),
  RULE ("model.pretrained_model_name_or_path"),
  IGNORED ("model.pretrained"),
  RULE ("model.no_bias"),
  RULE ("model.norm_type"),
  RULE ("model.learned_pos_emb"),
  RULE ("model.tie_word_embeddings"),
  RULE ("model.resid_pdrop"),
  RULE ("model.emb_pdrop"),
  RULE ("model.attn_config.attn_pdrop"),
  RULE ("model.attn_config.attn_impl"),
  RULE ("model.attn_config.attn_type"),
  RULE ("model.attn_config.kv_n_heads"),
  RULE ("model.attn_config.alibi"),
  RULE ("model.attn_config.rope"),
  RULE ("model.attn_config.qk_ln"),
  RULE ("model.attn_config.sliding_window_size"),
  RULE ("model.ffn_config.ffn_type"),
  RULE ("model.ffn_config.ffn_hidden_size"),
  RULE ("model.ffn_config.ffn_act_fn.name"),
  RULE ("model.ffn_config.moe_num_experts"),
  RULE ("model.ffn_config.moe_top_k"),
  RULE ("model.ffn_config.moe_world_size"),
  RULE ("model.config_overrides.max_seq_len"),
  RULE ("model.config_overrides.max_position_embeddings"),
  RULE ("model.config_overrides.n_positions"),
  RULE ("model.config_overrides.attn_config.attn_impl"),
  RULE ("model.use_flash_attention_2"),
  RULE ("model.loss_fn"),
  RULE ("model.peft_config.peft_type"),
  RULE ("model.peft_config.r"),
  RULE ("model.peft_config.target_modules"),
  RULE ("model.peft_config.lora_dropout"),
  IGNORED ("model.peft_config.bias"),
  IGNORED ("model.peft_config.lora_alpha"),
  IGNORED ("model.peft_config.task_type"),
  IGNORED ("model.attn_config.alibi_*"),
  IGNORED ("model.attn_config.rope_*"),
  IGNORED ("model.attn_config.clip_qkv"),
  IGNORED ("model.attn_config.softmax_scale"),
  OPTION_PACKS_ROW ("model*.attn_config.attn_uses_sequence_id"),
  IGNORED ("model.ffn_config.memory_optimized_mlp"),
  IGNORED ("model.ffn_config.mlp_impl"),
  IGNORED ("model.ffn_config.moe_lbl_in_fp32"),
  IGNORED ("model.ffn_config.moe_loss_weight"),
  IGNORED ("model.ffn_config.uniform_expert_assignment"),
  IGNORED ("model.init_*"),
  IGNORED ("model.norm_eps"),
  IGNORED ("model.logit_scale"),
  IGNORED ("model.embedding_fraction"),
  IGNORED ("model.use_auth_token"),
  IGNORED ("model.use_cache"),
  IGNORED ("model.config_overrides"),
  IGNORED ("model.trust_remote_code"),

  /* batches and precision */
  STRATEGY ("global_train_batch_size", "global_batch"),
  RULE ("device_train_microbatch_size"),
  RULE ("device_train_grad_accum"),
  RULE ("precision"),
  RULE ("compute.gpus"),
  RULE ("gpu_num"),
  RULE ("expandable_segments"),

  /* FSDP of composer */
  RULE ("fsdp_config.sharding_strategy"),
  RULE ("fsdp_config.mixed_precision*"),
  RULE ("fsdp_config.activation_checkpointing"),
  RULE ("fsdp_config.activation_checkpointing_reentrant"),
  OPTION_SWITCH_ROW ("fsdp_config.activation_cpu_offload", "offload_activations"),
  RULE ("fsdp_config.limit_all_gathers"),
  RULE ("fsdp_config.backward_prefetch"),
  RULE ("fsdp_config.forward_prefetch"),
  IGNORED ("fsdp_config.state_dict_type"),
  IGNORED ("fsdp_config.verbose"),
  IGNORED ("fsdp_config.min_params"),
  IGNORED ("fsdp_config.use_orig_params"),
  IGNORED ("fsdp_config.sync_module_states"),
  IGNORED ("fsdp_config.sharded_ckpt_prefix_dir"),
  IGNORED ("fsdp_config.load_*"),

  RULE ("algorithms.gradient_clipping.*"),
  RULE ("optimizer.name"),
  IGNORED ("optimizer.*"),
  IGNORED ("scheduler.*"),
  IGNORED ("autoresume"),
  IGNORED ("callbacks.*"),
  IGNORED ("command"),
  IGNORED ("compute.*"),
  IGNORED ("cluster"),
  IGNORED ("console_log_interval"),
  IGNORED ("data*"),
  IGNORED ("device_eval_*"),
  IGNORED ("dist_timeout"),
  IGNORED ("eval_*"),
  IGNORED ("*global_seed"),
  IGNORED ("icl_*"),
  IGNORED ("image"),
  IGNORED ("integrations.*"),
  IGNORED ("load_*"),
  IGNORED ("log*"),
  IGNORED ("max_duration"),
  IGNORED ("max_split_size_mb"),
  IGNORED ("name"),
  IGNORED ("progress_bar"),
  IGNORED ("python_log_level"),
  IGNORED ("run_name"),
  IGNORED ("save_*"),
  IGNORED ("scheduling.*"),
  IGNORED ("seed"),
  IGNORED ("tokenizer.*"),
  IGNORED ("tokenizer_name"),
  IGNORED ("train_loader.*"),
  IGNORED ("variables.*"),
};

static const OptionTable table = { rows, G_N_ELEMENTS (rows) };

static bool
is_text (const LaunchJob *job, const char *name, const char *part)
{
  const char *text = option_text (job, name);
  return text && strstr (text, part);
}

/* --- MPT ------------------------------------------------------------------------------------------ */

static void
set_heads (LaunchJob *job)
{
  guint64 kv = option_number (job, "model.attn_config.kv_n_heads");
  if (is_text (job, "model.attn_config.attn_type", "multiquery"))
    kv = 1;
  if (kv > 0)
    import_set_model_number (job->import, "kv_heads", kv);
  else if (import_has_model (job->import, "heads"))
    import_set_model_number (job->import, "kv_heads", job->import->model.n_heads);
}

static void
set_ffn (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 ffn = option_number (job, "model.ffn_config.ffn_hidden_size");
  const char *ratio = option_text (job, "model.expansion_ratio");
  bool is_gated = is_text (job, "model.ffn_config.ffn_type", "glu");
  bool is_relu = is_text (job, "model.ffn_config.ffn_act_fn.name", "relu");
  if (ffn == 0 && import_has_model (import, "hidden")) {
    double times = ratio ? CLAMP (g_ascii_strtod (ratio, NULL), 0, 1e4) : 4;
    ffn = (guint64) (times * import->model.hidden);
    if (!ratio)
      import_infer (import, "ffn %" G_GUINT64_FORMAT ": expansion_ratio is 4 by default", ffn);
  }
  if (ffn > 0)
    import_set_model_number (import, "ffn", ffn);
  if (is_relu)
    import_infer (import, "mlp gelu: a ReLU has the same products");
  option_set_model (job, "mlp", is_gated ? "swiglu" : "gelu");
}

static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *type = option_text (job, "model.ffn_config.ffn_type");
  guint64 world = option_number (job, "model.ffn_config.moe_world_size");
  if (!type || !strstr (type, "moe"))
    return;
  guint64 n = config_number_or (job, "model.ffn_config.moe_num_experts", "experts", 8);
  import_set_model_number (import, "experts", n);
  import_set_model_number (import, "top_k", config_number_or (job, "model.ffn_config.moe_top_k", "top_k", 1));
  if (import_has_model (import, "ffn"))
    import_set_model_number (import, "expert_ffn", import->model.ffn);
  import_set_strategy_number (import, "ep", MAX (1, world));
  if (is_text (job, "model.ffn_config.mlp_type", "glu"))
    option_set_model (job, "mlp", "swiglu");
}

/* With alibi or rope there are no learned positions, whatever learned_pos_emb says. */
static void
set_layer (LaunchJob *job)
{
  bool is_alibi = option_is_on (job, "model.attn_config.alibi"),
       is_rope = option_is_on (job, "model.attn_config.rope");
  bool is_none = option_is_off (job, "model.learned_pos_emb"), has_experts = job->import->model.n_experts > 0;
  option_set_model (job, "position", is_alibi ? "alibi" : is_rope ? "rope" : is_none ? "none" : "learned");
  bool is_rms = is_text (job, "model.norm_type", "rmsnorm"), has_bias = !option_is_on (job, "model.no_bias");
  option_set_model (job, "norm", is_rms ? "rmsnorm" : has_bias ? "layernorm" : "layernorm_weight");
  option_set_model (job, "linear_bias", option_is_on (job, "model.no_bias") || has_experts ? "0" : "1");
  if (has_experts && !option_is_on (job, "model.no_bias"))
    import_infer (job->import, "linear_bias false: grouped matrix products of experts have none");
  option_set_model (job, "tied_embeddings", option_is_off (job, "model.tie_word_embeddings") ? "0" : "1");
  bool is_dropped = option_is_on (job, "model.resid_pdrop") || option_is_on (job, "model.emb_pdrop")
      || option_is_on (job, "model.attn_config.attn_pdrop");
  option_set_model (job, "dropout", is_dropped ? "1" : "0");
  if (option_is_on (job, "model.attn_config.qk_ln"))
    import_unknown (job->import, "model.attn_config.qk_ln: a norm of all heads together");
  guint64 window = option_number (job, "model.attn_config.sliding_window_size"); /* -1: none */
  if (window > 0)
    import_set_model_number (job->import, "window", window);
}

static void
set_mpt (LaunchJob *job)
{
  static const ConfigSize defaults[] = { { "model.d_model", "hidden", 2048 },
                                         { "model.n_heads", "heads", 16 },
                                         { "model.n_layers", "layers", 24 },
                                         { "model.vocab_size", "vocab", 50368 } };
  config_set_sizes (job, defaults, G_N_ELEMENTS (defaults));
  set_heads (job);
  set_ffn (job);
  set_experts (job);
  set_layer (job);
}

/* --- others --------------------------------------------------------------------------------------- */

static void
set_seq (LaunchJob *job)
{
  static const char *const names[]
      = { "max_seq_len", "model.max_seq_len", "model.config_overrides.max_seq_len",
          "model.config_overrides.max_position_embeddings", "model.config_overrides.n_positions" };
  guint64 seq = 0;
  for (guint i = 0; i < G_N_ELEMENTS (names) && seq == 0; i++)
    seq = option_number (job, names[i]);
  for (guint i = 1; i < G_N_ELEMENTS (names); i++)
    import_positions (job->import, option_number (job, names[i]));
  if (seq > 0)
    import_set_model_number (job->import, "seq", seq);
}

/* False: no decoder. */
static bool
set_architecture (LaunchJob *job, const char *path, LsDiagList *diags)
{
  const char *name = option_text (job, "model.name"),
             *hub = option_text (job, "model.pretrained_model_name_or_path");
  static const char *const others[] = { "t5", "prefix_lm", "bert", "diffusion" };
  bool is_other = false;
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    is_other = is_other || (name && strstr (name, others[i]));
  if (is_other) {
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                 "model.name %s: no decoder; a model of Lockstep is one", name);
    return false;
  }
  if (name && strcmp (name, "mpt_causal_lm") == 0)
    set_mpt (job);
  else if (hub)
    import_model_of_name (job->import, hub);
  else if (name && !g_str_has_prefix (name, "hf_"))
    import_unknown (
        job->import,
        "model.name %s: a class of a fork of llm-foundry; of its model what llm-foundry's have is "
        "read alone, and attention is taken to be fused",
        name);
  else
    import_unknown (job->import, "the model: pretrained_model_name_or_path is not there");
  set_seq (job);
  return true;
}

static void
set_recompute (LaunchJob *job)
{
  bool is_full = option_is_on (job, "fsdp_config.activation_checkpointing");
  import_set_strategy (job->import, "recompute", is_full ? "full" : "none",
                       "fsdp_config.activation_checkpointing");
  if (is_full && option_is_off (job, "fsdp_config.activation_checkpointing_reentrant")) {
    import_set_strategy (job->import, "recompute_early_stop", "1", "activation_checkpointing_reentrant");
    import_infer (job->import, "recompute_early_stop: without reentrance, as PyTorch since 2.1");
  }
}

static void
set_prefetch (LaunchJob *job)
{
  const char *backward = option_text (job, "fsdp_config.backward_prefetch");
  if (backward)
    import_set_strategy (job->import, "backward_prefetch",
                         strstr (backward, "PRE")        ? "pre"
                             : strstr (backward, "POST") ? "post"
                                                         : "none",
                         "fsdp_config.backward_prefetch");
  if (option_is_on (job, "fsdp_config.forward_prefetch"))
    import_set_strategy (job->import, "forward_prefetch", "1", "fsdp_config.forward_prefetch");
  if (option_is_off (job, "fsdp_config.limit_all_gathers"))
    import_set_strategy (job->import, "limit_all_gathers", "0", "fsdp_config.limit_all_gathers");
  else if (option_is_on (job, "fsdp_config.limit_all_gathers"))
    import_set_strategy (job->import, "limit_all_gathers", "1", "fsdp_config.limit_all_gathers");
}

/* PURE: gradients are reduced in the 16-bit type; DEFAULT: in fp32. */
static void
set_fsdp (LaunchJob *job)
{
  const char *kind = option_text (job, "fsdp_config.sharding_strategy"),
             *mixed = option_text (job, "fsdp_config.mixed_precision");
  bool is_there = kind || mixed || option_is_on (job, "fsdp_config.activation_checkpointing");
  if (!is_there) {
    import_set_strategy (job->import, "dp_kind", "ddp", "--");
    import_infer (job->import, "dp_kind ddp: no fsdp_config");
    return;
  }
  option_tell_other (job, "fsdp_config.sharding_strategy",
                     "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2 _HYBRID_SHARD_ZERO2",
                     "FULL_SHARD");
  option_tell_other (job, "fsdp_config.mixed_precision", "PURE DEFAULT", "PURE");
  bool is_none = kind && strcmp (kind, "NO_SHARD") == 0, is_grad = kind && strstr (kind, "SHARD_GRAD_OP");
  import_set_strategy (job->import, "dp_kind", "fsdp1", "--");
  import_set_strategy (job->import, "zero",
                       is_none                                           ? "0"
                           : is_grad || (kind && strstr (kind, "ZERO2")) ? "2"
                                                                         : "3",
                       "fsdp_config.sharding_strategy");
  if (kind && strstr (kind, "HYBRID"))
    import_unknown (job->import, "fsdp_config.sharding_strategy %s: shards of a node, whose size is not said",
                    kind);
  if (mixed && strcmp (mixed, "DEFAULT") == 0)
    import_set_strategy (job->import, "grad_dtype", "fp32", "fsdp_config.mixed_precision");
  set_prefetch (job);
}

static void
set_precision (LaunchJob *job)
{
  const char *precision = option_text (job, "precision");
  if (!precision) {
    import_infer (job->import, "dtype bf16: precision is amp_bf16 by default");
    precision = "amp_bf16";
  }
  const char *name = g_str_has_prefix (precision, "amp_") ? precision + strlen ("amp_") : precision;
  import_set_strategy (job->import, "dtype", name, "precision");
}

/* flash_attn_fn () of models/layers/attention.py copies queries, keys and values without padding. Triton, and
 * so the software by default, takes three views of one tensor; unfused attention has one layout alone. */
static void
set_attention (LaunchJob *job)
{
  const char *impl = option_text (job, "model.attn_config.attn_impl");
  impl = impl ? impl : option_text (job, "model.config_overrides.attn_config.attn_impl");
  bool is_unfused = impl && strcmp (impl, "torch") == 0, is_hf = !is_text (job, "model.name", "mpt");
  bool is_hub = option_text (job, "model.pretrained_model_name_or_path") != NULL;
  if (is_hf && is_hub && !option_is_on (job, "model.use_flash_attention_2") && !impl)
    import_infer (job->import, "attention flash: PyTorch's, the default of transformers");
  import_set_strategy (job->import, "attention", is_unfused ? "unfused" : "flash", "attn_impl");
  bool is_flash = impl && strcmp (impl, "flash") == 0;
  if (impl && strcmp (impl, "triton") == 0)
    import_set_strategy (job->import, "attention_kernel", "triton", "attn_impl");
  else if (is_flash || option_is_on (job, "model.use_flash_attention_2"))
    import_set_strategy (job->import, "attention_kernel", "fa2", "attn_impl use_flash_attention_2");
  if (is_unfused || (is_flash && !is_hf))
    import_set_strategy (job->import, "qkv_layout", is_flash ? "unpadded" : "joint", "attn_impl");
}

static void
set_batch (LaunchJob *job)
{
  const char *micro = option_text (job, "device_train_microbatch_size");
  guint64 gpus = option_number (job, "compute.gpus");
  gpus = gpus ? gpus : option_number (job, "gpu_num");
  if (micro && strcmp (micro, "auto") == 0)
    import_open (job->import, "micro_batch", "device_train_microbatch_size auto: a run finds it");
  else if (micro)
    import_set_strategy (job->import, "micro_batch", micro, "device_train_microbatch_size");
  if (option_is_there (job, "device_train_grad_accum"))
    import_unknown (job->import, "device_train_grad_accum");
  if (gpus > 0)
    config_set_batch (job, gpus, 0);
  else
    import_open (job->import, "gpus",
                 "how many GPUs: composer is started on them, and the file does not say");
}

static void
set_strategy (LaunchJob *job)
{
  bool is_clipped = option_text (job, "algorithms.gradient_clipping.clipping_threshold") != NULL;
  set_batch (job);
  set_fsdp (job);
  set_recompute (job);
  set_precision (job);
  set_attention (job);
  import_set_strategy (job->import, "grad_norm", is_clipped ? "1" : "0", "algorithms.gradient_clipping*");
  if (option_is_on (job, "expandable_segments"))
    import_set_strategy (job->import, "cuda_allocator", "expandable", "expandable_segments");
  import_set_software (job->import, "llm-foundry-2023");
  import_infer (job->import, "software llm-foundry-2023: the release of llm-foundry that is known");
}

/* LoraConfig of PEFT: r 8, and modules of Llama and its kin, where it names none. */
static void
set_adapters (LaunchJob *job)
{
  const char *type = option_text (job, "model.peft_config.peft_type");
  const LaunchOption *on = launch_words_find (job->words, "model.peft_config.target_modules");
  g_autoptr (GPtrArray) usual = launch_usual_modules ();
  if (type && g_ascii_strcasecmp (type, "lora") == 0)
    launch_set_adapters (
        job->import,
        &(LaunchAdapters) { .option = "peft_config",
                            .rank = option_number (job, "model.peft_config.r"),
                            .usual_rank = 8,
                            .on = on ? on->values : usual,
                            .dropout = option_text (job, "model.peft_config.lora_dropout") });
  else if (type)
    import_unknown (job->import, "peft_type %s: all weights are taken to be trained", type);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  import->program = "llm-foundry";
  cJSON *tree = yaml_config_load (files, import, diags);
  if (!tree)
    return false;
  yaml_config_move (tree, "parallelism_config.fsdp", "fsdp_config");
  yaml_config_lift (tree, "parameters");
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  LaunchJob job = { .import = import, .words = words, .table = &table };
  option_read_all (&job);
  bool ok = set_architecture (&job, files->files[0].path, diags);
  if (ok)
    set_strategy (&job);
  import_set_optimizer (import, option_text (&job, "optimizer.name"), 0, "optimizer.name");
  set_adapters (&job);
  g_hash_table_unref (job.open);
  return ok;
}

/* A run on MosaicML's platform has the configuration under "parameters". */
static bool
fits_at (const cJSON *tree)
{
  return yaml_config_find (tree, "model.name")
      && (yaml_config_find (tree, "train_loader") || yaml_config_find (tree, "global_train_batch_size"));
}

static bool
fits (const cJSON *tree)
{
  return fits_at (tree) || fits_at (yaml_config_find (tree, "parameters"));
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "model", fits);
}

const ImportReader import_llm_foundry = { "a configuration of llm-foundry", is_its, read };
