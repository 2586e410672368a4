/* Scripts that start fine-tuning by verl: FSDP around a model of Hugging Face, by words of Hydra.
 * Names, defaults and rules as in verl/trainer/fsdp_sft_trainer.py and config/sft_trainer.yaml of
 * volcengine/verl (0.4 to 0.6, 2025). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/yaml_config.h"

#define AS(option, trainer) OPTION_AS_ROW (option, trainer)
#define RULE(option)        OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  AS ("model.partial_pretrain", "model_name_or_path"),
  AS ("data.max_length", "max_seq_length"),
  AS ("data.micro_batch_size_per_gpu", "per_device_train_batch_size"),
  AS ("data.train_batch_size", "global_train_batch_size"),
  AS ("model.enable_gradient_checkpointing", "gradient_checkpointing"),
  AS ("model.use_liger", "use_liger_kernel"),
  AS ("model.lora_rank", "lora_r"),
  AS ("model.target_modules", "lora_target_modules"),
  AS ("model.fsdp_config.model_dtype", "torch_dtype"),
  AS ("optim.clip_grad", "max_grad_norm"),
  AS ("ulysses_sequence_parallel_size", "parallelism_config_cp_size"),
  RULE ("model.strategy"),
  RULE ("model.fsdp_config.cpu_offload"),
  RULE ("model.fsdp_config.offload_params"),
  RULE ("model.fsdp_config.wrap_policy.*"),
  RULE ("use_remove_padding"),
  RULE ("data.micro_batch_size"),
  RULE ("data.balance_dp_token"),
  RULE ("trainer.device"),
};

static const char ignored[]
    = "data.* optim.* trainer.* model.trust_remote_code model.use_shm model.external_lib model.lora_alpha "
      "model.custom_cls* model.lora_adapter_path";

static const OptionTable options = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* What sft_trainer.yaml has where nothing is said. */
static const char *const defaults[][2] = {
  { "data.train_batch_size", "256" },
  { "data.micro_batch_size_per_gpu", "4" },
  { "data.max_length", "1024" },
  { "model.enable_gradient_checkpointing", "True" },
  { "model.fsdp_config.model_dtype", "fp32" },
  { "model.strategy", "fsdp2" },
  { "optim.clip_grad", "1.0" },
};

static void
add_defaults (LaunchWords *words, LsImport *import)
{
  for (guint i = 0; i < G_N_ELEMENTS (defaults); i++) {
    if (launch_words_find (words, defaults[i][0]))
      continue;
    launch_words_add_by (words, false, defaults[i][0], defaults[i][1]);
    import_infer (import, "%s %s: the default of verl", defaults[i][0], defaults[i][1]);
  }
}

/* --- what they mean of a Trainer --------------------------------------------------------------------- */

typedef struct {
  LaunchJob job;        /* by options of verl */
  LaunchWords *trainer; /* what they are of a Trainer */
} Verl;

static void
say (const Verl *v, const char *name, const char *value)
{
  launch_words_add_by (v->trainer, false, name, value);
}

/* PrecisionType of verl/utils/torch_dtypes.py. */
static void
say_format (const Verl *v)
{
  const char *own = option_text (&v->job, "model.fsdp_config.model_dtype");
  bool is_fp32
      = own && (strcmp (own, "fp32") == 0 || strcmp (own, "float32") == 0 || strcmp (own, "float") == 0),
      is_bf16 = own && (strcmp (own, "bf16") == 0 || strcmp (own, "bfloat16") == 0);
  if (is_fp32 || is_bf16)
    say (v, "torch_dtype", is_fp32 ? "float32" : "bfloat16");
  say (v, "bf16", "True"); /* MixedPrecision (param_dtype=torch.bfloat16), and autocast around it */
  say (v, "attn_implementation", "flash_attention_2");
}

