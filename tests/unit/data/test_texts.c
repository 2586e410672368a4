/* Pins the forms of text as they are read and written: YAML, TOML, tables, and JSON. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "data/text/csv.h"
#include "data/text/json_doc.h"
#include "data/text/json_out.h"
#include "data/text/json_pull.h"
#include "data/text/toml.h"
#include "data/text/yaml.h"

/* Pins what YAML is to us: scalars as PyYAML resolves them, aliases, merges and tags; where a fault is said
 * to be; and that nothing grows beyond its bounds, whatever aliases repeat. */

/* As JSON; of a fault "LINE:COL: what", its first line. */
static char *
read_yaml (const char *text)
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
    g_autofree char *got = read_yaml (cases[i].text);
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
    { "[1:30:00, 1:60, 0:30, 01:30, 12:5, '1:30']", "[5400,\"1:60\",\"0:30\",\"01:30\",725,\"1:30\"]" },
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
    { "a: {<<: 3}", "1:9: error: expected a mapping, or a list of them, after <<" },
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
    { "a: 1\nb: \xff", "2:4: error: invalid UTF-8; expected YAML" },
  };
  check (cases, G_N_ELEMENTS (cases));
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (!ls_yaml_parse ("a: \0", 4, "t", NULL, diags));
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 1);
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
    g_autofree char *got = read_yaml (texts[i]);
    LS_CHECK (strstr (got, expected[i]) != NULL);
  }
  g_string_free (text, TRUE);
  g_string_free (bytes, TRUE);
  g_string_free (deep, TRUE);
}

/* Pins TOML 1.0: what its texts mean as a tree, what is refused and on which line, and the limits. */

/* expected: the tree as JSON. */
static void
toml_check (const char *text, const char *expected)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *tree = ls_toml_parse (text, strlen (text), "a.toml", diags), *json = cJSON_Parse (expected);
  g_autofree char *said = ls_diag_list_format (diags);
  char *found = tree ? cJSON_PrintUnformatted (tree) : NULL;
  ls_check_impl (json && tree && cJSON_Compare (tree, json, true), __FILE__, __LINE__,
                 "%s\nis %s, expected %s\n%s", text, found ? found : "refused", expected, said);
  free (found);
  cJSON_Delete (tree);
  cJSON_Delete (json);
}

/* part: of what is said; "a.toml:2:3: error: ..." */
static void
check_refused (const char *text, const char *part)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *tree = ls_toml_parse (text, strlen (text), "a.toml", diags);
  g_autofree char *said = ls_diag_list_format (diags);
  ls_check_impl (!tree && strstr (said, part), __FILE__, __LINE__, "%s\n%s: expected \"%s\"; got %s", text,
                 tree ? "read" : "refused", part, said);
  cJSON_Delete (tree);
}

static void
tables_are_objects (void)
{
  toml_check ("", "{}");
  toml_check ("# a\n\n  [a]\nx = 1 # b\r\n[ a . 'b c' ]\ny = 2\n[c]",
              "{\"a\":{\"x\":1,\"b c\":{\"y\":2}},\"c\":{}}");
  toml_check ("[a.b]\nx = 1\n[a]\ny = 2", "{\"a\":{\"b\":{\"x\":1},\"y\":2}}");
  toml_check ("[[a]]\nx = 1\n[[a]]\n[a.b]\ny = 2\n[[a.c]]",
              "{\"a\":[{\"x\":1},{\"b\":{\"y\":2},\"c\":[{}]}]}");
  toml_check ("a.b = 1\na.\"c\".d = 2\n3.1 = 'x'\n\"\" = 0",
              "{\"a\":{\"b\":1,\"c\":{\"d\":2}},\"3\":{\"1\":\"x\"},\"\":0}");
  toml_check ("[f]\na.c = 1\n[f.a.t]\ns = 2", "{\"f\":{\"a\":{\"c\":1,\"t\":{\"s\":2}}}}");
  toml_check ("a = { x = 1, y.z = {}, 'w' = [ {} ] }", "{\"a\":{\"x\":1,\"y\":{\"z\":{}},\"w\":[{}]}}");
  toml_check ("a = [ # c\n 1,\n\n [ 'x', ], # d\n]\nb = []", "{\"a\":[1,[\"x\"]],\"b\":[]}");
}

