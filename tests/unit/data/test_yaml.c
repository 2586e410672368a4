/* Pins what YAML is to us: scalars as PyYAML resolves them, aliases, merges and tags; where a fault is said
 * to be; and that nothing grows beyond its bounds, whatever aliases repeat. */
#include "ls_test.h"

#include <string.h>

#include "data/text/yaml.h"

/* As JSON; of a fault "LINE:COL: what", its first line. */
static char *
read (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *root = ls_yaml_parse (text, strlen (text), "t", NULL, diags);
  if (!root) {
    g_autofree char *what = ls_diag_list_format (diags);
    return g_strndup (what + strlen ("t:"), strcspn (what, "\n") - strlen ("t:"));
  }
  char *json = cJSON_PrintUnformatted (root), *copy = g_strdup (json);
  cJSON_free (json);
  cJSON_Delete (root);
  return copy;
}

typedef struct {
  const char *text, *expected;
} Case;

static void
check (const Case *cases, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_autofree char *got = read (cases[i].text);
    LS_CHECK_STR (got, cases[i].expected);
  }
}

/* What yaml.safe_load () of PyYAML 6.0 gives. */
static void
scalars_are_those_of_pyyaml (void)
{
  static const Case cases[] = {
    { "[null, ~, Null, NULL, nUll, '', ]", "[null,null,null,null,\"nUll\",\"\"]" },
    { "[yes, No, on, OFF, True, y, n, yEs, 'yes']",
      "[true,false,true,false,true,\"y\",\"n\",\"yEs\",\"yes\"]" },
    { "[12, -3, +4, 1_000, 0x1F, 0b101, 017, 08, 0o17, 0]", "[12,-3,4,1000,31,5,15,\"08\",\"0o17\",0]" },
    { "[1.5, .5, 1., 1e9, 1.5e9, 1.5e+3, 1e-4, 1.0e-4, -.5, -1.5, 1_0.5, ._5]",
      "[1.5,0.5,1,\"1e9\",\"1.5e9\",1500,\"1e-4\",0.0001,-0.5,-1.5,10.5,\"._5\"]" },
    { "[1:30:00, 1:60, 0:30, 12:5, '1:30']", "[5400,\"1:60\",\"0:30\",725,\"1:30\"]" },
    { "[.inf, -.inf, .nan, 1.0e+999]", "[\".inf\",\"-.inf\",\".nan\",\"1.0e+999\"]" },
    { "[123456789012345, 9007199254740993123, -9007199254740993123]",
      "[123456789012345,\"9007199254740993123\",\"-9007199254740993123\"]" },
    { "[2024-01-01, 1.2.3, -, a: b, 1_, _1, +, 0x, 1__2]",
      "[\"2024-01-01\",\"1.2.3\",\"-\",{\"a\":\"b\"},1,\"_1\",\"+\",\"0x\",12]" },
    { "a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}" },
    { "", "null" },
    { "# nothing\n", "null" },
    { "yes: 1\n3: 2\n", "{\"yes\":1,\"3\":2}" },
  };
  check (cases, G_N_ELEMENTS (cases));
}

static void
tags_are_kept_as_text (void)
{
  static const Case cases[] = {
    { "[!!str 3, !!int '3', !!float 1e9, !!bool 'on', !!null x, ! 3, !!int x]",
      "[\"3\",3,1000000000,true,null,\"3\",\"x\"]" },
    { "dtype: !!python/name:torch.bfloat16 ''", "{\"dtype\":\"!!python/name:torch.bfloat16\"}" },
    { "a: !!python/object:x.Y {b: 1}", "{\"a\":{\"!\":\"!!python/object:x.Y\",\"b\":1}}" },
    { "a: !!python/tuple [1, 2]", "{\"a\":{\"!\":\"!!python/tuple\",\"=\":[1,2]}}" },
    { "a: !ENV x", "{\"a\":\"x\"}" },
    { "!!map {a: !!seq [1]}", "{\"a\":[1]}" },
  };
  check (cases, G_N_ELEMENTS (cases));
}

