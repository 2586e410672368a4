/* Scripts that start Megatron-SWIFT, the part of ms-swift that runs Megatron-Core on models of a hub:
 *
 *     NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-32B --tensor_model_parallel_size 8 --packing true ...
 *
 * Its options are members of Megatron-LM's namespace, and what ms-swift says of data and adapters. Names,
 * defaults and rules as in swift/megatron/arguments of modelscope/ms-swift (3602360a, August 2026) and
 * src/mcore_bridge of modelscope/mcore-bridge (f020e479, May 2026). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/adapters.h"
#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/text/yaml.h"

#define RULE(option)    OPTION_RULE_ROW (option)
#define IGNORED(option) OPTION_IGNORED_ROW (option)
#define PROGRAM         "Megatron-SWIFT"

static const OptionRow rows[] = {
  RULE ("model"), RULE ("load"), RULE ("mcore_model"), RULE ("max_length"), RULE ("packing"),
  RULE ("packing_length"), RULE ("padding_free"), RULE ("torch_dtype"), RULE ("task_type"),
  RULE ("rlhf_type"), RULE ("tuner_type"), RULE ("train_type"), RULE ("lora_rank"), RULE ("lora_dropout"),
  RULE ("target_modules"), RULE ("recompute_granularity"), RULE ("apply_rope_fusion"),
  RULE ("overlap_p2p_comm"), RULE ("sequence_parallel"),
  /* data, templates, checkpoints and logs; freeze_vit and its kin are of what sees, which is left out */
  IGNORED ("adapters"), IGNORED ("add_non_thinking_prefix"), IGNORED ("add_version"),
  IGNORED ("agent_template"), IGNORED ("aligner_lr"), IGNORED ("cached_dataset"), IGNORED ("callbacks"),
  IGNORED ("check_model"), IGNORED ("columns"), IGNORED ("create_checkpoint_symlink"), IGNORED ("custom_*"),
  IGNORED ("data_seed"), IGNORED ("dataset"), IGNORED ("dataset_*"), IGNORED ("ddp_timeout"),
  IGNORED ("download_mode"), IGNORED ("enable_thinking"), IGNORED ("freeze_aligner"), IGNORED ("freeze_vit"),
  IGNORED ("greater_is_better"), IGNORED ("hub_token"), IGNORED ("interleave_prob"),
  IGNORED ("lazy_tokenize"), IGNORED ("load_data_args"), IGNORED ("load_from_cache_file"),
  IGNORED ("logging_steps"), IGNORED ("lora_alpha"), IGNORED ("lora_bias"), IGNORED ("loss_scale"),
  IGNORED ("max_shard_size"), IGNORED ("merge_lora"), IGNORED ("metric"), IGNORED ("metric_for_best_model"),
  IGNORED ("model_author"), IGNORED ("model_kwargs"), IGNORED ("model_name"), IGNORED ("model_revision"),
  IGNORED ("model_type"), IGNORED ("num_train_epochs"), IGNORED ("output_dir"), IGNORED ("packing_num_proc"),
  IGNORED ("ref_*"), IGNORED ("remove_unused_columns"), IGNORED ("report_to"), IGNORED ("response_prefix"),
  IGNORED ("safe_serialization"), IGNORED ("save_*"), IGNORED ("shuffle_buffer_size"),
  IGNORED ("split_dataset_ratio"), IGNORED ("stopping_strategy"), IGNORED ("stream"), IGNORED ("streaming"),
  IGNORED ("strict"), IGNORED ("swanlab_*"), IGNORED ("system"), IGNORED ("template"),
  IGNORED ("template_backend"), IGNORED ("to_hf"), IGNORED ("train_dataloader_shuffle"),
  IGNORED ("truncation_strategy"), IGNORED ("use_chat_template"), IGNORED ("use_hf"), IGNORED ("use_rslora"),
  IGNORED ("val_dataset"), IGNORED ("val_dataset_shuffle"), IGNORED ("vit_*"),
  OPTION_AS_ROW ("*", "*"), /* of Megatron-LM */
};

static const OptionTable table = { rows, G_N_ELEMENTS (rows), NULL, NULL, NULL };

/* What it takes where nothing is said, and Megatron-LM does not. A vocabulary is cut over tp and padded no
 * further (mcore_bridge/model/gpt_model.py). */
static const char *const defaults[][2] = {
  { "micro_batch_size", "1" },
  { "global_batch_size", "16" },
  { "recompute_granularity", "selective" },
  { "use_distributed_optimizer", "true" },
  { "attention_backend", "flash" },
  { "cross_entropy_loss_fusion", "true" },
  { "expert_tensor_parallel_size", "1" },
  { "moe_grouped_gemm", "true" },
  { "moe_token_dispatcher_type", "alltoall" },
  { "make_vocab_size_divisible_by", "1" },
};

