#include <string.h>

#include "data/launch/olmo/olmo_rules.h"
#include "data/launch/yaml_config.h"

/* --- batches -------------------------------------------------------------------------------------- */

/* A rank's share of the batch is one micro-batch where it is smaller (olmo/train.py, split_batch). */
static void
set_batch (const Olmo *o)
{
  const LaunchJob *job = &o->job;
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 gpus = import_has_strategy (import, "gpus") ? s->gpus : job->gpus,
          micro = config_number_or (job, "device_train_microbatch_size", "micro_batch", 16),
          batch = config_number_or (job, "global_train_batch_size", "global_batch", 512);
  guint64 share = gpus > 0 ? batch / gpus : 0;
  if (batch > 0)
    import_set_strategy_count (import, "global_batch", batch, "global_train_batch_size");
  if (share > 0 && share < micro) {
    import_infer (import,
                  "micro_batch %" G_GUINT64_FORMAT ": a rank's share of the batch, which is below "
                  "device_train_microbatch_size",
                  share);
    micro = share;
  }
  if (micro > 0)
    import_set_strategy_count (import, "micro_batch", micro, "device_train_microbatch_size");
  if (gpus > 0)
    config_set_batch ((LaunchJob *) job, gpus, 0);
  else
    import_open (import, "gpus", "how many GPUs: torchrun is told, and the file does not say");
}

/* --- what is computed again ----------------------------------------------------------------------- */

/* Blocks i of n with i % of == 0, or the others; 0 of: all. */
typedef struct {
  const char *name;
  guint of;
  bool others;
} Share;

static void
set_blocks (LsImport *import, const Share *share)
{
  guint layers = import->model.n_layers,
        first = share->of > 0 ? (layers + share->of - 1) / share->of : layers,
        n = share->others ? layers - first : first;
  bool is_part = share->of > 0 && import_has_model (import, "layers");
  import_set_strategy (import, "recompute", is_part && n == 0 ? "none" : "full", "activation_checkpointing");
  if (!is_part || n == 0)
    return;
  import_set_strategy (import, "recompute_method", "block", "activation_checkpointing");
  import_set_strategy_count (import, "recompute_layers", n, "activation_checkpointing");
  import_infer (import,
                "recompute_layers %u: activation_checkpointing %s, whose layers stand among the others", n,
                share->name);
}

/* Norms, attention with the product behind it, and the activation, each by itself. */
static void
set_fine_grained (LsImport *import)
{
  import_set_strategy (import, "recompute", "selective", "activation_checkpointing");
  import_set_strategy (import, "recompute_parts", "core,norm,activation", "activation_checkpointing");
  import_set_strategy (import, "recompute_flash", "1", "activation_checkpointing");
  import_unknown (import,
                  "activation_checkpointing fine_grained: the product behind attention runs again too, "
                  "which is left out");
}

/* The switch of earlier releases is whole_layer (olmo/config.py, update_legacy_settings). */
static void
set_recompute (const LaunchJob *job)
{
  static const Share shares[]
      = { { "whole_layer", 0, false }, { "one_in_two", 2, false },   { "one_in_three", 3, false },
          { "one_in_four", 4, false }, { "one_in_eight", 8, false }, { "two_in_three", 3, true },
          { "three_in_four", 4, true } };
  const char *name = option_text (job, "activation_checkpointing");
  if (!name && option_is_there (job, "activation_checkpointing"))
    name = "whole_layer";
  if (!name) {
    import_set_strategy (job->import, "recompute", "none", "activation_checkpointing");
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (shares); i++)
    if (g_ascii_strcasecmp (name, shares[i].name) == 0) {
      set_blocks (job->import, &shares[i]);
      return;
    }
  if (strcmp (name, "fine_grained") == 0)
    set_fine_grained (job->import);
  else {
    import_unknown (job->import, "activation_checkpointing %s: taken for none", name);
    import_set_strategy (job->import, "recompute", "none", "activation_checkpointing");
  }
}

/* --- formats -------------------------------------------------------------------------------------- */

