/* Programs around a Trainer of Hugging Face: their options, what they take where none is given, and with
 * which release of transformers they run. */
#include <string.h>

#include "data/launch/hf_rules.h"

#define RULE(option)      OPTION_RULE_ROW (option)
#define AS(option, other) OPTION_AS_ROW (option, other)
#define IGNORED(option)   OPTION_IGNORED_ROW (option)

/* modelscope/ms-swift (3602360a, August 2026): swift/arguments and swift/trainers/arguments.py. The model's
 * name and author are what it is taught to call itself. */
static const OptionRow swift_rows[] = {
  AS ("model", "model_name_or_path"),
  AS ("attn_impl", "attn_implementation"),
  AS ("target_modules", "lora_target_modules"),
  AS ("lora_rank", "lora_r"),
  AS ("sequence_parallel_size", "parallelism_config_cp_size"),
  RULE ("tuner_type"),
  RULE ("train_type"),
  RULE ("sft_type"),
  RULE ("torch_dtype"),
  RULE ("quant_bits"),
  RULE ("task_type"),
  IGNORED ("model_name"),
  IGNORED ("model_author"),
  AS ("*", "*"),
};

static const HfWord swift_words[] = {
  { "tuner_type", "lora", "use_peft", "True" },
  { "tuner_type", "full", "use_peft", "False" },
  { "train_type", "lora", "use_peft", "True" },
  { "train_type", "full", "use_peft", "False" },
  { "sft_type", "lora", "use_peft", "True" },
  { "sft_type", "full", "use_peft", "False" },
  { "torch_dtype", "bfloat16", "bf16", "True" },
  { "torch_dtype", "float16", "fp16", "True" },
  { "torch_dtype", "float32", "fp16", "True" },
  { "fsdp", "fsdp2", "fsdp_version", "2" },
  { "quant_bits", "4", "load_in_4bit", "True" },
  { "torch_dtype", "bfloat16", "torch_dtype", "bfloat16" },
  { "torch_dtype", "float16", "torch_dtype", "float16" },
  { "torch_dtype", "float32", "torch_dtype", "float32" },
};

static const HfDefault swift_defaults[] = {
  { "use_peft", "True", "tuner_type train_type sft_type" },
  { "lora_r", "8", "", "use_peft" },
  { "lora_target_modules", "all-linear", "", "use_peft" },
  { "bf16", "True", "torch_dtype fp16 bf16" },
  { "torch_dtype", "auto", "torch_dtype",
    .why = "weights are as config.json says (swift/model/model_meta.py, get_model_info_meta)" },
  { "gradient_checkpointing", "True", "" },
  { "per_device_train_batch_size", "1", "" },
};

#define SWIFT_ZERO_2(stage, device)                                                                          \
  "{\"zero_optimization\": {\"stage\": " stage ", \"offload_optimizer\": {\"device\": \"" device             \
  "\"}, \"allgather_bucket_size\": 2e8, \"reduce_bucket_size\": 2e8, \"overlap_comm\": false}, " SWIFT_AUTO
#define SWIFT_ZERO_3(device)                                                                                 \
  "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"" device                     \
  "\"}, \"offload_param\": {\"device\": \"" device "\"}, \"overlap_comm\": false, "                          \
  "\"reduce_bucket_size\": \"auto\", \"stage3_prefetch_bucket_size\": \"auto\", "                            \
  "\"stage3_param_persistence_threshold\": \"auto\", \"stage3_max_live_parameters\": 1e9, "                  \
  "\"stage3_max_reuse_distance\": 1e9}, " SWIFT_AUTO
#define SWIFT_AUTO                                                                                           \
  "\"bf16\": {\"enabled\": \"auto\"}, \"fp16\": {\"enabled\": \"auto\"}, "                                   \
  "\"gradient_accumulation_steps\": \"auto\", \"gradient_clipping\": \"auto\", "                             \
  "\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\"}"

/* Its swift/config: what a configuration of DeepSpeed says that has no other name. */
static const HfFile swift_files[] = {
  { "zero0", SWIFT_ZERO_2 ("0", "none") }, { "zero1", SWIFT_ZERO_2 ("1", "none") },
  { "zero2", SWIFT_ZERO_2 ("2", "none") }, { "zero2_offload", SWIFT_ZERO_2 ("2", "cpu") },
  { "zero3", SWIFT_ZERO_3 ("none") },      { "zero3_offload", SWIFT_ZERO_3 ("cpu") },
};

/* hiyouga/LLaMA-Factory (ff6d4d12, 2026): src/llamafactory/hparams; layers are recomputed unless it is told
 * not to (model/model_utils/checkpointing.py). */
