#include "data/launch/hf_rules.h"

#define MODEL(option, key)    OPTION_MODEL_ROW (option, key)
#define STRATEGY(option, key) OPTION_STRATEGY_ROW (option, key)
#define RULE(option)          OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  /* the model */
  RULE ("model_name_or_path"),
  RULE ("config_name"),
  RULE ("model_id"),
  RULE ("model_name"),
  RULE ("config"),
  MODEL ("max_seq_length", "seq"),
  MODEL ("max_seq_len", "seq"),
  MODEL ("model_max_length", "seq"),
  MODEL ("block_size", "seq"),
  MODEL ("cutoff_len", "seq"),
  MODEL ("max_length", "seq"),
  OPTION_PACKS_ROW ("packing"),
  OPTION_PACKS_ROW ("neat_packing"),
  OPTION_PACKS_ROW ("padding_free"),
  RULE ("attn_implementation"),
  RULE ("use_peft"),
  RULE ("use_peft_lora"),
  RULE ("use_4bit_quantization"),
  RULE ("lora_target_parameters"),
  RULE ("lora_r"),
  RULE ("lora_target_modules"),
  RULE ("lora_dropout"),
  RULE ("load_in_4bit"),
  RULE ("use_flash_attn"),

  /* the batch */
  STRATEGY ("per_device_train_batch_size", "micro_batch"),
  STRATEGY ("per_gpu_train_batch_size", "micro_batch"),
  STRATEGY ("global_train_batch_size", "global_batch"), /* of all ranks, as programs around it have it */
  RULE ("gradient_accumulation_steps"),
  RULE ("deepspeed_config.gradient_accumulation_steps"),
  RULE ("max_grad_norm"),
  RULE ("deepspeed_config.gradient_clipping"),

  /* who shards */
  RULE ("distributed_type"),
  RULE ("use_fsdp"),
  RULE ("use_deepspeed"),
  RULE ("multi_gpu"),
  RULE ("num_processes"),
  RULE ("num_machines"),
  RULE ("fsdp"),
  RULE ("fsdp_config"),
  RULE ("*fsdp_version"),
  RULE ("*auto_wrap_policy"),
  RULE ("*sharding_strategy"),
  RULE ("tf32"),
  RULE ("*reshard_after_forward"),
  RULE ("*backward_prefetch*"),
  RULE ("*forward_prefetch"),
  RULE ("*fsdp_offload_params"),
  RULE ("*activation_checkpointing"),
  RULE ("fsdp_config.offload_params"),
  STRATEGY ("context_parallel_kind", "cp_kind"),
  STRATEGY ("expert_parallel_size", "ep"),
  RULE ("parallelism_config.parallelism_config_dp_replicate_size"),
  RULE ("parallelism_config.parallelism_config_dp_shard_size"),
  RULE ("parallelism_config.parallelism_config_tp_size"),
  RULE ("parallelism_config.parallelism_config_cp_size"),
  RULE ("parallelism_config_dp_*_size"),
  RULE ("parallelism_config_tp_size"),
  RULE ("parallelism_config_cp_size"),
  RULE ("deepspeed"),
  RULE ("deepspeed_config"),
  RULE ("deepspeed_config_file"),
  RULE ("deepspeed_config.deepspeed_config_file"),
  RULE ("zero_stage"),
  RULE ("deepspeed_config.zero_stage"),
  RULE ("*offload_optimizer_device"),
  RULE ("*offload_param_device"),

  /* memory and precision */
  RULE ("gradient_checkpointing"),
  RULE ("grad_checkpoint"), /* of InternVL */
  RULE ("gradient_checkpointing_kwargs"),
  RULE ("use_reentrant_gc"),
  RULE ("gradient_checkpointing_kwargs.use_reentrant"),
  RULE ("bf16"),
  RULE ("fp16"),
  RULE ("mixed_precision"),
  RULE ("fp8_backend"),
  RULE ("fp8_config.backend"),
  RULE ("fp8_config.enable_fsdp_float8_all_gather"),
  RULE ("fp8_config.use_mxfp8_block_scaling"),

  /* what changes the job only if it is on */
  RULE ("use_lora"),
  RULE ("lora"),
  RULE ("q_lora"),
  RULE ("lora_enable"),
  RULE ("lora_rank"),
  RULE ("peft_enable"),
  RULE ("torch_dtype"),
  RULE ("dtype"),
  RULE ("model_init_kwargs.torch_dtype"),
  RULE ("model_init_kwargs.dtype"),
  RULE ("torch_compile"),
  RULE ("dynamo_backend"),
  RULE ("dynamo_config.dynamo_backend"),
  RULE ("use_liger_kernel"),
  RULE ("optim"),
};

/* What matters neither to time nor to memory: where processes run, what is logged and saved, data, how
 * numbers begin and learn. finetuning_type is full; of the others the reader tells. */
static const char ignored[]
    = "parallelism_config.parallelism_config_cp_comm_strategy fp8_config.* adam_* bf16_full_eval "
      "chat_template* config_file compute_environment command_file commands data_* dataloader_* "
      "dataset* ddp_find_unused_parameters ddp_timeout debug deepspeed_config.deepspeed_* "
      "deepspeed_config.zero3_* zero3_* deepspeed_multinode_launcher disable_tqdm do_* "
      "downcast_bf16 dynamo_config.* enable_cpu_affinity eos_token eval_* evaluation_strategy "
      "exp_name finetuning_type fp16_full_eval "
      "*fsdp_cpu_ram_efficient_loading *fsdp_limit_all_gathers *fsdp_min_num_params "
      "*fsdp_state_dict_type *fsdp_sync_module_states *fsdp_transformer_layer_cls_to_wrap "
      "*fsdp_use_orig_params fsdp_config.cpu_ram_efficient_loading "
      "fsdp_config.min_num_params fsdp_config.state_dict_type fsdp_config.sync_module_states "
      "fsdp_config.transformer_layer_cls_to_wrap fsdp_config.use_orig_params gpu_ids "
      "gradient_checkpointing_kwargs.* greater_is_better hostfile hub_* ignore_data_skip label_* "
      "lora_* peft_* learning_rate load_best_model_at_end local_rank log_* logging_* lr_* "
      "machine_rank main_process_ip main_process_port main_training_function max_eval_samples "
      "max_steps max_train_* metric_for_best_model model_revision mpirun_* mpi_* "
      "num_cpu_threads_per_process num_epochs num_train_* num_warmup_steps output_dir overwrite_* "
      "per_device_eval_batch_size preprocessing_num_workers push_to_hub rdzv_* "
      "remove_unused_columns report_to resume_from_checkpoint run_name same_network save_* seed "
      "skip_memory_metrics stage streaming template tokenizer_name* tokenizer_revision tpu_* "
      "train_file training_script* trust_remote_code use_cache use_cpu use_fast_tokenizer "
      "use_slow_tokenizer validation_* wandb_* warmup_* weight_decay with_tracking";

const OptionTable hf_options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };
