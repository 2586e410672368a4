#include "data/launch/deepspeed_rules.h"

#include <string.h>

#include "data/shell/shell.h"
#include "data/text/json_scan.h"
#include "strategy/strategy.h"

/* --- what rules write ------------------------------------------- */

#define VALUE  OPTION_VALUE
#define WHEN   OPTION_WHEN
#define ON     option_on_if
#define WORD   option_word_if
#define NUMBER option_number_if

WHEN (never, false)
WHEN (is_stage_12, s->zero_stage == 1 || s->zero_stage == 2)
WHEN (is_stage_3, s->zero_stage == 3)
WHEN (is_full, s->recompute == LS_RECOMPUTE_FULL)

VALUE (n_micro_batches, NUMBER (true, ls_strategy_micro_batches (s, 0)))
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

/* --- the file -------------------------------------------------------------------------------------- */

static void
open_values (LaunchWords *words)
{
  for (guint i = 0; i < words->options->len; i++) {
    const LaunchOption *o = words->options->pdata[i];
    for (guint k = 0; k < o->values->len; k++) {
      char *value = o->values->pdata[k];
      bool is_hole = strcmp (value, "auto") == 0 || *value == '$';
      if (!is_hole)
        continue;
      o->values->pdata[k] = g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, value, LS_SHELL_HOLE_END);
      g_free (value);
    }
  }
}

bool
deepspeed_add_json (LaunchWords *words, const char *text, gsize n, const char *path, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = relaxed_json_parse (text, n, path, diags);
  if (!doc)
    return false;
  launch_words_add_tree (words, ls_json_doc_root (doc));
  open_values (words);
  return true;
}

/* --- numbers --------------------------------------------------------------------------------------- */

/* "5e8" too; false: it is not given, or open, which is told of the key. */
static bool
number_of (LaunchJob *job, const char *name, double *ret)
{
  const char *text = option_text (job, name);
  char *end = NULL;
  double value = text ? g_ascii_strtod (text, &end) : 0;
  if (!text || !*text)
    return false;
  if (*end || !(value >= 0 && value < 1e18)) {
    import_conflict (job->import, "%s: \"%s\" is no number", name, text);
    return false;
  }
  *ret = value;
  return true;
}

static bool
is_open (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = launch_words_find (job->words, name);
  return o && o->values->len > 0 && ls_shell_has_hole (o->values->pdata[0]);
}

/* --- ZeRO ------------------------------------------------------------------------------------------ */

static guint64
stage_of (LaunchJob *job)
{
  double stage = option_is_on (job, "zero_optimization"); /* true was stage 1 */
  number_of (job, "zero_optimization.stage", &stage);
  return (guint64) stage;
}

static void
set_stage (LaunchJob *job, guint64 stage)
{
  LsImport *import = job->import;
  double shards = 0, pages = 0;
  number_of (job, "zero_optimization.mics_shard_size", &shards);
  number_of (job, "zero_optimization.zero_hpz_partition_size", &pages);
  g_autofree char *zero = shards > 0 && stage == 3 ? g_strdup_printf ("3@%.0f", shards)
                                                   : g_strdup_printf ("%" G_GUINT64_FORMAT, stage);
  import_set_strategy (import, "dp_kind", "deepspeed", "--");
  if (!is_open (job, "zero_optimization.stage"))
    import_set_strategy (import, "zero", zero, "zero_optimization.stage");
  if (pages > 1)
    import_unknown (import, "zero_optimization.zero_hpz_partition_size %.0f: parameters are gathered anew",
                    pages);
}

/* On by itself with stage 3; Hugging Face's "auto" leaves it so. */
static void
set_overlap (LaunchJob *job, guint64 stage)
{
  bool is_said = option_text (job, "zero_optimization.overlap_comm")
      || option_is_off (job, "zero_optimization.overlap_comm")
      || (launch_words_find (job->words, "zero_optimization.overlap_comm")
          && !is_open (job, "zero_optimization.overlap_comm"));
  if (!is_said && is_open (job, "zero_optimization.stage"))
    return;
  bool is_on = is_said ? option_is_on (job, "zero_optimization.overlap_comm") : stage == 3;
  import_set_strategy (job->import, "dp_overlap", is_on ? "1" : "0", "zero_optimization.overlap_comm");
  if (!is_said)
    import_infer (job->import, "dp_overlap %s: the default of stage %" G_GUINT64_FORMAT,
                  is_on ? "true" : "false", stage);
}

/* What only other stages heed is not said. */
static void
drop_buckets (LaunchJob *job, guint64 stage)
{
  static const char *const of_3[]
      = { "prefetch_bucket", "persistence_threshold", "max_live_params", "max_reuse_distance" };
  if (stage != 1 && stage != 2)
    option_forget (job, "allgather_bucket");
  for (guint i = 0; i < G_N_ELEMENTS (of_3) && stage != 3; i++)
    option_forget (job, of_3[i]);
}