/* Of shards. FSDP gives blocks weights in 16 bits, unless fsdp.precision is null. */
static void
set_reductions (const LaunchJob *job, const char *format)
{
  LsImport *import = job->import;
  const char *kind = option_text (job, "fsdp.precision");
  bool is_pure = !kind || strcmp (kind, "mixed") != 0;
  option_tell_other (job, "fsdp.precision", "mixed pure", "pure");
  if (option_is_none (job, "fsdp.precision")) {
    import_unknown (import,
                    "fsdp.precision null: weights are gathered in fp32 and cast for each product; taken "
                    "for mixed");
    is_pure = false;
  } else if (!kind)
    import_infer (import, "gradients reduced in %s: fsdp.precision is pure by default", format);
  import_set_strategy (import, "grad_dtype", is_pure ? format : "fp32", "fsdp.precision");
}

/* olmo/config.py, autocast_precision, knows three words, and nothing is taken where none is said. */
static const char *
set_format (const LaunchJob *job)
{
  const char *precision = option_text (job, "precision");
  if (!precision)
    import_conflict (job->import, "precision is not said: OLMo refuses it");
  option_tell_other (job, "precision", "amp_bf16 amp_fp16 fp32", "amp_bf16");
  const char *format = g_strcmp0 (precision, "amp_fp16") == 0 ? "fp16"
      : g_strcmp0 (precision, "fp32") == 0                    ? "fp32"
                                                              : "bf16";
  import_set_strategy (job->import, "dtype", format, "precision");
  return format;
}

/* --- FSDP ----------------------------------------------------------------------------------------- */

#define REPLICAS "fsdp.hybrid_sharding_num_model_replicas"

/* The ranks of a shard: those of a node, or of one of so many copies; 0: not known. */
static guint64
group_of (const Olmo *o)
{
  const LsImport *import = o->job.import;
  guint64 copies = option_number (&o->job, REPLICAS),
          gpus = import_has_strategy (import, "gpus") ? import->strategy.gpus : 0;
  if (copies == 0)
    return launch_words_find (o->job.words, REPLICAS) ? 0 : o->of_node;
  return gpus % copies == 0 ? gpus / copies : 0;
}

/* 3 or 2: whether weights are freed behind the forward. FSDP frees none of its root, which is all where
 * nothing is wrapped (torch/distributed/fsdp/_runtime_utils.py, _post_forward_reshard). */
static guint
stage_of (const LaunchJob *job, const char *kind)
{
  bool is_kept = kind && strcmp (kind, "FULL_SHARD") != 0 && strcmp (kind, "HYBRID_SHARD") != 0,
       is_root = !option_text (job, "fsdp.wrapping_strategy");
  if (!is_kept && is_root)
    import_infer (job->import,
                  "zero 2: all weights are FSDP's root, which it does not free behind the forward");
  return is_kept || is_root ? 2 : 3;
}

static void
set_hybrid (const Olmo *o, const char *kind, guint stage)
{
  LsImport *import = o->job.import;
  guint64 group = group_of (o);
  if (group == 0) {
    import_open (import, "zero",
                 "fsdp.sharding_strategy %s: how many GPUs share a copy of the weights (zero=%u@8)", kind,
                 stage);
    return;
  }
  bool is_whole = import_has_strategy (import, "gpus") && group == import->strategy.gpus;
  g_autofree char *zero
      = is_whole ? g_strdup_printf ("%u", stage) : g_strdup_printf ("%u@%" G_GUINT64_FORMAT, stage, group);
  import_set_strategy (import, "zero", zero, "fsdp.sharding_strategy");
  if (option_number (&o->job, REPLICAS) > 0)
    import_follows_gpus (import, "zero");
}

static void
set_shards (const Olmo *o)
{
  LsImport *import = o->job.import;
  const char *kind = option_text (&o->job, "fsdp.sharding_strategy");
  guint stage = stage_of (&o->job, kind);
  option_tell_other (&o->job, "fsdp.sharding_strategy",
                     "FULL_SHARD SHARD_GRAD_OP HYBRID_SHARD _HYBRID_SHARD_ZERO2 NO_SHARD", "SHARD_GRAD_OP");
  if (kind && strstr (kind, "HYBRID")) {
    set_hybrid (o, kind, stage);
    return;
  }
  if (kind && strcmp (kind, "NO_SHARD") == 0)
    import_unknown (import, "fsdp.sharding_strategy NO_SHARD: taken for SHARD_GRAD_OP");
  import_set_strategy (import, "zero", stage == 2 ? "2" : "3", "fsdp.sharding_strategy");
}

