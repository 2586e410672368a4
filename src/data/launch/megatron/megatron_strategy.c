/* The strategy: what megatron/training/arguments.py makes of options together, and of those that are not
 * given. */
#include "data/launch/megatron/megatron_rules.h"

#include <string.h>

#include "strategy/strategy.h"

/* --- degrees -------------------------------------------------------------------------------------- */

bool
megatron_may_have_experts (const LaunchJob *job)
{
  bool is_open = option_is_there (job, "num-experts") && option_number (job, "num-experts") == 0;
  return job->import->model.n_experts > 0 || is_open || !import_has_model (job->import, "layers");
}

static bool
has_open_degree (const LaunchJob *job)
{
  return g_hash_table_contains (job->open, "tp") || g_hash_table_contains (job->open, "pp")
      || g_hash_table_contains (job->open, "cp");
}

/* mindspeed_llm/features_manager/context_parallel of Ascend/MindSpeed-LLM. */
static void
set_algorithm (LaunchJob *job)
{
  static const char *const kinds[][2] = { { "megatron_cp_algo", "ring" },
                                          { "ulysses_cp_algo", "ulysses" },
                                          { "kvallgather_cp_algo", "all-gather" } };
  const char *said = option_text (job, "context-parallel-algo");
  if (!said || job->import->strategy.cp <= 1)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (said, kinds[i][0]) == 0) {
      import_set_strategy (job->import, "cp_kind", kinds[i][1], "--context-parallel-algo");
      return;
    }
  import_unknown (job->import, "--context-parallel-algo %s: keys and values are taken to go around a ring",
                  said);
}

static void
set_context (LaunchJob *job)
{
  guint64 ulysses = option_number (job, "ds-sequence-parallel-size");
  if (ulysses > 1) {
    import_set_strategy_number (job->import, "cp", ulysses);
    import_set_strategy (job->import, "cp_kind", "ulysses", "--ds-sequence-parallel-size");
  }
  set_algorithm (job);
  if (job->import->strategy.cp > 1 && !option_text (job, "cp-comm-type"))
    option_default (job, "cp_kind", "ring");
}

/* Of a model without experts their degrees mean nothing. */
static void
forget_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  if (megatron_may_have_experts (job))
    return;
  if (import_has_strategy (import, "ep") && import->strategy.ep > 1)
    import_infer (import, "ep 1: the model has no experts");
  option_forget (job, "ep");
  option_forget (job, "etp");
}

static void
set_degrees (LaunchJob *job)
{
  LsImport *import = job->import;
  megatron_stages (job);
  set_context (job);
  if (import->model.n_experts > 0)
    option_default (job, "ep", "1");
  forget_experts (job);
}

/* --- ranks and batches ---------------------------------------------------------------------------- */

/* Of slime (slime/utils/arguments.py, 624b824a, August 2026): ranks that train, by default a node of 8; those
 * that generate are others, or the same (--colocate). 0: no option says. */
static guint64
count_actor (const LaunchJob *job)
{
  guint64 nodes = option_number (job, "actor-num-nodes"),
          each = option_number (job, "actor-num-gpus-per-node");
  return nodes || each ? MAX (1, nodes) * (each ? each : 8) : 0;
}

static void
set_gpus (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 world = option_number (job, "world-size"), actor = count_actor (job),
          said = world ? world
      : actor          ? actor
                       : job->gpus;
  guint64 of_model = (guint64) s->tp * s->pp * s->cp,
          gpus = import_has_strategy (import, "gpus") ? s->gpus : said;
  if (gpus == 0) {
    import_open (import, "gpus", "how many GPUs: nothing here says");
    return;
  }
  if (gpus % of_model != 0 && !has_open_degree (job)) {
    import_conflict (import,
                     "%" G_GUINT64_FORMAT
                     " GPUs do not hold tp %u x pp %u x cp %u ranks; is it more of them (--gpus N)?",
                     gpus, s->tp, s->pp, s->cp);
    return;
  }
  import_set_strategy_number (import, "gpus", gpus);
  if (!import_has_strategy (import, "global_batch") && import_has_strategy (import, "micro_batch")
      && !has_open_degree (job) && !g_hash_table_contains (job->open, "global_batch")) {
    guint64 batch = gpus / of_model * s->micro_batch;
    import_infer (import, "global_batch %" G_GUINT64_FORMAT ": one micro-batch on each copy, the default",
                  batch);
    import_set_strategy_number (import, "global_batch", batch);
    import_follows_gpus (import, "global_batch");
  }
}

