/* Any bytes as TOML or YAML: a tree within its bounds, which as JSON is read again, of YAML as the same, or a
 * reason with a line. fuzz_target is which. */
#include "fuzz.h"

#include <string.h>

#include "data/text/json_doc.h"
#include "data/text/toml.h"
#include "data/text/yaml.h"

typedef struct {
  const char *target;
  cJSON *(*parse) (const char *text, gsize n, LsDiagList *diags);
  guint max_depth, max_items, max_reasons;
  bool is_same; /* when it is printed and read again; TOML has numbers that JSON has not */
} Kind;

static cJSON *
parse_toml (const char *text, gsize n, LsDiagList *diags)
{
  return ls_toml_parse (text, n, "fuzz.toml", diags);
}

static cJSON *
parse_yaml (const char *text, gsize n, LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  return ls_yaml_parse (text, n, "fuzz.yaml", notes, diags);
}

/* A tag on a list of YAML is a level of its own in the tree. */
static const Kind kinds[] = {
  { "toml", parse_toml, LS_JSON_MAX_DEPTH - 1, LS_TOML_MAX_ITEMS + 1, 1, false },
  { "yaml", parse_yaml, 2 * LS_JSON_MAX_DEPTH, LS_YAML_MAX_NODES, G_MAXUINT, true },
};

/* Items of a tree; no name or text is missing. */
static guint
count (const Kind *kind, const cJSON *item, guint depth)
{
  guint n = 1;
  g_assert (depth <= kind->max_depth);
  g_assert (!cJSON_IsString (item) || g_utf8_validate (item->valuestring, -1, NULL));
  for (const cJSON *c = item->child; c; c = c->next) {
    g_assert (!cJSON_IsObject (item) || (c->string && g_utf8_validate (c->string, -1, NULL)));
    n += count (kind, c, depth + 1);
  }
  return n;
}

static void
read_back (const Kind *kind, const cJSON *root)
{
  char *text = cJSON_PrintUnformatted (root);
  g_assert (text && g_utf8_validate (text, -1, NULL));
  cJSON *again = cJSON_Parse (text);
  g_assert (again);
  char *text_again = cJSON_PrintUnformatted (again);
  g_assert (!kind->is_same || g_str_equal (text, text_again));
  cJSON_free (text_again);
  cJSON_Delete (again);
  cJSON_free (text);
}

static void
run (const Kind *kind, const char *data, gsize n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *root = kind->parse (data, n, diags);
  guint n_reasons = ls_diag_list_n (diags);
  g_assert (root ? n_reasons == 0 : n_reasons >= 1 && n_reasons <= kind->max_reasons);
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
  if (!root)
    return;
  g_assert (count (kind, root, 0) <= kind->max_items);
  read_back (kind, root);
  cJSON_Delete (root);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].target, fuzz_target) == 0) {
      run (&kinds[i], (const char *) data, n);
      return 0;
    }
  fuzz_fail ("no kind of text: %s", fuzz_target);
}