static void
strings_of_all_kinds (void)
{
  toml_check ("a = \"x\\t\\\"\\u00e9\\U0001F600\\\\\"\nb = 'C:\\n'\nc = ''",
              "{\"a\":\"x\\t\\\"\303\251\360\237\230\200\\\\\",\"b\":\"C:\\\\n\",\"c\":\"\"}");
  toml_check ("a = \"\"\"\nx\\\n   \n  y\n\"\"\"\nb = '''\n'a''b'''''\nc = \"\"\"\"\"\"",
              "{\"a\":\"xy\\n\",\"b\":\"'a''b''\",\"c\":\"\"}");
}

static void
numbers_of_all_kinds (void)
{
  toml_check ("a = [1_000, -0, +9, 0xDEAD_beef, 0o17, 0b101, 1.5, -2e3, 6.02E+2_3, 0e0]",
              "{\"a\":[1000,0,9,3735928559,15,5,1.5,-2000,6.02e23,0]}");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  static const char text[] = "a = inf\nb = -inf\nc = nan\nd = 9223372036854775807\ne = true\nf = false";
  cJSON *tree = ls_toml_parse (text, strlen (text), "a.toml", diags);
  if (!LS_CHECK (tree != NULL))
    return;
  LS_CHECK (isinf (cJSON_GetObjectItem (tree, "a")->valuedouble));
  LS_CHECK (cJSON_GetObjectItem (tree, "b")->valuedouble < 0);
  LS_CHECK (isnan (cJSON_GetObjectItem (tree, "c")->valuedouble));
  LS_CHECK_STR (cJSON_GetObjectItem (tree, "d")->valuestring, "9223372036854775807");
  LS_CHECK (cJSON_IsTrue (cJSON_GetObjectItem (tree, "e"))
            && cJSON_IsFalse (cJSON_GetObjectItem (tree, "f")));
  cJSON_Delete (tree);
}

static void
dates_are_texts (void)
{
  toml_check ("a = [1979-05-27T07:32:00Z, 1979-05-27 00:32:00.999999-07:00, 2024-02-29, 07:32:00]",
              "{\"a\":[\"1979-05-27T07:32:00Z\",\"1979-05-27 00:32:00.999999-07:00\",\"2024-02-29\","
              "\"07:32:00\"]}");
  static const char *const bad[] = { "2023-02-29", "2024-13-01",           "2024-1-01", "24:00:00", "07:32",
                                     "07:32:00.",  "1979-05-27T07:32:00+7" };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *text = g_strconcat ("a = ", bad[i], NULL);
    check_refused (text, "a.toml:1:5: error: not a date");
  }
}

static void
what_is_invalid_is_refused_at_its_line (void)
{
  static const char *const cases[][2] = {
    { "a = 1\na = 2", "a.toml:2:1: error: \"a\" is defined already" },
    { "[a]\n[a]", "a.toml:2:2: error: \"a\" is defined already" },
    { "a = 1\n[a.b]", "a.toml:2:2: error: \"a\" is defined already, and no table" },
    { "a = {}\n[a.b]", "\"a\" is defined already, and no table" },
    { "a = []\n[[a]]", "no array of tables" },
    { "[[a]]\n[a]", "\"a\" is defined already" },
    { "a.b = 1\n[a]", "\"a\" is defined already" },
    { "[a.b.c]\nz = 9\n[a]\nb.c.t = 1", "a.toml:4:1: error: \"b\" is defined already" },
    { "a = { x = 1 }\na.y = 2", "\"a\" is defined already" },
    { "a = { x.y = 1, x = 2 }", "\"x\" is defined already" },
    { "a = 1 b = 2", "a.toml:1:7: error: expected the end of the line" },
    { "a =", "expected a value" },
    { "a", "expected '='" },
    { "= 1", "expected a key" },
    { "[a", "expected ']'" },
    { "[[a]", "expected ']]'" },
    { "a = [1 2]", "expected ',' or ']'" },
    { "a = [1", "expected ',' or ']'" },
    { "a = {x = 1,}", "expected a key" },
    { "a = {x = 1\n}", "expected ',' or '}'" },
    { "a = \"x\ny\"", "the line ends within a string" },
    { "a = '''x", "the text ends within a string" },
    { "a = \"\\x41\"", "not an escape" },
    { "a = \"\\uD800\"", "no character" },
    { "a = \"\\u0000\"", "a NUL" },
    { "a = \"\\u12\"", "hexadecimal digits" },
    { "a = 'x\001'", "the line ends" },
    { "# x\001\n", "control character" },
    { "a = 1\rb = 2", "expected the end" },
    { "a = 9223372036854775808", "beyond 64 bits" },
    { "a = \"\377\"", "invalid UTF-8" },
  };
  static const char *const numbers[] = { "01",   "1_", "_1",   "1__0", "1.",    ".5",  "1.e3", "0x",  "0XA",
                                         "+0x1", "1e", "truE", "Inf",  "1.2.3", "0b2", "--1",  "1_.0" };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    check_refused (cases[i][0], cases[i][1]);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    g_autofree char *text = g_strconcat ("a = ", numbers[i], NULL);
    check_refused (text, "a.toml:1:5: error: not a");
  }
}

