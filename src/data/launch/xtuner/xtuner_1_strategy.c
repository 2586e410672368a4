/* Degrees, batch, memory and formats of a job of XTuner v1: what its trainer, its models and their FSDP make
 * of members of TrainerConfig (InternLM/xtuner@b934f462). */
#include <string.h>

#include "data/launch/xtuner/xtuner_1_rules.h"

#define FSDP  "fsdp_cfg."
#define MODEL "model_cfg."
#define DATA  "dataloader_cfg."
#define MOST  32768 /* pack_max_length by itself (datasets/config.py) */

/* Whether a part is what makes it by itself, or nothing: not what another function makes, or a name that
 * nothing here sets. */
static bool
is_followed (const LaunchJob *job, const char *part, const char *class)
{
  g_autofree char *name = g_strconcat (part, ".class", NULL);
  const char *made = option_text (job, name);
  return !launch_words_find (job->words, part) && (!made || strcmp (made, class) == 0);
}

static void
tell_parts (LaunchJob *job)
{
  static const char *const parts[][2] = { { "fsdp_cfg", "FSDPConfig" },
                                          { "loss_cfg", "CELossConfig" },
                                          { "dataloader_cfg", "DataloaderConfig" } };
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (!is_followed (job, parts[i][0], parts[i][1]))
      import_unknown (job->import, "%s is no %s that is followed: what is not said of it is as by itself",
                      parts[i][0], parts[i][1]);
}

static guint64
number_or (const LaunchJob *job, const char *name, guint64 otherwise)
{
  guint64 value = option_number (job, name);
  return value > 0 ? value : otherwise;
}

static bool
has_experts (const LaunchJob *job)
{
  return job->import->model.n_experts > 0;
}

/* --- sequences ---------------------------------------------------------------------------------------- */

/* A micro-batch is one sequence, into which documents are packed (datasets/packing.py). */
static void
set_sequence (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *level = option_text (job, DATA "pack_level");
  bool is_open = launch_words_find (job->words, DATA "pack_max_length") != NULL
      && option_number (job, DATA "pack_max_length") == 0;
  bool has_loader = is_followed (job, "dataloader_cfg", "DataloaderConfig");
  if (is_open || (!has_loader && option_number (job, DATA "pack_max_length") == 0))
    import_open (import, "seq", DATA "pack_max_length: its value is not said here");
  else {
    import_set_model_number (import, "seq", number_or (job, DATA "pack_max_length", MOST));
    if (!launch_words_find (job->words, DATA "pack_max_length"))
      import_infer (import, "seq %d: " DATA "pack_max_length by itself", MOST);
  }
  if (level && strcmp (level, "none") == 0)
    import_unknown (import,
                    DATA "pack_level none: a sequence is one document, here of pack_max_length tokens");
  else
    import_open (import, "lengths",
                 "attention is inside documents that are packed, whose lengths are not in the file: taken to "
                 "be over whole sequences (lengths)");
  if (option_is_off (job, DATA "pack_to_max_length") && option_number (job, "sp_size") <= 1)
    import_unknown (import, DATA "pack_to_max_length off: sequences are taken to be as long as can be");
}

/* --- degrees ------------------------------------------------------------------------------------------ */

/* What the model and FSDP say, where one of them says 1 or nothing (Trainer._resolve_config_conflicts). */
static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 of_model = number_or (job, MODEL "ep_size", 1), of_fsdp = number_or (job, FSDP "ep_size", 1),
          ep = MAX (of_model, of_fsdp), etp = number_or (job, MODEL "expert_tp_size", 1);
  const char *dispatcher = option_text (job, MODEL "dispatcher");
  if (!has_experts (job)) {
    if (ep * etp > 1)
      import_infer (import, "ep_size: the model has no experts");
    return;
  }
  if (of_model > 1 && of_fsdp > 1 && of_model != of_fsdp)
    import_conflict (import, MODEL "ep_size %" G_GUINT64_FORMAT " and " FSDP "ep_size %" G_GUINT64_FORMAT,
                     of_model, of_fsdp);
  import_set_strategy_number (import, "ep", ep);
  if (etp > 1)
    import_set_strategy_number (import, "etp", etp);
  if (ep * etp == 1)
    return;
  if (dispatcher && strcmp (dispatcher, "deepep") == 0)
    import_set_strategy (import, "dispatcher", "deepep", MODEL "dispatcher");
  else
    option_tell_other (job, MODEL "dispatcher", "all2all", "all2all");
  import_unknown (import,
                  "weights outside of experts are whole on each of %" G_GUINT64_FORMAT
                  " ranks among which experts are dealt out, and reduced over them: taken to be cut over all "
                  "ranks, which takes less memory",
                  ep * etp);
}

