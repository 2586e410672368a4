#include "data/launch/deepspeed_rules.h"

/* --- what rules write: the other side of deepspeed_rules.c ------------------------------------------- */

#define VALUE  OPTION_VALUE
#define WHEN   OPTION_WHEN
#define ON     option_on_if
#define WORD   option_word_if
#define NUMBER option_number_if

WHEN (never, false)
WHEN (is_stage_12, s->zero_stage == 1 || s->zero_stage == 2)
WHEN (is_stage_3, s->zero_stage == 3)
WHEN (is_full, s->recompute == LS_RECOMPUTE_FULL)

VALUE (n_micro_batches, NUMBER (true, s->global_batch / (s->dp * s->micro_batch)))
VALUE (clipping, NUMBER (true, s->grad_norm ? 1 : 0))
VALUE (bf16, ON (s->dtype == LS_DTYPE_BF16))
VALUE (fp16, ON (s->dtype == LS_DTYPE_FP16))
VALUE (grad_dtype, g_strdup (ls_dtype_name ((LsDtype) s->grad_dtype)))
VALUE (stage, NUMBER (true, s->zero_stage))
VALUE (overlap, WORD (true, s->dp_overlap ? "true" : "false"))
VALUE (always, ON (true))
VALUE (gathers, ON (is_stage_12 (m, s)))
VALUE (mics, NUMBER (is_stage_3 (m, s) && s->zero_group > 0, s->zero_group))
static const char *
place (const LsStrategy *s)
{
  return s->offload_to == LS_OFFLOAD_TO_NVME ? "nvme" : "cpu";
}

VALUE (optimizer_place, WORD (s->offload != LS_OFFLOAD_NONE, place (s)))
VALUE (optimizer_pinned, ON (s->offload != LS_OFFLOAD_NONE))
VALUE (params_place, WORD (s->offload == LS_OFFLOAD_PARAMETERS, place (s)))
VALUE (params_pinned, ON (s->offload == LS_OFFLOAD_PARAMETERS))

/* --- keys ------------------------------------------------------------------------------------------ */

#define STRATEGY OPTION_STRATEGY_ROW
#define SWITCH   OPTION_SWITCH_ROW
#define RULE     OPTION_RULE_ROW
#define IGNORED  OPTION_IGNORED_ROW
#define ZERO     "zero_optimization."

/* In the order in which they are written. */
static const OptionRow rows[] = {
  /* the batch */
  STRATEGY ("train_batch_size", "global_batch"),
  STRATEGY ("train_micro_batch_size_per_gpu", "micro_batch"),
  RULE ("gradient_accumulation_steps", .value = n_micro_batches),
  RULE ("gradient_clipping", .value = clipping),

  /* degrees: where a file does not say them, the model's code does */
  STRATEGY ("tensor_parallel.autotp_size", "tp", .when = never),
  STRATEGY ("sequence_parallel_size", "cp", .when = never),

  /* precision */
  RULE ("bf16.enabled", .value = bf16),
  RULE ("bfloat16.enabled"),
  RULE ("fp16.enabled", .value = fp16),
  RULE ("data_types.grad_accum_dtype", .value = grad_dtype),
  RULE ("communication_data_type", .value = grad_dtype),

  /* ZeRO */
  RULE ("zero_optimization"),
  RULE (ZERO "stage", .value = stage),
  RULE (ZERO "overlap_comm", .value = overlap),
  IGNORED (ZERO "contiguous_gradients", .value = always),
  IGNORED (ZERO "reduce_scatter", .value = always), /* on; off it reduces all, which is told */
  STRATEGY (ZERO "reduce_bucket_size", "reduce_bucket", .is_count = true),
  IGNORED (ZERO "allgather_partitions", .value = gathers), /* on; off it broadcasts, which is told */
  STRATEGY (ZERO "allgather_bucket_size", "allgather_bucket", .is_count = true, .when = is_stage_12),
  STRATEGY (ZERO "stage3_prefetch_bucket_size", "prefetch_bucket", .is_count = true, .when = is_stage_3),
  STRATEGY (ZERO "stage3_param_persistence_threshold", "persistence_threshold", .is_count = true,
            .when = is_stage_3),
  STRATEGY (ZERO "stage3_max_live_parameters", "max_live_params", .is_count = true, .when = is_stage_3),
  STRATEGY (ZERO "stage3_max_reuse_distance", "max_reuse_distance", .is_count = true, .when = is_stage_3),
  STRATEGY (ZERO "prefetch_bucket_size", "prefetch_bucket", .is_count = true),
  STRATEGY (ZERO "param_persistence_threshold", "persistence_threshold", .is_count = true),
  STRATEGY (ZERO "max_live_parameters", "max_live_params", .is_count = true),
  STRATEGY (ZERO "max_reuse_distance", "max_reuse_distance", .is_count = true),
  RULE (ZERO "mics_shard_size", .value = mics),
  RULE (ZERO "zero_hpz_partition_size"),
  RULE (ZERO "offload_optimizer.device", .value = optimizer_place),
  IGNORED (ZERO "offload_optimizer.pin_memory", .value = optimizer_pinned),
  RULE (ZERO "offload_param.device", .value = params_place),
  IGNORED (ZERO "offload_param.pin_memory", .value = params_pinned),
  RULE (ZERO "cpu_offload"),
  RULE (ZERO "cpu_offload_params"),

  /* recomputation */
  RULE ("activation_checkpointing"),
  SWITCH ("activation_checkpointing.partition_activations", "partition_activations", .off = "false",
          .when = is_full),
  SWITCH ("activation_checkpointing.cpu_checkpointing", "offload_activations", .off = "false",
          .when = is_full),

  /* the optimizer, and what changes the job only if it is on */
  RULE ("optimizer.type"),
  RULE ("optimizer.params.momentum"),
  RULE ("curriculum_learning.enabled"),
  RULE ("data_efficiency.enabled"),
  RULE ("progressive_layer_drop.enabled"),
  RULE ("torch_autocast.enabled"),
  RULE ("flops_profiler.enabled"),
  RULE ("autotuning.enabled"),
  RULE ("eigenvalue.enabled"),
};

/* What matters neither to time nor to memory: what is logged and saved, how numbers learn, how drives are
 * read (aio). */
static const char ignored[]
    = "tensor_parallel.* zero_optimization.round_robin_gradients zero_optimization.sub_group_size "
      "zero_optimization.elastic_checkpoint zero_optimization.ignore_unused_parameters "
      "zero_optimization.legacy_stage1 zero_optimization.load_from_fp32_weights "
      "zero_optimization.memory_efficient_linear zero_optimization.*gather_16bit_weights_on_model_save "
      "zero_optimization.*gather_fp16_weights_on_model_save zero_optimization.offload_*.buffer_* "
      "zero_optimization.offload_*.fast_init zero_optimization.offload_*.max_in_cpu "
      "zero_optimization.offload_*.nvme_path zero_optimization.offload_*.pin_memory "
      "zero_optimization.offload_*.pipeline* zero_allow_untested_optimizer zero_force_ds_cpu_optimizer "
      "fp16.auto_cast fp16.consecutive_hysteresis fp16.hysteresis fp16.initial_scale_power fp16.loss_scale "
      "fp16.loss_scale_window fp16.min_loss_scale bf16.auto_cast bf16.hysteresis bf16.initial_scale_power "
      "bf16.loss_scale bf16.loss_scale_window bf16.min_loss_scale prescale_gradients "
      "gradient_predivide_factor activation_checkpointing.* _* autotuning.* aio.* checkpoint.* "
      "comms_config.* comms_logger.* csv_monitor.* curriculum_learning.* data_efficiency.* "
      "dataloader_drop_last disable_allgather dump_state eigenvalue.* elasticity.* flops_profiler.* "
      "memory_breakdown monitor_config.* optimizer.* pipeline.* progressive_layer_drop.* scheduler.* seed "
      "sparse_gradients steps_per_print tensorboard.* torch_autocast.* wall_clock_breakdown wandb.*";

const OptionTable deepspeed_options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };
