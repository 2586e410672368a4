#include "data/launch/torchtitan_rules.h"

#include <string.h>

#define MODEL(option, key)    OPTION_MODEL_ROW (option, key)
#define STRATEGY(option, key) OPTION_STRATEGY_ROW (option, key)
#define SWITCH(option, key)   OPTION_SWITCH_ROW (option, key)
#define RULE(option)          OPTION_RULE_ROW (option)
#define IGNORED(option)       OPTION_IGNORED_ROW (option)
#define DECIDES(option, key)  OPTION_DECIDES_ROW (option, key)
#define OLD                   OPTION_OLD_ROW

/* Releases by what is new after them: training.batch_size and degrees in [training] and [experimental] until
 * the spring of 2025, data_parallel_degree and switches of float8 until the winter before. */
#define IN_2024  "torchtitan-2024-12"
#define IN_EARLY "torchtitan-2025-03"

static const OptionRow rows[] = {
  /* the model */
  RULE ("model.name"), RULE ("model.flavor"), RULE ("model.converters"), RULE ("hf_transformers.model"),
  OLD ("model.norm_type", OPTION_RULE, NULL, IN_EARLY), MODEL ("training.seq_len", "seq"),

  /* degrees */
  STRATEGY ("parallelism.tensor_parallel_degree", "tp"),
  STRATEGY ("parallelism.pipeline_parallel_degree", "pp"),
  STRATEGY ("parallelism.context_parallel_degree", "cp"),
  STRATEGY ("parallelism.expert_parallel_degree", "ep"), RULE ("parallelism.expert_tensor_parallel_degree"),
  DECIDES ("parallelism.data_parallel_replicate_degree", "replicas"),
  DECIDES ("parallelism.data_parallel_shard_degree", "shards"),
  RULE ("parallelism.fsdp_reshard_after_forward"),
  OLD ("training.tensor_parallel_degree", OPTION_STRATEGY, "tp", IN_EARLY),
  OLD ("training.pipeline_parallel_degree", OPTION_STRATEGY, "pp", IN_2024),
  OLD ("experimental.pipeline_parallel_degree", OPTION_STRATEGY, "pp", IN_EARLY),
  OLD ("experimental.context_parallel_degree", OPTION_STRATEGY, "cp", IN_EARLY),
  OLD ("training.data_parallel_degree", OPTION_RULE, "shards", IN_2024),
  OLD ("training.data_parallel_replicate_degree", OPTION_RULE, "replicas", IN_EARLY),
  OLD ("training.data_parallel_shard_degree", OPTION_RULE, "shards", IN_EARLY),
  OLD ("training.fsdp_reshard_after_forward", OPTION_RULE, NULL, IN_EARLY),

  /* the pipeline */
  RULE ("parallelism.pipeline_parallel_schedule"), RULE ("parallelism.pipeline_parallel_microbatch_size"),
  RULE ("parallelism.pipeline_parallel_layers_per_stage"),
  RULE ("parallelism.pipeline_parallel_first_stage_less_layers"),
  RULE ("parallelism.pipeline_parallel_last_stage_less_layers"),
  RULE ("parallelism.pipeline_parallel_split_points"),
  OLD ("parallelism.pipeline_parallel_microbatches", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.pipeline_parallel_schedule", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.pipeline_parallel_microbatches", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.pipeline_parallel_split_points", OPTION_RULE, NULL, IN_EARLY),

  /* tensor and context parallelism */
  SWITCH ("parallelism.enable_async_tensor_parallel", "tp_overlap"),
  OLD ("experimental.enable_async_tensor_parallel", OPTION_SWITCH, "tp_overlap", IN_EARLY),
  RULE ("parallelism.context_parallel_rotate_method"),
  OLD ("experimental.context_parallel_rotate_method", OPTION_RULE, NULL, IN_EARLY),
  RULE ("parallelism.disable_loss_parallel"),
  OLD ("training.disable_loss_parallel", OPTION_RULE, NULL, IN_EARLY),
  OLD ("training.enable_loss_parallel", OPTION_IGNORED, NULL, IN_2024), /* on, as by itself */

  /* the batch */
  DECIDES ("training.local_batch_size", "local batch"),
  OLD ("training.batch_size", OPTION_RULE, "local batch", IN_EARLY),
  DECIDES ("training.global_batch_size", "global_batch"),

  /* memory */
  DECIDES ("activation_checkpoint.mode", "recompute"), RULE ("activation_checkpoint.selective_ac_option"),
  RULE ("activation_checkpoint.early_stop"),
  IGNORED (
      "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns"), /* the router, which is small */
  IGNORED ("activation_checkpoint.memory_budget"),                           /* with that mode only */

  /* precision */
  DECIDES ("training.mixed_precision_param", "dtype"),
  IGNORED ("training.mixed_precision_reduce"), /* it has float32 only */
  RULE ("training.dtype"), OLD ("float8.enable_float8_linear", OPTION_RULE, NULL, IN_2024),
  OLD ("training.fp8_linear", OPTION_RULE, NULL, IN_2024), RULE ("float8.recipe_name"),
  RULE ("float8.enable_fsdp_float8_all_gather"), RULE ("quantize.linear.float8.recipe_name"),
  RULE ("quantize.linear.float8.enable_fsdp_float8_all_gather"),
  IGNORED ("float8.precompute_float8_dynamic_scale_for_fsdp"),
  IGNORED ("float8.scaling_type_*"), /* dynamic; delayed was never recommended */
  IGNORED ("float8.filter_fqns"),    /* the head, which is never in fp8 here, and small products */
  IGNORED ("quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp"),
  IGNORED ("quantize.*.filter_fqns"), IGNORED ("quantize.*.fqns"), IGNORED ("mx.filter_fqns"),
  IGNORED ("mx.recipe_name"), IGNORED ("quantize.linear.mx.recipe_name"),

  /* kernels */
  DECIDES ("compile.enable", "compile"), RULE ("compile.components"),
  OLD ("training.compile", OPTION_RULE, "compile", IN_EARLY), RULE ("optimizer.name"),
  RULE ("optimizer.implementation"), OLD ("optimizer.fused", OPTION_IGNORED, NULL, IN_2024),

  /* what changes the job only if it is on */
  RULE ("fault_tolerance.enable"), RULE ("debug.deterministic"), RULE ("training.deterministic"),

  /* what matters neither to time nor to memory: where data and checkpoints are, what is logged, how numbers
   * begin and learn */
  IGNORED ("job.config_file"), IGNORED ("job.description"), IGNORED ("job.dump_folder"),
  IGNORED ("job.print_*"), IGNORED ("job.save_config_file"),
  OLD ("job.use_for_integration_test", OPTION_IGNORED, NULL, IN_EARLY), IGNORED ("profiling.*"),
  OLD ("metrics.enable_color_printing", OPTION_IGNORED, NULL, IN_2024), IGNORED ("metrics.*"),
  IGNORED ("model.hf_assets_path"), IGNORED ("model.print_after_conversion"),
  IGNORED ("model.tokenizer_path"), IGNORED ("optimizer.beta*"), IGNORED ("optimizer.eps"),
  IGNORED ("optimizer.lr"), IGNORED ("optimizer.weight_decay"), IGNORED ("lr_scheduler.*"),

  IGNORED ("training.dataloader.*"), IGNORED ("training.dataset"), IGNORED ("training.dataset_path"),
  IGNORED ("training.gc_*"), IGNORED ("training.max_norm"), IGNORED ("training.seed"),
  IGNORED ("training.steps"), IGNORED ("training.warmup_steps"),
  OLD ("checkpoint.interval_type", OPTION_IGNORED, NULL, IN_2024),

  IGNORED ("checkpoint.*"), IGNORED ("comm.*"), IGNORED ("compile.backend"), /* inductor, as by itself */
  IGNORED (
      "debug.moe_force_load_balance"), /* experts are loaded evenly, unless --expert-load says otherwise */
  IGNORED ("debug.seed"), IGNORED ("fault_tolerance.*"), /* without fault_tolerance.enable they do nothing */
  IGNORED ("memory_estimation.*"),
  IGNORED ("parallelism.pipeline_parallel_expert_parallel_overlap"), /* of DualPipeV alone */
  IGNORED ("validation.*"),                                          /* between steps */
};

const OptionTable torchtitan_options = { rows, G_N_ELEMENTS (rows) };

/* Of several for one of ours the first is written. */
static const struct {
  const char *its, *ours;
  bool is_single;
} schedules[] = {
  { "GPipe", "gpipe", true },
  { "1F1B", "1f1b", true },
  { "Interleaved1F1B", "interleaved-1f1b", false },
  { "FlexibleInterleaved1F1B", "interleaved-1f1b", false },
  { "LoopedBFS", "looped-bfs", false },
  { "ZBVZeroBubble", "zbv", false },
  { "InterleavedZeroBubble", "interleaved-zb", false },
  { "DualPipeV", "dualpipev", false },
};

const char *
torchtitan_schedule (const char *ours)
{
  for (guint i = 0; i < G_N_ELEMENTS (schedules); i++)
    if (strcmp (schedules[i].ours, ours) == 0)
      return schedules[i].its;
  return NULL;
}

/* PyTorch takes any capital letters. */
const char *
torchtitan_schedule_ours (const char *its)
{
  for (guint i = 0; i < G_N_ELEMENTS (schedules); i++)
    if (g_ascii_strcasecmp (schedules[i].its, its) == 0)
      return schedules[i].ours;
  return NULL;
}

bool
torchtitan_is_single (const char *ours)
{
  for (guint i = 0; i < G_N_ELEMENTS (schedules); i++)
    if (strcmp (schedules[i].ours, ours) == 0)
      return schedules[i].is_single;
  return false;
}