/* Ranks of tp_size have the same sequences, and cut no weight of any model (Trainer._init_data_mesh,
 * model/dense/dense.py, model/moe/moe.py). */
static guint64
n_twins (const LaunchJob *job)
{
  return number_or (job, FSDP "tp_size", 1);
}

static void
set_context (LaunchJob *job)
{
  guint64 cp = number_or (job, "sp_size", 1);
  if (launch_words_find (job->words, "sp_size") && option_number (job, "sp_size") == 0)
    import_open (job->import, "cp", "sp_size: its value is not said here");
  else
    import_set_strategy_number (job->import, "cp", cp);
  if (cp > 1)
    import_set_strategy (job->import, "cp_kind", "ulysses", "sp_size");
}

/* Ranks that have sequences of their own; 0: how many GPUs is not known. */
static guint64
set_gpus (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 gpus = import_has_strategy (import, "gpus") ? s->gpus : job->gpus, cp = MAX (1, s->cp),
          twins = n_twins (job);
  if (gpus == 0 || import_is_open (import, "cp")) {
    import_open (import, "gpus", "how many GPUs: nothing here says");
    return 0;
  }
  import_set_strategy_number (import, "gpus", gpus);
  if (gpus % (cp * twins) != 0) {
    import_conflict (import,
                     "%" G_GUINT64_FORMAT " GPUs are no multiple of sp_size %" G_GUINT64_FORMAT
                     " x tp_size %" G_GUINT64_FORMAT,
                     gpus, cp, twins);
    return 0;
  }
  return gpus / (cp * twins);
}

static void
set_shards (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 group = option_number (job, FSDP "hsdp_sharding_size");
  bool stays = option_is_off (job, FSDP "reshard_after_forward");
  g_autofree char *zero
      = group > 0 ? g_strdup_printf ("3@%" G_GUINT64_FORMAT, group) : g_strdup (stays ? "2" : "3");
  import_set_strategy (import, "dp_kind", "fsdp2", "fsdp_cfg");
  import_set_strategy (import, "zero", zero, FSDP "hsdp_sharding_size");
  if (group > 0 && stays)
    import_set_strategy (import, "reshard_after_forward", "0", FSDP "reshard_after_forward");
  if (group > 0 && import->strategy.ep > 1)
    import_conflict (import, FSDP "hsdp_sharding_size with ep_size %u: XTuner refuses it",
                     import->strategy.ep);
}

/* --- the batch ---------------------------------------------------------------------------------------- */

/* So many sequences pass each layer together, which is gathered once for them. */
static guint64
set_micro_batch (LaunchJob *job)
{
  guint64 n = number_or (job, "intra_layer_micro_batch", 1);
  if (launch_words_find (job->words, "intra_layer_micro_batch")
      && option_number (job, "intra_layer_micro_batch") == 0) {
    import_open (job->import, "micro_batch", "intra_layer_micro_batch: its value is not said here");
    return 1;
  }
  import_set_strategy_number (job->import, "micro_batch", n);
  if (n > 1)
    import_unknown (
        job->import,
        "intra_layer_micro_batch: %" G_GUINT64_FORMAT
        " sequences are one micro-batch here, whose kernels are larger; that one is computed while "
        "the tokens of another are exchanged is not simulated",
        n);
  return n;
}

