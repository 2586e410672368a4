#include "data/launch/maxtext_rules.h"

#include <glib.h>

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

  /* the rest */
  RULE ("remat_policy"),
  RULE ("dtype"),
  RULE ("grad_dtype"),
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
 * something else that is off, or remat_policy custom, would ask for. */
static const char ignored[]
    = "act_quantization_* adam_* *add_bos *add_eos allow_split_physical_axes base_output_directory "
      "*checkpoint* chat_template* *compile* dataset_* dump_* enable_goodput_recording "
      "enable_rampup_batch_size enable_wandb eval_* attn_logits_soft_cap force_unroll gcs_metrics "
      "gradient_clipping_threshold grain_* hf_* init_weights_seed jax_* learning_rate* load_* log_* "
      "logits_dot_in_fp32 lr_schedule_type managed_mldiagnostics* max_corpus_chars "
      "max_inflight_computations max_position_embeddings max_prefill_predict_length max_segments_per_seq "
      "metrics_file monitor_* normalization_layer_epsilon normalize_embedding_logits num_epoch "
      "original_max_position_embeddings override_model_config packing param_scan_axis profile* prompt "
      "query_pre_attn_scalar record_internal_nn_metrics reuse_example_batch rope_* routed_* run_name save_* "
      "scan_layers skip_first_n_steps_for_profiler stack_trace_* steps target_eval_loss tensorboard_dir "
      "tokenize* train_* trainable_position_size upload_all_profiler_results use_iota_embed wandb_* "
      "warmup_steps_fraction wsd_* z_loss_multiplier norm_topk_prob mscale beta_* *_for_audio *_for_vit "
      "*_logical_axes *_remat abort_on_* ar_cache_axis_order attention_out audio_placeholder "
      "autoregressive_* batch_split_factor block_diffusion_* bwd_quantization_* cast_logits_to_fp32 "
      "causal_block_size compressed_rope_max_timescale compute_axis_order context "
      "context_parallel_reorder_strategy context_sharding conv_chunksize_* cost_estimate_* data_* "
      "dcn_bandwidth_* decode_* decoder_layer_input dense_init_scale diloco_* distill_* dq_reduction_steps "
      "dtype_mm elastic_* enable_data_* enable_gcp_* enable_nnx enable_padding_causal_mask "
      "enable_tensorboard engram engram_* expansion_factor_real_data float32_weight_sum freeze_* gdn_* "
      "generate_* global_rampup_samples global_rope_* goodput_* heartbeat_* image_placeholder indexer_* "
      "inference_* key_proj kv_proj kv_quant_* kv_wa_proj local_rope_* lora_* max_num_images_per_example "
      "megablox mesh_axes mhc_* mla_kv mla_naive_kvcache mla_q mlpwi* mlpwo moba_* moe_mlpw* mrope_section "
      "mtp_eval_target_module mtp_loss_scaling_factor muon_* nope_layer_interval num_vocab_tiling olmo_* "
      "out_proj partial_rotary_factor per_device_batch_size_* position_id_per_seconds prefill_* "
      "prefix_caching_* prometheus_port pure_nnx* qk_clip_threshold qk_norm_with_scale qkv_proj "
      "quantization_local_shard_count query_proj query_wa_proj ragged_* remove_size_one_mesh_axis_from_type "
      "ring_scan_unroll sa_* scan_pipeline_iterations set_remat_policy_on_pipeline_iterations shard_mode "
      "sharding_tolerance shardy sinkhorn_iterations skip_step_* sparse_matmul step_deviation_* "
      "te_comm_gemm_overlap_kind tpu_num_* training_objective ulysses_context_sharding use_custom_sort_vjp "
      "use_max_logit_estimate use_qk_norm_in_gdn use_truncation v_norm_with_scale value_proj "
      "video_placeholder vision_output_length weight_quantization_* weight_sparsity_* wi_tile_* wo_tile_* "
      "xprof_*";

const OptionTable maxtext_options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };
