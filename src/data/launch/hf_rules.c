#include "data/launch/hf_rules.h"

#include <string.h>

#include "data/launch/adapters.h"
#include "data/shell/shell.h"
#include "strategy/strategy.h"

/* --- names ----------------------------------------------------------------------------------------- */

/* What stands in front of a name: a section of a configuration, or nothing on a command line. */
static const char *const sections[] = { "",
                                        "fsdp_config.",
                                        "fsdp_config.fsdp_",
                                        "fsdp_",
                                        "deepspeed_config.",
                                        "parallelism_config.",
                                        "dynamo_config." };

const LaunchOption *
hf_find (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (sections) && !o; i++) {
    g_autofree char *option = g_strconcat (sections[i], name, NULL);
    o = launch_words_find (job->words, option);
  }
  return o;
}

const char *
hf_text (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = hf_find (job, name);
  return o ? option_text (job, o->name) : NULL;
}

bool
hf_is_on (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = hf_find (job, name);
  return o && option_is_on (job, o->name);
}

bool
hf_is_refused (const LaunchJob *job, const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++) {
    g_autofree char *option = g_strconcat (sections[i], name, NULL);
    if (option_is_off (job, option))
      return true;
  }
  return hf_find (job, name) && !hf_is_on (job, name);
}

/* Given, and what with the file does not say. */
bool
hf_is_open (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = hf_find (job, name);
  return o && o->values->len > 0 && ls_shell_has_hole (o->values->pdata[0]);
}

guint64
hf_number (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = hf_find (job, name);
  return o ? option_number (job, o->name) : 0;
}

/* --- the model ------------------------------------------------------------------------------------- */

/* Of "$HOME/models/Qwen/Qwen3-32B" what is known, behind the last hole, where it is whole folders. */
static const char *
end_of_path (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = hf_find (job, name);
  const char *text = o && o->values->len > 0 ? o->values->pdata[0] : "",
             *end = strrchr (text, LS_SHELL_HOLE_END);
  return end && end[1] == '/' && end[2] ? end + 1 : NULL;
}

static void
set_model (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  static const char *const options[] = { "model_name_or_path", "config_name", "model_id", "model_name" };
  const char *name = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (options) && !name; i++)
    name = option_text (job, options[i]);
  for (guint i = 0; i < G_N_ELEMENTS (options) && !name; i++)
    name = end_of_path (job, options[i]);
  if (import_has_model (job->import, "layers"))
    return;
  if (name)
    import_model_of_name (job->import, name);
  else
    import_unknown (job->import, "the model: no name of one is given; its file may stand behind this one");
}

/* --- precision and memory -------------------------------------------------------------------------- */

static bool
has_type (const LaunchJob *job, const char *type)
{
  const char *text = option_text (job, "distributed_type");
  return text && g_ascii_strcasecmp (text, type) == 0;
}

bool
hf_uses_deepspeed (const LaunchJob *job)
{
  return hf_find (job, "deepspeed") || option_text (job, "deepspeed_config")
      || hf_is_on (job, "use_deepspeed") || has_type (job, "DEEPSPEED");
}

bool
hf_uses_fsdp (const LaunchJob *job)
{
  return option_is_there (job, "fsdp") || hf_is_on (job, "use_fsdp") || has_type (job, "FSDP");
}

/* The option, or JSON: {"use_reentrant": false}. What accelerate wraps for FSDP is so by itself
 * (CheckpointImpl.NO_REENTRANT). */
static bool
is_without_reentrance (const LaunchJob *job)
{
  const char *json = option_text (job, "gradient_checkpointing_kwargs"),
             *said = json ? strstr (json, "use_reentrant") : NULL;
  said = said ? strchr (said, ':') : NULL;
  return option_is_off (job, "gradient_checkpointing_kwargs.use_reentrant")
      || option_is_off (job, "use_reentrant_gc") /* LLaMA-Factory */
      || (said && g_ascii_strncasecmp (said + 1 + strspn (said + 1, " "), "false", 5) == 0);
}

static void
set_recompute (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  bool is_wrapped = hf_is_on (job, "activation_checkpointing");
  bool is_full = hf_is_on (job, "gradient_checkpointing") || hf_is_on (job, "grad_checkpoint") || is_wrapped;
  if (is_full || hf->has_trainer || hf_is_refused (job, "activation_checkpointing"))
    import_set_strategy (job->import, "recompute", is_full ? "full" : "none",
                         "gradient_checkpointing grad_checkpoint fsdp_activation_checkpointing "
                         "activation_checkpointing");
  if (is_full && (is_wrapped || is_without_reentrance (job)))
    import_set_strategy (job->import, "recompute_early_stop", "1", "use_reentrant");
}

static bool
has_word (const LaunchOption *o, const char *word)
{
  for (guint i = 0; o && i < o->values->len; i++) {
    g_auto (GStrv) words = g_strsplit_set (o->values->pdata[i], " ,", -1);
    if (g_strv_contains ((const char *const *) words, word))
      return true;
  }
  return false;
}

static void
tell_switches (LaunchJob *job)
{
  static const char *const options[] = { "torch_compile", "fsdp_offload_params" };
  const char *backend = hf_text (job, "dynamo_backend"), *optim = option_text (job, "optim");
  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    if (hf_is_on (job, options[i]))
      import_unknown (job->import, "%s: taken to be off", options[i]);
  if (has_word (launch_words_find (job->words, "fsdp"), "offload"))
    import_unknown (job->import, "fsdp offload: taken to be off");
  if (option_is_on (job, "fsdp_config.offload_params"))
    import_unknown (job->import, "fsdp_config.offload_params: taken to be off");
  if (backend && g_ascii_strcasecmp (backend, "no") != 0)
    import_unknown (job->import, "dynamo_backend %s: layers are taken to run eagerly", backend);
  import_set_optimizer (job->import, optim, 0, "optim");
}

/* --- FSDP ------------------------------------------------------------------------------------------ */

/* Names and numbers of torch's ShardingStrategy, and words of --fsdp. */
static const struct {
  const char *name, *number, *word, *zero;
  bool is_hybrid;
} shardings[] = {
  { "FULL_SHARD", "1", "full_shard", "3", false },
  { "SHARD_GRAD_OP", "2", "shard_grad_op", "2", false },
  { "NO_SHARD", "3", "no_shard", "0", false },
  { "HYBRID_SHARD", "4", "hybrid_shard", "3", true },
  { "HYBRID_SHARD_ZERO2", "5", "hybrid_shard_zero2", "2", true },
};

/* Of --fsdp; a Trainer refuses others (transformers/training_args.py, FSDPOption). */
static bool
is_word (const char *word)
{
  static const char *const others[] = { "auto_wrap", "offload", "true", "True", "1", "", NULL };
  for (gsize i = 0; i < G_N_ELEMENTS (shardings); i++)
    if (strcmp (word, shardings[i].word) == 0)
      return true;
  return g_strv_contains (others, word);
}

static void
tell_words (LaunchJob *job)
{
  const LaunchOption *o = launch_words_find (job->words, "fsdp");
  for (guint i = 0; o && i < o->values->len; i++) {
    g_auto (GStrv) words = g_strsplit_set (o->values->pdata[i], " ,", -1);
    for (char **w = words; *w; w++)
      if (!is_word (*w))
        import_unknown (job->import, "fsdp %s: no word of it; taken for full_shard where nothing else says",
                        *w);
  }
}

/* Without a policy of wrapping the whole model is one unit (accelerate/utils/dataclasses.py, NO_WRAP where
 * nothing is said; transformers/training_args.py wraps by layers with the word auto_wrap). */
static void
tell_units (LaunchJob *job, bool is_second)
{
  const char *policy = hf_text (job, "auto_wrap_policy");
  const LaunchOption *words = launch_words_find (job->words, "fsdp");
  bool is_named = is_second || hf_find (job, "transformer_layer_cls_to_wrap");
  bool is_by_layer = policy ? g_ascii_strcasecmp (policy, "TRANSFORMER_BASED_WRAP") == 0
                            : is_named || !words || has_word (words, "auto_wrap");
  if (!is_by_layer)
    import_unknown (job->import,
                    "fsdp with %s: units are taken to be layers; of the whole model it is --layers-per-unit "
                    "with all layers",
                    policy ? policy : "no auto_wrap");
}

/* Products in fp32 on the units of TF32 are some eight times as fast. */
static void
tell_tf32 (LaunchJob *job)
{
  if (option_is_on (job, "tf32") && !hf_is_on (job, "bf16") && !hf_is_on (job, "fp16"))
    import_unknown (job->import, "tf32: products in fp32 are taken to run without it");
}

static gsize
find_sharding (const LaunchJob *job)
{
  const char *text = hf_text (job, "sharding_strategy");
  const LaunchOption *words = launch_words_find (job->words, "fsdp");
  for (gsize i = 0; i < G_N_ELEMENTS (shardings); i++)
    if (text ? g_ascii_strcasecmp (text, shardings[i].name) == 0 || strcmp (text, shardings[i].number) == 0
             : has_word (words, shardings[i].word))
      return i;
  return 0;
}

/* Groups of replicas: what is said apart, or a node with a hybrid strategy. */
static void
set_zero (LaunchJob *job, const char *stage, bool is_hybrid)
{
  LsImport *import = job->import;
  guint64 replicas = hf_number (job, "parallelism_config_dp_replicate_size"),
          shards = hf_number (job, "parallelism_config_dp_shard_size");
  guint cp = import->strategy.cp;
  g_autofree char *zero = replicas > 1 && shards > 0
      ? g_strdup_printf ("%s@%" G_GUINT64_FORMAT, stage, shards * cp)
      : is_hybrid ? g_strdup_printf ("%s@8", stage)
                  : g_strdup (stage);
  import_set_strategy (
      import, "zero", zero,
      "fsdp_sharding_strategy sharding_strategy fsdp fsdp_reshard_after_forward reshard_after_forward");
  if (is_hybrid && !(replicas > 1))
    import_unknown (import, "the ranks of a node, which a hybrid strategy shards over: taken for 8");
}

/* A file of --fsdp_config was read, whose keys are members of it. */
static bool
has_members (const LaunchWords *words)
{
  bool has = false;
  for (guint i = 0; i < words->options->len; i++)
    has = has || g_str_has_prefix (((const LaunchOption *) words->options->pdata[i])->name, "fsdp_config.");
  return has;
}

static void
set_fsdp (LaunchJob *job)
{
  LsImport *import = job->import;
  const LaunchOption *sharding = hf_find (job, "sharding_strategy");
  if (sharding)
    option_tell_other (job, sharding->name,
                       "1 2 3 4 5 FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2",
                       "FULL_SHARD");
  const char *file = option_text (job, "fsdp_config");
  if (file && !has_members (job->words))
    import_unknown (import, "what %s says of FSDP: it is not here", file);
  tell_words (job);
  gsize k = find_sharding (job);
  bool is_second = hf_number (job, "fsdp_version") == 2 || hf_number (job, "version") == 2,
       is_kept
      = is_second && (hf_is_refused (job, "reshard_after_forward") || strcmp (shardings[k].zero, "2") == 0);
  tell_units (job, is_second);
  if (!is_second && strcmp (shardings[k].zero, "0") == 0) {
    import_set_strategy (import, "dp_kind", "ddp", "fsdp_sharding_strategy sharding_strategy fsdp");
    return;
  }
  import_set_strategy (import, "dp_kind", is_second ? "fsdp2" : "fsdp1", "fsdp_version");
  set_zero (job, is_second ? (is_kept ? "2" : "3") : shardings[k].zero, shardings[k].is_hybrid);
  if (is_second)
    import_set_strategy (import, "reshard_after_forward", is_kept ? "0" : "1",
                         "fsdp_reshard_after_forward reshard_after_forward fsdp_sharding_strategy fsdp");
  const char *prefetch = hf_text (job, "backward_prefetch");
  if (!is_second && prefetch)
    import_set_strategy (import, "backward_prefetch",
                         strstr (prefetch, "POST") || strstr (prefetch, "post")     ? "post"
                             : strstr (prefetch, "PRE") || strstr (prefetch, "pre") ? "pre"
                                                                                    : "none",
                         "fsdp_backward_prefetch* backward_prefetch*");
  if (!is_second && hf_is_on (job, "forward_prefetch"))
    import_set_strategy (import, "forward_prefetch", "1", "fsdp_forward_prefetch forward_prefetch");
}

/* --- who shards ------------------------------------------------------------------------------------ */

static void
set_degree (LaunchJob *job, const char *option, const char *key)
{
  guint64 degree = hf_number (job, option);
  if (degree > 0)
    import_set_strategy_number (job->import, key, degree);
}

/* num_processes are those of all machines. */
static void
set_gpus (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 gpus
      = import_has_strategy (import, "gpus") ? import->strategy.gpus : hf_number (job, "num_processes");
  gpus = gpus ? gpus : job->gpus;
  job->gpus = gpus;
  if (gpus > 0)
    import_set_strategy_number (import, "gpus", gpus);
  else
    import_open (import, "gpus", "how many GPUs: nothing here says");
}

static void
set_batch (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 steps = hf_number (job, "gradient_accumulation_steps"), of_model = (guint64) s->tp * s->pp * s->cp;
  if (hf->has_trainer && !import_has_strategy (import, "micro_batch")
      && !g_hash_table_contains (job->open, "micro_batch")) {
    import_set_strategy (import, "micro_batch", "8", "per_device_train_batch_size");
    import_infer (import, "micro_batch 8: the default of per_device_train_batch_size");
  }
  if (!import_has_strategy (import, "micro_batch")) {
    import_open (import, "micro_batch", "the micro-batch: nothing here says");
    return;
  }
  if (hf_is_open (job, "gradient_accumulation_steps") && !import_has_strategy (import, "global_batch")) {
    import_open (import, "global_batch", "the global batch: how often gradients are accumulated is not said");
    return;
  }
  if (s->gpus == 0 && !import_has_strategy (import, "global_batch"))
    import_open (import, "global_batch",
                 "the global batch: it is that of each copy, and how many GPUs there are is not known");
  if (s->gpus == 0 || s->gpus % of_model != 0 || import_has_strategy (import, "global_batch"))
    return;
  guint64 batch = s->gpus / of_model * s->micro_batch * MAX (1, steps);
  import_set_strategy_number (import, "global_batch", batch);
  import_infer (import, "global_batch %" G_GUINT64_FORMAT ": micro-batches, accumulated, of each copy",
                batch);
  import_follows_gpus (import, "global_batch");
}

static void
set_data_parallel (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  if (hf_uses_deepspeed (job))
    hf_read_deepspeed (hf);
  else if (hf_uses_fsdp (job))
    set_fsdp (job);
  else
    import_set_strategy (job->import, "dp_kind", job->import->strategy.gpus == 1 ? "none" : "ddp",
                         "distributed_type");
}

static void
set_norm (LaunchJob *job)
{
  const char *norm = option_text (job, "max_grad_norm");
  if (norm && g_ascii_strtod (norm, NULL) == 0)
    import_set_strategy (job->import, "grad_norm", "0", "max_grad_norm");
}

/* Examples of fine-tuning are shorter than what they are cut to, and are not joined unless a file says so;
 * LLaMA-Factory joins texts that are only continued. */
static void
tell_lengths (LaunchJob *job)
{
  static const char *const limits[] = { "cutoff_len", "max_length", "max_seq_length", "max_seq_len" };
  const char *stage = option_text (job, "stage");
  if (import_is_open (job->import, "lengths") || (stage && strcmp (stage, "pt") == 0))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (limits); i++)
    if (launch_words_find (job->words, limits[i])) {
      import_unknown (job->import,
                      "%s: sequences are taken to be that long; without packing most are shorter", limits[i]);
      return;
    }
}

void
hf_read (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  job->table = hf_options ();
  option_read_all (job);
  set_model (hf);
  hf_set_attention (job);
  set_degree (job, "parallelism_config_tp_size", "tp");
  set_degree (job, "parallelism_config_cp_size", "cp");
  set_gpus (job);
  hf_set_dtype (hf);
  tell_tf32 (job);
  set_recompute (hf);
  set_norm (job);
  set_data_parallel (hf);
  hf_set_fp8 (hf);
  set_batch (hf);
  tell_switches (job);
  hf_set_adapters (hf);
  hf_set_formats (hf);
  tell_lengths (job);
  if (!import_has_model (job->import, "seq"))
    import_open (job->import, "seq", "how long a sequence is: nothing here says");
  launch_words_free (hf->deepspeed);
  g_hash_table_unref (job->open);
}