static void
check_repeated (const char *head, const char *part, guint n, const char *tail, const char *refusal)
{
  GString *text = g_string_new (head);
  for (guint i = 0; i < n; i++)
    g_string_append (text, part);
  g_string_append (text, tail);
  check_refused (text->str, refusal);
  g_string_free (text, TRUE);
}

static void
hostile_sizes_are_refused (void)
{
  check_repeated ("a = ", "[", 100000, "", "nested deeper than 64");
  check_repeated ("a = ", "{b = ", 100000, "", "nested deeper than 64");
  check_repeated ("a", ".a", 100000, " = 1", "nested deeper than 64");
  check_repeated ("[a", ".a", 100000, "]", "nested deeper than 64");
  check_repeated ("a = [", "1,", 200000, "]", "more than 100000 values");
  check_repeated ("", "[[a]]\n", 200000, "", "more than 100000 values");
}

/* Pins how tables are read and where mistakes in them are said to be. */

static void
cells_are_found_by_row_and_column_name (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "id,gpus\na,8\r\n\nb,16", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  LS_CHECK_INT (ls_csv_n_rows (csv), ==, 2);
  LS_CHECK_INT (ls_csv_column (csv, "gpus"), ==, 1);
  LS_CHECK_INT (ls_csv_column (csv, "nodes"), ==, -1);
  LS_CHECK_STR (ls_csv_cell (csv, 0, 1), "8");
  LS_CHECK_STR (ls_csv_cell (csv, 1, 0), "b");
}

static void
quoted_cells_hold_commas_quotes_and_lines (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "a,b\n\"x, \"\"y\"\"\",\"1\n2\"\n,\n", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  LS_CHECK_STR (ls_csv_cell (csv, 0, 0), "x, \"y\"");
  LS_CHECK_STR (ls_csv_cell (csv, 0, 1), "1 2"); /* base/printable.h */
  LS_CHECK_STR (ls_csv_cell (csv, 1, 1), "");
}

/* The table is refused and its first diagnostic begins so. */
static void
csv_check_refused (const char *text, const char *expected_start)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", text, -1, diags);
  LS_CHECK (csv == NULL);
  g_autofree char *got = ls_diag_list_format (diags);
  ls_check_impl (g_str_has_prefix (got, expected_start), __FILE__, __LINE__, "\"%s\" begins with \"%s\"", got,
                 expected_start);
}

static void
broken_tables_are_refused_with_their_place (void)
{
  csv_check_refused ("", "t.csv:1:1: error: expected a header row; got an empty file");
  csv_check_refused ("\n\n", "t.csv:1:1: error: expected a header row; got an empty file");
  csv_check_refused ("a,b\n1\n", "t.csv:2:1: error: expected 2 cells as in the header; got 1");
  csv_check_refused ("a,b\n1,2\n1,2,3\n", "t.csv:3:1: error: expected 2 cells as in the header; got 3");
  csv_check_refused ("a,b,a\n", "t.csv:1:5: error: duplicate column \"a\"");
  csv_check_refused ("a,b\n1,\"2\n", "t.csv:2:3: error: expected a closing quote; got the end of the file");
}