static void
say_shards (const Verl *v)
{
  const char *strategy = option_text (&v->job, "model.strategy");
  bool is_2 = g_strcmp0 (strategy, "fsdp") != 0;
  option_tell_other (&v->job, "model.strategy", "fsdp fsdp2", "fsdp2");
  say (v, "fsdp", "full_shard auto_wrap");
  say (v, "fsdp_version", is_2 ? "2" : "1");
  if (option_is_on (&v->job, "model.fsdp_config.cpu_offload")
      && option_is_on (&v->job, "model.fsdp_config.offload_params"))
    say (v, "fsdp_offload_params", "True");
  else if (option_is_on (&v->job, "model.fsdp_config.cpu_offload"))
    import_unknown (v->job.import,
                    "model.fsdp_config.cpu_offload: without offload_params it is taken to offload nothing");
}

/* Samples are padded to max_length, unless they are unpadded, which their lengths then tell. */
static void
tell_lengths (const Verl *v)
{
  if (option_is_on (&v->job, "use_remove_padding"))
    import_unknown (
        v->job.import,
        "use_remove_padding: sequences are taken to be max_length long; those of samples are not said");
  if (launch_words_find (v->job.words, "data.micro_batch_size"))
    import_unknown (v->job.import, "data.micro_batch_size: micro_batch_size_per_gpu took its place");
}

static void
read_options (const ImportFiles *files, const LaunchScript *script, LsImport *import, LsDiagList *diags,
              bool *ret_ok)
{
  cJSON *tree = cJSON_CreateObject ();
  for (guint i = 0; i < script->words->others->len; i++)
    yaml_config_set_pair (tree, script->words->others->pdata[i]);
  g_autoptr (LaunchWords) words = yaml_config_words (tree), trainer = launch_words_new ();
  launch_words_add_words (words, script->words);
  add_defaults (words, import);
  Verl v = { { .import = import, .words = words, .table = &options }, trainer };
  HfJob hf = { .job = { .import = import, .words = trainer, .gpus = script->gpus },
               .has_trainer = true,
               .release = { HF_RELEASE_4, "transformers 4 (setup.py of 2025)", false } };
  *ret_ok = hf_read_model (files, import, diags);
  if (!*ret_ok)
    return;
  option_translate (&v.job, trainer);
  say_format (&v);
  say_shards (&v);
  if (option_number (&v.job, "model.lora_rank") > 0)
    say (&v, "use_peft", "True");
  if (option_number (&v.job, "ulysses_sequence_parallel_size") > 1)
    say (&v, "context_parallel_kind", "ulysses");
  tell_lengths (&v);
  hf_read (&hf);
  import_set_strategy (import, "grad_dtype", "fp32", "--"); /* reduce_dtype=torch.float32 */
  for (guint i = 0; i < script->words->others->len; i++)
    if (!strchr (script->words->others->pdata[i], '=')) /* else its option tells it, unless that is ignored */
      option_tell_hole (&v.job, script->words->others->pdata[i]);
}

/* --- scripts ------------------------------------------------------------------------------------------ */

static bool
is_trainer (const char *word)
{
  return strcmp (word, "verl.trainer.fsdp_sft_trainer") == 0
      || g_str_has_suffix (word, "verl/trainer/fsdp_sft_trainer.py");
}

static bool
starts (char *const *words, guint n)
{
  for (guint i = 0; i < n; i++)
    if (is_trainer (words[i]))
      return true;
  return false;
}

static bool
is_known (const char *name)
{
  return option_find (&options, name) != NULL;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = {
    .program = "verl", .is_known = is_known, .n_needed = 1, .has_pairs = true, .gpus = "", .starts = starts
  };
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags);
  if (ok)
    read_options (files, &script, import, diags, &ok);
  launch_script_clear (&script);
  return ok;
}

static bool
is_its (const ImportFile *file)
{
  return strstr (file->text, "fsdp_sft_trainer") != NULL && strchr (file->text, '=');
}

const ImportReader import_verl = { "a script of verl that fine-tunes", is_its, read };
