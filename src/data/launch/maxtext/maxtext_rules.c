#include "data/launch/maxtext/maxtext_rules.h"

#include <glib.h>
#include <string.h>

#include "data/launch/yaml_config.h"

/* --- options ---------------------------------------------------------------------------------------- */

#define RULE(option) OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  /* the model */
  RULE ("model_name"),
  RULE ("base_config"),
  RULE ("base_emb_dim"),
  RULE ("base_num_query_heads"),
  RULE ("base_num_kv_heads"),
  RULE ("base_mlp_dim"),
  RULE ("base_moe_mlp_dim"),
  RULE ("base_num_decoder_layers"),
  RULE ("global_parameter_scale"),
  RULE ("head_dim"),
  RULE ("vocab_size"),
  RULE ("mlp_activations"),
  RULE ("decoder_block"),
  RULE ("logits_via_embedding"),
  RULE ("attention_bias"),
  RULE ("mlp_bias"),
  RULE ("use_qk_norm"),
  RULE ("attention_type"),
  RULE ("q_lora_rank"),
  RULE ("kv_lora_rank"),
  RULE ("qk_nope_head_dim"),
  RULE ("qk_rope_head_dim"),
  RULE ("v_head_dim"),
  RULE ("num_experts"),
  RULE ("num_experts_per_tok"),
  RULE ("first_num_dense_layers"),
  RULE ("shared_experts"),
  RULE ("interleave_moe_layer_step"),
  RULE ("capacity_factor"),
  RULE ("sparse_matmul"),
  RULE ("megablox"),
  RULE ("dropout_rate"),
  RULE ("enable_dropout"),
  RULE ("sliding_window_size"),
  RULE ("final_logits_soft_cap"),
  RULE ("max_target_length"),

  /* degrees, batches */
  RULE ("ici_*_parallelism"),
  RULE ("dcn_*_parallelism"),
  RULE ("per_device_batch_size"),
  RULE ("gradient_accumulation_steps"),
  RULE ("num_layers_per_pipeline_stage"),
  RULE ("num_pipeline_repeats"),
  RULE ("num_pipeline_microbatches"),

  RULE ("context_parallel_strategy"),

  /* the rest */
  RULE ("remat_policy"),
  RULE ("context"),
  RULE ("mlpwi*"),
  RULE ("mlpwo"),
  RULE ("moe_mlpw*"),
  RULE ("query_proj"),
  RULE ("key_proj"),
  RULE ("value_proj"),
  RULE ("kv_proj"),
  RULE ("qkv_proj"),
  RULE ("out_proj"),
  RULE ("mla_kv"),
  RULE ("mla_q"),
  RULE ("engram"),
  RULE ("query_wa_proj"),
  RULE ("kv_wa_proj"),
  RULE ("attention_out"),
  RULE ("decoder_layer_input"),
  RULE ("dtype"),
  RULE ("grad_dtype"),
  RULE ("scan_layers"),
  RULE ("quantization"),
  RULE ("attention"),
  RULE ("hardware"),
  RULE ("weight_dtype"),
  RULE ("matmul_precision"),
  RULE ("logical_axis_rules*"),
  RULE ("optimizer_memory_host_offload"),
  RULE ("opt_type"),
  RULE ("parameter_memory_host_offload"),
};

/* What matters neither to time nor to memory, or is so by XLA alone; and what base.yml says of jobs that
 * these are not: decoding, fine-tuning, other architectures' widths where attention_type is another, and what
 * something else that is off would ask for. */
