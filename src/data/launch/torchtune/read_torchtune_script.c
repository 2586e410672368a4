/* A script that starts a recipe of torchtune by its command:
 *
 *     tune run [options of torchrun] RECIPE --config NAME [key=value ...]
 *
 * NAME is a path, or that of a configuration that torchtune comes with, "llama3/8B_full"
 * (torchtune/_cli/run.py of pytorch/torchtune bd2a0fc7). Its file stands beside the script or behind it.
 * Pairs lie on top of it; "~key" takes one away, and the value of a component is its "_component_"
 * (torchtune/config/_utils.py). */
#include <string.h>

#include "data/launch/torchtune/torchtune_options.h"
#include "data/launch/yaml_config.h"

static bool
is_known (const char *name)
{
  return strcmp (name, "config") == 0;
}

/* A member by its path. */
static void
drop (cJSON *tree, const char *path)
{
  const char *dot = strrchr (path, '.');
  g_autofree char *front = dot ? g_strndup (path, (gsize) (dot - path)) : NULL;
  cJSON *parent = front ? yaml_config_find (tree, front) : tree;
  if (cJSON_IsObject (parent))
    cJSON_DeleteItemFromObjectCaseSensitive (parent, dot ? dot + 1 : path);
}

/* "loss=torchtune.modules.loss.LinearCrossEntropyLoss" names a component anew; "~lr_scheduler" drops one. */
static void
add_pair (cJSON *tree, const char *word, LsImport *import)
{
  const char *equals = strchr (word, '=');
  if (*word == '~') {
    drop (tree, word + 1);
    return;
  }
  if (!equals) {
    import_unknown (import, "%s: behind the name of a configuration", word);
    return;
  }
  g_autofree char *path = g_strndup (word, (gsize) (equals - word)),
                  *component = g_strconcat (path, "._component_", NULL);
  yaml_config_set (tree, cJSON_IsObject (yaml_config_find (tree, path)) ? component : path, equals + 1);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { .program = "torchtune", .is_known = is_known, .n_needed = 1 };
  LaunchScript script;
  import->program = "torchtune";
  cJSON *tree = yaml_config_of_script (files, &kind, "config", &script, import, diags);
  const LaunchOption *config = tree ? launch_words_find (script.words, "config") : NULL;
  for (guint i = 1; config && i < config->values->len; i++)
    add_pair (tree, config->values->pdata[i], import);
  guint64 gpus = script.gpus;
  launch_script_clear (&script);
  return tree && torchtune_read (tree, gpus, files, import, diags);
}

static bool
is_its (const ImportFile *file)
{
  return strstr (file->text, "tune run") && strstr (file->text, "--config");
}

const ImportReader import_torchtune_script = { NULL, is_its, read };
