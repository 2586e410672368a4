/* What a Trainer of Hugging Face, accelerate, or a program that makes its configuration in Python tells
 * DeepSpeed. */
#include <string.h>

#include "data/launch/deepspeed_rules.h"
#include "data/launch/hf_rules.h"
#include "data/shell/shell.h"

/* A switch alone is an argument of DeepSpeed's own (deepspeed.add_config_arguments), not a Trainer's. */
static bool
has_switch (const LaunchWords *words)
{
  const LaunchOption *o = launch_words_find (words, "deepspeed");
  return o && o->values->len == 0;
}

bool
hf_has_trainer (const LaunchWords *words)
{
  return (launch_words_find (words, "per_device_train_batch_size") || launch_words_find (words, "output_dir"))
      && !has_switch (words);
}

const char *
hf_deepspeed_file (const LaunchJob *job)
{
  static const char *const options[] = { "deepspeed", "deepspeed_config", "deepspeed_config_file" };
  const char *file = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (options) && !file; i++)
    file = hf_text (job, options[i]);
  return file;
}

bool
hf_deepspeed_is_python (const LaunchJob *job)
{
  return has_switch (job->words) && !hf_find (job, "deepspeed_config")
      && !hf_find (job, "deepspeed_config_file");
}

static void
fill (LaunchWords *words, const char *key, const char *value)
{
  const LaunchOption *o = launch_words_find (words, key);
  const char *text = o && o->values->len > 0 ? o->values->pdata[0] : "";
  bool is_variable = *text == LS_SHELL_HOLE && text[1] == '$',
       is_auto = ls_shell_has_hole (text) && !is_variable;
  if (is_auto && value)
    launch_words_add_value (words, key, value);
}

static void
fill_elements (LaunchWords *words, const char *key, double value)
{
  g_autofree char *text = g_strdup_printf ("%.0f", value);
  fill (words, key, text);
}

/* What accelerate asks for, and the keys of a file that are the same. */
static const char *const plugin_keys[][2] = {
  { "zero_stage", "zero_optimization.stage" },
  { "offload_optimizer_device", "zero_optimization.offload_optimizer.device" },
  { "offload_param_device", "zero_optimization.offload_param.device" },
  { "gradient_accumulation_steps", "gradient_accumulation_steps" },
  { "gradient_clipping", "gradient_clipping" },
};

/* A number of the file that an option says otherwise: transformers/integrations/deepspeed.py, fill_match(),
 * with which a Trainer stops; DeepSpeed itself takes its own. */
static void
tell_differences (const HfJob *hf)
{
  static const char *const pairs[][2] = {
    { "train_micro_batch_size_per_gpu", "per_device_train_batch_size" },
    { "train_micro_batch_size_per_gpu", "micro_batch_size" },
    { "gradient_accumulation_steps", "gradient_accumulation_steps" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (pairs); i++) {
    const char *theirs = option_text (&hf->job, pairs[i][1]),
               *own = launch_words_text (hf->deepspeed, pairs[i][0]);
    if (own && theirs && !ls_shell_has_hole (own) && strcmp (own, theirs) != 0)
      import_unknown (hf->job.import, "%s %s: it is taken, and %s says %s; a Trainer refuses two that differ",
                      pairs[i][0], own, pairs[i][1], theirs);
  }
}

void
hf_fill_buckets (const LsImport *import, LaunchWords *words)
{
  double hidden = import_has_model (import, "hidden") ? import->model.hidden : 0;
  if (hidden == 0)
    return;
  fill_elements (words, "zero_optimization.reduce_bucket_size", hidden * hidden);
  fill_elements (words, "zero_optimization.stage3_prefetch_bucket_size", 0.9 * hidden * hidden);
  fill_elements (words, "zero_optimization.stage3_param_persistence_threshold", 10 * hidden);
}

/* What the Trainer puts for "auto": transformers/integrations/deepspeed.py. */
static void
fill_autos (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  const char *norm = option_text (job, "max_grad_norm");
  LaunchWords *words = hf->deepspeed;
  for (guint i = 0; i < G_N_ELEMENTS (plugin_keys); i++)
    fill (words, plugin_keys[i][1], hf_text (job, plugin_keys[i][0]));
  fill (words, "train_batch_size", "None");
  fill (words, "train_micro_batch_size_per_gpu", option_text (job, "per_device_train_batch_size"));
  bool is_one = hf->has_trainer && !hf_is_open (job, "gradient_accumulation_steps");
  fill (words, "gradient_accumulation_steps", is_one ? "1" : NULL);
  fill (words, "gradient_clipping", norm ? norm : hf->has_trainer ? "1.0" : NULL);
  fill (words, "bf16.enabled", hf_is_on (job, "bf16") ? "True" : hf->has_trainer ? "False" : NULL);
  fill (words, "fp16.enabled", hf_is_on (job, "fp16") ? "True" : hf->has_trainer ? "False" : NULL);
  hf_fill_buckets (job->import, words);
}

/* Clipping that no file says is "auto" (accelerate/utils/dataclasses.py, DeepSpeedPlugin): the Trainer's. */
static void
add_plugin (HfJob *hf)
{
  g_autofree char *auto_value = g_strdup_printf ("%cauto%c", LS_SHELL_HOLE, LS_SHELL_HOLE_END);
  hf->deepspeed = launch_words_new ();
  for (guint i = 0; i < G_N_ELEMENTS (plugin_keys); i++) {
    const char *value = hf_text (&hf->job, plugin_keys[i][0]);
    if (value)
      launch_words_add_value (hf->deepspeed, plugin_keys[i][1], value);
  }
  if (hf->has_trainer && !launch_words_find (hf->deepspeed, "gradient_clipping"))
    launch_words_add_value (hf->deepspeed, "gradient_clipping", auto_value);
}

/* All that no option says is open: no default of a Trainer or of DeepSpeed stands for it. */
static void
open_python (HfJob *hf)
{
  static const char *const keys[]
      = { "zero_optimization.stage", "gradient_clipping", "bf16.enabled", "fp16.enabled" };
  g_autofree char *hole = g_strdup_printf ("%cthe script of Python%c", LS_SHELL_HOLE, LS_SHELL_HOLE_END);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (!launch_words_find (hf->deepspeed, keys[i]))
      launch_words_add_value (hf->deepspeed, keys[i], hole);
}

/* That of a file which the script does not decide; NULL: there is none. */
static char *
undecided_file (const LaunchJob *job)
{
  const LaunchOption *o = launch_words_find (job->words, "deepspeed");
  return o && o->values->len > 0 && ls_shell_has_hole (o->values->pdata[0])
      ? ls_shell_hole_names (o->values->pdata[0])
      : NULL;
}

void
hf_read_deepspeed (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  g_autofree char *undecided = undecided_file (job);
  const char *file = undecided ? undecided : hf_deepspeed_file (job);
  if (!hf->deepspeed && file)
    import_unknown (job->import, "the ZeRO stage and its buckets: they stand in %s, which is not here", file);
  if (!hf->deepspeed && !file)
    add_plugin (hf);
  if (hf_deepspeed_is_python (job))
    open_python (hf);
  if (!hf->deepspeed) {
    import_set_strategy (job->import, "dp_kind", "deepspeed", "--");
    return;
  }
  tell_differences (hf);
  fill_autos (hf);
  LaunchJob inner = { .import = job->import, .words = hf->deepspeed, .gpus = job->gpus };
  if (import_has_strategy (job->import, "gpus"))
    inner.gpus = job->import->strategy.gpus;
  deepspeed_read (&inner);
}