static void
set_batch (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  if (option_is_there (job, "rampup-batch-size"))
    import_infer (import, "global_batch: that at the end of --rampup-batch-size");
  set_gpus (job);
  if (has_open_degree (job) || !import_has_strategy (import, "gpus")
      || !import_has_strategy (import, "global_batch") || !import_has_strategy (import, "micro_batch"))
    return;
  guint64 at_once = s->gpus / ((guint64) s->tp * s->pp * s->cp) * s->micro_batch;
  if (at_once > 0 && s->global_batch % at_once != 0)
    import_conflict (import, "a batch of %u is no multiple of the %" G_GUINT64_FORMAT " sequences at once",
                     s->global_batch, at_once);
}

/* --- recomputation -------------------------------------------------------------------------------- */

/* A module may stand for several parts. */
const MegatronModule megatron_modules[] = { { "core_attn", "core", LS_RECOMPUTE_CORE },
                                            { "layernorm", "norm", LS_RECOMPUTE_NORM },
                                            { "moe_act", "activation", LS_RECOMPUTE_ACTIVATION },
                                            { "mla_up_proj", "mla-up", LS_RECOMPUTE_MLA_UP },
                                            { "mlp", "mlp", LS_RECOMPUTE_MLP },
                                            { "moe", "moe", LS_RECOMPUTE_MOE },
                                            { "shared_experts", "shared", LS_RECOMPUTE_SHARED },
                                            { NULL, NULL, 0 } };

/* Whether a layer of the model has it, or may, as it is not here; of others Megatron-LM says nothing. */
static bool
has_module (const LsImport *import, const char *module)
{
  const LsModel *m = &import->model;
  if (!import_has_model (import, "layers"))
    return true;
  if (strcmp (module, "mlp") == 0)
    return ls_model_n_moe_layers (m) < m->n_layers;
  if (strcmp (module, "moe") == 0)
    return m->n_experts > 0;
  return strcmp (module, "shared_experts") != 0 || m->shared_ffn > 0;
}

static void
set_parts (LaunchJob *job)
{
  const LaunchOption *o = launch_words_find (job->words, "recompute-modules");
  GString *parts = g_string_new (NULL);
  for (guint i = 0; o && i < o->values->len; i++) {
    g_auto (GStrv) modules = g_strsplit_set (o->values->pdata[i], "[],' \"", -1);
    for (char **module = modules; *module; module++) {
      const MegatronModule *known = megatron_modules;
      while (known->theirs && strcmp (known->theirs, *module) != 0)
        known++;
      if (known->theirs && has_module (job->import, *module))
        g_string_append_printf (parts, "%s%s", parts->len > 0 ? "," : "", known->ours);
      else if (**module && !known->theirs)
        import_unknown (job->import, "--recompute-modules %s", *module);
    }
  }
  if (parts->len > 0)
    import_set_strategy (job->import, "recompute_parts", parts->str, "--recompute-modules");
  else if (!o)
    import_set_strategy (job->import, "recompute_parts", "core", "--recompute-modules");
  else
    import_set_strategy (job->import, "recompute", "none", "--recompute-modules");
  g_string_free (parts, TRUE);
}

/* Until 2022: --checkpoint-activations; in 2022: --activations-checkpoint-method. */
static void
set_full (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *method = option_text (job, "recompute-method");
  method = method ? method : option_text (job, "activations-checkpoint-method");
  guint64 layers = option_number (job, "recompute-num-layers");
  layers = layers ? layers : option_number (job, "activations-checkpoint-num-layers");
  layers = layers ? layers : option_number (job, "checkpoint-num-layers");
  import_set_strategy (import, "recompute", "full", "--recompute-granularity");
  import_set_strategy (import, "recompute_method", method ? method : "uniform",
                       "--recompute-method --activations-checkpoint-method");
  if (!method && option_text (job, "recompute-granularity"))
    import_infer (import,
                  "recompute_method uniform: it is not said, and Megatron-LM refuses full "
                  "recomputation without --recompute-method");
  if (layers > 0)
    import_set_strategy_count (
        import, "recompute_layers", layers,
        "--recompute-num-layers --activations-checkpoint-num-layers --checkpoint-num-layers");
}

