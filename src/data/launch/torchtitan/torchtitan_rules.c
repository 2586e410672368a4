/* What is trained and in which formats, by which kernels: what torchtitan makes of its options. */
#include "data/launch/torchtitan/torchtitan_rules.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/jobs/job_files.h"

/* --- its table of options, and its names of schedules -------------------------------------------- */

/* --- what rules write: the other side of torchtitan_rules.c and torchtitan_strategy.c ---------------- */

#define VALUE  OPTION_VALUE
#define WHEN   OPTION_WHEN
#define ON     option_on_if
#define WORD   option_word_if
#define NUMBER option_number_if

WHEN (has_experts, m->n_experts > 0)
WHEN (cuts_tensors, s->tp > 1)
WHEN (has_stages, s->pp > 1)
WHEN (is_fsdp2, s->dp_kind == LS_DP_FSDP2)
WHEN (is_fp8, s->dtype == LS_DTYPE_FP8)
WHEN (converts_experts, is_fp8 (m, s) && m->n_experts > 0 && !s->bf16_experts)

/* With a pipeline the local batch is what passes it in a step; without, one micro-batch, and gradients are
 * accumulated up to the global batch. */
VALUE (local_batch,
       NUMBER (true,
               s->pp == 1                  ? s->micro_batch
                   : s->pipeline_batch > 0 ? s->pipeline_batch
                                           : s->global_batch / s->dp))
VALUE (sequence, NUMBER (true, s->seq))
VALUE (param_dtype, WORD (true, s->dtype == LS_DTYPE_FP32 ? "float32" : "bfloat16"))
VALUE (reduce_dtype, WORD (true, "float32"))

#define COMPILED "torchtitan-2025-03-compile" /* kernels of layers under torch.compile */

/* Ranks that share parameters; context-parallel ranks hold shards too. */
static uint32_t
n_shards (const LsStrategy *s)
{
  return s->dp_kind != LS_DP_FSDP2 ? 1 : s->zero_group > 0 ? s->zero_group : s->dp * s->cp;
}

VALUE (replicas, NUMBER (true, s->dp *(is_fsdp2 (m, s) ? s->cp : 1) / n_shards (s)))
VALUE (shards, NUMBER (true, MAX (1, n_shards (s) / s->cp)))

static char *
reshard (const LsModel *m, const LsStrategy *s)
{
  bool is_default = s->zero_stage == 3 && s->pp > 1;
  return WORD (is_fsdp2 (m, s), s->reshard_after_forward ? "always" : is_default ? "default" : "never");
}

/* Embedding and head count as `less` layers of the first and last chunk. */
static uint32_t
less (const LsModel *m, const LsStrategy *s)
{
  return m->n_layers % (s->pp * s->vpp) == 0 ? 0 : 1;
}

VALUE (schedule, has_stages (m, s) ? g_strdup (torchtitan_schedule (s->schedule)) : NULL)
VALUE (micro_batch, NUMBER (has_stages (m, s), s->micro_batch))
VALUE (layers, NUMBER (has_stages (m, s), (m->n_layers + 2 * less (m, s)) / (s->pp * s->vpp)))
VALUE (less_layers, NUMBER (has_stages (m, s), less (m, s)))
VALUE (rotation, WORD (s->cp > 1, s->cp_kind == LS_CP_RING ? "alltoall" : "allgather"))
VALUE (expert_tp, NUMBER (has_experts (m, s), s->etp))
VALUE (expert_backend, WORD (s->dispatcher != LS_DISPATCHER_ALL_TO_ALL, ls_dispatcher_name (s->dispatcher)))
VALUE (mode, g_strdup (ls_recompute_name (s->recompute)))
VALUE (selective_option, WORD (s->recompute == LS_RECOMPUTE_SELECTIVE, "op"))
VALUE (converters,
       WORD (is_fp8 (m, s),
             converts_experts (m, s) ? "[\"quantize.linear.float8\", \"quantize.grouped_mm.float8\"]"
                                     : "[\"quantize.linear.float8\"]"))
