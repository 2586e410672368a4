/* Any text as TOML: a tree that cJSON prints and reads again, or a reason. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "data/text/json_scan.h"
#include "data/text/toml.h"

/* Items of a tree; no name or text is missing, and nothing is deeper than is allowed. */
static guint
count (const cJSON *item, guint depth)
{
  guint n = 1;
  g_assert (depth < LS_JSON_MAX_DEPTH);
  g_assert (!cJSON_IsString (item) || g_utf8_validate (item->valuestring, -1, NULL));
  for (const cJSON *c = item->child; c; c = c->next) {
    g_assert (!cJSON_IsObject (item) || (c->string && g_utf8_validate (c->string, -1, NULL)));
    n += count (c, depth + 1);
  }
  return n;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *tree = ls_toml_parse ((const char *) data, n, "fuzz.toml", diags);
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert ((tree == NULL) == (ls_diag_list_n (diags) == 1));
  g_assert (g_utf8_validate (text, -1, NULL));
  if (!tree)
    return 0;
  g_assert (count (tree, 0) <= LS_TOML_MAX_ITEMS + 1);
  char *printed = cJSON_PrintUnformatted (tree);
  cJSON *again = printed ? cJSON_Parse (printed) : NULL;
  g_assert (again);
  cJSON_Delete (again);
  free (printed);
  cJSON_Delete (tree);
  return 0;
}