static void
set_recompute (LaunchJob *job)
{
  const char *granularity = option_text (job, "recompute-granularity"),
             *method = option_text (job, "recompute-method"), *n = option_text (job, "recompute-num-layers");
  bool is_none = !g_strcmp0 (method, "block") && !g_strcmp0 (n, "0"); /* the first 0 layers */
  bool is_short = option_is_on (job, "recompute-activations"), /* validate_args: selective, whatever else */
      says_full = granularity && strcmp (granularity, "full") == 0;
  bool is_full = (says_full && !is_short) || option_is_on (job, "checkpoint-activations")
      || option_text (job, "activations-checkpoint-method");
  bool is_selective = is_short || (granularity && strcmp (granularity, "selective") == 0);
  if (says_full && is_short)
    import_conflict (job->import,
                     "--recompute-granularity full beside --recompute-activations, which makes it "
                     "selective in Megatron-LM (arguments.py): selective is taken");
  if (is_full && !is_none)
    set_full (job);
  else if (!granularity && !is_selective && launch_words_find (job->words, "recompute-granularity"))
    import_open (job->import, "recompute", "how much is recomputed: --recompute-granularity is not said");
  else
    import_set_strategy (job->import, "recompute", is_selective ? "selective" : "none",
                         "--recompute-granularity");
  if (is_selective && !is_full)
    set_parts (job);
  else if (granularity && !is_full && strcmp (granularity, "none") != 0)
    import_unknown (job->import, "--recompute-granularity %s: taken as none", granularity);
}

/* --- precision ------------------------------------------------------------------------------------ */

static void
set_fp8 (LaunchJob *job)
{
  import_set_strategy (job->import, "dtype", "fp8", "--fp8-format --fp8 --fp8-hybrid --fp8-e4m3");
  if (option_text (job, "fp8-recipe"))
    return;
  import_infer (job->import, "fp8_recipe delayed: the default");
  option_default (job, "fp8_recipe", "delayed");
}

/* With bf16, gradients are summed in fp32 unless one of these says otherwise. */
static bool
sums_in_bf16 (LaunchJob *job, bool in_fp32)
{
  const char *main_grads = option_text (job, "main-grads-dtype");
  return option_is_on (job, "grad-reduce-in-bf16")
      || (main_grads && strstr (main_grads, "16") && option_is_on (job, "use-precision-aware-optimizer")
          && !in_fp32);
}

/* Formats other than fp32 of what the optimizer keeps need the one that has such (core/optimizer/
 * optimizer_config.py, where the others are asserted). */
static void
check_formats (LaunchJob *job)
{
  static const char *const names[]
      = { "main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype" };
  for (guint i = 0; i < G_N_ELEMENTS (names) && !option_is_on (job, "use-precision-aware-optimizer"); i++) {
    const char *format = option_text (job, names[i]);
    if (format && !strstr (format, "32"))
      import_conflict (job->import, "--%s %s without --use-precision-aware-optimizer", names[i], format);
  }
}

