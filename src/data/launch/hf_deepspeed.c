/* What a Trainer of Hugging Face, accelerate, or a program that makes its configuration in Python tells
 * DeepSpeed. */
#include "data/launch/hf_rules.h"

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

void
hf_fill_buckets (const LsImport *import, LaunchWords *words)
{
  LaunchJob job = { .import = (LsImport *) import, .words = words };
  program_run_map ("deepspeed", "buckets", &job, NULL, NULL);
}