static const char ignored[]
    = "act_quantization_* adam_* *add_bos *add_eos allow_split_physical_axes base_output_directory "
      "*checkpoint* chat_template* *compile* dataset_* dump_* enable_goodput_recording "
      "enable_rampup_batch_size enable_wandb eval_* attn_logits_soft_cap force_unroll gcs_metrics "
      "gradient_clipping_threshold grain_* hf_* init_weights_seed jax_* learning_rate* load_* log_* "
      "logits_dot_in_fp32 lr_schedule_type managed_mldiagnostics* max_corpus_chars "
      "max_inflight_computations max_position_embeddings max_prefill_predict_length "
      "max_segments_per_seq metrics_file monitor_* normalization_layer_epsilon "
      "normalize_embedding_logits num_epoch original_max_position_embeddings override_model_config "
      "packing param_scan_axis profile* prompt query_pre_attn_scalar record_internal_nn_metrics "
      "reuse_example_batch rope_* routed_* run_name save_* skip_first_n_steps_for_profiler "
      "stack_trace_* steps target_eval_loss tensorboard_dir tokenize* train_* trainable_position_size "
      "upload_all_profiler_results use_iota_embed wandb_* warmup_steps_fraction wsd_* z_loss_multiplier "
      "norm_topk_prob mscale beta_* *_for_audio *_for_vit *_logical_axes *_remat abort_on_* "
      "ar_cache_axis_order audio_placeholder autoregressive_* batch_split_factor block_diffusion_* "
      "bwd_quantization_* cast_logits_to_fp32 causal_block_size compressed_rope_max_timescale "
      "compute_axis_order context_parallel_reorder_strategy context_sharding conv_chunksize_* "
      "cost_estimate_* data_* dcn_bandwidth_* decode_* dense_init_scale diloco_* distill_* "
      "dq_reduction_steps dtype_mm elastic_* enable_data_* enable_gcp_* enable_nnx "
      "enable_padding_causal_mask enable_tensorboard engram_* expansion_factor_real_data "
      "float32_weight_sum freeze_* gdn_* generate_* global_rampup_samples global_rope_* goodput_* "
      "heartbeat_* image_placeholder indexer_* inference_* kv_quant_* local_rope_* lora_* "
      "max_num_images_per_example mesh_axes mhc_* mla_naive_kvcache moba_* mrope_section "
      "mtp_eval_target_module mtp_loss_scaling_factor muon_* nope_layer_interval olmo_* "
      "partial_rotary_factor per_device_batch_size_* position_id_per_seconds prefill_* prefix_caching_* "
      "prometheus_port pure_nnx* qk_clip_threshold qk_norm_with_scale quantization_local_shard_count "
      "ragged_* remove_size_one_mesh_axis_from_type ring_scan_unroll sa_* scan_pipeline_iterations "
      "set_remat_policy_on_pipeline_iterations shard_mode sharding_tolerance shardy sinkhorn_iterations "
      "skip_step_* step_deviation_* te_comm_gemm_overlap_kind tpu_num_* training_objective "
      "ulysses_context_sharding use_custom_sort_vjp use_max_logit_estimate use_qk_norm_in_gdn "
      "use_truncation v_norm_with_scale video_placeholder vision_output_length weight_quantization_* "
      "weight_sparsity_* wi_tile_* wo_tile_* xprof_*";

const OptionTable maxtext_options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* --- the model -------------------------------------------------------------------------------------- */

/* The model of a job of MaxText: what configs/base.yml makes of options together, and of those that are not
 * given. */

bool
maxtext_has (const LaunchJob *job, const char *name)
{
  return launch_words_find (job->words, name) || option_is_none (job, name);
}

double
maxtext_real (const LaunchJob *job, const char *name, double otherwise)
{
  const char *text = option_text (job, name);
  char *end = NULL;
  double value = text ? g_ascii_strtod (text, &end) : otherwise;
  return text && (end == text || *end) ? otherwise : value;
}

bool
maxtext_is_of_base (const LaunchJob *job, const char *option)
{
  const char *base = option_text (job, "base_config");
  return !launch_words_find (job->words, option) && base && g_str_has_suffix (base, "base.yml");
}

/* --- the model ------------------------------------------------------------------------------------ */

/* Exponents of two by which global_parameter_scale widens each dimension (get_individual_scales ()). */
typedef struct {
  guint hidden, heads, ffn, layers;
} Scales;

static Scales
scales_of (LaunchJob *job)
{
  guint64 scale = option_number (job, "global_parameter_scale");
  guint log2 = 0;
  while (scale > 1 && ((guint64) 1 << (log2 + 1)) <= scale)
    log2++;
  if (scale > 1 && ((guint64) 1 << log2) != scale)
    import_conflict (job->import, "global_parameter_scale %" G_GUINT64_FORMAT " is no power of two", scale);
  guint base = log2 / 3, rest = log2 % 3;
  return (Scales) { base + (rest > 1), base + (rest > 0), base + (rest > 0), base };
}

