/* What Megatron-DeepSpeed hands to DeepSpeed: options, and the file of --deepspeed-config, by which its
 * engine shards, offloads, reduces and clips. */
#include "data/launch/deepspeed_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/megatron/megatron_rules.h"

#include <string.h>

LaunchWords *
megatron_deepspeed_file (const ImportFiles *files, const LaunchWords *words)
{
  const char *name
      = launch_words_find (words, "deepspeed") ? launch_words_text (words, "deepspeed-config") : NULL;
  gsize n;
  g_autofree char *text = name ? launch_file_of (files, name, &n) : NULL;
  g_autoptr (LaunchWords) deepspeed = launch_words_new ();
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  bool is_read = text && deepspeed_add_json (deepspeed, text, n, name, none);
  return is_read ? g_steal_pointer (&deepspeed) : NULL;
}

/* Of a key that options say too, where the file has another value: NULL: it has none, or leaves it open. */
static const char *
other_of_file (const LaunchWords *deepspeed, const char *key, const char *ours)
{
  const char *theirs = launch_words_text (deepspeed, key);
  bool is_said = theirs && !ls_shell_has_hole (theirs);
  return is_said && g_ascii_strtod (theirs, NULL) != g_ascii_strtod (ours, NULL) ? theirs : NULL;
}

/* The batch is that of the options, and so is the number format, in which Megatron-LM makes the model. */
static void
compare (LaunchJob *job, const LaunchWords *deepspeed)
{
  const LsStrategy *s = &job->import->strategy;
  static const struct {
    const char *theirs, *ours;
  } names[] = { { "train_micro_batch_size_per_gpu", "micro_batch" }, { "train_batch_size", "global_batch" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *ours = g_strdup_printf ("%u", i == 0 ? s->micro_batch : s->global_batch);
    const char *other = import_has_strategy (job->import, names[i].ours)
        ? other_of_file (deepspeed, names[i].theirs, ours)
        : NULL;
    if (other)
      import_unknown (job->import, "%s %s of --deepspeed_config: the options say %s, which is taken",
                      names[i].theirs, other, ours);
  }
}

/* Not what options have, nor what calls of Megatron-LM's own configure: deepspeed.checkpointing. */
static bool
is_of_options (const char *key)
{
  static const char *const keys[] = { "train_batch_size",
                                      "train_micro_batch_size_per_gpu",
                                      "gradient_accumulation_steps",
                                      "bf16.",
                                      "bfloat16.",
                                      "fp16.",
                                      "activation_checkpointing.",
                                      "optimizer." };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (g_str_has_prefix (key, keys[i]))
      return true;
  return false;
}

static LaunchWords *
words_of_engine (const LaunchWords *deepspeed)
{
  LaunchWords *words = launch_words_new ();
  for (guint i = 0; i < deepspeed->options->len; i++) {
    const LaunchOption *o = deepspeed->options->pdata[i];
    if (!is_of_options (o->name))
      launch_words_add_renamed (words, o->name, o);
  }
  return words;
}

/* Of the type of the model where nothing says (docs/_pages/config-json.md, grad_accum_dtype); DeepSpeed
 * reduces them, so what Megatron-LM does with bf16 does not hold. */
static void
set_gradients (LaunchJob *job, const LaunchWords *engine)
{
  static const char *const keys[] = { "data_types.grad_accum_dtype", "communication_data_type" };
  bool is_said = false;
  for (guint i = 0; i < G_N_ELEMENTS (keys) && engine; i++)
    is_said = is_said || launch_words_find (engine, keys[i]);
  if (!is_said && import_has_strategy (job->import, "dtype") && job->import->strategy.dtype == LS_DTYPE_BF16)
    import_set_strategy (job->import, "grad_dtype", "bf16", "--");
}

/* Without a file, what stands in it is told: it may offload, and has the buckets. */
static void
tell_lack (LaunchJob *job)
{
  const char *name = launch_words_text (job->words, "deepspeed-config");
  if (option_text (job, "zero-stage") && name)
    import_unknown (job->import,
                    "what %s says: it is not here; buckets and gradients are taken to be as without a word "
                    "of it, and nothing to be offloaded",
                    ls_shell_has_hole (name) ? "the file of --deepspeed_config" : name);
}

/* As deepspeed.checkpointing keeps inputs of layers that are run again. */
static void
set_checkpoints (LaunchJob *job)
{
  const LsStrategy *s = &job->import->strategy;
  if (s->recompute != LS_RECOMPUTE_FULL)
    return;
  if (option_is_on (job, "partition-activations") && s->tp > 1 && !s->sp)
    import_set_strategy (job->import, "partition_activations", "1", "--partition-activations");
  else if (option_is_on (job, "partition-activations"))
    import_ignore (job->import, "--partition-activations: no rank holds what another one has");
  if (option_is_on (job, "checkpoint-in-cpu"))
    import_set_strategy (job->import, "offload_activations", "1", "--checkpoint-in-cpu");
}

void
megatron_deepspeed (LaunchJob *job, const LaunchWords *deepspeed)
{
  const char *stage = option_text (job, "zero-stage");
  LsImport *import = job->import;
  import_set_strategy (import, "dp_kind", "deepspeed", "--");
  if (!deepspeed) {
    if (stage)
      import_set_strategy (import, "zero", stage, "--zero-stage");
    else
      import_unknown (import, "the ZeRO stage: it stands in the file of --deepspeed_config");
    tell_lack (job);
  } else {
    g_autoptr (LaunchWords) words = words_of_engine (deepspeed);
    LaunchJob engine = { .import = import, .words = words };
    deepspeed_read_engine (&engine);
    const char *other = stage ? other_of_file (deepspeed, "zero_optimization.stage", stage) : NULL;
    if (other)
      import_unknown (import, "--zero-stage %s: the file of --deepspeed_config says %s, which is taken",
                      stage, other);
    else if (stage && !import_has_strategy (import, "zero"))
      import_set_strategy (import, "zero", stage, "--zero-stage");
    compare (job, deepspeed);
  }
  set_gradients (job, deepspeed);
  set_checkpoints (job);
  if (!option_is_on (job, "no-pipeline-parallel"))
    deepspeed_pipeline_shards (job);
  if (option_is_there (job, "cpu-optimizer") && import->strategy.offload == LS_OFFLOAD_NONE)
    import_unknown (import,
                    "--cpu-optimizer: no file of DeepSpeed offloads it, so it is taken to be on GPUs");
}
