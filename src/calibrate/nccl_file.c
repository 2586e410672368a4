#include "calibrate/nccl_file.h"

#include <string.h>

#include "data/text/json_out.h"

static void
append_text (GString *out, const char *text)
{
  LsJsonOut w;
  ls_json_out_init (&w, out, 0);
  ls_json_out_string (&w, NULL, text);
}

static void append_value (GString *out, const cJSON *node);

static void
append_object (GString *out, const cJSON *object)
{
  g_string_append (out, "{ ");
  for (const cJSON *node = object->child; node; node = node->next) {
    append_text (out, node->string);
    g_string_append (out, ": ");
    append_value (out, node);
    g_string_append (out, node->next ? ", " : " }");
  }
}

static void
append_value (GString *out, const cJSON *node)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  if (cJSON_IsObject (node))
    append_object (out, node);
  else if (cJSON_IsString (node))
    append_text (out, node->valuestring);
  else if (cJSON_IsNumber (node))
    g_string_append (out, g_ascii_formatd (number, sizeof number, "%.15g", node->valuedouble));
  else
    g_string_append (out, cJSON_IsTrue (node) ? "true" : cJSON_IsFalse (node) ? "false" : "null");
}

static const LsNcclChange *
change_of (const GArray *changes, const char *key)
{
  for (guint i = 0; i < changes->len; i++)
    if (strcmp (g_array_index (changes, LsNcclChange, i).key, key) == 0)
      return &g_array_index (changes, LsNcclChange, i);
  return NULL;
}

static void
begin_member (GString *out, guint indent, const char *key, bool is_first)
{
  g_string_append_printf (out, "%s\n%*s", is_first ? "" : ",", (int) indent, "");
  append_text (out, key);
  g_string_append (out, ": ");
}

/* Of the base, with a reason for each change in the place of that which was there. */
static void
append_sources (GString *out, const cJSON *base, const GArray *changes, const char *why)
{
  bool is_first = true;
  g_string_append_c (out, '{');
  for (const cJSON *node = base ? base->child : NULL; node; node = node->next) {
    if (change_of (changes, node->string))
      continue;
    begin_member (out, 4, node->string, is_first);
    append_value (out, node);
    is_first = false;
  }
  for (guint i = 0; i < changes->len; i++) {
    const LsNcclChange *c = &g_array_index (changes, LsNcclChange, i);
    g_autofree char *text
        = g_strconcat (c->is_derived ? "follows from what was fitted: " : "fitted: ", why, NULL);
    begin_member (out, 4, c->key, is_first);
    append_text (out, text);
    is_first = false;
  }
  g_string_append (out, "\n  }");
}

static void
append_change (GString *out, const LsNcclChange *c)
{
  if (c->is_number)
    g_string_append (out, c->now);
  else
    append_text (out, c->now);
}

char *
ls_nccl_rewrite (const LsJsonDoc *base, const char *name, const char *source, const GArray *changes,
                 const char *why)
{
  GString *out = g_string_new ("{");
  const cJSON *root = ls_json_doc_root (base), *sources = cJSON_GetObjectItemCaseSensitive (root, "sources");
  bool is_first = true;
  for (const cJSON *node = root->child; node; node = node->next) {
    const LsNcclChange *change = change_of (changes, node->string);
    if (node == sources)
      continue;
    begin_member (out, 2, node->string, is_first);
    is_first = false;
    if (change)
      append_change (out, change);
    else if (strcmp (node->string, "name") == 0)
      append_text (out, name);
    else if (strcmp (node->string, "source") == 0)
      append_text (out, source);
    else
      append_value (out, node);
  }
  for (guint i = 0; i < changes->len; i++) /* keys that the base leaves to their defaults */
    if (!cJSON_GetObjectItemCaseSensitive (root, g_array_index (changes, LsNcclChange, i).key)) {
      begin_member (out, 2, g_array_index (changes, LsNcclChange, i).key, false);
      append_change (out, &g_array_index (changes, LsNcclChange, i));
    }
  begin_member (out, 2, "sources", false);
  append_sources (out, sources, changes, why);
  g_string_append (out, "\n}\n");
  return g_string_free (out, FALSE);
}