static const OptionRow llama_factory_rows[] = {
  AS ("lora_target", "lora_target_modules"),
  AS ("lora_rank", "lora_r"),
  AS ("enable_liger_kernel", "use_liger_kernel"),
  RULE ("finetuning_type"),
  RULE ("stage"),
  RULE ("flash_attn"),
  RULE ("quantization_bit"),
  RULE ("disable_gradient_checkpointing"),
  RULE ("pure_bf16"),
  IGNORED ("max_samples"),
  IGNORED ("plot_loss"),
  IGNORED ("val_size"),
  AS ("*", "*"),
};

static const HfWord llama_factory_words[] = {
  { "finetuning_type", "lora", "use_peft", "True" },
  { "finetuning_type", "full", "use_peft", "False" },
  { "use_badam", NULL, "torch_dtype", "auto" },
  { "pure_bf16", NULL, "torch_dtype", "bfloat16" },
  { "disable_gradient_checkpointing", NULL, "gradient_checkpointing", "False" },
  { "flash_attn", "disabled", "attn_implementation", "eager" },
  { "flash_attn", "sdpa", "attn_implementation", "sdpa" },
  { "flash_attn", "fa2", "attn_implementation", "flash_attention_2" },
  { "flash_attn", "fa3", "attn_implementation", "flash_attention_3" },
  { "flash_attn", "auto", "attn_implementation", "sdpa" },
  { "quantization_bit", "4", "load_in_4bit", "True" },
};

static const HfDefault llama_factory_defaults[] = {
  { "use_peft", "True", "finetuning_type" },
  { "lora_r", "8", "", "use_peft" },
  { "lora_target_modules", "all", "", "use_peft" },
  { "torch_dtype", "auto", "pure_bf16", "use_peft",
    .why = "weights are as a checkpoint has them (model/loader.py, load_model)" },
  { "torch_dtype", "float32", "pure_bf16",
    .why = "all that is trained is made fp32 without pure_bf16 (model/adapter.py, init_adapter)" },
  { "gradient_checkpointing", "True", "disable_gradient_checkpointing" },
  { "cutoff_len", "2048", "" },
};

/* deepspeedai/DeepSpeedExamples (45b4b715, March 2026): applications/DeepSpeed-Chat, main.py of
 * training/step1_supervised_finetuning. Linear layers whose names contain lora_module_name have adapters. */
static const OptionRow deepspeed_chat_rows[] = {
  AS ("lora_dim", "lora_r"),
  RULE ("lora_module_name"),
  RULE ("only_optimize_lora"),
  RULE ("dtype"),
  RULE ("offload"),
  IGNORED ("add_eot_token"),
  IGNORED ("enable_tensorboard"),
  IGNORED ("eot_token"),
  IGNORED ("print_loss"),
  IGNORED ("sft_only_data_path"),
  IGNORED ("tensorboard_path"),
  AS ("*", "*"),
};

static const HfWord deepspeed_chat_words[] = {
  { "deepspeed", NULL, "deepspeed", "get_train_ds_config" },
  { "dtype", "fp16", "fp16", "True" },
  { "dtype", "bf16", "bf16", "True" },
  { "offload", NULL, "offload_optimizer_device", "cpu" },
  { "offload", NULL, "offload_param_device", "cpu" },
  { "lora_dim", NULL, "use_peft", "True" },
  { "lora_module_name", "decoder.layers.", "lora_target_modules", "all-linear" },
  { "lora_module_name", "layers.", "lora_target_modules", "all-linear" },
};

static const HfDefault deepspeed_chat_defaults[] = {
  { "deepspeed", "get_train_ds_config", "" },
  { "fp16", "True", "dtype" },
  { "zero_stage", "0", "" },
  { "offload_optimizer_device", "none", "" },
  { "offload_param_device", "none", "" },
  { "per_device_train_batch_size", "16", "" },
  { "max_seq_len", "512", "" },
  { "lora_target_modules", "all-linear", "lora_module_name", "use_peft" },
};

/* Made by dschat/utils/ds_utils.py. */
static const HfFile deepspeed_chat_files[] = {
  { "get_train_ds_config",
    "{\"zero_optimization\": {\"stage\": \"auto\", \"overlap_comm\": true, "
    "\"offload_param\": {\"device\": \"auto\"}, \"offload_optimizer\": {\"device\": \"auto\"}, "
    "\"stage3_param_persistence_threshold\": 1e4, \"stage3_max_live_parameters\": 3e7, "
    "\"stage3_prefetch_bucket_size\": 3e7}, \"bf16\": {\"enabled\": \"auto\"}, "
    "\"fp16\": {\"enabled\": \"auto\"}, \"gradient_clipping\": 1.0, "
    "\"gradient_accumulation_steps\": \"auto\", \"train_batch_size\": \"auto\", "
    "\"train_micro_batch_size_per_gpu\": \"auto\"}" },
};

