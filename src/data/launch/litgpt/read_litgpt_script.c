/* A script that runs a command of LitGPT that trains:
 *
 *     litgpt finetune_lora MODEL [--config FILE] [--train.micro_batch_size 4 ...]
 *
 * The file, which may be a URL of config_hub, stands beside the script or behind it; options lie on top of
 * it, and MODEL is the one that a command needs (jsonargparse). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/litgpt/litgpt_rules.h"
#include "data/launch/yaml_config.h"

static bool
is_known (const char *name)
{
  return strcmp (name, "config") == 0 || option_find (&litgpt_options, name);
}

/* "litgpt pretrain", and "python -m litgpt pretrain". */
static bool
starts (char *const *words, guint n)
{
  for (guint i = 1; i < n; i++)
    if (strcmp (words[i - 1], "litgpt") == 0 && litgpt_command (words[i]))
      return true;
  return false;
}

/* What is run, which of a module is the first word. */
static const LitgptCommand *
command_of (const LaunchScript *script)
{
  const char *blank = script->script ? strchr (script->script, ' ') : NULL;
  GPtrArray *others = script->words->others;
  if (blank)
    return litgpt_command (blank + 1);
  const LitgptCommand *command = others->len > 0 ? litgpt_command (others->pdata[0]) : NULL;
  if (command)
    g_ptr_array_remove_index (others, 0);
  return command;
}

static void
add_options (cJSON *tree, const LaunchWords *words, const LitgptCommand *command)
{
  const char *model = launch_words_alone (words, NULL);
  for (guint i = 0; i < words->options->len; i++) {
    const LaunchOption *o = words->options->pdata[i];
    if (strcmp (o->name, "config") != 0)
      yaml_config_set (tree, o->name, o->values->len > 0 ? o->values->pdata[0] : "true");
  }
  if (model)
    yaml_config_set (tree, command->model, model);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = "LitGPT", .is_known = is_known, .n_needed = 1, .starts = starts };
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags);
  const LitgptCommand *command = ok ? command_of (&script) : NULL;
  if (ok && !command)
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, NULL,
                 "how litgpt is started here is not known");
  cJSON *tree = command ? yaml_config_of_option (files, script.words, "config", import, diags) : NULL;
  if (tree)
    add_options (tree, script.words, command);
  launch_script_clear (&script);
  return tree && litgpt_read (tree, command, files, import, diags);
}

static bool
is_its (const ImportFile *file)
{
  const char *at = strstr (file->text, "litgpt pretrain");
  return at || strstr (file->text, "litgpt finetune");
}

const ImportReader import_litgpt_script = { NULL, is_its, read };
