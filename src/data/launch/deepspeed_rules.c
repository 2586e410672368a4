#include "data/launch/deepspeed_rules.h"

#include <string.h>

#include "data/launch/program/program_map.h"
#include "data/shell/shell.h"
#include "data/text/json_scan.h"
#include "strategy/strategy.h"

/* --- what rules write ------------------------------------------- */

#define VALUE  OPTION_VALUE
#define WHEN   OPTION_WHEN
#define ON     option_on_if
#define WORD   option_word_if
#define NUMBER option_number_if

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

/* Those that are written, in that order; strategies/programs/deepspeed.json has those that are read. */
static const OptionRow rows[] = {
  /* the batch */
  STRATEGY ("train_batch_size", "global_batch"),
  STRATEGY ("train_micro_batch_size_per_gpu", "micro_batch"),
  RULE ("gradient_accumulation_steps", .value = n_micro_batches),
  RULE ("gradient_clipping", .value = clipping),

  /* precision */
  RULE ("bf16.enabled", .value = bf16),
  RULE ("fp16.enabled", .value = fp16),
  RULE ("data_types.grad_accum_dtype", .value = grad_dtype),
  RULE ("communication_data_type", .value = grad_dtype),

  /* ZeRO */
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
  RULE (ZERO "mics_shard_size", .value = mics),
  RULE (ZERO "offload_optimizer.device", .value = optimizer_place),
  IGNORED (ZERO "offload_optimizer.pin_memory", .value = optimizer_pinned),
  RULE (ZERO "offload_param.device", .value = params_place),
  IGNORED (ZERO "offload_param.pin_memory", .value = params_pinned),

  /* recomputation */
  SWITCH ("activation_checkpointing.partition_activations", "partition_activations", .off = "false",
          .when = is_full),
  SWITCH ("activation_checkpointing.cpu_checkpointing", "offload_activations", .off = "false",
          .when = is_full),
};

const OptionTable deepspeed_options = { rows, G_N_ELEMENTS (rows), NULL, NULL, NULL };

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

/* --- what they mean together ------------------------------------------------------------------------ */

void
deepspeed_read_engine (LaunchJob *job)
{
  const OptionTable *table = job->import->table;
  program_run_map ("deepspeed", "engine", job, NULL, NULL);
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
  program_run_map ("deepspeed", NULL, job, NULL, NULL);
}
