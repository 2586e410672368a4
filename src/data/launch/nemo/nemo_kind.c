/* Of which jobs of NeMo a model is none of Lockstep, or does not learn the next token. */
#include <lockstep/error.h>
#include <string.h>

#include "data/launch/nemo/nemo_rules.h"
#include "data/launch/yaml_config.h"

bool
nemo_has_sides (const cJSON *tree)
{
  return cJSON_IsObject (yaml_config_find (tree, "model.encoder"))
      && cJSON_IsObject (yaml_config_find (tree, "model.decoder"));
}

/* What NeMo 1 and its launcher call configurations of other models, of which some take all parts from
 * elsewhere. */
static const char *
other_name (const cJSON *tree)
{
  static const char *const keys[] = { "name", "run.name" }, *const names[] = { "_t5",      "_t0",
                                                                               "_bart",    "_ul2",
                                                                               "_griffin", "griffin_",
                                                                               "retro",    "_bert",
                                                                               "_audio" };
  for (guint k = 0; k < G_N_ELEMENTS (keys); k++) {
    const cJSON *name = yaml_config_find (tree, keys[k]);
    for (guint i = nemo_has_sides (tree); i < G_N_ELEMENTS (names) && cJSON_IsString (name); i++)
      if (strstr (name->valuestring, names[i]))
        return name->valuestring;
  }
  return NULL;
}

/* What only jobs have that train no decoder on the next token: rewards and preferences of NeMo-Aligner,
 * prompts that are learnt, checkpoints that are converted. What generates has no optimizer and nothing to
 * train on. */
static bool
check_task (const cJSON *tree, const char *path, LsDiagList *diags)
{
  static const char *const marks[] = { "trainer.rm",
                                       "trainer.ppo",
                                       "trainer.dpo",
                                       "trainer.reinforce",
                                       "model.reward_model_type",
                                       "model.ppo",
                                       "model.dpo",
                                       "model.virtual_prompt_style",
                                       "run.huggingface_ckpt_path" };
  static const char *const trains[] = { "model.optim", "optim", "model.data.train_ds", "data.train_ds" };
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (yaml_config_find (tree, marks[i]))
      return import_refuse_task (path, diags, "%s", marks[i]);
  bool is_trained = !yaml_config_find (tree, "inference");
  for (guint i = 0; i < G_N_ELEMENTS (trains); i++)
    is_trained = is_trained || yaml_config_find (tree, trains[i]);
  return is_trained || import_refuse_task (path, diags, "inference without an optimizer");
}

bool
nemo_check_kind (const cJSON *tree, const char *path, LsDiagList *diags)
{
  static const char *const others[][2] = { { "model.retro", "a retriever" },
                                           { "model.vision", "a model of images" },
                                           { "model.vision_pretraining_type", "a model of images" },
                                           { "model.bert_binary_head", "an encoder" },
                                           { "model.unet_config", "a diffusion model" },
                                           { "model.hyena", "layers of Hyena" } };
  static const char *const sides[]
      = { "model.encoder", "model.decoder", "model.pipeline_model_parallel_split_rank" };
  const char *name = other_name (tree);
  if (!check_task (tree, path, diags))
    return false;
  if (name) {
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                 "name %s; a model of Lockstep is a decoder with attention", name);
    return false;
  }
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    const cJSON *node = yaml_config_find (tree, others[i][0]);
    if (!node || cJSON_IsNull (node) || cJSON_IsFalse (node))
      continue;
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                 "%s: %s; a model of Lockstep is a decoder with attention", others[i][0], others[i][1]);
    return false;
  }
  for (guint i = 0; i < G_N_ELEMENTS (sides) && !nemo_has_sides (tree); i++)
    if (cJSON_IsObject (yaml_config_find (tree, sides[i]))
        || cJSON_IsNumber (yaml_config_find (tree, sides[i]))) {
      ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                   "%s: an encoder and a decoder, of which it does not say both", sides[i]);
      return false;
    }
  return true;
}
