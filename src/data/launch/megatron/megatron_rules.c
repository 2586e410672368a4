#include "data/launch/megatron/megatron_rules.h"

#include <lockstep/error.h>

/* What a job does that trains no decoder on the next token: by the script of Python, or by an option that is
 * of such jobs only. */
static const struct {
  const char *start, *what;
} scripts[] = {
  { "pretrain_ict", "trains no decoder" },
  { "pretrain_vision", "trains no decoder" },
  { "pretrain_retro", "trains no decoder" },
  { "pretrain_vlm", "trains no decoder" },
  { "evaluate", "evaluates" },
  { "generate", "generates text" },
  { "run_text_generation", "generates text" },
  { "run_mamba_text_generation", "generates text" },
  { "text_generation", "generates text" },
  { "preprocess_", "prepares data" },
  { "analyze_data", "prepares data" },
  { "gpt_dynamic_inference", "generates text" },
  { "gpt_static_inference", "generates text" },
  { "examples.inference", "generates text" },
  { "merge_mp_partitions", "converts a checkpoint" },
};

static const struct {
  const char *option, *what;
} marks[] = {
  { "num-tokens-to-generate", "text is generated" },
  { "out-seq-length", "text is generated" },
  { "task", "an evaluation, or training on labels" },
  { "perform-rl-step", "reinforcement learning" },
};

static bool
refuse (const char *name, const char *what, const char *path, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
               "%s %s; a job of Lockstep trains a decoder on the next token", name, what);
  return false;
}

bool
megatron_trains_decoder (const LaunchWords *words, const char *script, const char *path, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (scripts) && script; i++)
    if (g_str_has_prefix (script, scripts[i].start))
      return refuse (script, scripts[i].what, path, diags);
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (launch_words_find (words, marks[i].option)) {
      g_autofree char *name = g_strdup_printf ("--%s:", marks[i].option);
      return refuse (name, marks[i].what, path, diags);
    }
  return true;
}

void
megatron_read (LaunchJob *job)
{
  if (launch_words_find (job->words, "language-model-type"))
    import_unknown (job->import, "what turns images into tokens for the decoder: it is left out");
  job->table = &megatron_options;
  if (option_is_on (job, "deepspeed")) {
    import_set_software (job->import, "megatron-deepspeed-2022");
    import_infer (job->import,
                  "software megatron-deepspeed-2022: --deepspeed is an option of Megatron-DeepSpeed");
  } else
    option_release (job, "megatron");
  option_read_all (job);
  megatron_model (job);
  megatron_strategy (job);
  megatron_kernels (job);
  g_hash_table_unref (job->open);
}
