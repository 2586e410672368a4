/* Pins how ${...} of configurations in YAML is resolved. */
#include "ls_test.h"

#include <string.h>

#include "data/launch/yaml_config.h"
#include "import_check.h"

static void
resolved_as (const char *text, const char *expected)
{
  LsImport import = { .made.remarks = g_array_new (FALSE, FALSE, sizeof (LsRemark)) };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const ImportFile file = { .path = "a.yaml", .text = (char *) text, .n = strlen (text) };
  cJSON *tree = cJSON_CreateObject ();
  yaml_config_add (tree, &file, &import, diags);
  yaml_config_resolve (tree);
  char *json = cJSON_PrintUnformatted (tree);
  LS_CHECK_STR (json, expected);
  cJSON_free (json);
  cJSON_Delete (tree);
  g_array_unref (import.made.remarks);
}

/* Examples of the manual of OmegaConf 2.3, and what it would refuse: left as holes. */
static void
interpolations_are_resolved (void)
{
  resolved_as ("{a: 3, b: '${a}', c: {d: '${..a}', e: '${.d}'}, f: 'x${a}y'}",
               "{\"a\":3,\"b\":3,\"c\":{\"d\":3,\"e\":3},\"f\":\"x3y\"}");
  resolved_as (
      "{a: 3, b: '${multiply:4, ${.a}}', c: '${sum:${b},-1}', d: '${oc.env:X,7}', e: '${divide_ceil:7,2}'}",
      "{\"a\":3,\"b\":12,\"c\":11,\"d\":7,\"e\":4}");
  resolved_as ("{a: [1, 2], b: '${a}', c: '${a[1]}', k: a, d: '${${k}}'}",
               "{\"a\":[1,2],\"b\":[1,2],\"c\":2,\"k\":\"a\",\"d\":[1,2]}");
  resolved_as ("{model: {x: 1}, y: '${training.model.x}'}", "{\"model\":{\"x\":1},\"y\":1}");
  resolved_as ("{a: '${b}', b: '${a}'}", "{\"a\":\"\\u0001${a}\\u0002\",\"b\":\"\\u0001${a}\\u0002\"}");
  resolved_as ("{a: '${nothing}/x', b: '?"
               "?"
               "?', c: '${', d: '${oc.env:HOME}', e: '${multiply:a,2}'}",
               "{\"a\":\"\\u0001${nothing}\\u0002/x\",\"b\":\"\\u0001?"
               "??\\u0002\",\"c\":\"${\","
               "\"d\":\"\\u0001${oc.env:HOME}\\u0002\",\"e\":\"\\u0001${multiply:a,2}\\u0002\"}");
}

/* Each a copy of the next, twice; a chain in which each holds the next; braces that never close. */
static void
interpolations_are_bounded (void)
{
  GString *text = g_string_new ("{"), *chain = g_string_new ("{z: {v: 1}"), *open = g_string_new ("{a: '");
  for (int i = 0; i < 60; i++) {
    g_string_append_printf (text, "a%d: '${a%d}${a%d}', ", i, i + 1, i + 1);
    g_string_append_printf (chain, ", b%d: {v: '${%s}'}", i, i == 0 ? "z" : "x");
  }
  g_string_append (text, "a60: xxxxxxxx}");
  g_string_append_c (chain, '}');
  for (int i = 0; i < 20000; i++)
    g_string_append (open, "${");
  g_string_append (open, "'}");
  const char *const texts[] = { text->str, chain->str, open->str };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    LsImport import = { .made.remarks = g_array_new (FALSE, FALSE, sizeof (LsRemark)) };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    const ImportFile file = { .path = "a.yaml", .text = (char *) texts[i], .n = strlen (texts[i]) };
    cJSON *tree = cJSON_CreateObject ();
    yaml_config_add (tree, &file, &import, diags);
    yaml_config_resolve (tree);
    char *json = cJSON_PrintUnformatted (tree);
    LS_CHECK (json && strlen (json) < 64 << 20);
    cJSON_free (json);
    cJSON_Delete (tree);
    g_array_unref (import.made.remarks);
  }
  g_string_free (text, TRUE);
  g_string_free (chain, TRUE);
  g_string_free (open, TRUE);
}

LS_TEST_SUITE (LS_TEST (interpolations_are_resolved), LS_TEST (interpolations_are_bounded))