/* Above the header, between rows and at the end; in a cell '#' is a letter, and what begins with it is written
 * in quotes. Places are those of the file. */
static void
lines_that_begin_with_a_hash_are_comments (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "# a, b\r\n#\nid,n\n#x,1\ny,#2\n\"#z\",3\n# end", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  LS_CHECK_INT (ls_csv_n_rows (csv), ==, 2);
  LS_CHECK_STR (ls_csv_cell (csv, 0, 1), "#2");
  LS_CHECK_STR (ls_csv_cell (csv, 1, 0), "#z");
  g_autoptr (GString) out = g_string_new (NULL);
  ls_csv_append (out, "#z");
  LS_CHECK_STR (out->str, "\"#z\"");
  csv_check_refused ("# only a comment", "t.csv:1:1: error: expected a header row; got an empty file");
  csv_check_refused ("# semicolons\na;b;c\n",
                     "t.csv:2:2: error: expected commas between cells; got semicolons");
  csv_check_refused ("\xef\xbb\xbf\xc3\xa9;b;c\n", /* columns are code points, without a byte order mark */
                     "t.csv:1:2: error: expected commas between cells; got semicolons");
  csv_check_refused ("# short\na,b\n1\n", "t.csv:3:1: error: expected 2 cells as in the header; got 1");
}

static void
columns_of_a_place_count_code_points (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "id,n\n\xc3\xa9\xc3\xa9,x\n", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  ls_csv_error (csv, 0, 1, diags, "expected a number");
  g_autofree char *got = ls_diag_list_format (diags);
  LS_CHECK (strstr (got, "t.csv:2:4: error: /\xc3\xa9\xc3\xa9/n: expected a number") == got);
}

/* A JSON file in one line is such a header; 10^10 comparisons if each name met each. */
static void
a_very_wide_header_is_refused_at_once (void)
{
  g_autoptr (GString) text = g_string_new ("k");
  for (int i = 1; i < 200000; i++)
    g_string_append (text, ",k");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", text->str, -1, diags);
  LS_CHECK (csv == NULL);
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 199999);
}

static void
cells_are_printable (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "id\n\"a\x1b[1m\nb\u202e\"\n", -1, diags);
  if (LS_CHECK (csv != NULL))
    LS_CHECK_STR (ls_csv_cell (csv, 0, 0), "a?[1m b?");
}

/* What a spreadsheet would calculate stands behind an apostrophe; numbers and options of ours do not. */
static void
no_cell_is_a_formula (void)
{
  static const char *const cells[][2] = {
    { "=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\"" },
    { "=1+1", "\"'=1+1\"" },
    { "@SUM(A1)", "\"'@SUM(A1)\"" },
    { "+1+cmd|'x'!A1", "\"'+1+cmd|'x'!A1\"" },
    { "-2+3+cmd|'x'!A1", "\"'-2+3+cmd|'x'!A1\"" },
    { "--cmd|'x'!A1", "\"'--cmd|'x'!A1\"" },
    { "\t=1", "\"'\t=1\"" },
    { "-0.5", "-0.5" },
    { "+1e-3", "+1e-3" },
    { "-", "-" },
    { "--tp 8 --sp", "--tp 8 --sp" },
    { "#a", "\"#a\"" },
    { "a=b", "a=b" },
    { "", "" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cells); i++) {
    g_autoptr (GString) out = g_string_new (NULL);
    ls_csv_append (out, cells[i][0]);
    LS_CHECK_STR (out->str, cells[i][1]);
  }
}

