#include "data/launch/nemo/nemo_rules.h"

#include <glib.h>

#define AS(option, megatron) OPTION_AS_ROW (option, megatron)
#define SAME(prefix, option) AS (prefix option, option)
#define RULE(option)         OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  /* the model */
  SAME ("model.", "num_layers"),
  AS ("model.decoder.num_layers", "decoder-num-layers"),
  AS ("model.data.seq_length_dec", "decoder-seq-length"),
  SAME ("model.", "hidden_size"),
  SAME ("model.", "num_attention_heads"),
  SAME ("model.", "kv_channels"),
  SAME ("model.", "multi_latent_attention"),
  SAME ("model.", "q_lora_rank"),
  SAME ("model.", "kv_lora_rank"),
  SAME ("model.", "qk_head_dim"),
  SAME ("model.", "qk_pos_emb_head_dim"),
  SAME ("model.", "v_head_dim"),
  AS ("model.encoder_seq_length", "seq-length"),
  AS ("model.seq_length", "seq-length"),
  AS ("model.max_position_embeddings", "max-position-embeddings"),
  AS ("model.num_moe_experts", "num-experts"),
  SAME ("model.", "moe_router_topk"),
  SAME ("model.", "moe_ffn_hidden_size"),
  SAME ("model.", "moe_shared_expert_intermediate_size"),
  SAME ("model.", "moe_token_dispatcher_type"),
  SAME ("model.", "moe_flex_dispatcher_backend"),
  SAME ("model.", "moe_deepep_num_sms"),
  SAME ("model.", "moe_hybridep_num_sms"),
  SAME ("model.", "moe_expert_capacity_factor"),
  SAME ("model.", "moe_pad_expert_input_to_capacity"),
  SAME ("model.", "hybrid_override_pattern"),
  SAME ("model.", "hybrid_layer_pattern"),
  SAME ("model.", "mtp_num_layers"),
  SAME ("model.", "mtp_hybrid_override_pattern"),
  SAME ("model.", "mtp_use_repeated_layer"),
  SAME ("model.", "hybrid_attention_ratio"),
  SAME ("model.", "hybrid_mlp_ratio"),
  SAME ("model.", "is_hybrid_model"),
  AS ("model.mamba_ssm_ngroups", "mamba-num-groups"),
  SAME ("model.", "mamba_state_dim"),
  SAME ("model.", "mamba_head_dim"),
  SAME ("model.", "mamba_num_heads"),
  SAME ("model.", "mamba_num_groups"),
  AS ("model.override_vocab_size", "vocab-size"),
  AS ("model.vocab_size", "vocab-size"),
  AS ("tokenizer.vocab_size", "vocab-size"),
  RULE ("model.make_vocab_size_divisible_by"),
  RULE ("model.should_pad_vocab"),
  AS ("model.tokenizer.type", "tokenizer-type"),
  AS ("tokenizer.tokenizer_type", "tokenizer-type"),
  AS ("model.qkv_bias", "add-qkv-bias"),
  SAME ("model.", "add_qkv_bias"),
  SAME ("model.", "qk_layernorm"),
  SAME ("model.", "hidden_dropout"),
  SAME ("model.", "attention_dropout"),
  RULE ("model.mm_cfg.vision_encoder.hidden_size"),
  RULE ("model.moe_layer_freq*"),
  RULE ("model.num_query_groups"),
  RULE ("model.ffn_hidden_size"),
  RULE ("model.ffn_dropout"),
  RULE ("model.activation"),
  AS ("model.activation_func_clamp_value", "activation-func-clamp-value"),
  AS ("model.use_transformer_engine_op_fuser", "use-transformer-engine-op-fuser"),
  AS ("model.moe_router_fusion", "moe-router-fusion"),
  AS ("model.fused_single_qkv_rope", "fused-single-qkv-rope"),
  RULE ("model.moe_paged_stash"),
  RULE ("model.moe_router_padding_for_*"),
  RULE ("env_vars.NVTE_NORM_*"),
  RULE ("env_vars.NVTE_FLASH_ATTN"),
  RULE ("env_vars.NVTE_FUSED_ATTN"),
  RULE ("model.cross_entropy_fusion_impl"),
  RULE ("model.cross_entropy_loss_fusion"),
  RULE ("model.activation_func*"),
  RULE ("model.gated_linear_unit"),
  RULE ("model.normalization"),
  RULE ("model.position_embedding_type"),
  AS ("model.rotary_percentage", "rotary-percent"),
  AS ("model.rotary_percent", "rotary-percent"),
  RULE ("model.bias"),
  RULE ("model.add_bias_linear"),
  RULE ("model.share_embeddings_and_output_weights"),
  RULE ("model.share_decoder_tokens_head_embeddings"),
  RULE ("model.transformer_block_type"),
  RULE ("model._target_"),
  RULE ("model.config._target_"),
  RULE ("model.data.seq_length"),
  AS ("*.reset_attention_mask", "reset-attention-mask"),
  AS ("*.packed_sequence_size", "reset-attention-mask"),
  RULE ("data.seq_length"),
  RULE ("dataset.seq_length"),
  RULE ("dataset.sequence_length"),

  /* adapters */
  RULE ("peft._target_"),
  RULE ("peft.dim"),
  RULE ("peft.target_modules"),
  RULE ("peft.dropout"),
  RULE ("model.peft.peft_scheme"),
  RULE ("model.peft.lora_tuning.adapter_dim"),
  RULE ("model.peft.lora_tuning.target_modules"),
  RULE ("model.peft.lora_tuning.adapter_dropout"),

  /* degrees */
  SAME ("model.", "tensor_model_parallel_size"),
  SAME ("model.", "pipeline_model_parallel_size"),
  SAME ("model.", "pipeline_model_parallel_split_rank"),
  SAME ("model.", "virtual_pipeline_model_parallel_size"),
  SAME ("model.", "context_parallel_size"),
  SAME ("model.", "expert_model_parallel_size"),
  SAME ("model.", "expert_tensor_parallel_size"),
  SAME ("model.", "sequence_parallel"),
  SAME ("model.", "use_tp_pp_dp_mapping"),
  SAME ("model.", "cp_comm_type"),
  SAME ("model.", "pipeline_model_parallel_layout"),
  SAME ("model.", "account_for_embedding_in_pipeline_split"),
  SAME ("model.", "account_for_loss_in_pipeline_split"),
  AS ("model.num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"),
  AS ("model.num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"),
  RULE ("trainer.num_nodes"),
  RULE ("trainer.devices"),
  RULE ("model.overlap_p2p_comm"),
  RULE ("model.batch_p2p_comm"),
  AS ("model.ub_tp_comm_overlap", "tp-comm-overlap"),
  AS ("model.tp_comm_overlap", "tp-comm-overlap"),
  RULE ("model.ub_tp_comm_overlap_cfg.qkv_*grad.method"),
  RULE ("model.ub_tp_comm_overlap_cfg.qkv_*grad.set_sm_margin"),
  RULE ("model.ub_tp_comm_overlap_cfg.fc1_*grad.method"),
  RULE ("model.ub_tp_comm_overlap_cfg.fc1_*grad.set_sm_margin"),
  AS ("comm_overlap.tp_comm_overlap", "tp-comm-overlap"),
  AS ("comm_overlap.overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm"),
  AS ("comm_overlap.delay_wgrad_compute", "delay-wgrad-compute"),
  AS ("model.transformer_impl", "transformer-impl"),
  AS ("model.cuda_graph_impl", "cuda-graph-impl"),
  AS ("model.cuda_graph_scope", "cuda-graph-scope"),

  /* batches */
  SAME ("model.", "micro_batch_size"),
  SAME ("model.", "global_batch_size"),
  SAME ("data.", "micro_batch_size"),
  SAME ("data.", "global_batch_size"),
  SAME ("train.", "micro_batch_size"),
  SAME ("train.", "global_batch_size"),
  SAME ("train.", "rampup_batch_size"),
  SAME ("model.", "rampup_batch_size"),

  /* recomputation */
  AS ("model.activations_checkpoint_granularity", "recompute-granularity"),
  SAME ("model.", "recompute_granularity"),
  RULE ("model.activations_checkpoint_method"),
  RULE ("model.activations_checkpoint_num_layers"),
  SAME ("model.", "recompute_method"),
  SAME ("model.", "recompute_num_layers"),
  SAME ("model.", "recompute_modules"),
  AS ("model.distribute_saved_activations", "distribute-saved-activations"),
  RULE ("model.num_micro_batches_with_partial_activation_checkpoints"),
  RULE ("model.activations_checkpoint_layers_per_pipeline"),

  /* precision */
  RULE ("trainer.precision"),
  RULE ("model.precision"),
  RULE ("model.cpu_offloading"),
  RULE ("model.cpu_offloading_num_layers"),
  RULE ("model.cpu_offloading_activations"),
  RULE ("model.cpu_offloading_weights"),
  RULE ("mixed_precision"),
  AS ("mixed_precision.reuse_grad_buf_for_mxfp8_param_ag", "reuse-grad-buf-for-mxfp8-param-ag"),
  RULE ("mixed_precision.*"),
  RULE ("trainer.plugins.*"),
  RULE ("model.fp8"),
  RULE ("model.fp8_hybrid"),
  RULE ("model.fp8_e4m3"),
  AS ("model.fp8_recipe", "fp8-recipe"),
  AS ("model.fp8_params", "fp8-param-gather"),
  AS ("model.tp_only_amax_red", "tp-only-amax-red"),
  RULE ("model.reduce_amax"),
  AS ("model.fp8_dot_product_attention", "fp8-dot-product-attention"),
  AS ("model.quant_recipe", "te-precision-config-file"),
  AS ("ddp.reuse_grad_buf_for_mxfp8_param_ag", "reuse-grad-buf-for-mxfp8-param-ag"),
  AS ("optimizer.reuse_grad_buf_for_mxfp8_param_ag", "reuse-grad-buf-for-mxfp8-param-ag"),
  AS ("model.first_last_layers_bf16", "first-last-layers-bf16"),
  AS ("model.num_layers_at_start_in_bf16", "num-layers-at-start-in-bf16"),
  AS ("model.num_layers_at_end_in_bf16", "num-layers-at-end-in-bf16"),
  RULE ("model.fp4"),
  RULE ("model.bf16"),
  RULE ("model.fp16"),
  RULE ("model.params_dtype*"),
  RULE ("model.pipeline_dtype*"),
  RULE ("model.autocast_dtype*"),
  RULE ("model.megatron_amp_O2"),

  /* kernels */
  RULE ("model.transformer_engine"),
  RULE ("model.use_flash_attention"),
  RULE ("model.attention_backend*"),

  /* data parallelism */
  RULE ("model.gradient_accumulation_fusion"),
  RULE ("model.optim.name"),
  RULE ("model.optim.grad_sync_dtype"),
  RULE ("model.optim.check_for_nan_in_grad"),
  AS ("model.optim.overlap_grad_sync", "overlap-grad-reduce"),
  AS ("model.optim.overlap_param_sync", "overlap-param-gather"),
  AS ("ddp.overlap_grad_reduce", "overlap-grad-reduce"),
  AS ("ddp.overlap_param_gather", "overlap-param-gather"),
  AS ("ddp.bucket_size", "ddp-bucket-size"),
  AS ("ddp.use_distributed_optimizer", "use-distributed-optimizer"),
  AS ("ddp.data_parallel_sharding_strategy", "data-parallel-sharding-strategy"),
  AS ("ddp.num_distributed_optimizer_instances", "num-distributed-optimizer-instances"),
  AS ("ddp.use_megatron_fsdp", "use-megatron-fsdp"),
  AS ("ddp.use_custom_fsdp", "use-custom-fsdp"),
  AS ("dist.use_megatron_fsdp", "use-megatron-fsdp"),
  AS ("dist.use_torch_fsdp2", "use-torch-fsdp2"),
  AS ("optimizer.use_distributed_optimizer", "use-distributed-optimizer"),
  AS ("optimizer.clip_grad", "clip-grad"),
  AS ("optimizer.optimizer_cpu_offload", "optimizer-cpu-offload"),
  AS ("optim.config.optimizer_cpu_offload", "optimizer-cpu-offload"),
  AS ("optimizer.optimizer", "optimizer"),
  AS ("optimizer.muon_tp_mode", "muon-tp-mode"),
  AS ("optimizer.muon_num_ns_steps", "muon-num-ns-steps"),
  AS ("optimizer.use_precision_aware_optimizer", "use-precision-aware-optimizer"),
  AS ("optimizer.main_params_dtype", "main-params-dtype"),
  AS ("optimizer.main_grads_dtype", "main-grads-dtype"),
  AS ("optimizer.exp_avg_dtype", "exp-avg-dtype"),
  AS ("optimizer.exp_avg_sq_dtype", "exp-avg-sq-dtype"),
  AS ("optim.config.optimizer", "optimizer"),
  AS ("optim.config.use_precision_aware_optimizer", "use-precision-aware-optimizer"),
  AS ("optim.config.main_params_dtype", "main-params-dtype"),
  AS ("optim.config.exp_avg_dtype", "exp-avg-dtype"),
  AS ("optim.config.exp_avg_sq_dtype", "exp-avg-sq-dtype"),
  AS ("optim.config.use_distributed_optimizer", "use-distributed-optimizer"),
  AS ("optim.config.clip_grad", "clip-grad"),
  AS ("trainer.gradient_clip_val", "clip-grad"),
  RULE ("ddp.grad_reduce_in_fp32"),
  RULE ("ddp.check_for_nan_in_grad"),
  RULE ("model.fsdp"),
  RULE ("model.fsdp_sharding_strategy"),
  RULE ("model.fsdp_grad_reduce_dtype"),
};