void
megatron_precision (LaunchJob *job)
{
  bool is_bf16 = option_is_on (job, "bf16"), is_fp16 = option_is_on (job, "fp16");
  bool in_fp32 = option_is_on (job, "accumulate-allreduce-grads-in-fp32");
  if (is_bf16 && is_fp16)
    import_conflict (job->import, "--bf16 and --fp16");
  bool is_4 = option_is_there (job, "fp4-format"),
       is_8 = option_is_there (job, "fp8-format") || option_is_on (job, "fp8-hybrid")
      || option_is_on (job, "fp8-e4m3") || option_is_there (job, "fp8");
  if (!is_bf16 && !is_fp16 && !is_4 && !is_8 && job->import->may_have_more)
    import_open (job->import, "dtype", "the number format: --bf16 may be among the words that are not said");
  else
    import_set_strategy (job->import, "dtype", is_bf16 ? "bf16" : is_fp16 ? "fp16" : "fp32", "--bf16");
  if (is_4)
    import_set_strategy (job->import, "dtype", "nvfp4", "--fp4-format");
  else if (is_8)
    set_fp8 (job);
  else
    option_forget (job, "fp8_recipe");
  if (is_8 && option_is_on (job, "tp-only-amax-red"))
    import_set_strategy (job->import, "fp8_amax_reduction", "tp", "--tp-only-amax-red");
  bool is_16 = is_bf16 ? sums_in_bf16 (job, in_fp32) : is_fp16 && !in_fp32;
  const char *grads = !is_16 ? "fp32" : is_bf16 ? "bf16" : "fp16";
  import_set_strategy (job->import, "grad_dtype", grads, "--grad-reduce-in-bf16 --main-grads-dtype");
  check_formats (job);
}

/* Transformer Engine may launch neither FlashAttention nor cuDNN's kernel. */
static bool
has_no_fused (const LaunchJob *job)
{
  static const char *const names[] = { "NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN" };
  bool is_off = job->variables != NULL;
  for (guint i = 0; i < G_N_ELEMENTS (names) && is_off; i++)
    is_off = g_strcmp0 (g_hash_table_lookup (job->variables, names[i]), "0") == 0;
  return is_off;
}

/* The fused kernel of Transformer Engine is AOTriton's (environment.json). */
static bool
has_aotriton (const LaunchJob *job)
{
  return import_has_strategy (job->import, "attention_kernel")
      && job->import->strategy.attention_kernel == LS_ATTENTION_KERNEL_AOTRITON;
}

/* Transformer Engine has fused kernels; layers of Megatron-LM's own have them with --use-flash-attn,
 * those of Megatron-DeepSpeed with one of its kin. */
static void
set_attention (LaunchJob *job)
{
  const char *backend = option_text (job, "attention-backend"), *impl = option_text (job, "transformer-impl"),
             *software = job->import->strategy.software;
  static const char *const flash[] = { "use-flash-attn", "use-flash-attn-v1", "use-flash-attn-v2",
                                       "use-flash-attn-triton", "use-flash-attn-builder" };
  bool is_flash = false,
       is_local = (impl && strcmp (impl, "local") == 0) || strcmp (software, "megatron") != 0;
  for (guint i = 0; i < G_N_ELEMENTS (flash); i++)
    is_flash = is_flash || option_is_on (job, flash[i]);
  if (backend)
    is_flash = strcmp (backend, "unfused") != 0 && strcmp (backend, "local") != 0;
  else if (!is_local && has_no_fused (job)) {
    is_flash = false;
    import_note_word (job->import, "NVTE_FUSED_ATTN", "attention");
    import_infer (job->import, "attention unfused: NVTE_FLASH_ATTN and NVTE_FUSED_ATTN are 0");
  } else if (!is_flash && !is_local) {
    is_flash = true;
    import_infer (job->import, "attention flash: --attention-backend is auto, which takes a fused kernel");
  }
  import_set_strategy (job->import, "attention", is_flash ? "flash" : "unfused", "--attention-backend");
  if (backend && strcmp (backend, "flash") == 0)
    import_set_strategy (job->import, "attention_kernel", "fa2", "--attention-backend");
  else if (backend && strcmp (backend, "fused") == 0 && !has_aotriton (job))
    import_set_strategy (job->import, "attention_kernel", "cudnn", "--attention-backend");
}

/* --- data parallelism ------------------------------------------------------------------------------ */

