/* Options of Megatron-LM: a list of them, or the shell script that launches it. */
#include "data/launch/megatron/megatron_rules.h"

#include <string.h>

#include <lockstep/error.h>

#include "data/launch/deepspeed_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/yaml_config.h"

/* --- what trains no decoder ------------------------------------------------------------------------- */

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
} foreign_marks[] = {
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
  for (guint i = 0; i < G_N_ELEMENTS (foreign_marks); i++)
    if (launch_words_find (words, foreign_marks[i].option)) {
      g_autofree char *name = g_strdup_printf ("--%s:", foreign_marks[i].option);
      return refuse (name, foreign_marks[i].what, path, diags);
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

/* --- reading ---------------------------------------------------------------------------------------- */

static bool
is_known (const char *name)
{
  const OptionRow *row = option_find (&megatron_options, name);
  return row && row->kind <= OPTION_STRATEGY && !row->on;
}

/* Encoders have layers as decoders have, and other tasks. */
static bool
check_script (const LaunchScript *script, LsImport *import, const char *path, LsDiagList *diags)
{
  if (!megatron_trains_decoder (script->words, script->script, path, diags))
    return false;
  static const char *const known[] = { "pretrain_gpt", "pretrain_mamba", "pretrain_hybrid", "pretrain_t5" };
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (script->script && g_str_has_prefix (script->script, known[i]))
      return true;
  if (script->script)
    import_unknown (import, "%s: its model is taken for a decoder of these layers, as pretrain_gpt.py has",
                    script->script);
  return true;
}

/* The stage of ZeRO, which the file of DeepSpeed has where no option has it. */
static void
add_stage (const ImportFiles *files, LaunchWords *words)
{
  const LaunchOption *o = launch_words_find (words, "deepspeed-config");
  const char *name = o && o->values->len > 0 ? o->values->pdata[0] : NULL;
  gsize n;
  g_autofree char *text
      = name && !launch_words_find (words, "zero-stage") ? launch_file_of (files, name, &n) : NULL;
  g_autoptr (LaunchWords) deepspeed = launch_words_new ();
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  if (!text || !deepspeed_add_json (deepspeed, text, n, name, none))
    return;
  const LaunchOption *stage = launch_words_find (deepspeed, "zero_optimization.stage");
  if (stage)
    launch_words_add_renamed (words, "zero-stage", stage);
  else
    launch_words_add_value (words, "zero-stage", "0");
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { "Megatron-LM", is_known, 3, true, .is_last = true };
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && check_script (&script, import, files->files[0].path, diags);
  if (ok) {
    LaunchJob job = { .import = import, .words = script.words, .script = script.script, .gpus = script.gpus };
    add_stage (files, script.words);
    megatron_read (&job);
  }
  launch_script_clear (&script);
  return ok;
}

/* Any text that has an option of it, but for a mapping of YAML: a page with a command in it is no script. */
static bool
is_its (const ImportFile *file)
{
  static const char *const marks[] = { "--num-layers",       "--tensor-model-parallel-size", "--hidden-size",
                                       "--micro-batch-size", "--tensor_model_parallel_size", "pretrain_gpt" };
  const char *p = file->text;
  while (g_ascii_isspace (*p))
    p++;
  bool is_its = false;
  for (guint i = 0; i < G_N_ELEMENTS (marks) && *p != '{'; i++)
    is_its = is_its || strstr (file->text, marks[i]);
  if (is_its)
    return !cJSON_IsObject (yaml_config_tree (file));
  return g_str_has_prefix (file->text, "#!");
}

const ImportReader import_megatron = { "options or a launch script of Megatron-LM", is_its, read };
