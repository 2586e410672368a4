/* Which jobs with options of a Trainer of Hugging Face train no decoder on the next token, or run by software
 * that is not known. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/hf_rules.h"
#include "data/launch/launch_gpus.h"
#include "data/launch/launch_script.h"

bool
hf_does_other (const char *script)
{
  return launch_learns (script) || launch_uses_model (script);
}

/* Options of what learns from preferences or rewards, and of what paints. */
static const char *const marks[] = { "num_generations",
                                     "num_samples_per_prompt_rollout",
                                     "total_episodes",
                                     "generation_only",
                                     "num_padding_at_beginning",
                                     "offload_reference_model",
                                     "use_vllm",
                                     "vllm_server_host",
                                     "max_prompt_length",
                                     "ref_model",
                                     "ref_model_path",
                                     "ref_model_name_or_path",
                                     "reference_model",
                                     "reference_model_name_or_path",
                                     "reward_model",
                                     "reward_model_path",
                                     "reward_model_name_or_path",
                                     "reward_funcs",
                                     "num_raft_iteration",
                                     "instance_prompt",
                                     "prior_loss_weight",
                                     "snr_gamma",
                                     "center_crop" };

/* Options of what generates text, in a command that has none of what trains. */
static const char *
find_generation (const LaunchWords *said)
{
  static const char *const trains[] = { "per_device_train_batch_size",
                                        "train_batch_size",
                                        "gradient_accumulation_steps",
                                        "do_train",
                                        "learning_rate",
                                        "lr",
                                        "num_train_epochs",
                                        "num_epochs",
                                        "epochs",
                                        "max_steps",
                                        "weight_decay",
                                        "warmup_ratio" };
  static const char *const generates[]
      = { "max_new_tokens",         "gen_length",      "temperature", "top_p", "num_beams", "prompt_file",
          "gpu_memory_utilization", "prompt_structure" };
  for (guint i = 0; i < G_N_ELEMENTS (trains); i++)
    if (launch_words_find (said, trains[i]))
      return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (generates); i++)
    if (launch_words_find (said, generates[i]))
      return generates[i];
  return NULL;
}

bool
hf_is_of_other (const char *name)
{
  return strstr (name, "ref_model") || strstr (name, "reference_model");
}

bool
hf_check_task (const ProgramMap *d, const char *script, const LaunchWords *said, const char *path,
               LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (launch_words_find (said, marks[i]))
      return import_refuse_task (path, diags, "--%s", marks[i]);
  bool trains = launch_words_find (said, "per_device_train_batch_size");
  const LaunchOption *data = !script && d && d->around.data ? launch_words_find (said, d->around.data) : NULL;
  if (data && data->values->len > 0 && launch_learns (data->values->pdata[0]))
    return import_refuse_task (path, diags, "%s %s", d->around.data, (const char *) data->values->pdata[0]);
  if (script && (launch_learns (script) || (!trains && launch_uses_model (script))))
    return import_refuse_task (path, diags, "%s", script);
  const char *generates = script && !d ? find_generation (said) : NULL;
  if (generates)
    return import_refuse_task (path, diags, "--%s without an option of training", generates);
  return true;
}

/* --- software -------------------------------------------------------------------------------------- */

static bool
refuse (const char *what, const char *why, const char *path, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, IMPORT_ELSE, "%s: %s", what, why);
  return false;
}

/* Values of distributed_type (accelerate: utils/dataclasses.py, DistributedType), options of optimum-habana
 * and scripts that start processes. */
static const struct {
  const char *option, *value, *why; /* value: NULL: it is on */
} others[] = {
  { "distributed_type", "TPU", "PyTorch/XLA, whose step on TPUs is not known here" },
  { "distributed_type", "XLA", "PyTorch/XLA, whose step on TPUs is not known here" },
  { "fsdp_config.xla", NULL, "PyTorch/XLA, whose step on TPUs is not known here" },
  { "distributed_type", "MULTI_HPU", "software of Intel Gaudi, whose kernels and graphs are not known here" },
  { "use_habana", NULL, "software of Intel Gaudi, whose kernels and graphs are not known here" },
  { "gaudi_config_name", NULL, "software of Intel Gaudi, whose kernels and graphs are not known here" },
  { "distributed_type", "MULTI_CPU", "a job on CPUs" },
};

