/* The trainer of a configuration of XTuner v1 as members by their paths: what makes each is a member of it,
 * "model_cfg.class", and of a model that also sees the decoder is the model. */
#include <string.h>

#include "data/launch/python/python_names.h"
#include "data/launch/xtuner/xtuner_1_tree.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"

static cJSON *
member (cJSON *tree, const char *name)
{
  cJSON *item = cJSON_GetObjectItemCaseSensitive (tree, name);
  return cJSON_IsObject (item) ? item : NULL;
}

static const char *
text_in (const cJSON *tree, const char *name)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (tree, name);
  return cJSON_IsString (item) ? item->valuestring : NULL;
}

/* None is what holds where nothing is said, everywhere. */
static void
drop_nulls (cJSON *tree)
{
  for (cJSON *item = tree->child, *next; item; item = next) {
    next = item->next;
    if (cJSON_IsNull (item))
      cJSON_Delete (cJSON_DetachItemViaPointer (tree, item));
    else if (cJSON_IsObject (item))
      drop_nulls (item);
  }
}

/* "xtuner.v1.config.AdamWConfig" as "AdamWConfig"; functions of a class have its name in front. */
static const char *
last_name (const char *path)
{
  const char *dot = strrchr (path, '.'), *before = dot;
  if (!dot || ls_shell_has_hole (path))
    return path;
  if (!g_str_has_suffix (path, ".from_hf"))
    return dot + 1;
  while (before > path && before[-1] != '.')
    before--;
  return before;
}

/* What makes an object, and its first argument without a name, where that is a text. */
static void
name_class (cJSON *object)
{
  const char *made = text_in (object, "()"), *first = text_in (object, "0");
  g_autofree char *class = made ? g_strdup (last_name (made)) : NULL, *path = g_strdup (first);
  cJSON *call = cJSON_GetObjectItemCaseSensitive (object, "0"), *of = cJSON_IsObject (call) ? call : NULL;
  if (!path && text_in (of, "0")) /* Path ("...") */
    path = g_strdup (text_in (of, "0"));
  if (class)
    cJSON_AddStringToObject (object, "class", class);
  if (class && path)
    cJSON_AddStringToObject (object, "path", path);
}

/* Members of the decoder lie on top of those of the model around it, whose class is kept apart. */
static void
lift_decoder (cJSON *model)
{
  cJSON *text = cJSON_DetachItemFromObjectCaseSensitive (model, "text_config");
  const char *around = text_in (model, "()");
  if (around && text && text_in (text, "()"))
    cJSON_AddStringToObject (model, "around", last_name (around));
  for (cJSON *item, *next = text && cJSON_IsObject (text) ? text->child : NULL; (item = next);) {
    next = item->next;
    g_autofree char *name = g_strdup (item->string);
    cJSON_DeleteItemFromObjectCaseSensitive (model, name);
    cJSON_AddItemToObject (model, name, cJSON_DetachItemViaPointer (text, item));
  }
  cJSON_Delete (text);
}

/* ep_size = moe_cfg.ep_size, which is the model's own. */
static void
drop_own_degree (cJSON *fsdp)
{
  const char *text = fsdp ? text_in (fsdp, "ep_size") : NULL;
  g_autofree char *end = g_strdup_printf (".ep_size%c", LS_SHELL_HOLE_END);
  if (text && g_str_has_suffix (text, end))
    cJSON_DeleteItemFromObjectCaseSensitive (fsdp, "ep_size");
}

/* Sequences and how documents are packed matter, not which they are; what sees is not simulated. */
static void
drop_rest (cJSON *tree, cJSON *model)
{
  cJSON_DeleteItemFromObjectCaseSensitive (model, "vision_config");
  cJSON_DeleteItemFromObjectCaseSensitive (model, "projector_config");
  cJSON_DeleteItemFromObjectCaseSensitive (tree, "dataset_cfg");
  cJSON *loader = member (tree, "dataloader_cfg");
  if (loader)
    cJSON_DeleteItemFromObjectCaseSensitive (loader, "dataset_config_list");
}

void
xtuner_1_settle (cJSON *tree)
{
  static const char *const parts[] = { "fsdp_cfg", "optim_cfg", "loss_cfg", "dataloader_cfg" };
  cJSON *model = member (tree, "model_cfg"), *attention;
  drop_rest (tree, model);
  drop_own_degree (member (tree, "fsdp_cfg"));
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (member (tree, parts[i]))
      name_class (member (tree, parts[i]));
  if (model) {
    lift_decoder (model);
    name_class (model);
    attention = member (model, "attention");
    if (attention && !python_names_is_open_call (attention))
      name_class (attention);
    if (text_in (model, "class") && !text_in (model, "path"))
      cJSON_DeleteItemFromObjectCaseSensitive (tree, "load_from");
  }
  python_names_forget_calls (tree);
  drop_nulls (tree);
}