/* Each of twins computes the same, so that here a step has as many sequences more. */
static void
set_global_batch (LaunchJob *job, guint64 dp, guint64 micro)
{
  LsImport *import = job->import;
  const LaunchOption *o = launch_words_find (job->words, "global_batch_size");
  guint64 twins = n_twins (job), said = option_number (job, "global_batch_size"),
          all = said ? said : dp * micro;
  if (o && said == 0) {
    import_open (import, "global_batch", "global_batch_size: its value is not said here");
    return;
  }
  if (all == 0) {
    import_open (
        import, "global_batch",
        "the global batch: it is one micro-batch of each copy, and how many GPUs there are is not known");
    return;
  }
  if (dp > 0 && all % dp != 0)
    import_conflict (import,
                     "global_batch_size %" G_GUINT64_FORMAT " is no multiple of %" G_GUINT64_FORMAT
                     " copies, as XTuner asks",
                     all, dp);
  else if (dp > 0 && (all / dp) % micro != 0)
    import_conflict (import,
                     "%" G_GUINT64_FORMAT " sequences of a copy are no multiple of intra_layer_micro_batch "
                     "%" G_GUINT64_FORMAT,
                     all / dp, micro);
  import_set_strategy_number (import, "global_batch", all * twins);
  if (said == 0) {
    import_infer (import, "global_batch %" G_GUINT64_FORMAT ": one micro-batch of each copy", all * twins);
    import_follows_gpus (import, "global_batch");
  }
  if (twins > 1)
    import_unknown (import,
                    FSDP "tp_size %" G_GUINT64_FORMAT
                         ": XTuner cuts no weight by it, and so many ranks compute the same: here each has "
                         "sequences of its own, which counts the tokens of a step so often",
                    twins);
}

/* --- memory ------------------------------------------------------------------------------------------- */

/* The first layers of a ratio; of a model with experts the last one never is (model/dense/dense.py,
 * fully_shard; model/moe/moe.py, _should_recompute). */
static void
set_recompute (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsModel *m = &import->model;
  const char *text = option_text (job, FSDP "recompute_ratio");
  double ratio = text ? g_ascii_strtod (text, NULL) : 1;
  bool is_open = !text && launch_words_find (job->words, FSDP "recompute_ratio");
  if (is_open) {
    import_open (import, "recompute", FSDP "recompute_ratio: its value is not said here");
    return;
  }
  guint predicted = has_experts (job) ? m->predict_layers : 0;
  double n = (double) (guint64) ((m->n_layers + predicted) * CLAMP (ratio, 0, 1));
  if (has_experts (job))
    n = MIN (n, m->n_layers + predicted - 1.0);
  guint64 recomputed = (guint64) MIN (n, m->n_layers);
  if (ratio <= 0 || (m->n_layers > 0 && recomputed == 0)) {
    import_set_strategy (import, "recompute", "none", FSDP "recompute_ratio");
    return;
  }
  import_set_strategy (import, "recompute", "full", FSDP "recompute_ratio");
  if (m->n_layers > 0 && recomputed < m->n_layers) {
    import_set_strategy (import, "recompute_method", "block", FSDP "recompute_ratio");
    import_set_strategy_count (import, "recompute_layers", recomputed, FSDP "recompute_ratio");
    import_infer (import,
                  "recompute full of the first %" G_GUINT64_FORMAT " of %u layers: " FSDP
                  "recompute_ratio %g%s",
                  recomputed, m->n_layers, ratio, has_experts (job) ? ", without the last layer" : "");
  } else if (m->n_layers == 0 && ratio < 1)
    import_unknown (import, FSDP "recompute_ratio %g: how many layers there are is not known", ratio);
}