typedef struct {
  LaunchJob job; /* by options of its own */
  LaunchWords *megatron;
} Swift;

static void
say (const Swift *s, const char *name, const char *value)
{
  launch_words_add_by (s->megatron, false, name, value);
}

/* --- what it says of a job of Megatron-LM ------------------------------------------------------------ */

/* _init_mixed_precision (): of a model in fp32 it makes fp16. */
static void
say_format (const Swift *s)
{
  const char *format = option_text (&s->job, "torch_dtype");
  bool is_said = option_is_on (&s->job, "fp16") || option_is_on (&s->job, "bf16"),
       is_narrow = format && (strcmp (format, "float16") == 0 || strcmp (format, "float32") == 0);
  option_tell_other (&s->job, "torch_dtype", "bfloat16 float16 float32", "bfloat16");
  if (is_said)
    return;
  say (s, is_narrow ? "fp16" : "bf16", "true");
  if (!format)
    import_infer (s->job.import, "--bf16: the model's config.json is taken to say bfloat16, as torch_dtype");
}

/* A member of the namespace that Megatron-LM's command line has under another name, or not as this value. */
static void
say_switches (const Swift *s)
{
  const char *granularity = option_text (&s->job, "recompute_granularity");
  if (granularity && strcmp (granularity, "none") != 0)
    launch_words_add_renamed (s->megatron, "recompute_granularity",
                              launch_words_find (s->job.words, "recompute_granularity"));
  if (!option_is_on (&s->job, "apply_rope_fusion"))
    say (s, "no_rope_fusion", "true");
  if (option_is_off (&s->job, "overlap_p2p_comm"))
    say (s, "no_overlap_p2p_communication", "true");
  if (option_is_on (&s->job, "sequence_parallel")
      && option_number (&s->job, "tensor_model_parallel_size") > 1)
    launch_words_add_renamed (s->megatron, "sequence_parallel",
                              launch_words_find (s->job.words, "sequence_parallel"));
}

static void
set_length (const Swift *s)
{
  LsImport *import = s->job.import;
  bool is_packed = option_is_on (&s->job, "packing");
  guint64 n = is_packed ? option_number (&s->job, "packing_length") : 0;
  n = n > 0 ? n : option_number (&s->job, "max_length");
  if (n > 0)
    import_set_model_number (import, "seq", n);
  else
    import_open (import, "seq", "max_length: that of the model, as no option says it");
  if (is_packed)
    import_open (import, "lengths",
                 "--packing: attention is inside documents, whose lengths are not in the file: taken to be "
                 "over whole sequences (lengths)");
  else
    import_unknown (import,
                    "max_length: sequences are taken to be that long; without packing most are shorter");
}

/* By its file behind the script, or by its name. A checkpoint of Megatron-Core alone names none. */
static void
set_model (const Swift *s)
{
  LsImport *import = s->job.import;
  const char *name = option_text (&s->job, "model"), *older = option_text (&s->job, "load");
  older = older ? older : option_text (&s->job, "mcore_model");
  if (import_has_model (import, "layers"))
    return;
  if (name)
    import_model_of_name (import, name);
  else
    import_unknown (import, "the model: %s%s names none; its config.json may stand behind this one",
                    older ? "the checkpoint " : "no --model", older ? older : "");
}

static void
set_adapters (const Swift *s)
{
  const char *tuner = option_text (&s->job, "tuner_type");
  const LaunchOption *on = launch_words_find (s->job.words, "target_modules");
  tuner = tuner ? tuner : option_text (&s->job, "train_type");
  if (!tuner || strcmp (tuner, "full") == 0)
    return;
  const LaunchAdapters adapters = { .option = "--tuner_type",
                                    .rank = option_number (&s->job, "lora_rank"),
                                    .usual_rank = 8,
                                    .on = on ? on->values : NULL,
                                    .dropout = option_text (&s->job, "lora_dropout") };
  launch_set_adapters (s->job.import, &adapters);
}

static void
read_job (Swift *s)
{
  LsImport *import = s->job.import;
  option_translate (&s->job, s->megatron);
  say_format (s);
  say_switches (s);
  megatron_namespace (s->megatron);
  LaunchJob job = { .import = import,
                    .words = s->megatron,
                    .table = megatron_options (),
                    .gpus = s->job.gpus,
                    .variables = s->job.variables };
  import_set_software (import, "megatron");
  import_infer (import, "software megatron: ms-swift asks for Megatron-Core 0.15 or later");
  set_length (s);
  option_read_all (&job);
  set_model (s);
  program_run_map ("megatron", "strategy", &job, NULL, NULL);
  set_adapters (s);
  program_run_map ("megatron", "kernels", &job, NULL, NULL);
  g_hash_table_unref (job.open);
}