/* Degrees of programs with a model and a mesh of their own: what is at once on each GPU follows from them. */
static const char *const degrees[] = { "cp_degree",
                                       "tp_degree",
                                       "pp_degree",
                                       "ep_degree",
                                       "tensor_parallel_degree",
                                       "pipeline_parallel_degree",
                                       "tensor_parallel_size",
                                       "pipeline_parallel_size",
                                       "context_parallel_size",
                                       "sequence_parallel_size",
                                       "tp_size",
                                       "pp_size",
                                       "cp_size",
                                       "sp_size" };

bool
hf_check_software (const char *script, const LaunchWords *words, const char *path, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    const LaunchOption *o = launch_words_find (words, others[i].option);
    const char *value = o && o->values->len > 0 ? o->values->pdata[0] : "";
    bool is_off = g_ascii_strcasecmp (value, "false") == 0 || strcmp (value, "0") == 0;
    if (o && (others[i].value ? g_ascii_strcasecmp (value, others[i].value) == 0 : !is_off))
      return refuse (others[i].value ? others[i].value : others[i].option, others[i].why, path, diags);
  }
  if (script && strcmp (script, "gaudi_spawn.py") == 0)
    return refuse (script, "software of Intel Gaudi, whose kernels and graphs are not known here", path,
                   diags);
  if (script && strcmp (script, "xla_spawn.py") == 0)
    return refuse (script, "PyTorch/XLA, whose step on TPUs is not known here", path, diags);
  for (guint i = 0; i < G_N_ELEMENTS (degrees); i++) {
    const char *value = launch_words_text (words, degrees[i]);
    bool is_known = option_find (hf_options (), degrees[i]);
    if (value && !is_known && launch_last_number (value) > 1) {
      g_autofree char *what = g_strdup_printf ("--%s %s", degrees[i], value);
      return refuse (what, "a degree of parallelism of a program that is not read", path, diags);
    }
  }
  return true;
}

/* --- programs of one's own ------------------------------------------------------------------------- */

/* Options of TrainingArguments and of launchers that programs with a loop of their own seldom take over; in
 * words of a data set and of a batch they follow a Trainer. */
static const char *const of_trainer[] = { "bf16",
                                          "fp16",
                                          "tf32",
                                          "gradient_checkpointing",
                                          "deepspeed",
                                          "deepspeed_config",
                                          "zero_stage",
                                          "fsdp",
                                          "fsdp_config",
                                          "use_peft",
                                          "optim",
                                          "torch_dtype",
                                          "torch_compile",
                                          "lr_scheduler_type",
                                          "logging_steps",
                                          "save_strategy",
                                          "save_total_limit",
                                          "eval_strategy",
                                          "evaluation_strategy",
                                          "report_to",
                                          "do_train",
                                          "num_processes",
                                          "distributed_type" };

/* Of names of options: how it computes and shards. */
static const char *const parts[] = { "checkpointing", "recompute", "compile", "shard", "parallel",
                                     "precision",     "offload",   "hsdp",    "fsdp" };

/* The options of its own about that; "": none. The caller frees it. */
static char *
own_options (const LaunchWords *said)
{
  GString *own = g_string_new (NULL);
  for (guint i = 0; i < said->options->len; i++) {
    const LaunchOption *o = said->options->pdata[i];
    bool is_one = false;
    for (guint k = 0; k < G_N_ELEMENTS (parts); k++)
      is_one = is_one || strstr (o->name, parts[k]);
    if (is_one && !option_find (hf_options (), o->name))
      g_string_append_printf (own, "%s--%s", own->len > 0 ? ", " : "", o->name);
  }
  return g_string_free (own, FALSE);
}

bool
hf_check_trainer (const ProgramMap *d, const char *script, const LaunchWords *said, const char *path,
                  LsDiagList *diags)
{
  bool is_trainer = d || !script;
  for (guint i = 0; i < G_N_ELEMENTS (of_trainer) && !is_trainer; i++)
    is_trainer = launch_words_find (said, of_trainer[i]) != NULL;
  g_autofree char *own = is_trainer ? g_strdup ("") : own_options (said);
  if (!*own)
    return true;
  ls_diag_add (
      diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, IMPORT_ELSE,
      "%s: %s say how it computes, which no Trainer of Hugging Face has, and no option is there that "
      "only a Trainer has, such as --bf16: a program with a loop of its own, which is not read",
      script, own);
  return false;
}