VALUE (converted_experts, WORD (converts_experts (m, s), "[\"experts\"]"))
VALUE (fp8_recipe, WORD (is_fp8 (m, s), "tensorwise"))
VALUE (fp8_gathers, ON (is_fp8 (m, s) && s->fp8_params))
VALUE (compiles, ON ((s->tp > 1 && s->tp_overlap) || g_strcmp0 (s->kernels, COMPILED) == 0))
VALUE (not_written, NULL)

/* Of torchtitan/models (January 2026): "llama3/8B". */
static char *
part_of_name (const LsModel *m, bool is_flavor)
{
  static const char *const families[] = { "llama3", "llama4", "deepseek_v3", "qwen3", "gpt_oss", NULL };
  g_autofree char *name = ls_model_name_of (m, families);
  g_auto (GStrv) parts = g_strsplit (name ? name : "", "/", 2);
  return name ? g_strdup (parts[is_flavor ? 1 : 0]) : NULL;
}

VALUE (model_name, part_of_name (m, false))
VALUE (model_flavor, part_of_name (m, true))

/* --- options --------------------------------------------------------------------------------------- */

#define MODEL    OPTION_MODEL_ROW
#define STRATEGY OPTION_STRATEGY_ROW
#define SWITCH   OPTION_SWITCH_ROW
#define RULE     OPTION_RULE_ROW
#define DECIDES  OPTION_DECIDES_ROW
#define IGNORED  OPTION_IGNORED_ROW
#define OLD      OPTION_OLD_ROW

/* Releases by what is new after them: training.batch_size and degrees in [training] and [experimental] until
 * the spring of 2025, data_parallel_degree and switches of float8 until the winter before. */
#define IN_2024  "torchtitan-2024-12"
#define IN_EARLY "torchtitan-2025-03"

#define PARALLEL "parallelism."
#define FP8      "quantize.linear.float8."