/* --- the script -------------------------------------------------------------------------------------- */

static bool
check_task (const LaunchJob *job, const char *command, const char *path, LsDiagList *diags)
{
  const char *task = option_text (job, "task_type");
  if (command && strcmp (command, "megatron sft") != 0 && strcmp (command, "megatron pt") != 0
      && g_str_has_prefix (command, "megatron "))
    return import_refuse_task (path, diags, "%s", command);
  if (option_is_there (job, "rlhf_type"))
    return import_refuse_task (path, diags, "--rlhf_type");
  if (task && strcmp (task, "causal_lm") != 0)
    return import_refuse_task (path, diags, "--task_type %s", task);
  return true;
}

/* "--packing true" as a switch that is on. */
static void
add_said (LaunchWords *to, const LaunchWords *said)
{
  for (guint i = 0; i < said->options->len; i++) {
    const LaunchOption *o = said->options->pdata[i];
    const char *value = o->values->len == 1 ? o->values->pdata[0] : NULL;
    if (value && (g_ascii_strcasecmp (value, "true") == 0 || g_ascii_strcasecmp (value, "false") == 0))
      launch_words_add_value (to, o->name, g_ascii_strcasecmp (value, "true") == 0 ? "true" : "False");
    else
      launch_words_add_renamed (to, o->name, o);
  }
}

/* ENV of a file: what its processes see. */
static void
add_environment (cJSON *tree, LsImport *import)
{
  cJSON *env = cJSON_DetachItemFromObjectCaseSensitive (tree, "ENV"), *one;
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  cJSON_ArrayForEach (one, env)
  {
    char *text = yaml_config_text (one);
    if (text)
      g_hash_table_insert (seen, g_strdup (one->string), text);
  }
  launch_environment (true, seen, seen, import);
  cJSON_Delete (env);
}

/* "megatron sft FILE.yaml": arguments before those of the command. */
static bool
add_file (const ImportFiles *files, const LaunchWords *said, LaunchWords *to, LsImport *import,
          LsDiagList *diags)
{
  const LaunchOption *config = launch_words_find (said, "config");
  const GPtrArray *names = config ? config->values : said->others;
  const char *name = names->len > 0 ? names->pdata[0] : NULL;
  gsize n;
  if (!name || !(launch_is_yaml (name) || g_str_has_suffix (name, ".json")))
    return true;
  g_autofree char *text = launch_file_of (files, name, &n);
  cJSON *tree = text ? ls_yaml_parse (text, n, name, NULL, diags) : NULL;
  if (!text)
    return launch_refuse_config (name, import, diags);
  if (!tree)
    return false;
  add_environment (tree, import);
  launch_words_add_tree (to, tree);
  cJSON_Delete (tree);
  return true;
}

static bool
read_started (const ImportFiles *files, const LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) own = launch_words_new (), megatron = launch_words_new ();
  for (guint i = 0; i < G_N_ELEMENTS (defaults); i++)
    launch_words_add_by (own, false, defaults[i][0], defaults[i][1]);
  if (!add_file (files, script->words, own, import, diags))
    return false;
  add_said (own, script->words);
  Swift s = { .job = { .import = import,
                       .words = own,
                       .table = &table,
                       .gpus = script->gpus,
                       .variables = script->variables },
              .megatron = megatron };
  if (!check_task (&s.job, script->script, files->files[0].path, diags)
      || !hf_read_model (files, import, diags))
    return false;
  read_job (&s);
  return true;
}

static bool
is_command (const char *word, const char *next)
{
  return (strcmp (word, "megatron") == 0 && next && g_ascii_isalpha (*next))
      || g_str_has_suffix (word, "cli/_megatron/sft.py") || g_str_has_suffix (word, "cli/_megatron/pt.py");
}

static bool
starts (char *const *words, guint n)
{
  for (guint i = 0; i < n; i++)
    if (is_command (words[i], i + 1 < n ? words[i + 1] : NULL))
      return true;
  return false;
}

static bool
is_known (const char *name)
{
  const OptionRow *row = option_find (&table, name);
  return row && !row->key;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = PROGRAM, .is_known = is_known, .n_needed = 1, .starts = starts, .has_te = true };
  LaunchScript script;
  import->program = PROGRAM;
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && read_started (files, &script, import, diags);
  launch_script_clear (&script);
  return ok;
}

static bool
is_its (const ImportFile *file)
{
  static const char *const marks[]
      = { "megatron sft", "megatron pt", "megatron rlhf", "megatron export", "cli/_megatron/" };
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (strstr (file->text, marks[i]))
      return true;
  return false;
}

const ImportReader import_megatron_swift = { "a script of Megatron-SWIFT", is_its, read };