/* Without a strategy all is one unit (scripts/train.py: no auto_wrap_policy). */
static void
set_units (const LaunchJob *job)
{
  LsImport *import = job->import;
  const char *wrapped = option_text (job, "fsdp.wrapping_strategy");
  guint64 group = MAX (1, option_number (job, "model.block_group_size"));
  if (!wrapped) {
    if (import_has_model (import, "layers"))
      import_set_strategy_count (import, "layers_per_unit", import->model.n_layers, "fsdp.wrapping_strategy");
    import_unknown (import,
                    "fsdp.wrapping_strategy null: all weights are one unit, of which embedding and head "
                    "are taken to be apart");
    return;
  }
  if (g_str_has_prefix (wrapped, "by_block_group")) {
    import_set_strategy_count (import, "layers_per_unit", group, "fsdp.wrapping_strategy");
    if (group == 1)
      import_conflict (import, "fsdp.wrapping_strategy %s with model.block_group_size 1: OLMo refuses it",
                       wrapped);
    return;
  }
  import_set_strategy (import, "layers_per_unit", "1", "fsdp.wrapping_strategy");
  if (strcmp (wrapped, "by_block") != 0 && strcmp (wrapped, "by_block_and_size") != 0)
    import_unknown (import, "fsdp.wrapping_strategy %s: taken for by_block", wrapped);
  else if (group > 1)
    import_unknown (import,
                    "model.block_group_size beside fsdp.wrapping_strategy %s: units are taken to be "
                    "blocks",
                    wrapped);
}

/* --- who reduces ------------------------------------------------------------------------------------ */

static void
set_ddp (const LaunchJob *job)
{
  const char *mode = option_text (job, "ddp.grad_sync_mode");
  option_tell_other (job, "ddp.grad_sync_mode", "batch micro_batch", "batch");
  import_set_strategy (job->import, "dp_kind", "ddp", "distributed_strategy");
  import_set_strategy (job->import, "grad_sync", g_strcmp0 (mode, "micro_batch") == 0 ? "each" : "last",
                       "ddp.grad_sync_mode");
  if (option_is_on (job, "ddp.find_unused_params"))
    import_unknown (job->import, "ddp.find_unused_params: the walk over the graph is left out");
}

/* False: weights are whole, and fp32 (olmo/train.py casts for products alone). */
static bool
set_kind (const Olmo *o, const char *format)
{
  const LaunchJob *job = &o->job;
  const char *kind = option_text (job, "distributed_strategy");
  bool is_ddp = g_strcmp0 (kind, "ddp") == 0, is_single = g_strcmp0 (kind, "single") == 0,
       is_narrow = strcmp (format, "fp32") != 0;
  option_tell_other (job, "distributed_strategy", "ddp fsdp single", "fsdp");
  if (is_ddp)
    set_ddp (job);
  else if (is_single)
    import_set_strategy (job->import, "dp_kind", "none", "distributed_strategy");
  if (is_ddp || is_single) {
    import_set_strategy (job->import, "grad_dtype", "fp32", "--");
    if (is_narrow)
      import_set_strategy (job->import, "master", "weights", "--");
    return false;
  }
  import_set_strategy (job->import, "dp_kind", "fsdp1", "distributed_strategy");
  import_set_strategy (job->import, "grad_sync", "each", "--");
  set_shards (o);
  set_units (job);
  set_reductions (job, format);
  return true;
}

/* --- kernels ---------------------------------------------------------------------------------------- */

/* PyTorch's attention takes a mask for ALiBi, which its flash kernels do not, and the others are switched off
 * (olmo/model.py, OLMo.__init__); blocks of the kind "llama" multiply by themselves. */
static void
set_attention (const LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_llama = g_strcmp0 (option_text (job, "model.block_type"), "llama") == 0,
       is_unfused = is_llama || option_is_on (job, "model.alibi"),
       is_flash = option_is_on (job, "model.flash_attention");
  option_tell_other (job, "model.block_type", "sequential llama", "sequential");
  import_set_strategy (import, "attention", is_unfused ? "unfused" : "flash",
                       "model.flash_attention model.block_type");
  if (is_llama)
    import_unknown (import, "model.block_type llama: queries, keys and values are taken to be one product");
  if (is_flash && option_is_on (job, "model.alibi"))
    import_conflict (import, "model.flash_attention with model.alibi: OLMo refuses it");
  if (!is_unfused && !is_flash)
    import_infer (import, "attention flash: PyTorch's, as model.flash_attention is off");
  if (!is_unfused && !is_flash && import->model.n_kv_heads < import->model.n_heads)
    import_unknown (import,
                    "model.flash_attention is off: keys and values are repeated before PyTorch's "
                    "attention, which is left out");
}

