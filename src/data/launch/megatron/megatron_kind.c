/* Which jobs with options of Megatron-LM train no decoder on the next token. */
#include <lockstep/error.h>
#include <string.h>

#include "data/launch/megatron/megatron_rules.h"

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
  { "inference", "generates text" },
  { "merge_mp_partitions", "converts a checkpoint" },
  { "convert", "converts a checkpoint" },
  { "checkpoint_util", "converts a checkpoint" },
  { "hf2", "converts a checkpoint" },
  { "quantize", "quantizes a model" },
  { "lm_evaluate", "evaluates" },
  { "mmlu", "evaluates" },
  { "build_idxmap", "prepares data" },
};

static const struct {
  const char *option, *what, *value; /* value: what it begins with; NULL: any, or none */
} foreign_marks[] = {
  { "num-tokens-to-generate", "text is generated" },
  { "max-new-tokens", "text is generated" },
  { "num-fewshot", "an evaluation" },
  { "advantage-estimator", "reinforcement learning" },
  { "rollout-batch-size", "reinforcement learning" },
  { "stage", "learning from preferences", "dpo" },
  { "out-seq-length", "text is generated" },
  { "task", "an evaluation, or training on labels" },
  { "perform-rl-step", "reinforcement learning" },
  { "grpo-group-size", "reinforcement learning" },
  { "inference-dynamic-batching", "text is generated" },
  { "retro-tasks", "data are prepared" },
  { "target-tensor-model-parallel-size", "a checkpoint is converted" },
};

static bool
refuse (const char *name, const char *what, const char *path, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
               "%s %s; a job of Lockstep trains a decoder on the next token", name, what);
  return false;
}

static bool
has_mark (const LaunchWords *words, const char *option, const char *value)
{
  const LaunchOption *o = launch_words_find (words, option);
  return o && (!value || (o->values->len > 0 && g_str_has_prefix (o->values->pdata[0], value)));
}

/* Programs with a model and a loop of their own, some of whose options have the names of Megatron-LM's: by
 * others, which it and its forks have not. */
static bool
is_of_another (const LaunchWords *words, const char *path, LsDiagList *diags)
{
  static const char *const marks[] = { "sharding-strategy", "hidden-width", "dataset-percentage" };
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (launch_words_find (words, marks[i])) {
      ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                   "--%s: an option of another program than Megatron-LM, which is not read: give the job by "
                   "--model and flags",
                   marks[i]);
      return true;
    }
  return false;
}

/* What such a script does; NULL: it trains. */
static const char *
deed_of (const char *script)
{
  for (guint i = 0; i < G_N_ELEMENTS (scripts); i++)
    if (g_str_has_prefix (script, scripts[i].start))
      return scripts[i].what;
  return NULL;
}

bool
megatron_does_other (const char *script)
{
  return deed_of (script) != NULL;
}

bool
megatron_trains_decoder (const LaunchWords *words, const char *script, const char *path, LsDiagList *diags)
{
  const char *deed = script ? deed_of (script) : NULL;
  if (deed)
    return refuse (script, deed, path, diags);
  bool tunes = has_mark (words, "loss-type", "sft_loss"); /* of slime */
  for (guint i = 0; i < G_N_ELEMENTS (foreign_marks) && !tunes; i++)
    if (has_mark (words, foreign_marks[i].option, foreign_marks[i].value)) {
      g_autofree char *name = g_strdup_printf ("--%s:", foreign_marks[i].option);
      return refuse (name, foreign_marks[i].what, path, diags);
    }
  return !is_of_another (words, path, diags);
}