/* Where a part lives: "cpu", "nvme"; NULL: on the device. */
static const char *
place_of (const LaunchJob *job, const char *part, const char *older)
{
  g_autofree char *option = g_strconcat ("zero_optimization.", part, ".device", NULL);
  const char *place = option_text (job, option);
  if (place && strcmp (place, "none") != 0)
    return place;
  return option_is_on (job, older) ? "cpu" : NULL;
}

static void
set_offload (LaunchJob *job, guint64 stage)
{
  const char *optimizer = place_of (job, "offload_optimizer", "zero_optimization.cpu_offload"),
             *params = place_of (job, "offload_param", "zero_optimization.cpu_offload_params");
  if (params && stage == 3)
    import_set_strategy (job->import, "offload", "parameters",
                         "zero_optimization.offload_param* zero_optimization.cpu_offload*");
  else if (optimizer && stage > 0)
    import_set_strategy (job->import, "offload", "optimizer",
                         "zero_optimization.offload_optimizer* zero_optimization.cpu_offload*");
  else
    return;
  import_set_strategy (job->import, "offload_to", params && stage == 3 ? params : optimizer,
                       "zero_optimization.offload_*.device zero_optimization.cpu_offload*");
}

static void
tell_switches (LaunchJob *job)
{
  static const char *const on[]
      = { "curriculum_learning.enabled", "data_efficiency.enabled", "progressive_layer_drop.enabled",
          "torch_autocast.enabled",      "flops_profiler.enabled",  "autotuning.enabled",
          "eigenvalue.enabled" };
  static const char *const off[]
      = { "zero_optimization.reduce_scatter", "zero_optimization.allgather_partitions" };
  for (guint i = 0; i < G_N_ELEMENTS (on); i++)
    if (option_is_on (job, on[i]) && !is_open (job, on[i]))
      import_unknown (job->import, "%s: taken to be off", on[i]);
  for (guint i = 0; i < G_N_ELEMENTS (off); i++)
    if (option_is_off (job, off[i]))
      import_unknown (job->import, "%s false: taken to be on", off[i]);
}

/* --- the rest -------------------------------------------------------------------------------------- */

static void
set_precision (LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_open_bf16 = is_open (job, "bf16.enabled"), is_open_fp16 = is_open (job, "fp16.enabled");
  bool is_bf16
      = !is_open_bf16 && (option_is_on (job, "bf16.enabled") || option_is_on (job, "bfloat16.enabled")),
      is_fp16 = !is_open_fp16 && option_is_on (job, "fp16.enabled");
  if (is_bf16 && is_fp16)
    import_conflict (import, "bf16.enabled and fp16.enabled");
  bool is_known = is_bf16 || is_fp16 || !(is_open_bf16 || is_open_fp16);
  if (is_known && !import_has_strategy (import, "dtype"))
    import_set_strategy (import, "dtype",
                         is_bf16       ? "bf16"
                             : is_fp16 ? "fp16"
                                       : "fp32",
                         "bf16* fp16* bfloat16*");
  else if (!import_has_strategy (import, "dtype"))
    import_open (import, "dtype", "bf16.enabled and fp16.enabled: it does not say which");
}

/* Both are of the type of the model by themselves. */
static void
set_grad_dtype (LaunchJob *job)
{
  const char *kept = option_text (job, "data_types.grad_accum_dtype"),
             *sent = option_text (job, "communication_data_type");
  const char *dtype = kept ? kept : sent;
  if (dtype && strcmp (dtype, "none") != 0)
    import_set_strategy (job->import, "grad_dtype", dtype,
                         "data_types.grad_accum_dtype communication_data_type");
  if (kept && sent && strcmp (kept, sent) != 0)
    import_unknown (job->import,
                    "communication_data_type %s: gradients are taken to be sent as they are kept", sent);
}

/* Which layers are recomputed is up to the model; whoever configures it does. */
static void
set_recompute (LaunchJob *job)
{
  static const char *const options[] = { "partition_activations", "cpu_checkpointing",
                                         "contiguous_memory_optimization", "number_checkpoints" };
  for (guint i = 0; i < G_N_ELEMENTS (options) && !import_has_strategy (job->import, "recompute"); i++) {
    g_autofree char *name = g_strconcat ("activation_checkpointing.", options[i], NULL);
    if (!launch_words_find (job->words, name) && !option_is_off (job, name))
      continue;
    import_set_strategy (job->import, "recompute", "full", "activation_checkpointing.*");
    import_infer (job->import,
                  "recompute full: activation_checkpointing is configured, and taken for all layers");
  }
}