/* huggingface/trl (f2cd5771, July 2026): trl/scripts/sft.py, trainer/model_config.py and base_config.py; also
 * what alignment-handbook and open-r1 start, whose recipes have options of older releases: torch_dtype until
 * December 2025, max_seq_length until July 2025. Their defaults are those of a Trainer. */
#define TRL_OLD "torch_dtype max_seq_length overwrite_output_dir evaluation_strategy"

static const OptionRow trl_rows[] = { AS ("*", "*") };

static const HfDefault trl_defaults[] = {
  { "torch_dtype", "float32", TRL_OLD " dtype model_init_kwargs.dtype model_init_kwargs.torch_dtype",
    .why = "the default of dtype of TRL (trainer/model_config.py)" },
  { "bf16", "True", TRL_OLD " bf16 fp16" },
  { "gradient_checkpointing", "True", TRL_OLD },
  { "max_length", "1024", TRL_OLD },
};

#define COUNTED(table) (table), G_N_ELEMENTS (table)

const HfDialect hf_dialects[] = {
  { "ms-swift",
    "swift ",
    "swift sft swift pt swift.cli.sft swift.cli.pt",
    "tuner_type train_type sft_type",
    "task_type=causal_lm",
    "",
    { COUNTED (swift_rows) },
    COUNTED (swift_words),
    COUNTED (swift_defaults),
    COUNTED (swift_files),
    .release = "hf-trainer-2026",
    .pins = "transformers below 5.17 (requirements/framework.txt of August 2026)",
    .least_batch = 16,
    .near = "sequence_parallel_size" },
  { "LLaMA-Factory",
    "llamafactory-cli ",
    "llamafactory-cli train",
    "finetuning_type",
    "stage=pt stage=sft",
    "export_dir infer_backend predict_with_generate do_predict n_shot",
    { COUNTED (llama_factory_rows) },
    COUNTED (llama_factory_words),
    COUNTED (llama_factory_defaults),
    .release = "hf-trainer-2026",
    .pins = "transformers up to 5.8 (pyproject.toml of August 2026)" },
  { "DeepSpeed-Chat",
    NULL,
    "",
    "lora_dim only_optimize_lora data_split",
    "",
    "",
    { COUNTED (deepspeed_chat_rows) },
    COUNTED (deepspeed_chat_words),
    COUNTED (deepspeed_chat_defaults),
    COUNTED (deepspeed_chat_files),
    .freezes = "only_optimize_lora" },
  { "TRL",
    "trl ",
    "trl sft sft.py run_sft.py",
    "",
    "",
    "",
    { COUNTED (trl_rows) },
    .defaults = trl_defaults,
    .n_defaults = G_N_ELEMENTS (trl_defaults),
    .release = "hf-trainer-2026",
    .pins = "transformers from 4.56 on, which is 5 today (pyproject.toml of July 2026)",
    .old = TRL_OLD },
  { NULL },
};

static bool
has_item (const char *list, const char *item)
{
  g_auto (GStrv) items = g_strsplit (list, " ", -1);
  return g_strv_contains ((const char *const *) items, item);
}

/* "swift sft" among "swift sft swift pt". */
static bool
has_command (const char *list, const char *script)
{
  const char *at = strstr (list, script);
  return at && (at == list || at[-1] == ' ') && (at[strlen (script)] == ' ' || !at[strlen (script)]);
}

/* As it is written; NULL: none of the list is on. */
static const char *
first_of (const LaunchWords *words, const char *list)
{
  g_auto (GStrv) names = g_strsplit (list, " ", -1);
  for (char **name = names; *name; name++) {
    const LaunchOption *o = launch_words_find (words, *name);
    if (o)
      return o->written;
  }
  return NULL;
}

static bool
has_any (const LaunchWords *words, const char *list)
{
  g_auto (GStrv) names = g_strsplit (list, " ", -1);
  for (char **name = names; *name; name++)
    if (**name && (launch_words_find (words, *name) || g_hash_table_contains (words->off, *name)))
      return true;
  return false;
}

/* Options that only releases of it for transformers 4 have go before what it pins today. */
HfRelease
hf_dialect_release (const HfDialect *d, const LaunchWords *words)
{
  const char *word = d->old ? first_of (words, d->old) : NULL;
  return word ? (HfRelease) { HF_RELEASE_4, word, true } : (HfRelease) { d->release, d->pins, false };
}

const HfDialect *
hf_dialect_of (const char *script, const LaunchWords *words)
{
  for (const HfDialect *d = hf_dialects; d->name; d++)
    if ((script && d->prefix && (g_str_has_prefix (script, d->prefix) || has_command (d->commands, script)))
        || has_any (words, d->marks))
      return d;
  return NULL;
}