static void
a_missing_file_is_an_input_error (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("no/such/file.csv", NULL, -1, diags);
  g_autoptr (GError) error = NULL;
  LS_CHECK (csv == NULL);
  LS_CHECK (!ls_diag_list_to_error (diags, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
}

/* --- JSON --------------------------------------------------------------------------------- */

/* Pins: where a diagnostic points (every node of a document is found again), JSON
 * pointers, and which texts are not JSON to us. Messages are pinned by
 * tests/reject. */

static LsJsonDoc *
parse (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJsonDoc *doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  LS_CHECK ((doc != NULL) == (ls_diag_list_n (diags) == 0));
  return doc;
}

static const cJSON *
member (const cJSON *object, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (object, key);
}

/* The text at the place of a node must parse to the node. */
static int
check_places (const LsJsonDoc *doc, char **lines, const cJSON *node)
{
  int line, col, n = 1;
  ls_json_doc_locate (doc, node, LS_JSON_AT_VALUE, &line, &col);
  g_autofree char *rest = g_strjoinv ("\n", lines + line - 1);
  cJSON *again = cJSON_Parse (g_utf8_offset_to_pointer (rest, col - 1));
  LS_CHECK (again && cJSON_Compare (again, node, 1));
  cJSON_Delete (again);
  for (const cJSON *c = node->child; c; c = c->next)
    n += check_places (doc, lines, c);
  return n;
}

static void
every_node_is_found_again (void)
{
  static const char text[]
      = "\n {\"a\" :\t[1, -2.5e3,[ ],{}, \"}]\\\"\\\\\" ],\r\n"
        "\"\u00e9\\\"{\":{\"b\":true ,\"c\"\n: null},\"d\":[[[\"x\"],[{\"y\":[0]}]]]} \n";
  g_autoptr (LsJsonDoc) doc = parse (text);
  if (!LS_CHECK (doc != NULL))
    return;
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  LS_CHECK_INT (check_places (doc, lines, ls_json_doc_root (doc)), ==, 18);
}

static void
columns_count_code_points (void)
{
  g_autoptr (LsJsonDoc) doc = parse ("{\n  \"\u00e9\u4e2d\": 1, \"b\": 2\n}");
  int line, col;
  const cJSON *b = member (ls_json_doc_root (doc), "b");
  ls_json_doc_locate (doc, b, LS_JSON_AT_VALUE, &line, &col);
  LS_CHECK_INT (line, ==, 2);
  LS_CHECK_INT (col, ==, 17);
  ls_json_doc_locate (doc, b, LS_JSON_AT_KEY, &line, &col);
  LS_CHECK_INT (col, ==, 12);
  ls_json_doc_locate (doc, ls_json_doc_root (doc), LS_JSON_AT_KEY, &line, &col);
  LS_CHECK_INT (line, ==, 1);
  LS_CHECK_INT (col, ==, 1);
}

static void
pointers_are_escaped (void)
{
  g_autoptr (LsJsonDoc) doc = parse ("{\"a/b\": [0, {\"c~d\": 1}]}");
  const cJSON *list = member (ls_json_doc_root (doc), "a/b");
  g_autofree char *root = ls_json_doc_pointer (doc, ls_json_doc_root (doc));
  g_autofree char *deep = ls_json_doc_pointer (doc, list->child->next->child);
  LS_CHECK_STR (root, "");
  LS_CHECK_STR (deep, "/a~1b/1/c~0d");
}

/* Whether a text is no JSON, as it is read to its end. */
static bool
is_bad (LsJsonPull *p)
{
  LsJsonToken token;
  do
    token = ls_json_pull_next (p);
  while (token < LS_TOKEN_END);
  return token == LS_TOKEN_BAD;
}

static void
scanner_accepts_json (void)
{
  static const char *const good[] = {
    "null", " true ", "0",       "-0",
    "1e9",  "1.5E-3", "\"\"",    "\"\\ud83d\\ude00\\n\\/\"",
    "[]",   "{}",     "[[],{}]", "{\"a\":{\"b\":[1,2]},\"c\":\"\"}",
  };
  for (size_t i = 0; i < G_N_ELEMENTS (good); i++) {
    g_autoptr (LsJsonPull) p = ls_json_pull_of_text (good[i], LS_JSON_STRICT);
    LS_CHECK (!is_bad (p));
  }
}

static void
scanner_says_where (void)
{
  static const struct {
    const char *text;
    size_t offset;
  } bad[] = {
    { "", 0 },
    { "[1,]", 3 },
    { "{\"a\":1,}", 7 },
    { "{a:1}", 1 },
    { "[1 2]", 3 },
    { "01", 0 },
    { "[-]", 2 },
    { "1.", 2 },
    { "1e+", 3 },
    { "+1", 0 },
    { "NaN", 0 },
    { "[tru]", 1 },
    { "{\"a\" 1}", 5 },
    { "\"ab", 0 },
    { "\"\t\"", 1 },
    { "\"\\x\"", 1 },
    { "\"\\u12\"", 1 },
    { "\"\\ud800\"", 1 },
    { "\"\\udc00\"", 1 },
    { "\"\\u0000\"", 1 },
    { "{} {}", 3 },
    { "[1}", 2 },
    { "{\"a\":1]", 6 },
    { "// x\n1", 0 },
    { "['a']", 1 },
    { "\xef\xbb\xbf{}", 0 },
    { "{\"a\":", 5 },
    { "nullx", 4 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (LsJsonPull) p = ls_json_pull_of_text (bad[i].text, LS_JSON_STRICT);
    LS_CHECK (is_bad (p));
    const LsJsonFault fault = ls_json_pull_fault (p);
    ls_check_impl (fault.offset == bad[i].offset, __FILE__, __LINE__, "%s: fault at %zu, not %zu: %s",
                   bad[i].text, fault.offset, bad[i].offset, fault.message);
  }
}

/* A file of nothing but mistakes must not cost a walk for each of them. */
static void
many_mistakes_are_cheap (void)
{
  GString *text = g_string_new ("{\"a\":0");
  for (int i = 0; i < 200000; i++)
    g_string_append (text, ",\"a\":0");
  g_string_append_c (text, '}');
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (!ls_json_doc_parse (text->str, text->len, "t.json", diags));
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 200000);
  g_string_free (text, TRUE);
}

/* Truncation anywhere is noticed; this is the parser's fuzz test in small. */
static void
no_prefix_of_a_document_is_one (void)
{
  static const char text[] = "{\"a\":[1,true,null,{\"b\":\"x\\u00e9\\n\"}],\"c\":-1.5e2}";
  for (size_t n = 0; n < sizeof text - 1; n++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, n, "t.json", diags);
    LS_CHECK (!doc && ls_diag_list_n (diags) == 1);
  }
}

static void
check_message (const char *text, size_t n, const char *message)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, n, "t", diags);
  g_autofree char *shown = ls_diag_list_format (diags);
  LS_CHECK (!doc);
  LS_CHECK_STR (shown, message);
}

