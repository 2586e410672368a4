#include "data/launch/deepspeed_rules.h"

#define STRATEGY(option, key) OPTION_STRATEGY_ROW (option, key)
#define SWITCH(option, key)   OPTION_SWITCH_ROW (option, key)
#define RULE(option)          OPTION_RULE_ROW (option)
#define IGNORED(option)       OPTION_IGNORED_ROW (option)

static const OptionRow rows[] = {
  /* the batch */
  STRATEGY ("train_micro_batch_size_per_gpu", "micro_batch"),
  STRATEGY ("train_batch_size", "global_batch"),
  RULE ("gradient_accumulation_steps"),
  RULE ("gradient_clipping"),

  /* degrees; the others are up to the model's code */
  STRATEGY ("tensor_parallel.autotp_size", "tp"),
  IGNORED ("tensor_parallel.*"),
  STRATEGY ("sequence_parallel_size", "cp"),

  /* ZeRO */
  RULE ("zero_optimization"),
  RULE ("zero_optimization.stage"),
  RULE ("zero_optimization.overlap_comm"),
  RULE ("zero_optimization.reduce_bucket_size"),
  RULE ("zero_optimization.allgather_bucket_size"),
  RULE ("zero_optimization.stage3_prefetch_bucket_size"),
  RULE ("zero_optimization.stage3_param_persistence_threshold"),
  RULE ("zero_optimization.stage3_max_live_parameters"),
  RULE ("zero_optimization.stage3_max_reuse_distance"),
  RULE ("zero_optimization.prefetch_bucket_size"),
  RULE ("zero_optimization.param_persistence_threshold"),
  RULE ("zero_optimization.max_live_parameters"),
  RULE ("zero_optimization.max_reuse_distance"),
  RULE ("zero_optimization.mics_shard_size"),
  RULE ("zero_optimization.zero_hpz_partition_size"),
  RULE ("zero_optimization.offload_optimizer.device"),
  RULE ("zero_optimization.offload_param.device"),
  RULE ("zero_optimization.cpu_offload"),
  RULE ("zero_optimization.cpu_offload_params"),
  IGNORED ("zero_optimization.allgather_partitions"), /* on; off it broadcasts, which is told */
  IGNORED ("zero_optimization.contiguous_gradients"),
  IGNORED ("zero_optimization.reduce_scatter"),
  IGNORED ("zero_optimization.round_robin_gradients"),
  IGNORED ("zero_optimization.sub_group_size"),
  IGNORED ("zero_optimization.elastic_checkpoint"),
  IGNORED ("zero_optimization.ignore_unused_parameters"),
  IGNORED ("zero_optimization.legacy_stage1"),
  IGNORED ("zero_optimization.load_from_fp32_weights"),
  IGNORED ("zero_optimization.memory_efficient_linear"),
  IGNORED ("zero_optimization.*gather_16bit_weights_on_model_save"),
  IGNORED ("zero_optimization.*gather_fp16_weights_on_model_save"),
  IGNORED ("zero_optimization.offload_*.buffer_*"),
  IGNORED ("zero_optimization.offload_*.fast_init"),
  IGNORED ("zero_optimization.offload_*.max_in_cpu"),
  IGNORED ("zero_optimization.offload_*.nvme_path"),
  IGNORED ("zero_optimization.offload_*.pin_memory"),
  IGNORED ("zero_optimization.offload_*.pipeline*"),
  IGNORED ("zero_allow_untested_optimizer"),
  IGNORED ("zero_force_ds_cpu_optimizer"),

  /* precision */
  RULE ("bf16.enabled"),
  RULE ("bfloat16.enabled"),
  RULE ("fp16.enabled"),
  RULE ("data_types.grad_accum_dtype"),
  RULE ("communication_data_type"),
  IGNORED ("fp16.auto_cast"),
  IGNORED ("fp16.consecutive_hysteresis"),
  IGNORED ("fp16.hysteresis"),
  IGNORED ("fp16.initial_scale_power"),
  IGNORED ("fp16.loss_scale"),
  IGNORED ("fp16.loss_scale_window"),
  IGNORED ("fp16.min_loss_scale"),
  IGNORED ("bf16.auto_cast"),
  IGNORED ("bf16.hysteresis"),
  IGNORED ("bf16.initial_scale_power"),
  IGNORED ("bf16.loss_scale"),
  IGNORED ("bf16.loss_scale_window"),
  IGNORED ("bf16.min_loss_scale"),
  IGNORED ("prescale_gradients"),
  IGNORED ("gradient_predivide_factor"),

  /* recomputation */
  RULE ("activation_checkpointing"),
  SWITCH ("activation_checkpointing.partition_activations", "partition_activations"),
  SWITCH ("activation_checkpointing.cpu_checkpointing", "offload_activations"),
  IGNORED ("activation_checkpointing.*"),

  /* what changes the job only if it is on */
  RULE ("optimizer.type"),
  RULE ("curriculum_learning.enabled"),
  RULE ("data_efficiency.enabled"),
  RULE ("progressive_layer_drop.enabled"),
  RULE ("torch_autocast.enabled"),
  RULE ("flops_profiler.enabled"),
  RULE ("autotuning.enabled"),
  RULE ("eigenvalue.enabled"),

  /* what matters neither to time nor to memory: what is logged and saved, how numbers learn */
  IGNORED ("_*"),
  IGNORED ("autotuning.*"),
  IGNORED ("aio.*"), /* how drives are read is theirs */
  IGNORED ("checkpoint.*"),
  IGNORED ("comms_config.*"),
  IGNORED ("comms_logger.*"),
  IGNORED ("csv_monitor.*"),
  IGNORED ("curriculum_learning.*"),
  IGNORED ("data_efficiency.*"),
  IGNORED ("dataloader_drop_last"),
  IGNORED ("disable_allgather"),
  IGNORED ("dump_state"),
  IGNORED ("eigenvalue.*"),
  IGNORED ("elasticity.*"),
  IGNORED ("flops_profiler.*"),
  IGNORED ("memory_breakdown"),
  IGNORED ("monitor_config.*"),
  RULE ("optimizer.params.momentum"),
  IGNORED ("optimizer.params.*"),
  IGNORED ("optimizer.*"),
  IGNORED ("pipeline.*"),
  IGNORED ("progressive_layer_drop.*"),
  IGNORED ("scheduler.*"),
  IGNORED ("seed"),
  IGNORED ("sparse_gradients"),
  IGNORED ("steps_per_print"),
  IGNORED ("tensorboard.*"),
  IGNORED ("torch_autocast.*"),
  IGNORED ("wall_clock_breakdown"),
  IGNORED ("wandb.*"),
};

const OptionTable deepspeed_options = { rows, G_N_ELEMENTS (rows) };