/* z-loss comes with flash-attn's kernel. */
static void
set_loss (const LaunchJob *job, GString *kernels)
{
  bool is_fused = option_is_on (job, "fused_loss");
  if (is_fused)
    g_string_append (kernels, "+olmo-fused-loss");
  else if (option_is_on (job, "softmax_auxiliary_loss"))
    import_unknown (job->import,
                    "softmax_auxiliary_loss without fused_loss: the log of the sum of logits is "
                    "taken to cost nothing");
}

/* Every so many steps, and not at all without wandb (olmo/train.py, should_log_optim_metrics_this_step). */
static void
set_metrics (const Olmo *o, GString *kernels)
{
  const LaunchJob *job = &o->job;
  guint64 every = MAX (1, option_number (job, "optimizer.metrics_log_interval")),
          logged = MAX (1, option_number (job, "wandb.log_interval"));
  if (!o->has_wandb)
    return;
  every = MAX (every, logged);
  if (every == 1)
    g_string_append (kernels, "+olmo-metrics");
  import_unknown (job->import,
                  "optimizer.metrics_log_interval %" G_GUINT64_FORMAT
                  " with wandb: the host reads norms and sums of each tensor one by one, %s left out",
                  every, every == 1 ? "whose waits are" : "which are");
}

static void
set_software (const Olmo *o, bool is_sharded)
{
  LsImport *import = o->job.import;
  const char *software = !is_sharded ? "olmo-2025-ddp" : o->is_compiled ? "olmo-2025-compile" : "olmo-2025";
  g_autoptr (GString) kernels = g_string_new (NULL);
  set_loss (&o->job, kernels);
  set_metrics (o, kernels);
  import_set_software (import, software);
  import_infer (import, "software %s: the release of OLMo that is known", software);
  g_string_prepend (kernels, is_sharded ? software : "olmo-2025-autocast");
  if (strchr (kernels->str, '+'))
    import_set_strategy (import, "kernels", kernels->str, "fused_loss optimizer.metrics_log_interval");
  if (!is_sharded && o->is_compiled)
    import_unknown (import, "compile without FSDP: blocks are taken to run as they are");
  if (o->is_compiled && option_text (&o->job, "compile.mode"))
    import_unknown (import, "compile.mode %s: taken for default", option_text (&o->job, "compile.mode"));
}

/* --- the optimizer ---------------------------------------------------------------------------------- */

static void
set_optimizer (const LaunchJob *job)
{
  const char *name = option_text (job, "optimizer.name");
  if (!name)
    import_infer (job->import, "optimizer lion: optimizer.name is lionw by default");
  if (!name || strcmp (name, "lionw") == 0)
    name = "decoupled_lionw";
  import_set_optimizer (job->import, name, 0, "optimizer.name");
  if (option_is_on (job, "optimizer.selective_updates")
      || option_is_on (job, "optimizer.record_update_metrics"))
    import_unknown (job->import,
                    "optimizer.selective_updates, record_update_metrics: tensors are then stepped "
                    "on one by one, which is left out");
}

void
olmo_set_strategy (const Olmo *o)
{
  const LaunchJob *job = &o->job;
  static const char *const ones[] = { "tp", "pp", "cp" };
  for (guint i = 0; i < G_N_ELEMENTS (ones); i++)
    import_set_strategy (job->import, ones[i], "1", "--");
  if (g_strcmp0 (option_text (job, "distributed_strategy"), "single") == 0)
    import_set_strategy (job->import, "gpus", "1", "distributed_strategy");
  set_batch (o);
  set_recompute (job);
  set_software (o, set_kind (o, set_format (job)));
  set_attention (job);
  set_optimizer (job);
  if (option_is_on (job, "dry_run"))
    import_unknown (job->import, "dry_run: no step is taken; it is read as one that trains");
  if (option_is_on (job, "data.generate_attention_mask"))
    import_unknown (job->import,
                    "data.generate_attention_mask: attention is then given a mask, and no flash "
                    "kernel; it is taken to have none");
}