/* What tests/reject cannot well hold. */
static void
bytes_that_are_no_text (void)
{
  check_message ("[1,\0 2]", 7, "t:1:4: error: a NUL byte; expected JSON text\n    1 | [1,\n      |    ^\n");
  check_message (
      "[\"\xc3\x28\"]", 6,
      "t:1:3: error: invalid UTF-8; expected JSON text\n    1 | [\"\xef\xbf\xbd(\"]\n      |   ^\n");
  check_message (
      "\xff\xfe[\0]\0", 6,
      "t:1:4: error: a NUL byte; expected JSON text\n    1 | \xef\xbf\xbd\xef\xbf\xbd[\n      |    ^\n");
  check_message (" \n", 2, "t:1:1: error: empty file; expected a JSON object\n");
  check_message ("\xef\xbb\xbf{}", 5,
                 "t:1:1: error: unexpected U+FEFF; expected a value\n    1 | ?{}\n      | ^\n");
}

static void
nesting_is_limited (void)
{
  g_autofree char *deep = g_strnfill (LS_JSON_MAX_DEPTH, '[');
  g_autofree char *closed = g_strnfill (LS_JSON_MAX_DEPTH, ']');
  g_autofree char *fits = g_strconcat (deep, closed, NULL);
  g_autofree char *hostile = g_strnfill (1 << 22, '[');
  g_autofree char *seen = g_strnfill (96, '[');
  g_autofree char *message = g_strdup_printf (
      "t:1:65: error: nested deeper than 64 levels\n    1 | ...%s...\n      | %*s^\n", seen, 34, "");
  g_autoptr (LsJsonDoc) good = parse (fits);
  LS_CHECK (good != NULL);
  check_message (hostile, strlen (hostile), message);
}