/* In the order in which they are written. */
static const OptionRow rows[] = {
  /* the batch and precision */
  DECIDES ("training.local_batch_size", "local batch", .value = local_batch),
  OLD ("training.batch_size", OPTION_RULE, "local batch", IN_EARLY),
  STRATEGY ("training.global_batch_size", "global_batch", .none = "-1"),
  MODEL ("training.seq_len", "seq", .value = sequence),
  MODEL ("training.max_context_length", "seq"),
  RULE ("training.num_tokens_per_microbatch_per_dp_rank"),
  RULE ("training.num_tokens_per_train_step"),
  DECIDES ("training.mixed_precision_param", "dtype", .value = param_dtype),
  IGNORED ("training.mixed_precision_reduce", .value = reduce_dtype), /* it has float32 only */
  RULE ("training.dtype"),
  RULE ("training.enable_cpu_offload"),

  /* degrees */
  DECIDES (PARALLEL "data_parallel_replicate_degree", "replicas", .value = replicas),
  DECIDES (PARALLEL "data_parallel_shard_degree", "shards", .value = shards),
  RULE (PARALLEL "fsdp_reshard_after_forward", .value = reshard),
  STRATEGY (PARALLEL "tensor_parallel_degree", "tp", .otherwise = "1"),
  SWITCH (PARALLEL "enable_async_tensor_parallel", "tp_overlap", .when = cuts_tensors),
  SWITCH ("compile.enable_async_tensor_parallel", "tp_overlap", .value = not_written),
  RULE (PARALLEL "enable_sequence_parallel"),
  STRATEGY (PARALLEL "pipeline_parallel_degree", "pp", .otherwise = "1"),
  OLD ("training.tensor_parallel_degree", OPTION_STRATEGY, "tp", IN_EARLY),
  OLD ("training.pipeline_parallel_degree", OPTION_STRATEGY, "pp", IN_2024),
  OLD ("experimental.pipeline_parallel_degree", OPTION_STRATEGY, "pp", IN_EARLY),
  OLD ("experimental.context_parallel_degree", OPTION_STRATEGY, "cp", IN_EARLY),
  OLD ("training.data_parallel_degree", OPTION_RULE, "shards", IN_2024),
  OLD ("training.data_parallel_replicate_degree", OPTION_RULE, "replicas", IN_EARLY),
  OLD ("training.data_parallel_shard_degree", OPTION_RULE, "shards", IN_EARLY),
  OLD ("training.fsdp_reshard_after_forward", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.enable_async_tensor_parallel", OPTION_STRATEGY, "tp_overlap", IN_EARLY, .on = "true"),

  /* the pipeline, contexts and experts */
  RULE (PARALLEL "pipeline_parallel_schedule", .value = schedule),
  RULE (PARALLEL "pipeline_parallel_microbatch_size", .value = micro_batch),
  RULE (PARALLEL "pipeline_parallel_layers_per_stage", .value = layers),
  RULE (PARALLEL "pipeline_parallel_first_stage_less_layers", .value = less_layers),
  RULE (PARALLEL "pipeline_parallel_last_stage_less_layers", .value = less_layers),
  RULE (PARALLEL "pipeline_parallel_split_points"),
  RULE (PARALLEL "module_fqns_per_model_part*"),
  RULE (PARALLEL "num_pp_microbatches"),
  STRATEGY (PARALLEL "context_parallel_degree", "cp", .otherwise = "1"),
  RULE (PARALLEL "context_parallel_rotate_method", .value = rotation),
  RULE (PARALLEL "context_parallel_load_balancer"),
  STRATEGY (PARALLEL "expert_parallel_degree", "ep", .when = has_experts),
  RULE (PARALLEL "expert_tensor_parallel_degree", .value = expert_tp),
  RULE (PARALLEL "expert_parallel_comm_backend", .value = expert_backend),
  RULE (PARALLEL "disable_loss_parallel"),
  OLD (PARALLEL "pipeline_parallel_microbatches", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.pipeline_parallel_schedule", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.pipeline_parallel_microbatches", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.pipeline_parallel_split_points", OPTION_RULE, NULL, IN_EARLY),
  OLD ("experimental.context_parallel_rotate_method", OPTION_RULE, NULL, IN_EARLY),
  OLD ("training.disable_loss_parallel", OPTION_RULE, NULL, IN_EARLY),
  OLD ("training.enable_loss_parallel", OPTION_IGNORED, NULL, IN_2024), /* on, as by itself */

  /* memory */
  DECIDES ("activation_checkpoint.mode", "recompute", .value = mode),
  RULE ("activation_checkpoint.selective_ac_option", .value = selective_option),
  RULE ("activation_checkpoint.early_stop"),

  /* the model and its formats */
  RULE ("model.name", .value = model_name),
  RULE ("model.flavor", .value = model_flavor),
  RULE ("model.converters", .value = converters),
  RULE ("hf_transformers.model"),
  OLD ("model.norm_type", OPTION_RULE, NULL, IN_EARLY),
  OPTION_PACKS_ROW ("model.attn_mask_type", .on = "block_causal"), /* March and April 2025 */
  OPTION_PACKS_ROW ("model.attn_backend", .on = "varlen"),
  RULE ("loss.kind"),
  RULE (FP8 "recipe_name", .value = fp8_recipe),
  RULE (FP8 "enable_fsdp_float8_all_gather", .value = fp8_gathers),
  RULE ("float8.recipe_name"),
  RULE ("quantize.*.filter_fqns"),
  RULE ("quantize.grouped_mm.float8.fqns", .value = converted_experts),
  RULE ("float8.filter_fqns"),
  RULE ("float8.moe_fqns_prototype"),
  RULE ("mx.filter_fqns"),
  RULE ("float8.enable_fsdp_float8_all_gather"),
  OLD ("float8.enable_float8_linear", OPTION_RULE, NULL, IN_2024),
  OLD ("training.fp8_linear", OPTION_RULE, NULL, IN_2024),

  /* kernels */
  RULE ("training.disable_cuda_graphs"),
  DECIDES ("compile.enable", "compile", .value = compiles, .remark = "layers run compiled"),
  RULE ("compile.components"),
  OLD ("training.compile", OPTION_RULE, "compile", IN_EARLY),
  RULE ("optimizer.name"),
  RULE ("optimizer.implementation"),
  OLD ("optimizer.fused", OPTION_IGNORED, NULL, IN_2024),

  /* what changes the job only if it is on */
  RULE ("fault_tolerance.enable"),
  RULE ("debug.deterministic"),
  RULE ("training.deterministic"),

  /* what matters neither to time nor to memory, and says the release */
  OLD ("job.use_for_integration_test", OPTION_IGNORED, NULL, IN_EARLY),
  OLD ("metrics.enable_color_printing", OPTION_IGNORED, NULL, IN_2024),
  OLD ("checkpoint.interval_type", OPTION_IGNORED, NULL, IN_2024),
};

/* What matters neither: where data and checkpoints are, what is logged, how numbers begin and learn. Besides:
 * per_op_sac_... is of the router, which is small, memory_budget of that mode only; float8's scales are
 * dynamic; the backend of
 * compile is inductor, as by itself; experts are loaded evenly unless --expert-load says otherwise; overlap
 * of experts is of DualPipeV alone. */
static const char ignored[]
    = "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns "
      "activation_checkpoint.memory_budget float8.precompute_float8_dynamic_scale_for_fsdp "
      "float8.scaling_type_* "
      "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp "
      "quantize.*.fqns mx.recipe_name quantize.linear.mx.recipe_name job.config_file "
      "job.description job.dump_folder job.print_* job.save_config_file profiling.* metrics.* "
      "model.hf_assets_path model.print_after_conversion model.tokenizer_path optimizer.beta* optimizer.eps "
      "optimizer.lr optimizer.weight_decay lr_scheduler.* training.dataloader.* training.dataset "
      "training.dataset_path training.gc_* training.max_norm training.seed training.steps "
      "training.warmup_steps checkpoint.* compile.backend debug.moe_force_load_balance debug.seed "
      "fault_tolerance.* memory_estimation.* parallelism.pipeline_parallel_expert_parallel_overlap "
      "validation.* validator.* profiler.* tokenizer.* dataloader.* override.* comm.* hf_assets_path "
      "dump_folder config module activation_checkpoint.preserve_rng_state activation_checkpoint.debug "
      "activation_checkpoint.determinism_check activation_checkpoint.force_recompute_mm_shapes_by_fqns* "
      "activation_checkpoint.visualize_* parallelism.spmd_backend parallelism.enable_fsdp_symm_mem "
      "parallelism.pipeline_parallel_schedule_csv parallelism.context_parallel_ptrr_mask_key debug.*";

const OptionTable torchtitan_options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

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

/* --- what is trained and in which formats, by which kernels: what torchtitan makes of its options --- */

const char *
torchtitan_text (const LaunchJob *job, const char *name)
{
  static const char *const sections[] = { "parallelism", "experimental", "training" };
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++) {
    g_autofree char *option = g_strconcat (sections[i], ".", name, NULL);
    const char *text = option_text (job, option);
    if (text)
      return text;
  }
  return NULL;
}

/* --- the model ------------------------------------------------------------------------------------- */

/* What it trains beside decoders. */
static bool
check_model (const LaunchJob *job, LsDiagList *diags)
{
  static const char *const others[] = { "flux", "vlm", "llama3-siglip2", NULL };
  const char *name = option_text (job, "model.name");
  if (!name || !g_strv_contains (others, name))
    return true;
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, job->import->path, 0, 0, NULL, NULL, NULL,
               "model.name \"%s\" has images, and is no decoder; a model of Lockstep is one", name);
  return false;
}