static void
set_norm (LaunchJob *job)
{
  double clip = 0;
  if (number_of (job, "gradient_clipping", &clip) || !is_open (job, "gradient_clipping"))
    import_set_strategy (job->import, "grad_norm", clip > 0 ? "1" : "0", "gradient_clipping");
}

static void
set_context (LaunchJob *job)
{
  bool is_said = import_has_strategy (job->import, "cp_kind");
  if (!is_said && import_has_strategy (job->import, "cp") && job->import->strategy.cp > 1)
    import_set_strategy (job->import, "cp_kind", "ulysses", "sequence_parallel_size");
}

static void
set_optimizer (LaunchJob *job)
{
  const char *type = option_text (job, "optimizer.type"),
             *momentum = option_text (job, "optimizer.params.momentum");
  import_set_optimizer (job->import, type, momentum ? g_ascii_strtod (momentum, NULL) : 0, "optimizer.type");
}

/* --- ranks and batches ----------------------------------------------------------------------------- */

/* train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks. */
static void
set_batch (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  double steps = 0;
  bool has_steps = number_of (job, "gradient_accumulation_steps", &steps) && steps >= 1,
       has_micro = import_has_strategy (import, "micro_batch"),
       has_global = import_has_strategy (import, "global_batch");
  guint64 of_model = (guint64) s->tp * s->pp * s->cp, micro = s->micro_batch,
          gpus = import_has_strategy (import, "gpus") ? s->gpus : job->gpus;
  if (gpus > 0 && gpus % of_model != 0) {
    import_conflict (import, "%" G_GUINT64_FORMAT " GPUs do not hold tp %u x pp %u x cp %u ranks", gpus,
                     s->tp, s->pp, s->cp);
    return;
  }
  guint64 n_steps = (guint64) steps, dp = gpus / of_model, at_once = import_times (micro, n_steps);
  if (dp == 0 && has_micro && has_global && has_steps && at_once > 0 && s->global_batch % at_once == 0) {
    dp = s->global_batch / at_once;
    gpus = dp * of_model;
    import_infer (import,
                  "gpus %" G_GUINT64_FORMAT
                  ": train_batch_size over micro-batches and their number, which is "
                  "how many copies there are, times %" G_GUINT64_FORMAT " ranks of a copy by this file",
                  gpus, (guint64) of_model);
  }
  if (gpus > 0)
    import_set_strategy_number (import, "gpus", gpus);
  else
    import_open (import, "gpus", "how many GPUs: nothing here says");
  if (!has_global && has_micro && has_steps && dp > 0) {
    import_set_strategy_number (import, "global_batch", import_times (dp, at_once));
    import_follows_gpus (import, "global_batch");
  }
  guint64 n_passes = import_times (dp, has_steps ? n_steps : 1), of_step = import_times (n_passes, micro);
  if (!has_micro && has_global && has_steps && dp > 0 && s->global_batch % n_passes == 0)
    import_set_strategy_number (import, "micro_batch", s->global_batch / n_passes);
  if (has_micro && has_global && dp > 0 && s->global_batch % of_step != 0)
    import_conflict (import, "train_batch_size %u is no multiple of the %" G_GUINT64_FORMAT " sequences %s",
                     s->global_batch, of_step, has_steps ? "of all accumulation steps" : "at once");
}

/* Shards and buckets, and what becomes of gradients. */
static void
set_engine (LaunchJob *job)
{
  guint64 stage = stage_of (job);
  set_stage (job, stage);
  set_overlap (job, stage);
  drop_buckets (job, stage);
  set_offload (job, stage);
  set_grad_dtype (job);
  set_norm (job);
  tell_switches (job);
}

void
deepspeed_read_engine (LaunchJob *job)
{
  const OptionTable *table = job->import->table;
  job->table = &deepspeed_options;
  option_read_all (job);
  set_engine (job);
  g_hash_table_unref (job->open);
  job->import->table = table;
}

void
deepspeed_pipeline_shards (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  bool is_whole = import_has_strategy (import, "zero") && s->zero_stage == 0,
       is_bf16 = import_has_strategy (import, "dtype") && s->dtype == LS_DTYPE_BF16;
  if (!is_whole || !is_bf16 || import_is_given (import, "zero"))
    return;
  import_set_strategy (import, "zero", "1", "--");
  import_set_strategy (import, "grad_dtype", "fp32", "--");
  import_infer (import,
                "zero 1, gradients in fp32: with weights in bf16 and stage 0 DeepSpeed's pipeline has "
                "an optimizer that shards its state (runtime/bf16_optimizer.py)");
}

void
deepspeed_read (LaunchJob *job)
{
  job->table = &deepspeed_options;
  if (!job->import->strategy.software)
    option_release (job, "deepspeed");
  option_read_all (job);
  set_engine (job);
  set_precision (job);
  set_recompute (job);
  set_context (job);
  set_optimizer (job);
  set_batch (job);
  g_hash_table_unref (job->open);
}