/* Without model_name dimensions that are not given are those of base.yml. */
static void
set_dimension (LaunchJob *job, const char *option, const char *key, guint64 otherwise, guint scale)
{
  guint64 value = option_number (job, option);
  if (maxtext_is_of_base (job, option) && otherwise > 0 && !import_has_model (job->import, key)) {
    value = otherwise;
    import_infer (job->import, "%s %" G_GUINT64_FORMAT ": %s of base.yml", key, value << scale, option);
  }
  if (value > 0 && value <= G_MAXUINT32)
    import_set_model_number (job->import, key, value << MIN (scale, 20));
}

static void
set_dimensions (LaunchJob *job, bool is_named)
{
  Scales s = scales_of (job);
  guint64 d = !is_named;
  set_dimension (job, "base_emb_dim", "hidden", 2048 * d, s.hidden);
  set_dimension (job, "base_num_query_heads", "heads", 16 * d, s.heads);
  set_dimension (job, "base_num_kv_heads", "kv_heads", 16 * d, s.heads);
  set_dimension (job, "base_mlp_dim", "ffn", 7168 * d, s.ffn);
  set_dimension (job, "base_num_decoder_layers", "layers", 16 * d, s.layers);
  set_dimension (job, "vocab_size", "vocab", 32000 * d, 0);
  set_dimension (job, "head_dim", "head_dim", import_has_model (job->import, "heads") ? 128 : 0, 0);
  const char *block = option_text (job, "decoder_block");
  if (block && strcmp (block, "gemma2") == 0 && import_has_model (job->import, "layers")) {
    import_infer (job->import, "layers: two of gemma2 are one of base_num_decoder_layers");
    import_set_model_number (job->import, "layers", 2 * (guint64) job->import->model.n_layers);
  }
}

static void
set_latent (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *type = option_text (job, "attention_type");
  if (!type || strcmp (type, "mla") != 0)
    return;
  guint64 q = option_number (job, "q_lora_rank"),
          rope = config_number_or (job, "qk_rope_head_dim", "rope_dim", 64);
  import_set_model_number (import, "kv_lora", config_number_or (job, "kv_lora_rank", "kv_lora", 512));
  if (q > 0)
    import_set_model_number (import, "q_lora", q);
  import_set_model_number (import, "rope_dim", rope);
  import_set_model_number (import, "head_dim",
                           config_number_or (job, "qk_nope_head_dim", "head_dim", 128) + rope);
  import_set_model_number (import, "v_dim", config_number_or (job, "v_head_dim", "v_dim", 128));
}

/* RoutedMoE of layers/moe.py: sorted tokens (sparse_matmul, the default) know no capacity; without it each
 * expert takes so many, or, with no capacity, all tokens. Until February 2025 megablox alone chose. */
static void
set_capacity (LaunchJob *job)
{
  double capacity = maxtext_real (job, "capacity_factor", -1);
  bool is_sparse = maxtext_has (job, "sparse_matmul") ? option_is_on (job, "sparse_matmul")
                                                      : !option_is_off (job, "megablox");
  if (job->import->model.n_experts < 2)
    return;
  if (is_sparse && capacity > 0)
    import_infer (job->import, "capacity_factor: it has no effect with sparse_matmul");
  else if (capacity > 0) {
    import_set_strategy (job->import, "expert_capacity", option_text (job, "capacity_factor"),
                         "capacity_factor");
    import_set_strategy (job->import, "expert_padding", "capacity", "capacity_factor");
    import_unknown (job->import,
                    "capacity_factor: there products with masks bring tokens to experts and back, "
                    "which are not simulated");
  } else if (!is_sparse)
    import_unknown (job->import,
                    "sparse_matmul is off, and capacity_factor not given: there each expert "
                    "computes all tokens, here those that are sent to it");
}