/* "8B_flex_attn" is 8B by another kernel of attention, within documents (attn_mask_type "block_causal" in
 * torchtitan/models/llama3/__init__.py, October 2025). Newly allocated. */
static char *
without_attention (const char *flavor, LsImport *import)
{
  static const char *const ends[] = { "_flex_attn", "_varlen_attn", "_flex", "_varlen" };
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (flavor, ends[i])) {
      import_infer (import, "model.flavor %s: the model without %s, which names a kernel of attention",
                    flavor, ends[i] + 1);
      if (!import_is_open (import, "lengths"))
        import_open (
            import, "lengths",
            "model.flavor %s: attention is inside documents, whose lengths are not in the file: taken "
            "to be over whole sequences (lengths)",
            flavor);
      return g_strndup (flavor, strlen (flavor) - strlen (ends[i]));
    }
  return g_strdup (flavor);
}

/* Layers of torchtitan are built from a flavor, or from a repository of Hugging Face. */
static void
set_model (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *name = option_text (job, "model.name"), *flavor = option_text (job, "model.flavor"),
             *hub = option_text (job, "hf_transformers.model");
  g_autofree char *plain = without_attention (flavor ? flavor : "debugmodel", import),
                  *both = g_strconcat (name ? name : "llama3", "/", plain, NULL);
  bool is_hub = hub && flavor && strstr (flavor, "full");
  if (name || flavor)
    import_model_of_name (import, is_hub ? hub : both);
  else
    import_unknown (import, "model.name and model.flavor: which model is trained is not said");
}