static void
aliases_are_copies_and_merges_lie_below (void)
{
  static const Case cases[] = {
    { "{a: &x {b: 1}, c: *x, d: &y 2, e: [*y, *x]}",
      "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"d\":2,\"e\":[2,{\"b\":1}]}" },
    { "a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x\n", "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"c\":3,\"b\":1}}" },
    { "a: &x {b: 1}\nd: {<<: [*x, {b: 2, c: 3}]}", "{\"a\":{\"b\":1},\"d\":{\"b\":1,\"c\":3}}" },
    { "{'<<': 1}", "{\"<<\":1}" },
    { "a: &x 1\na: 2\nb: *x", "{\"a\":2,\"b\":1}" },
    { "{<<: {a: &x {b: 1}}, c: *x}", "{\"c\":{\"b\":1},\"a\":{\"b\":1}}" },
    { "a: {<<: 3}", "1:9: error: expected a mapping, or a list of them, behind <<" },
    { "a: &x [*x]", "1:8: error: *x: no value with the anchor &x ends before it" },
  };
  check (cases, G_N_ELEMENTS (cases));
}

static void
faults_have_their_line (void)
{
  static const Case cases[] = {
    { "a: 1\nb: [1\nc: 2\n",
      "3:2: error: no YAML: did not find expected ',' or ']', while parsing a flow sequence" },
    { "a: 1\n\tb: 2\n",
      "2:1: error: no YAML: found a tab character that violates indentation, while scanning a plain scalar" },
    { "\xef\xbb\xbf\xc3\xa9: \"\xc3\xa9\" x\n",
      "1:8: error: no YAML: did not find expected key, while parsing a block mapping" },
    { "--- 1\n--- 2\n", "2:1: error: a second document; expected one in a file" },
    { "a: {{ x }}", "1:5: error: a key that is no scalar" },
    { "? [1]\n: 2", "1:3: error: a key that is no scalar" },
    { "a: &x 1\n*x : 2", "2:1: error: an alias as a key" },
    { "a: \"x\\0y\"", "1:4: error: a NUL byte in this text" },
    { "a: \x01", "1:4: error: no YAML: control characters are not allowed" },
  };
  check (cases, G_N_ELEMENTS (cases));
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (!ls_yaml_parse ("a: \0", 4, "t", NULL, diags));
  LS_CHECK (!ls_yaml_parse ("a: \xff", 4, "t", NULL, diags));
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 2);
}

static void
equal_keys_are_told (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  static const char text[] = "a: 1\nb:\n  c: 2\n  c: 3\na: 4\n";
  cJSON *root = ls_yaml_parse (text, strlen (text), "t", notes, diags);
  LS_CHECK_INT (notes->len, ==, 2);
  LS_CHECK_STR (notes->pdata[0], "line 4: \"c\" again; of equal keys the last holds");
  LS_CHECK_INT (cJSON_GetObjectItem (root, "a")->valueint, ==, 4);
  cJSON_Delete (root);
}

/* Nine lines that stand for 9^9 values; a line that stands for as many bytes; levels. */
static void
what_aliases_repeat_is_bounded (void)
{
  GString *text = g_string_new ("a0: &a0 x\n"), *bytes = g_string_new ("a: &a \""),
          *deep = g_string_new (NULL);
  for (int i = 1; i < 10; i++) {
    g_string_append_printf (text, "a%d: &a%d [", i, i);
    for (int k = 0; k < 9; k++)
      g_string_append_printf (text, "*a%d, ", i - 1);
    g_string_append (text, "]\n");
  }
  for (int i = 0; i < 1 << 20; i++)
    g_string_append_c (bytes, 'x');
  g_string_append (bytes, "\"\nb: [*a");
  for (int i = 0; i < 100; i++)
    g_string_append (bytes, ", *a");
  g_string_append_c (bytes, ']');
  for (int i = 0; i < 65; i++)
    g_string_append_c (deep, '[');
  const char *const texts[] = {
    text->str, bytes->str, deep->str,
    "a: &a [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
    "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\nb: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
  };
  static const char *const expected[]
      = { "aliases repeat more than 65536 values", "aliases repeat more than 4 MiB of text",
          "more than 64 levels", "more than 64 levels" };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autofree char *got = read (texts[i]);
    LS_CHECK (strstr (got, expected[i]) != NULL);
  }
  g_string_free (text, TRUE);
  g_string_free (bytes, TRUE);
  g_string_free (deep, TRUE);
}

LS_TEST_SUITE (LS_TEST (scalars_are_those_of_pyyaml), LS_TEST (tags_are_kept_as_text),
               LS_TEST (aliases_are_copies_and_merges_lie_below), LS_TEST (faults_have_their_line),
               LS_TEST (equal_keys_are_told), LS_TEST (what_aliases_repeat_is_bounded))
