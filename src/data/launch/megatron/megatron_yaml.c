/* Arguments in YAML, --yaml-cfg, which stand for those of the command: megatron/training/yaml_arguments.py of
 * NVIDIA/Megatron-LM (core 0.7 and later). Members of language_model and model_parallel are arguments of the
 * same names. */
#include <string.h>

#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/yaml_config.h"

/* core_transformer_config_from_yaml (): what is another argument on a command line. */
static void
add_switches (LaunchWords *words)
{
  const char *activation = launch_words_text (words, "activation_func");
  if (activation && strcmp (activation, "swiglu") == 0)
    launch_words_add_value (words, "swiglu", NULL);
  else if (activation && strcmp (activation, "squaredrelu") == 0)
    launch_words_add_value (words, "squared-relu", NULL);
  if (launch_words_text (words, "num_query_groups"))
    launch_words_add_value (words, "group-query-attention", NULL);
}

LaunchWords *
megatron_yaml_words (const ImportFiles *files, const LaunchWords *own, LsImport *import, LsDiagList *diags)
{
  static const char *const parts[] = { "language_model", "model_parallel" };
  cJSON *tree = yaml_config_of_option (files, own, "yaml-cfg", import, diags);
  if (!tree)
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    yaml_config_lift (tree, parts[i]);
  LaunchWords *words = yaml_config_words (tree);
  add_switches (words);
  megatron_namespace (words);
  for (guint i = 0; i < own->options->len; i++) {
    const LaunchOption *o = own->options->pdata[i];
    if (strcmp (o->name, "yaml-cfg") != 0 && strcmp (o->name, "yaml_cfg") != 0)
      import_unknown (import, "%s: with --yaml-cfg the file says all, and options of the command nothing",
                      o->written);
  }
  return words;
}