/* What matters neither to time nor to memory: where data and checkpoints are, what is logged, how numbers
 * begin and learn, which order sequences have; and what its kernels have by themselves. */
static const char ignored[]
    = "model.decoder.* model.mcore_t5 model.relative_* *._target_ "
      "*._call_ *._partial_ _target_ _partial_ checkpoint.* data.* dataset.* defaults.* defaults "
      "ddp.average_in_collective ddp.align_param_gather exp_manager.* ft.* hydra.* logger.* log.* "
      "model.attention_softmax_in_fp32 model.fp8_* model.ub_tp_comm_overlap_cfg* model.*_fusion "
      "model.*init_method* model.apex_transformer_log_level model.apply_query_key_layer_scaling "
      "model.attention_type model.async_* model.moe_router_force_load_balancing model.moe_a2a_overlap "
      "model.calculate_per_token_loss model.mtp_loss_scaling_factor model.keep_mtp_spec_in_bf16 "
      "model.use_te_rng_tracker model.init_model_with_meta_device model.cuda_graph_warmup_steps "
      "env_vars* model.data.* model.deteministic_mode model.dist_ckpt* "
      "model.do_layer_norm_weight_decay model.drop_layers model.enable_megatron_timers "
      "model.megatron_timer_kwargs.* model.gc_interval model.grad_allreduce_chunk_size_mb "
      "model.gradient_as_bucket_view model.hysteresis model.layernorm_* "
      "model.mcore_gpt model.moe_aux_loss_coeff model.moe_z_loss_coeff "
      "model.moe_router_load_balancing_type model.moe_grouped_gemm model.name model.native_amp_* "
      "model.normalize_attention_scores model.nsys_profile.* model.onnx_safe model.openai_gelu "
      "model.optim.* model.persist_layer_norm model.post_process model.pre_process "
      "model.reset_lr* model.restore_from_* model.resume_from_checkpoint model.rotary_* model.rope_* "
      "model.seed model.seq_len_interpolation_factor model.sharp model.skip_train model.tokenizer.* "
      "model.use_cpu_initialization model.use_emha model.validation_param_sync_overlap "
      "model.fsdp_sharded_checkpoint model.finalize_model_grads_func* model.grad_scale_func* "
      "model.grad_sync_func* model.no_sync_func* model.param_sync_func* model.output_layer_* "
      "model.perform_initialization model.scatter_embedding_sequence_parallel "
      "model.timers model.transformer_layer_spec* name nvrx_straggler.* optim.* optimizer.* profiling.* "
      "rerun_state_machine.* rng.* restore_from_path run.* resume.* scheduler.* straggler.* tokenizer.* "
      "train._target_ train.check_* train.decrease_batch_size_if_needed train.empty_unused_memory_level "
      "train.eval_* train.exit_* train.finalize train.gpu_sniff_* train.iterations_to_skip train.manual_gc* "
      "train.num_epochs train.save_interval train.skip_* train.train_* validation.* "
      "dist.* trainer.callbacks.* trainer.accelerator trainer.accumulate_grad_batches "
      "trainer.benchmark trainer.enable_* trainer.limit_* trainer.log* trainer.max_* "
      "trainer.num_sanity_val_steps trainer.use_distributed_sampler trainer.replace_sampler_ddp "
      "trainer.val_check_interval trainer.checkpoint_callback peft.* model.peft.*";

const OptionTable nemo_options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };
