/* Tasks of SkyPilot as the shell script that each node runs: "run" behind "envs", on "num_nodes" nodes with
 * the accelerators of "resources" (docs.skypilot.co/en/latest/reference/yaml-spec.html). */
#include <string.h>

#include "data/launch/kubernetes/kubernetes.h"
#include "data/launch/yaml_config.h"

/* "H100:8", {H100: 8}, the first of [H100:8, A100:8]; "H100" is one. 0: it does not say. */
static guint64
count_accelerators (const cJSON *said)
{
  const cJSON *one = cJSON_IsArray (said) || cJSON_IsObject (said) ? said->child : said;
  if (cJSON_IsNumber (one))
    return one->valuedouble >= 1 && one->valuedouble <= 1024 ? (guint64) one->valuedouble : 0;
  const char *name = cJSON_GetStringValue (one), *colon = name ? strrchr (name, ':') : NULL;
  return colon ? MIN (g_ascii_strtoull (colon + 1, NULL, 10), 1024) : name && *name;
}

static void
add_number (GString *script, const char *name, guint64 value)
{
  if (value > 0)
    g_string_append_printf (script, "export %s=%" G_GUINT64_FORMAT "\n", name, value);
}

static void
add_task (GString *script, const cJSON *tree, guint64 nodes, guint64 each)
{
  static const char *const keys[] = { "envs", "secrets" };
  const cJSON *item;
  g_string_append (script, "export SKYPILOT_NODE_RANK=0\n"); /* the script is the first node's */
  add_number (script, "SKYPILOT_NUM_NODES", nodes);
  add_number (script, "SKYPILOT_NUM_GPUS_PER_NODE", each);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive (tree, keys[i]))
    {
      g_autofree char *text = kubernetes_text (item);
      if (text)
        kubernetes_add_export (script, item->string, text);
    }
  if (each > 0)
    g_string_append_printf (
        script, KUBERNETES_PODS " --nodes=%" G_GUINT64_FORMAT " --gpus-per-node=%" G_GUINT64_FORMAT "\n",
        nodes, each);
  g_string_append_printf (script, "%s\n", kubernetes_string (tree, "run"));
}

static bool
is_task (const ImportFile *file)
{
  const cJSON *tree = g_str_has_prefix (file->text, "#!") || !g_strrstr (file->text, "run:")
      ? NULL
      : yaml_config_tree (file);
  bool has_place
      = tree && (cJSON_HasObjectItem (tree, "resources") || cJSON_HasObjectItem (tree, "num_nodes"));
  return has_place && *kubernetes_string (tree, "run");
}

void
skypilot_unpack (ImportFile *file, GPtrArray *told)
{
  if (!is_task (file))
    return;
  const cJSON *tree = yaml_config_tree (file);
  const cJSON *number = cJSON_GetObjectItemCaseSensitive (tree, "num_nodes");
  double said = cJSON_IsNumber (number) ? number->valuedouble : 1;
  guint64 nodes = said >= 1 && said <= 1e6 ? (guint64) said : 1,
          each = count_accelerators (yaml_config_find (tree, "resources.accelerators"));
  GString *script = g_string_new ("#!/bin/bash\n");
  add_task (script, tree, nodes, each);
  g_ptr_array_add (told,
                   g_strdup_printf ("a task of SkyPilot: %" G_GUINT64_FORMAT " nodes with %" G_GUINT64_FORMAT
                                    " accelerators each",
                                    nodes, each));
  kubernetes_put_in_place (file, script);
  g_string_free (script, TRUE);
}