static void
set_fsdp (LaunchJob *job)
{
  const char *shards = option_text (job, "data-parallel-sharding-strategy");
  bool is_own = option_is_on (job, "use-megatron-fsdp") || option_is_on (job, "use-custom-fsdp");
  const char *zero = !is_own ? option_is_on (job, "torch-fsdp2-no-reshard-after-forward") ? "2" : "3"
      : !shards || strcmp (shards, "no_shard") == 0 ? "0"
      : strcmp (shards, "optim") == 0               ? "1"
      : strcmp (shards, "optim_grads") == 0         ? "2"
                                                    : "3";
  import_set_strategy (job->import, "dp_kind", "fsdp2", "--use-torch-fsdp2");
  import_set_strategy (job->import, "zero", zero, "--data-parallel-sharding-strategy --use-torch-fsdp2");
  if (is_own)
    import_infer (job->import, "dp_kind fsdp2: Megatron-FSDP shards as fully_shard does");
  else
    import_set_strategy (job->import, "reshard_after_forward", strcmp (zero, "3") == 0 ? "1" : "0",
                         "--torch-fsdp2-no-reshard-after-forward");
}

static void
set_zero (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 n = option_number (job, "num-distributed-optimizer-instances");
  bool is_on = option_is_on (job, "use-distributed-optimizer");
  const LsStrategy *s = &import->strategy;
  import_set_strategy (import, "dp_kind", "megatron", "--");
  if (n > 1 && is_on && s->gpus > 0) {
    g_autofree char *zero
        = g_strdup_printf ("1@%u", (guint) MAX (1, s->gpus / ((guint64) s->tp * s->pp) / n));
    import_set_strategy (import, "zero", zero, "--num-distributed-optimizer-instances");
  } else
    import_set_strategy (import, "zero", is_on ? "1" : "0", "--use-distributed-optimizer");
  option_default (job, "dp_overlap", "0");
  if (is_on)
    option_default (job, "gather_overlap", "0");
}

static void
set_data_parallel (LaunchJob *job)
{
  const char *impl = option_text (job, "DDP-impl"), *clip = option_text (job, "clip-grad");
  if (option_is_on (job, "use-torch-fsdp2") || option_is_on (job, "use-megatron-fsdp")
      || option_is_on (job, "use-custom-fsdp"))
    set_fsdp (job);
  else if (option_is_there (job, "deepspeed"))
    import_set_strategy (job->import, "dp_kind", "deepspeed", "--"); /* megatron_deepspeed () has the rest */
  else if (impl && strcmp (impl, "torch") == 0) {
    import_set_strategy (job->import, "dp_kind", "ddp", "--DDP-impl");
    import_set_strategy (job->import, "zero", "0", "--DDP-impl");
  } else
    set_zero (job);
  if (clip && g_ascii_strtod (clip, NULL) == 0)
    import_set_strategy (job->import, "grad_norm", "0", "--clip-grad");
}

static void
set_overlap (LaunchJob *job)
{
  if (!import_has_strategy (job->import, "tp_overlap"))
    return;
  bool is_bulk
      = option_is_on (job, "disable-tp-comm-overlap-ag") && option_is_on (job, "disable-tp-comm-overlap-rs");
  import_set_strategy (job->import, "tp_overlap_kind", is_bulk ? "bulk" : "ring",
                       "--disable-tp-comm-overlap-ag --disable-tp-comm-overlap-rs");
}

void
megatron_check_gathers (LaunchJob *job)
{
  bool is_ddp = job->import->strategy.dp_kind == LS_DP_MEGATRON && job->import->strategy.zero_stage > 0;
  if (is_ddp && option_is_on (job, "overlap-param-gather") && !option_is_on (job, "overlap-grad-reduce"))
    import_conflict (job->import, "--overlap-param-gather without --overlap-grad-reduce");
}

void
megatron_strategy (LaunchJob *job)
{
  option_set_defaults (job, OPTION_STRATEGY);
  set_degrees (job);
  set_batch (job);
  set_recompute (job);
  megatron_precision (job);
  megatron_fp8_attention (job);
  megatron_formats (job);
  set_attention (job);
  set_data_parallel (job);
  set_overlap (job);
}

void
megatron_changes (LaunchJob *job)
{
  if (option_is_there (job, "virtual-pipeline-model-parallel-size")
      || option_is_there (job, "pipeline-model-parallel-layout"))
    megatron_stages (job);
  if (option_is_there (job, "recompute-granularity"))
    set_recompute (job);
  if (option_is_on (job, "use-megatron-fsdp"))
    set_fsdp (job);
  forget_experts (job);
}