static void
check_load (const char *path, const char *message)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load (path, diags);
  g_autofree char *shown = ls_diag_list_format (diags);
  LS_CHECK (!doc);
  LS_CHECK_STR (shown, message);
}

static void
what_is_no_file (void)
{
  check_load ("/", "/: error: is a directory; expected a file\n");
  check_load ("/nonexistent.json",
              "/nonexistent.json: error: cannot read this file: No such file or directory\n");
  if (g_file_test ("/dev/zero", G_FILE_TEST_EXISTS)) /* endless */
    check_load ("/dev/zero", "/dev/zero: error: is a pipe or a device; expected a file, or /dev/stdin\n");
}

static void
what_is_too_large (void)
{
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("ls-large-XXXXXX", &path, NULL);
  LS_CHECK_INT (ftruncate (fd, ((off_t) 64 << 20) + 1) + close (fd), ==, 0);
  g_autofree char *message
      = g_strconcat (path, ": error: larger than 64 MiB; expected a smaller file\n", NULL);
  check_load (path, message);
  g_unlink (path);
}

/* A program that gets its input through a pipe. */
static void
standard_input_may_be_a_pipe (void)
{
  int ends[2], old = dup (STDIN_FILENO);
  if (!LS_CHECK (old >= 0 && pipe (ends) == 0))
    return;
  LS_CHECK_INT (write (ends[1], "[1]", 3), ==, 3);
  LS_CHECK_INT (dup2 (ends[0], STDIN_FILENO) + close (ends[0]) + close (ends[1]), ==, STDIN_FILENO);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load ("/dev/stdin", diags);
  LS_CHECK (doc && cJSON_IsArray (ls_json_doc_root (doc)));
  LS_CHECK_INT (dup2 (old, STDIN_FILENO) + close (old), ==, STDIN_FILENO);
}

static void
stems_lose_folder_and_suffix (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse ("{}", 2, "topologies/gpu/a100.json", diags);
  g_autofree char *stem = ls_json_doc_stem (doc);
  LS_CHECK_STR (stem, "a100");
}

/* Token by token: behind a fault there is nothing more. */
static void
what_is_bad_stays_bad (void)
{
  static const char text[] = "[1, }, 2]";
  g_autoptr (LsJsonPull) p = ls_json_pull_new (ls_input_of_memory (text, strlen (text)), "t.json");
  LS_CHECK_INT (ls_json_pull_next (p), ==, LS_TOKEN_ARRAY);
  LS_CHECK_INT (ls_json_pull_next (p), ==, LS_TOKEN_NUMBER);
  for (int i = 0; i < 3; i++)
    LS_CHECK_INT (ls_json_pull_next (p), ==, LS_TOKEN_BAD);
}

/* Pins: the text that the writer makes, and that every double reads back. */

static void
write_sample (LsJsonOut *w)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "s", "a\"\\\n\t\001\u00e9");
  ls_json_out_string (w, "none", NULL);
  ls_json_out_begin_array (w, "list");
  ls_json_out_int (w, NULL, INT64_MIN);
  ls_json_out_uint (w, NULL, UINT64_MAX);
  ls_json_out_bool (w, NULL, false);
  ls_json_out_null (w, NULL);
  ls_json_out_double (w, NULL, NAN);
  ls_json_out_double (w, NULL, -INFINITY);
  ls_json_out_end_array (w);
  ls_json_out_begin_object (w, "empty");
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
compact (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  write_sample (&w);
  LS_CHECK_STR (text->str,
                "{\"s\":\"a\\\"\\\\\\n\\t\\u0001\u00e9\",\"none\":null,"
                "\"list\":[-9223372036854775808,18446744073709551615,false,null,null,null],\"empty\":{}}");
}

static void
indented (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_begin_array (&w, "a");
  ls_json_out_int (&w, NULL, 1);
  ls_json_out_int (&w, NULL, 2);
  ls_json_out_end_array (&w);
  ls_json_out_double (&w, "b", 0.1);
  ls_json_out_end_object (&w);
  LS_CHECK_STR (text->str, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": 0.10000000000000001\n}");
}

