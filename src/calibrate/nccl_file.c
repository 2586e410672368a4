#include "calibrate/nccl_file.h"

#include "data/machines/machines.h"

/* In the place of the member that was there, else at the end; takes value. */
static void
put (cJSON *object, const char *key, cJSON *value)
{
  if (!cJSON_ReplaceItemInObjectCaseSensitive (object, key, value))
    cJSON_AddItemToObject (object, key, value);
}

static cJSON *
value_of (const LsNcclChange *c)
{
  return c->is_number ? cJSON_CreateNumber (g_ascii_strtod (c->now, NULL)) : cJSON_CreateString (c->now);
}

char *
ls_nccl_rewrite (const LsJsonDoc *base, const char *name, const char *source, const GArray *changes,
                 const char *why)
{
  cJSON *root = cJSON_Duplicate (ls_json_doc_root (base), true);
  cJSON *sources = cJSON_DetachItemFromObjectCaseSensitive (root, "sources");
  if (!sources)
    sources = cJSON_CreateObject ();
  cJSON_ReplaceItemInObjectCaseSensitive (root, "name", cJSON_CreateString (name));
  cJSON_ReplaceItemInObjectCaseSensitive (root, "source", cJSON_CreateString (source));
  for (guint i = 0; i < changes->len; i++) {
    const LsNcclChange *c = &g_array_index (changes, LsNcclChange, i);
    g_autofree char *reason
        = g_strconcat (c->is_derived ? "follows from what was fitted: " : "fitted: ", why, NULL);
    put (root, c->key, value_of (c));
    cJSON_DeleteItemFromObjectCaseSensitive (sources, c->key);
    cJSON_AddItemToObject (sources, c->key, cJSON_CreateString (reason));
  }
  cJSON_AddItemToObject (root, "sources", sources);
  char *text = ls_cluster_print (root);
  cJSON_Delete (root);
  return text;
}