static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 n = option_number (job, "num_experts"), ffn = option_number (job, "base_moe_mlp_dim"),
          dense = option_number (job, "first_num_dense_layers"),
          shared = option_number (job, "shared_experts"),
          every = option_number (job, "interleave_moe_layer_step");
  if (n < 2)
    return;
  ffn = ffn ? ffn << MIN (scales_of (job).ffn, 20) : import->model.ffn;
  import_set_model_number (import, "experts", n);
  import_set_model_number (import, "top_k", config_number_or (job, "num_experts_per_tok", "top_k", 1));
  if (ffn > 0)
    import_set_model_number (import, "expert_ffn", ffn);
  if (shared > 0 && ffn > 0)
    import_set_model_number (import, "shared_ffn", shared * ffn);
  if (dense > 0)
    import_set_model_number (import, "dense_layers", dense);
  if (every > 1)
    import_set_model_number (import, "moe_every", every);
}

/* ["silu", "linear"]: one half is the gate of the other. */
static void
set_mlp (LaunchJob *job)
{
  const LaunchOption *o = launch_words_find (job->words, "mlp_activations");
  if (!o && (import_has_model (job->import, "mlp") || !import_has_model (job->import, "hidden")))
    return;
  bool is_gated = !o || o->values->len > 1;
  if (!o)
    import_infer (job->import, "mlp swiglu: mlp_activations of base.yml");
  bool is_gelu = o && o->values->len > 0 && strcmp (o->values->pdata[0], "gelu") == 0;
  option_set_model (job, "mlp", is_gated && is_gelu ? "geglu" : is_gated ? "swiglu" : "gelu");
}

/* Of a block of GPT-3 as of none other: MaxText's layers/gpt3.py. */
static void
set_layer (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *block = option_text (job, "decoder_block"), *named = option_text (job, "model_name");
  bool is_gpt3
      = (block && strcmp (block, "gpt3") == 0) || (!block && named && g_str_has_prefix (named, "gpt3"));
  set_mlp (job);
  if (import_has_model (import, "hidden") && (!import_has_model (import, "norm") || block)) {
    option_set_model (job, "norm", is_gpt3 ? "layernorm" : "rmsnorm");
    option_set_model (job, "position", is_gpt3 ? "learned" : "rope");
    option_set_model (job, "linear_bias", is_gpt3 ? "1" : "0");
  }
  if (option_is_on (job, "attention_bias"))
    option_set_model (job, "qkv_bias", "1");
  if (maxtext_real (job, "final_logits_soft_cap", 0) > 0)
    option_set_model (job, "logit_cap", "1");
  if (option_is_on (job, "use_qk_norm"))
    option_set_model (job, "qk_norm", "1");
  bool is_known = import_has_model (import, "tied_embeddings") || !import_has_model (import, "hidden");
  if (maxtext_has (job, "logits_via_embedding") || !is_known)
    option_set_model (job, "tied_embeddings", option_is_on (job, "logits_via_embedding") ? "1" : "0");
  bool is_dropped = maxtext_real (job, "dropout_rate", 0) > 0 && !option_is_off (job, "enable_dropout");
  option_set_model (job, "dropout", is_dropped ? "1" : "0");
  if (option_number (job, "sliding_window_size") > 0)
    import_unknown (import,
                    "sliding_window_size: which layers have it stands in the code of its decoder_block");
}

void
maxtext_model (LaunchJob *job)
{
  const char *named = option_text (job, "model_name");
  bool is_named = launch_words_find (job->words, "model_name") && !(named && strcmp (named, "default") == 0);
  bool has_own = maxtext_has (job, "base_emb_dim");
  if (is_named && named && !has_own) {
    g_autofree char *name = g_strconcat ("maxtext/", named, NULL);
    import_model_of_name (job->import, name);
    if (!import_has_model (job->import, "hidden"))
      import_unknown (job->import, "the model: give MaxText's configs/models/%s.yml too, behind this file",
                      named);
  }
  set_dimensions (job, is_named);
  set_latent (job);
  set_layer (job);
  set_experts (job);
  set_capacity (job);
  set_dimension (job, "max_target_length", "seq", 2048, 0);
}
