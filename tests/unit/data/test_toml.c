/* Pins TOML 1.0: what its texts mean as a tree, what is refused and on which line, and the limits. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/text/json_scan.h"
#include "data/text/toml.h"

/* expected: the tree as JSON. */
static void
check (const char *text, const char *expected)
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
  check ("", "{}");
  check ("# a\n\n  [a]\nx = 1 # b\r\n[ a . 'b c' ]\ny = 2\n[c]",
         "{\"a\":{\"x\":1,\"b c\":{\"y\":2}},\"c\":{}}");
  check ("[a.b]\nx = 1\n[a]\ny = 2", "{\"a\":{\"b\":{\"x\":1},\"y\":2}}");
  check ("[[a]]\nx = 1\n[[a]]\n[a.b]\ny = 2\n[[a.c]]", "{\"a\":[{\"x\":1},{\"b\":{\"y\":2},\"c\":[{}]}]}");
  check ("a.b = 1\na.\"c\".d = 2\n3.1 = 'x'\n\"\" = 0",
         "{\"a\":{\"b\":1,\"c\":{\"d\":2}},\"3\":{\"1\":\"x\"},\"\":0}");
  check ("[f]\na.c = 1\n[f.a.t]\ns = 2", "{\"f\":{\"a\":{\"c\":1,\"t\":{\"s\":2}}}}");
  check ("a = { x = 1, y.z = {}, 'w' = [ {} ] }", "{\"a\":{\"x\":1,\"y\":{\"z\":{}},\"w\":[{}]}}");
  check ("a = [ # c\n 1,\n\n [ 'x', ], # d\n]\nb = []", "{\"a\":[1,[\"x\"]],\"b\":[]}");
}

static void
strings_of_all_kinds (void)
{
  check ("a = \"x\\t\\\"\\u00e9\\U0001F600\\\\\"\nb = 'C:\\n'\nc = ''",
         "{\"a\":\"x\\t\\\"\303\251\360\237\230\200\\\\\",\"b\":\"C:\\\\n\",\"c\":\"\"}");
  check ("a = \"\"\"\nx\\\n   \n  y\n\"\"\"\nb = '''\n'a''b'''''\nc = \"\"\"\"\"\"",
         "{\"a\":\"xy\\n\",\"b\":\"'a''b''\",\"c\":\"\"}");
}

static void
numbers_of_all_kinds (void)
{
  check ("a = [1_000, -0, +9, 0xDEAD_beef, 0o17, 0b101, 1.5, -2e3, 6.02E+2_3, 0e0]",
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
  check ("a = [1979-05-27T07:32:00Z, 1979-05-27 00:32:00.999999-07:00, 2024-02-29, 07:32:00]",
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

LS_TEST_SUITE (LS_TEST (tables_are_objects), LS_TEST (strings_of_all_kinds), LS_TEST (numbers_of_all_kinds),
               LS_TEST (dates_are_texts), LS_TEST (what_is_invalid_is_refused_at_its_line),
               LS_TEST (hostile_sizes_are_refused))