static void
tell_offload (LaunchJob *job)
{
  if (option_is_on (job, FSDP "cpu_offload"))
    import_unknown (job->import, FSDP "cpu_offload: shards and the step are taken to be on the GPU");
  if (option_is_on (job, "optim_cfg.swap_optimizer"))
    import_unknown (job->import, "optim_cfg.swap_optimizer: states are taken to stay on the GPU");
  if (option_is_off (job, FSDP "requires_grad"))
    import_unknown (job->import, FSDP "requires_grad off: all weights are taken to be trained");
}

/* --- formats ------------------------------------------------------------------------------------------ */

/* "torch.bfloat16", as FSDPConfig.deserialize_param_dtype reads it. */
static const char *
format_of (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  if (!text || strstr (text, "bfloat16"))
    return "bf16";
  if (strstr (text, "float16") || strstr (text, "half"))
    return "fp16";
  if (strstr (text, "float"))
    return "fp32";
  import_unknown (job->import, "%s %s: taken for bf16", name, text);
  return "bf16";
}

static bool
is_granularity (const char *text, const char *which)
{
  const char *dot = text ? strrchr (text, '.') : NULL;
  return text && g_ascii_strcasecmp (dot ? dot + 1 : text, which) == 0;
}

/* Linear layers and experts each have a granularity, or are in bf16; the head is (module/lm_head). */
static void
set_fp8 (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *linear = option_text (job, MODEL "float8_cfg.scaling_granularity_gemm"),
             *experts = option_text (job, MODEL "float8_cfg.scaling_granularity_grouped_gemm");
  bool is_tensor = is_granularity (linear, "tensorwise");
  if (!linear && !(experts && has_experts (job)))
    return;
  if (!linear) {
    import_unknown (import,
                    MODEL "float8_cfg without scaling_granularity_gemm: products of experts alone are "
                          "in fp8; all are taken to be in bf16");
    return;
  }
  if (!is_tensor && !is_granularity (linear, "tilewise"))
    import_unknown (import, MODEL "float8_cfg.scaling_granularity_gemm %s: taken for tilewise", linear);
  import_set_strategy (import, "dtype", "fp8", MODEL "float8_cfg");
  import_set_strategy (import, "fp8_recipe", is_tensor ? "current" : "deepseek", MODEL "float8_cfg");
  if (has_experts (job) && !experts) {
    import_set_strategy (import, "bf16_experts", "1", MODEL "float8_cfg");
    import_unknown (import, MODEL "float8_cfg with experts in bf16: all is taken to be gathered in bf16");
  } else
    import_set_strategy (import, "fp8_params", "1", MODEL "float8_cfg");
}

static void
set_formats (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *products = format_of (job, FSDP "param_dtype");
  import_set_strategy (import, "dtype", products, FSDP "param_dtype");
  import_set_strategy (import, "grad_dtype", format_of (job, FSDP "reduce_dtype"), FSDP "reduce_dtype");
  if (strcmp (products, "bf16") == 0)
    set_fp8 (job);
  if (option_is_on (job, FSDP "fp32_lm_head"))
    import_unknown (import, FSDP "fp32_lm_head: the head is taken to be in %s", products);
}

/* --- kernels ------------------------------------------------------------------------------------------ */

static bool
compiles (LaunchJob *job)
{
  return !(option_is_off (job, FSDP "torch_compile") || option_is_off (job, MODEL "compile_cfg")
           || option_is_none (job, MODEL "compile_cfg"));
}

/* Each list of strategies/kernels has some of these; the profile's own has none of them. */
static void
set_kernels (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *mode = option_text (job, "loss_cfg.mode");
  bool is_liger = mode && strcmp (mode, "liger") == 0,
       is_chunked = is_liger || (mode && strcmp (mode, "chunk") == 0);
  guint64 chunk = option_number (job, "loss_cfg.chunk_size");
  bool is_each = option_is_off (job, "optim_cfg.foreach"), is_eager = !compiles (job);
  g_autofree char *kernels = g_strconcat ("xtuner-v1-2026", is_eager ? "" : "-compile",
                                          is_chunked ? "-chunk" : "", is_each ? "-each" : "", NULL);
  if (is_eager || is_chunked || is_each)
    import_set_strategy (import, "kernels", kernels, "--");
  option_tell_other (job, "loss_cfg.mode", "eager chunk liger", "eager");
  if (is_liger)
    import_unknown (import, "loss_cfg.mode liger: taken for chunk, whose kernels are not fused");
  else if (is_chunked && chunk > 0 && chunk != 1024)
    import_unknown (
        import, "loss_cfg.chunk_size %" G_GUINT64_FORMAT ": pieces are taken to be of 1,024 tokens", chunk);
  if (compiles (job) && option_is_off (job, DATA "pack_to_max_length") && option_number (job, "sp_size") <= 1)
    import_conflict (import, DATA "pack_to_max_length off with torch.compile: XTuner refuses it");
}

