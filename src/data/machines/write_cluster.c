/* data/machines/write_cluster.c — a cluster's file with some of it changed. */
#include "data/machines/machines.h"

#include "data/datadir.h"
#include "data/text/override.h"

/* cJSON indents with tabs; our files have two blanks. Tabs inside strings are escapes. */
static char *
with_blanks (const char *printed)
{
  GString *out = g_string_new (NULL);
  for (const char *c = printed; *c; c++)
    if (*c != '\t')
      g_string_append_c (out, *c);
    else
      g_string_append (out, c[-1] == ':' ? " " : "  ");
  g_string_append_c (out, '\n');
  return g_string_free (out, FALSE);
}

char *
ls_cluster_print (const cJSON *root)
{
  char *printed = cJSON_Print (root), *text = with_blanks (printed);
  cJSON_free (printed);
  return text;
}

LsJsonDoc *
ls_cluster_with_own_gpu (LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu");
  if (!cJSON_IsString (node))
    return doc;
  g_autoptr (LsJsonDoc) gpu = ls_data_load (LS_DATA_GPUS, node->valuestring, diags);
  if (!gpu) {
    ls_json_doc_free (doc);
    return NULL;
  }
  cJSON *own = cJSON_Duplicate (ls_json_doc_root (gpu), true);
  cJSON_DeleteItemFromObjectCaseSensitive (own, "schema");
  char *text = cJSON_PrintUnformatted (own);
  doc = ls_json_doc_replace (doc, node, text, diags);
  cJSON_free (text);
  cJSON_Delete (own);
  return doc;
}

char *
ls_cluster_changed_to_json (LsJsonDoc *base, const GPtrArray *changes, const char *name, const char *source,
                            LsDiagList *diags)
{
  for (guint i = 0; base && i < changes->len; i++)
    base = ls_override_apply (base, g_ptr_array_index (changes, i), diags);
  if (!base)
    return NULL;
  cJSON *root = cJSON_Duplicate (ls_json_doc_root (base), true);
  cJSON_ReplaceItemInObjectCaseSensitive (root, "name", cJSON_CreateString (name));
  cJSON_ReplaceItemInObjectCaseSensitive (root, "source", cJSON_CreateString (source));
  char *text = ls_cluster_print (root);
  cJSON_Delete (root);
  ls_json_doc_free (base);
  return text;
}
