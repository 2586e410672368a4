/* Pins JSON as it is read and written. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "data/text/json_doc.h"
#include "data/text/json_out.h"
#include "data/text/json_pull.h"

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

LS_TEST_SUITE (LS_TEST (what_is_bad_stays_bad), LS_TEST (every_node_is_found_again),
               LS_TEST (columns_count_code_points), LS_TEST (pointers_are_escaped),
               LS_TEST (scanner_accepts_json), LS_TEST (scanner_says_where), LS_TEST (nesting_is_limited),
               LS_TEST (many_mistakes_are_cheap), LS_TEST (no_prefix_of_a_document_is_one),
               LS_TEST (bytes_that_are_no_text), LS_TEST (what_is_no_file), LS_TEST (what_is_too_large),
               LS_TEST (standard_input_may_be_a_pipe), LS_TEST (stems_lose_folder_and_suffix),
               LS_TEST (compact), LS_TEST (indented), LS_TEST (what_is_written_is_json))