bool
hf_dialect_check (const HfDialect *d, const char *script, const LaunchWords *words, const char *path,
                  LsDiagList *diags)
{
  bool is_other
      = script && d->prefix && g_str_has_prefix (script, d->prefix) && !has_command (d->commands, script);
  const LaunchOption *kind = launch_words_find (words, "rlhf_type");
  g_autofree char *name = g_strndup (d->tasks, strcspn (d->tasks, "="));
  const LaunchOption *task = launch_words_find (words, name);
  const char *text = task && task->values->len > 0 ? task->values->pdata[0] : NULL;
  g_autofree char *pair = text ? g_strconcat (name, "=", text, NULL) : NULL;
  const char *other = launch_words_find (words, "do_train") ? NULL : first_of (words, d->others);
  if (other)
    return import_refuse_task (path, diags, "%s without do_train", other);
  if (!is_other && !kind && (!pair || has_item (d->tasks, pair)))
    return true;
  return import_refuse_task (path, diags, "%s", is_other ? script : kind ? kind->written : pair);
}

static bool
is_text_of (const LaunchJob *own, const char *option, const char *value)
{
  const char *text = option_text (own, option);
  return value ? text && g_ascii_strcasecmp (text, value) == 0 : option_is_on (own, option);
}

/* What values of its options mean. One that means nothing is told, but of an option that a Trainer has. */
static void
say_words (const HfDialect *d, const LaunchJob *own, LaunchWords *to)
{
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < d->n_words; i++)
    if (is_text_of (own, d->words[i].option, d->words[i].value)) {
      launch_words_add_value (to, d->words[i].says, d->words[i].as);
      g_hash_table_add (known, (gpointer) d->words[i].option);
    }
  for (guint i = 0; i < d->n_words; i++) {
    const char *name = d->words[i].option, *text = option_text (own, name);
    const OptionRow *row = option_find (own->table, name);
    if (text && d->words[i].value && !row->key && g_hash_table_add (known, (gpointer) name))
      import_unknown (own->import, "%s %s", name, text);
  }
}

static void
say_defaults (const HfDialect *d, const LaunchJob *own, LaunchWords *to)
{
  for (guint i = 0; i < d->n_defaults; i++) {
    const HfDefault *w = &d->defaults[i];
    if (has_any (to, w->says) || has_any (own->words, w->unless)
        || (w->with && !launch_words_find (to, w->with)))
      continue;
    launch_words_add_value (to, w->says, w->as);
    if (w->why)
      import_infer (own->import, "%s %s: %s", w->says, w->as, w->why);
    else
      import_infer (own->import, "%s %s: the default of %s", w->says, w->as, d->name);
  }
}

/* As many micro-batches as make up the least batch on all ranks. */
static void
say_steps (const HfDialect *d, const LaunchJob *own, LaunchWords *to)
{
  const LaunchJob job = { .import = own->import, .words = to };
  guint64 micro = MAX (1, option_number (&job, "per_device_train_batch_size"));
  guint64 gpus = import_is_given (own->import, "gpus") ? own->import->strategy.gpus : own->gpus;
  if (d->least_batch == 0 || gpus == 0 || has_any (to, "gradient_accumulation_steps"))
    return;
  guint64 steps = (d->least_batch + micro * gpus - 1) / (micro * gpus);
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, steps);
  launch_words_add_value (to, "gradient_accumulation_steps", text);
  import_infer (own->import,
                "gradient_accumulation_steps %s: as many as make up %u sequences, the default of %s", text,
                d->least_batch, d->name);
}

LaunchWords *
hf_dialect_words (const HfDialect *d, const LaunchWords *words, guint64 gpus, LsImport *import)
{
  LaunchWords *to = launch_words_new ();
  const LaunchJob own = { .import = import, .words = words, .table = &d->options, .gpus = gpus };
  option_translate (&own, to);
  if (d->near && option_number (&own, d->near) > 1)
    import_unknown (import, "%s: taken for parallelism_config_cp_size of a Trainer, a ring", d->near);
  say_words (d, &own, to);
  say_defaults (d, &own, to);
  if (d->freezes && launch_words_find (to, "use_peft") && !option_is_on (&own, d->freezes))
    import_unknown (import, "without %s all but linear layers is trained too; it is taken to be frozen",
                    d->freezes);
  say_steps (d, &own, to);
  return to;
}

const char *
hf_dialect_file (const HfDialect *d, const char *name)
{
  for (guint i = 0; d && i < d->n_files; i++)
    if (strcmp (d->files[i].name, name) == 0)
      return d->files[i].text;
  return NULL;
}