static void
set_norm (LaunchJob *job)
{
  const char *norm = option_text (job, "model.norm_type");
  if (norm)
    import_set_model (job->import, "norm", strstr (norm, "rmsnorm") ? "rmsnorm" : "layernorm",
                      "model.norm_type");
}

/* --- kernels --------------------------------------------------------------------------------------- */

/* scaled_dot_product_attention, which takes a fused kernel, or flex_attention, which is one. */
static void
set_attention (LaunchJob *job)
{
  import_set_strategy (job->import, "attention", "flash", "--");
  import_infer (job->import, "attention flash: PyTorch's, which is fused");
}

/* Releases with torch.compile are software of their own; of today's only the kernels are. */
static void
set_compile (LaunchJob *job)
{
  LsImport *import = job->import;
  char **software = &import->strategy.software;
  bool is_async = import->strategy.tp > 1 && import->strategy.tp_overlap;
  if (!torchtitan_compiles (job)) {
    if (is_async)
      import_unknown (import, "enable_async_tensor_parallel: torchtitan refuses it without compile.enable");
    return;
  }
  if (strcmp (*software, "torchtitan") == 0) {
    import_set_strategy (import, "kernels", COMPILED, "--");
    if (import->strategy.cp > 1)
      import_set_strategy (import, "cp_steps", "pytorch-compile", "--");
    import_infer (import, "kernels " COMPILED ": those that compile.enable runs");
    return;
  }
  char *compiled = g_strconcat (*software, "-compile", NULL);
  import_infer (import, "software %s: with training.compile", compiled);
  g_free (*software);
  *software = compiled;
}

static void
set_optimizer (LaunchJob *job)
{
  const char *name = option_text (job, "optimizer.name"),
             *how = option_text (job, "optimizer.implementation");
  import_set_optimizer (job->import, name, 0, "optimizer.name");
  if (how && strcmp (how, "fused") != 0)
    import_unknown (job->import, "optimizer.implementation %s: taken for fused", how);
}

/* Since August 2026 forward and backward are one graph, which a pipeline may not be. */
static void
set_graphs (LaunchJob *job)
{
  bool is_off = option_is_on (job, "training.disable_cuda_graphs") || job->import->strategy.pp > 1;
  if (torchtitan_counts_tokens (job) && !is_off) {
    import_set_strategy (job->import, "cuda_graphs", "step", "training.disable_cuda_graphs");
    import_infer (job->import, "cuda_graphs step: it is captured unless training.disable_cuda_graphs");
  }
}

/* What is taken to be off. */
static void
tell_switches (LaunchJob *job)
{
  static const char *const options[] = { "fault_tolerance.enable", "debug.deterministic",
                                         "training.deterministic", "training.enable_cpu_offload" };
  const char *loss = option_text (job, "loss.kind");
  if (loss && strstr (loss, "Chunked"))
    import_unknown (job->import, "loss %s: taken to be computed at once, not in pieces", loss);
  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    if (option_is_on (job, options[i]))
      import_unknown (job->import, "%s: taken to be off", options[i]);
}

bool
torchtitan_read (LaunchJob *job, LsDiagList *diags)
{
  job->table = &torchtitan_options;
  if (!check_model (job, diags))
    return false;
  option_release (job, "torchtitan");
  option_read_all (job);
  set_model (job);
  set_norm (job);
  torchtitan_strategy (job);
  torchtitan_precision (job);
  set_attention (job);
  set_compile (job);
  set_graphs (job);
  set_optimizer (job);
  tell_switches (job);
  g_hash_table_unref (job->open);
  return true;
}
