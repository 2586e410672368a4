/* Any bytes as YAML: a tree within its bounds, which as JSON is the same, or a reason with a line. */
#include "fuzz.h"

#include <string.h>

#include "data/text/json_scan.h"
#include "data/text/yaml.h"

/* A tag on a list is a level of its own in the tree. */
static guint
count (const cJSON *node, guint depth)
{
  guint n = 1;
  g_assert (depth <= 2 * LS_JSON_MAX_DEPTH);
  for (const cJSON *c = node->child; c; c = c->next) {
    g_assert (!cJSON_IsObject (node) || (c->string && g_utf8_validate (c->string, -1, NULL)));
    n += count (c, depth + 1);
  }
  return n;
}

static void
read_back (const cJSON *root)
{
  char *text = cJSON_PrintUnformatted (root);
  g_assert (text && g_utf8_validate (text, -1, NULL));
  cJSON *again = cJSON_Parse (text);
  g_assert (again);
  char *text_again = cJSON_PrintUnformatted (again);
  g_assert_cmpstr (text, ==, text_again);
  cJSON_free (text_again);
  cJSON_Delete (again);
  cJSON_free (text);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  cJSON *root = ls_yaml_parse ((const char *) data, n, "fuzz.yaml", notes, diags);
  g_assert ((root != NULL) == (ls_diag_list_n (diags) == 0));
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
  if (!root)
    return 0;
  g_assert (count (root, 0) <= LS_YAML_MAX_NODES);
  read_back (root);
  cJSON_Delete (root);
  return 0;
}