/* Whether a custom configuration of what is compiled is there, whose parts are named by paths. */
static void
tell_compiled (LaunchJob *job)
{
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    if (g_str_has_prefix (o->name, MODEL "compile_cfg.")) {
      import_unknown (job->import, MODEL "compile_cfg: layers are taken to be compiled as by itself");
      return;
    }
  }
}

static void
set_optimizer (LaunchJob *job)
{
  const char *class = option_text (job, "optim_cfg.class");
  g_autofree char *name
      = class ? g_strndup (class, strlen (class) - (g_str_has_suffix (class, "Config") ? 6 : 0))
              : g_strdup ("AdamW");
  import_set_optimizer (job->import, name, 0, "optim_cfg.class");
}

/* --- the environment ---------------------------------------------------------------------------------- */

/* A variable says what it is set to, as an option does. */
static const char *
variable_of (LaunchJob *job, Xtuner1Environment *e, const char *name)
{
  const char *text = xtuner_1_variable (name, e);
  if (text)
    import_note_word (job->import, name, NULL);
  return text;
}

static bool
is_set (LaunchJob *job, Xtuner1Environment *e, const char *name, const char *value)
{
  return g_strcmp0 (variable_of (job, e, name), value) == 0;
}

static void
set_by_environment (LaunchJob *job, Xtuner1Environment *e)
{
  LsImport *import = job->import;
  const char *allocator = variable_of (job, e, "PYTORCH_CUDA_ALLOC_CONF"), *margin;
  if (is_set (job, e, "XTUNER_USE_FA3", "1"))
    import_set_strategy (import, "attention_kernel", "fa3", "XTUNER_USE_FA3");
  if (is_set (job, e, "XTUNER_ACTIVATION_OFFLOAD", "1"))
    import_set_strategy (import, "offload_activations", "1", "XTUNER_ACTIVATION_OFFLOAD");
  if (allocator && strstr (allocator, "expandable_segments:True"))
    import_set_strategy (import, "cuda_allocator", "expandable", "PYTORCH_CUDA_ALLOC_CONF");
  if (is_set (job, e, "XTUNER_DETERMINISTIC", "true"))
    import_unknown (import, "XTUNER_DETERMINISTIC: kernels are taken to be those that are faster");
  if (is_set (job, e, "XTUNER_USE_NATIVE_RMSNORM", "0"))
    import_unknown (import, "XTUNER_USE_NATIVE_RMSNORM 0: norms are taken to be PyTorch's");
  margin = xtuner_1_variable ("XTUNER_SM_MARGIN", e);
  if (margin && strcmp (margin, "0") != 0)
    import_unknown (import, "XTUNER_SM_MARGIN %s: attention and experts are taken to use all SMs", margin);
}

void
xtuner_1_strategy (LaunchJob *job, Xtuner1Environment *environment)
{
  tell_parts (job);
  set_sequence (job);
  set_context (job);
  set_experts (job);
  guint64 dp = set_gpus (job), micro = set_micro_batch (job);
  set_shards (job);
  set_global_batch (job, dp, micro);
  set_recompute (job);
  set_formats (job);
  set_kernels (job);
  tell_compiled (job);
  set_optimizer (job);
  tell_offload (job);
  set_by_environment (job, environment);
}