static void
what_is_written_is_json (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJsonOut w;
  ls_json_out_init (&w, text, 1);
  ls_json_out_begin_array (&w, NULL);
  ls_json_out_string (&w, NULL, "\377 not UTF-8");
  double x = 1;
  for (int i = 0; i < 200; i++, x = -x * 3.7e-3 + 1e-300)
    ls_json_out_double (&w, NULL, x);
  ls_json_out_end_array (&w);

  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text->str, text->len, "t", diags);
  if (!LS_CHECK (doc != NULL))
    return;
  const cJSON *node = ls_json_doc_root (doc)->child->next;
  x = 1;
  for (int i = 0; i < 200; i++, x = -x * 3.7e-3 + 1e-300, node = node->next)
    LS_CHECK_DOUBLE (node->valuedouble, ==, x);
}

static void
members_are_found_by_their_way (void)
{
  static const char text[] = "{\"a\": {\"b\": {\"c\": 3}, \"d\": [1]}}";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  if (!LS_CHECK (doc != NULL))
    return;
  LS_CHECK_INT (ls_json_doc_at (doc, "a.b.c")->valueint, ==, 3);
  LS_CHECK (ls_json_at (ls_json_doc_at (doc, "a"), "d") == ls_json_doc_at (doc, "a.d"));
  LS_CHECK (ls_json_doc_at (doc, "a.d.c") == NULL && ls_json_doc_at (doc, "x.b") == NULL);
  LS_CHECK_INT (ls_json_doc_at (doc, "a.d.0")->valueint, ==, 1);
  LS_CHECK (ls_json_doc_at (doc, "a.d.1") == NULL);
  LS_CHECK (ls_json_at (NULL, "a") == NULL);
  LS_CHECK (!ls_json_doc_unexpected (doc, ls_json_doc_at (doc, "a.d"), diags, "a number"));
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK (strstr (said, "/a/d: expected a number; got an array\n") != NULL);
}

LS_TEST_SUITE (
    LS_TEST (scalars_are_those_of_pyyaml), LS_TEST (tags_are_kept_as_text),
    LS_TEST (aliases_are_copies_and_merges_lie_below), LS_TEST (faults_have_their_line),
    LS_TEST (equal_keys_are_told), LS_TEST (what_aliases_repeat_is_bounded), LS_TEST (tables_are_objects),
    LS_TEST (strings_of_all_kinds), LS_TEST (numbers_of_all_kinds), LS_TEST (dates_are_texts),
    LS_TEST (what_is_invalid_is_refused_at_its_line), LS_TEST (hostile_sizes_are_refused),
    LS_TEST (cells_are_found_by_row_and_column_name), LS_TEST (quoted_cells_hold_commas_quotes_and_lines),
    LS_TEST (broken_tables_are_refused_with_their_place), LS_TEST (lines_that_begin_with_a_hash_are_comments),
    LS_TEST (columns_of_a_place_count_code_points), LS_TEST (a_very_wide_header_is_refused_at_once),
    LS_TEST (cells_are_printable), LS_TEST (no_cell_is_a_formula), LS_TEST (a_missing_file_is_an_input_error),
    LS_TEST (what_is_bad_stays_bad), LS_TEST (every_node_is_found_again), LS_TEST (columns_count_code_points),
    LS_TEST (pointers_are_escaped), LS_TEST (scanner_accepts_json), LS_TEST (scanner_says_where),
    LS_TEST (nesting_is_limited), LS_TEST (many_mistakes_are_cheap), LS_TEST (no_prefix_of_a_document_is_one),
    LS_TEST (bytes_that_are_no_text), LS_TEST (what_is_no_file), LS_TEST (what_is_too_large),
    LS_TEST (standard_input_may_be_a_pipe), LS_TEST (stems_lose_folder_and_suffix), LS_TEST (compact),
    LS_TEST (indented), LS_TEST (what_is_written_is_json), LS_TEST (members_are_found_by_their_way))
